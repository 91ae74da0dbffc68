//go:build go1.25

package rotate

import (
	"encoding/json"
	"errors"
	"expvar"
	"fmt"
	"io"
	"log"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
)

// The counts as a variable of the program, which package expvar serves at /debug/vars.
func ExampleFile_Stats() {
	dir, err := os.MkdirTemp("", "rotate")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	out, err := Open(filepath.Join(dir, "app.log"), Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer out.Close()
	expvar.Publish("log", expvar.Func(func() any { return out.Stats() }))

	fmt.Fprintln(out, "started")
	var seen struct {
		Writes    int64 `json:"writes"`
		Rotations int64 `json:"rotations"`
		AtRisk    int64 `json:"not_durable_bytes"`
	}
	if err := json.Unmarshal([]byte(expvar.Get("log").String()), &seen); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%+v\n", seen)
	// Output: {Writes:1 Rotations:0 AtRisk:8}
}

// exiting makes the test below be a process that logs and ends: how, a path, and a policy, a
// line each.
const exiting = "HOLDFAST_TEST_EXITING_LOG"

// TestWhatTheEndOfAProcessTakes logs a record by log/slog under a policy that keeps it in
// memory, and ends the process in each way that a program has.
func TestWhatTheEndOfAProcessTakes(t *testing.T) {
	if what := os.Getenv(exiting); what != "" {
		how, rest, _ := strings.Cut(what, "\n")
		path, policy, _ := strings.Cut(rest, "\n")
		logAndEnd(how, path, policy)
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const memory, kernel, disk = "buffer=64KiB,sync=1h", "buffer=0,sync=never", "buffer=64KiB,sync=group"
	for _, x := range []struct {
		how, policy string
		kept        bool
	}{
		{"os.Exit", memory, false},
		{"log.Fatal", memory, false}, // it calls os.Exit, which runs no deferred call
		{"panic", memory, false},     // with no deferred call
		{"deferred close, panic", memory, true},
		{"deferred close, os.Exit", memory, false},
		{"close, os.Exit", memory, true},
		{"deferred close, return", memory, true},
		{"sync, log.Fatal", memory, true},
		{"os.Exit", kernel, true},
		{"log.Fatal", kernel, true},
		{"panic", disk, true},
	} {
		t.Run(x.how+" "+x.policy, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "app.log")
			cmd := exec.Command(exe, "-test.run=^TestWhatTheEndOfAProcessTakes$")
			cmd.Env = append(os.Environ(), exiting+"="+x.how+"\n"+path+"\n"+x.policy)
			out, err := cmd.CombinedOutput()
			if failed := !strings.Contains(x.how, "return"); failed != (err != nil) {
				t.Fatalf("%v: %s", err, out)
			}
			text, err := os.ReadFile(path)
			if kept := strings.Contains(string(text), "the last record"); kept != x.kept || err != nil {
				t.Errorf("it is kept: %v, want %v: %s", kept, x.kept, out)
			}
		})
	}
}

func logAndEnd(how, path, policy string) {
	p, err := holdfast.ParsePolicy(policy)
	if err != nil {
		panic(err)
	}
	out, err := Open(path, Options{Policy: p})
	if err != nil {
		panic(err)
	}
	slog.New(slog.NewJSONHandler(out, nil)).Info("the last record")
	for _, step := range strings.Split(how, ", ") {
		switch step {
		case "deferred close":
			defer out.Close()
		case "close":
			out.Close()
		case "sync":
			out.Sync()
		case "os.Exit":
			os.Exit(1)
		case "log.Fatal":
			log.SetOutput(io.Discard)
			log.Fatal("the end")
		case "panic":
			panic("the end")
		}
	}
}

// TestAFailureHeardLateIsNoSecondOne has the Writer report a failure that a call has returned,
// when records are accepted again.
func TestAFailureHeardLateIsNoSecondOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemory(t)
		f := opened(t, d, Options{})
		d.Add(fault.DiskFault{Op: fault.DiskWrite, Err: syscall.ENOSPC})
		if _, err := f.Write([]byte("refused\n")); !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		synctest.Wait()
		d.Mend()
		if _, err := f.Write([]byte("record\n")); err != nil {
			t.Fatal(err)
		}
		f.onWriterError(f.current.Load(), f.reported[0])
		if n := f.Stats().Errors; n != 1 || f.Err() != nil {
			t.Errorf("%d failures, Err = %v", n, f.Err())
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestTwoFailuresHeardLateAreTwo, though calls returned both before the Writer reported the first.
func TestTwoFailuresHeardLateAreTwo(t *testing.T) {
	f := opened(t, newMemory(t), Options{})
	c, failures := f.current.Load(), []*holdfast.WriteError{{Flushed: 1}, {Flushed: 2}}
	for _, err := range failures {
		f.failed(c, err, true)
		f.failing = nil // a record was accepted
	}
	for _, err := range failures {
		f.onWriterError(c, err)
	}
	f.failed(c, failures[1], true)
	if n := f.Stats().Errors; n != 2 || len(f.reported) != 1 {
		t.Errorf("%d failures; %d are known", n, len(f.reported))
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// TestALastingFailureTakesNoMemory, though each rotation meets it anew.
func TestALastingFailureTakesNoMemory(t *testing.T) {
	d := newMemory(t)
	f := opened(t, d, Options{Policy: holdfast.Buffered(4 * holdfast.KiB)})
	f.Write([]byte("record\n"))
	d.Add(fault.DiskFault{Op: fault.DiskWrite, Err: syscall.EIO})
	for range 3 * mostReported {
		if err := f.Rotate(); !errors.Is(err, syscall.EIO) {
			t.Fatal(err)
		}
	}
	f.mu.Lock()
	if n := len(f.reported); n == 0 || n > mostReported {
		t.Errorf("%d failures are kept", n)
	}
	f.mu.Unlock()
	d.Mend()
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// TestStatsHaveTheirKeys in JSON, which say the units. Who reads them looks for no others.
func TestStatsHaveTheirKeys(t *testing.T) {
	text, err := json.Marshal(Stats{Compressing: "app.log"})
	var got map[string]json.RawMessage
	if err := errors.Join(err, json.Unmarshal(text, &got)); err != nil {
		t.Fatal(err)
	}
	want := []string{"compressed", "compressed_bytes", "compressing", "compressing_bytes", "errors", "flush_latency", "flushes", "healed", "longest_sync_ns",
		"not_durable_bytes", "not_flushed_bytes", "oldest_not_durable_ns", "removed", "reopens", "rotations", "sync_latency", "syncs", "system_calls", "waits", "writes"}
	if keys := slices.Sorted(maps.Keys(got)); !slices.Equal(keys, want) {
		t.Errorf("%q, want %q", keys, want)
	}
}
