package advise_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/advise"
)

// goLines are the lines to paste for policies of every kind.
var goLines = map[string]string{
	"buffer=0":                             "holdfast.Create(path, holdfast.Unbuffered())",
	"buffer=64KiB":                         "holdfast.Create(path, holdfast.Buffered(64 * holdfast.KiB))",
	"buffer=1MiB":                          "holdfast.Create(path, holdfast.Buffered(1 * holdfast.MiB))",
	"buffer=1GiB":                          "holdfast.Create(path, holdfast.Buffered(1 * holdfast.GiB))",
	"buffer=1000":                          "holdfast.Create(path, holdfast.Buffered(1000))",
	"buffer=64KiB,sync=1s":                 "holdfast.Create(path, holdfast.Periodic(time.Second))",
	"buffer=64KiB,sync=90m":                "holdfast.Create(path, holdfast.Periodic(90 * time.Minute))",
	"buffer=64KiB,sync=group":              "holdfast.Create(path, holdfast.Durable())",
	"buffer=0,sync=each":                   "holdfast.Create(path, holdfast.EachDurable())",
	"buffer=0,sync=group":                  "holdfast.Create(path, holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncGroup}})",
	"buffer=4KiB,sync=each":                "holdfast.Create(path, holdfast.Policy{Buffer: 4 * holdfast.KiB, Sync: holdfast.Sync{Mode: holdfast.SyncEach}})",
	"buffer=4KiB,sync=close":               "holdfast.Create(path, holdfast.Policy{Buffer: 4 * holdfast.KiB, Sync: holdfast.Sync{Mode: holdfast.SyncClose}})",
	"buffer=64KiB,flush=100ms,sync=1h":     "holdfast.Create(path, holdfast.Policy{Buffer: 64 * holdfast.KiB, FlushEvery: 100 * time.Millisecond, Sync: holdfast.SyncEvery(time.Hour)})",
	"buffer=1,flush=1µs,sync=1.000000001s": "holdfast.Create(path, holdfast.Policy{Buffer: 1, FlushEvery: time.Microsecond, Sync: holdfast.SyncEvery(1000000001 * time.Nanosecond)})",
	"buffer=64KiB,sync=4MiB":               "holdfast.Create(path, holdfast.Policy{Buffer: 64 * holdfast.KiB, Sync: holdfast.Sync{Mode: holdfast.SyncPeriodic, Bytes: 4 * holdfast.MiB}})",
	"buffer=1MiB,flush=64KiB,sync=1s/4MiB": "holdfast.Create(path, holdfast.Policy{Buffer: 1 * holdfast.MiB, FlushBytes: 64 * holdfast.KiB, Sync: holdfast.Sync{Mode: holdfast.SyncPeriodic, Every: time.Second, Bytes: 4 * holdfast.MiB}})",
	"buffer=64KiB,flush=50ms":              "holdfast.Create(path, holdfast.Policy{Buffer: 64 * holdfast.KiB, FlushEvery: 50 * time.Millisecond})",
}

func TestGoLine(t *testing.T) {
	for text, want := range goLines {
		if got := advise.GoLine(policy(text)); got != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
}

// TestGoLineCompilesToThePolicy builds a program of all the lines, runs it, and
// reads off which policies it used.
func TestGoLineCompilesToThePolicy(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a program: not in short mode")
	}
	var lines, want strings.Builder
	for text := range goLines {
		call := strings.TrimSuffix(strings.TrimPrefix(advise.GoLine(policy(text)), "holdfast.Create(path, "), ")")
		fmt.Fprintf(&lines, "\tfmt.Println(%s)\n", call)
		fmt.Fprintln(&want, policy(text))
	}
	file := filepath.Join(t.TempDir(), "main.go")
	program := "package main\n\nimport (\n\t\"fmt\"\n\t\"time\"\n\n\t\"github.com/holdfast-go/holdfast\"\n)\n\nfunc main() {\n" + lines.String() +
		"\tpath := \"\"\n\tw, err := " + advise.GoLine(policy("sync=group")) + "\n\t_, _, _ = w, err, time.Second\n}\n"
	if err := os.WriteFile(file, []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "run", file)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil || string(out) != want.String() {
		t.Errorf("%v: got\n%swant\n%s", err, out, want.String())
	}
}
