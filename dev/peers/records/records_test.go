package records

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// TestMain lets the test binary be the process that a trial is.
func TestMain(m *testing.M) {
	command.Serve(Append, Durable, Latency, Idle, Log)
	os.Exit(isolate.Tests{M: m}.Run())
}

func TestUnknownCommandIsRefused(t *testing.T) { isolate.RefusesUnknownCommand(t) }

func allGroups() []*group {
	return concat(appendGroups(), durableGroups(), latencies(), idles(), logGroups())
}

// TestEveryArmWritesWhatItIsGiven runs each arm of one group of each family with a few records, a
// number that fills no window and no buffer exactly.
func TestEveryArmWritesWhatItIsGiven(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{
		"append/size=40B/goroutines=2", "append/size=1MiB/goroutines=8", "unbuffered/size=200B/goroutines=8", "format=1µs/goroutines=2",
		"procs/goroutines=8", "large/size=32KiB/buffer=4KiB", "close/sync=close/size=64KiB/buffer=1MiB", "lives/buffer=4KiB",
		"sync=disk/size=128B/goroutines=1", "sync=60µs/size=4KiB/goroutines=8", "window/goroutines=8", "rate=200000/sync=1s",
		"log/goroutines=1", "log/goroutines=8", "log4k/goroutines=8", "logsync/sync=60µs/size=4KiB/goroutines=8", "logread/follow/size=128", "logread/order/size=128", "rotate/goroutines=8", "slog/goroutines=8", "sync=15µs/size=128B/goroutines=1",
	} {
		g, _ := command.Find(allGroups(), name, "holdfast")
		for _, a := range g.Arms {
			t.Run(name+"/"+a.Name, func(t *testing.T) {
				w := a.Do.work
				w.goroutines = min(w.goroutines, 3)
				w.each = min(150, max(3, mib/w.size))
				s, err := try(root, a.Do, w)
				if errors.Is(err, errUnsupported) {
					t.Skip(err)
				}
				if err != nil || s.Elapsed <= 0 || s.Units < 1 {
					t.Errorf("%+v, %v", s, err)
				}
			})
		}
	}
	left, err := os.ReadDir(root)
	if err != nil || len(left) > 0 {
		t.Errorf("trials left %v, %v", left, err)
	}
}

// TestIdleWritersHaveTheirRecords has a clock that does not wait.
func TestIdleWritersHaveTheirRecords(t *testing.T) {
	for _, a := range idles()[0].Arms {
		synctest.Test(t, func(t *testing.T) {
			w := a.Do.work
			w.each = 20
			s, err := try(t.TempDir(), a.Do, w)
			if err != nil || s.Units != 20*idleRecords || len(s.Values) != len(idleColumns) || s.Values[3] < 1 {
				t.Errorf("%s: %+v, %v", a.Name, s, err)
			}
		})
	}
}

func TestDistributionOfCalls(t *testing.T) {
	var calls []call
	for i := range 10_001 {
		calls = append(calls, call{took: time.Duration(10_000 - i), late: time.Duration(i) * 2})
	}
	s := command.Sample{Elapsed: time.Second, CPU: time.Second, Units: 1000}
	if got := (work{}).distribution(s, calls); got.Elapsed != s.Elapsed || !slices.Equal(got.Values, []float64{5000, 9900, 10_000, 2}) {
		t.Errorf("timed: %+v", got)
	}
	got := work{rate: 1}.distribution(s, calls)
	if got.Elapsed != 9999 || got.CPU != time.Millisecond || got.Units != 1 || !slices.Equal(got.Values[4:], []float64{10_000, 19_980, 19_998, 20_000}) {
		t.Errorf("at a rate: %+v", got)
	}
}

// TestAppendersCrossTheirBuffers writes more than every buffer holds.
func TestAppendersCrossTheirBuffers(t *testing.T) {
	g, _ := command.Find(appendGroups(), "append/size=40B/goroutines=1", "holdfast")
	for _, a := range g.Arms {
		w := a.Do.work
		w.each = 20_000
		if _, err := try(t.TempDir(), a.Do, w); err != nil && !errors.Is(err, errUnsupported) {
			t.Errorf("%s: %v", a.Name, err)
		}
	}
}

