package holdfast_test

import (
	"context"
	"encoding"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
)

// Dir returns a new directory for an example's files.
func Dir() string {
	dir, err := os.MkdirTemp("", "holdfast-example-")
	if err != nil {
		log.Fatal(err)
	}
	return dir
}

func Example() {
	dir := Dir()
	defer os.RemoveAll(dir)

	// Whatever crashes, lose at most the records of the last second and of one sync.
	w, err := holdfast.Create(filepath.Join(dir, "events.log"), holdfast.Periodic(time.Second))
	if err != nil {
		log.Fatal(err)
	}
	for i := range 3 {
		if _, err := fmt.Fprintf(w, "event %d\n", i); err != nil {
			log.Fatal(err)
		}
	}
	if err := w.Close(); err != nil { // flushes, syncs and reports every failure
		log.Fatal(err)
	}
	fmt.Println(w.Durable(), "bytes are on stable storage")
	// Output: 24 bytes are on stable storage
}

func ExamplePolicy_Loss() {
	for _, text := range []string{"buffer=64KiB", "buffer=64KiB,flush=100ms,sync=1s", "sync=group"} {
		p, err := holdfast.ParsePolicy(text)
		if err != nil {
			log.Fatal(err)
		}
		loss := p.Loss()
		fmt.Println(p)
		fmt.Println("  process crash:", loss.Process)
		fmt.Println("  power cut:    ", loss.Power)
	}
	// Output:
	// buffer=64KiB,sync=never
	//   process crash: up to 128KiB
	//   power cut:     anything not synced
	// buffer=64KiB,flush=100ms,sync=1s
	//   process crash: the last 100ms + one flush, up to 128KiB
	//   power cut:     the last 1s + one sync
	// buffer=0,sync=group
	//   process crash: nothing
	//   power cut:     nothing
}

// A policy is a flag.
func ExamplePolicy_flag() {
	var policy holdfast.Policy
	flags := flag.NewFlagSet("logger", flag.ContinueOnError)
	flags.SetOutput(os.Stdout)
	flags.Usage = func() {}
	flags.TextVar(&policy, "policy", holdfast.Durable(), "when bytes reach the `disk`")
	flags.PrintDefaults()

	if err := flags.Parse([]string{"-policy", "buffer=1MiB,sync=5s"}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(policy)
	if err := flags.Parse([]string{"-policy", "buffer=1MiB,sync=often"}); err == nil {
		log.Fatal("sync=often was taken")
	}
	// Output:
	//   -policy disk
	//     	when bytes reach the disk (default buffer=64KiB,sync=group)
	// buffer=1MiB,sync=5s
	// invalid value "buffer=1MiB,sync=often" for flag -policy: policy "buffer=1MiB,sync=often": sync: "often" is not never, close, group, each, a duration such as 1s, bytes such as 4MiB, or both such as 1s/4MiB
}

// A policy is a string in JSON.
func ExamplePolicy_json() {
	type config struct {
		Path   string          `json:"path"`
		Policy holdfast.Policy `json:"policy"`
	}
	var c config
	if err := json.Unmarshal([]byte(`{"path": "events.log", "policy": "buffer=64k,sync=1000ms"}`), &c); err != nil {
		log.Fatal(err)
	}
	text, err := json.Marshal(c)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(text))

	err = json.Unmarshal([]byte(`{"policy": "buffer=64KB"}`), &c)
	fmt.Println(err)
	// Output:
	// {"path":"events.log","policy":"buffer=64KiB,sync=1s"}
	// policy "buffer=64KB": buffer: size "64KB" is not clear, because KB is used for 1000 and for 1024 bytes; write 64kB or 64KiB
}

// A policy is a line in a file of YAML, TOML or the like. Their packages read and
// print encoding.TextUnmarshaler and TextMarshaler as text, as this loop does.
func ExamplePolicy_UnmarshalText() {
	const file = `
path: events.log
policy: buffer=256KiB,flush=50ms,sync=close
room: 10MiB
`
	var policy holdfast.Policy
	var room holdfast.Size
	fields := map[string]encoding.TextUnmarshaler{"policy": &policy, "room": &room}
	for line := range strings.Lines(file) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if field, ok := fields[key]; ok {
			if err := field.UnmarshalText([]byte(value)); err != nil {
				log.Fatal(err)
			}
		}
	}
	fmt.Println(policy.FlushEvery, policy.Sync, room)
	// Output: 50ms close 10MiB
}

// Enqueue accepts many records without waiting; one WaitDurable then waits for
// all of them with a single sync.
func ExampleWriter_Enqueue() {
	dir := Dir()
	defer os.RemoveAll(dir)
	w, err := holdfast.Create(filepath.Join(dir, "orders.log"), holdfast.Durable())
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	var end int64
	for _, order := range []string{"bread\n", "salt\n", "tea\n"} {
		if end, err = w.Enqueue([]byte(order)); err != nil {
			log.Fatal(err)
		}
	}
	if err := w.WaitDurable(context.Background(), end); err != nil {
		log.Fatal(err)
	}
	fmt.Println(w.Durable(), "bytes are durable")
	// Output: 15 bytes are durable
}