// dropping is a sink that loses the last records.
type dropping struct {
	io.Writer
	left int
}

func (d *dropping) Write(p []byte) (int, error) {
	if d.left--; d.left < 0 {
		return len(p), nil
	}
	return d.Writer.Write(p)
}

func TestWrongBytesDoNotCount(t *testing.T) {
	lossy := how{open: func(dir string, w work) (*sink, error) {
		k, err := openFile(dir, w)
		if err != nil {
			return nil, err
		}
		to, _ := k.writer()
		k.writer = shared(&dropping{to, w.each - 1})
		return k, nil
	}}
	_, err := try(t.TempDir(), lossy, work{goroutines: 1, each: 10, size: 40, policy: "sync=never"})
	if err == nil || !strings.Contains(err.Error(), "goroutine 0 wrote 10 records, the file has 9") {
		t.Errorf("a lost record: %v", err)
	}
	never := work{goroutines: 1, each: 10, size: 40, policy: "sync=never"}
	swapped := live(func(path string, _ holdfast.Policy) (io.WriteCloser, error) {
		if filepath.Base(path) == "7" {
			path = os.DevNull
		}
		return os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o666)
	})
	if _, err := swapped(t.TempDir(), never); err == nil {
		t.Error("a file that is not there was not noticed")
	}
}

// TestNamesAreTheirOwn looks for two arms that -run could not tell from each other, and a group
// without our twin.
func TestNamesAreTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range allGroups() {
		if g.Arms[1].Note != command.Twin {
			t.Errorf("%s: the second arm is %s", g.Name, g.Arms[1].Name)
		}
		for _, a := range g.Arms {
			name := g.Name + "/" + a.Name
			if seen[name] || a.Note == "" || a.Do.work.records() < 1 || a.Do.work.bytes() > 1<<30 {
				t.Errorf("%s: twice, without a note, or with %+v", name, a.Do.work)
			}
			seen[name] = true
		}
	}
}

func TestCommandPrintsTables(t *testing.T) {
	dir := t.TempDir()
	var out, talk bytes.Buffer
	args := []string{"-quick", "-rounds=1", "-dir", dir, "-seed=7", "-run=^lives/buffer=0/os.File$"}
	if err := Append.Run(t.Context(), args, &out, &talk); err != nil {
		t.Fatal(err, &talk)
	}
	for _, want := range []string{"-seed 7", "| holdfast |", "| os.File |", "time ÷ holdfast", "CPU per file"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, &out)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// TestAnotherBuildTakesPart has this program as the other build, which must get the orders.
func TestAnotherBuildTakesPart(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	args := []string{"-quick", "-rounds=2", "-dir", t.TempDir(), "-old", self, "-benchfmt", "-run=^lives/buffer=0/"}
	if err := Append.Run(t.Context(), args, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^BenchmarkAppend/lives/buffer=0/holdfast_OLD-\d+\t500\t[\d.]+ ns/op\t`)
	if got := len(line.FindAllString(out.String(), -1)); got != 2 {
		t.Errorf("%d benchmark lines, want 2:\n%s", got, &out)
	}
}

func TestCommandRefuses(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	stop()
	check := func(ctx context.Context, code int, want string, args ...string) {
		t.Helper()
		err := Append.Run(ctx, args, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) || command.ExitCode(err) != code {
			t.Errorf("%q: got %v (exit %d), want %q (exit %d)", args, err, command.ExitCode(err), want, code)
		}
	}
	check(t.Context(), command.ExitUsage, "matches no arm", "-run=nosuch")
	check(t.Context(), command.ExitUsage, "-full has more", "-run=^append/size=1MiB/goroutines=2/")
	check(t.Context(), command.ExitUsage, "-old", "-old=nosuch")
	check(t.Context(), command.ExitUnmeasured, "no such file or directory", "-dir=nosuch")
	check(stopped, command.ExitInterrupted, "canceled", "-run=limit", "-dir", t.TempDir())
}
