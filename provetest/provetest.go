// Package provetest crashes storage code in its own tests, and judges what is left by what the code
// had acknowledged.
//
// A [Workload] says how the code is used. One function stores values in a directory and notes in a
// [Log] what it begins and what is acknowledged. The other reads what is there. [Test] runs the first
// as a process of its own, which is the same test program again. It crashes that process at any
// moment, reads, and lets a new one continue. It tells
//
//   - lost: a value was acknowledged, and an older one or none is there;
//   - invented: a value is there that was never stored under its key;
//   - unread: what a crash has left can't be read.
//
// It does not know how the code works, and finds nothing that no crash shows.
package provetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/crash/syscallfault"
)

// A Workload is storage code as it is used.
type Workload struct {
	// Write opens the store in dir, which may be empty or what a crash has left, and stores values
	// until its process is killed. It may also return. An error fails the test, but for one after
	// a system call that failed on purpose.
	Write func(dir string, log *Log) error
	// Read returns the values that are in dir by their keys. What has no value may be left out.
	Read func(dir string) (map[string]string, error)
	// Synced says that an acknowledged value is on the disk. Then a power cut must not take it either.
	Synced bool
	// Time is about how long each kind of crash takes; 0 is a second.
	Time time.Duration
}

// Test crashes a workload in three subtests. Subtest kill kills its process (SIGKILL), which loses its
// memory. Subtest fault lets system calls of it fail, be short or late; a sync that fails loses what it
// was to keep. Subtest power, of what is Synced, kills it and takes away all that it has not synced.
// The last two need Linux 5.9 on amd64 or arm64, and no root. They don't see writes and syncs through
// mapped memory, nor io_uring.
//
// Each process runs this test program with -test.run for this test. So it also runs TestMain and
// what comes before in the test. On failure the files are kept.
func Test(t *testing.T, w Workload) {
	t.Helper()
	p := start(t, w)
	at := func(level crash.Level) func(*testing.T) {
		return func(t *testing.T) {
			p := p
			p.Level, p.Dir = level, t.TempDir()
			if level != crash.Kill {
				if why := crash.CanSupervise(p.Start(t.Context(), "")); why != "" {
					t.Skip(why)
				}
			}
			v, err := p.Prove(t.Context())
			switch {
			case err != nil:
				t.Fatal(err)
			case v.Failure != nil:
				t.Fatalf("%s: %s", v.Failure.Violation.Rule, v.Failure.Words)
			}
			t.Logf("%d crashes, %d faults, %d values acknowledged, none lost", v.Kills, v.Faults, v.Tally.Acknowledged)
		}
	}
	t.Run("kill", at(crash.Kill))
	t.Run("fault", at(crash.Fault))
	if w.Synced {
		t.Run("power", at(crash.PowerCut))
	}
}

// role is in the environment of a process that runs a workload: the test, and the directory.
const role = "HOLDFAST_PROVETEST"

// start returns the program that a workload is, or is that program.
func start(t *testing.T, w Workload) crash.Program {
	t.Helper()
	syscallfault.Launch()
	if test, dir, _ := strings.Cut(os.Getenv(role), "\n"); test == t.Name() {
		write(w, dir)
	}
	if crash.CanKill != "" {
		t.Skip(crash.CanKill)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	only := "-test.run=^" + strings.ReplaceAll(regexp.QuoteMeta(t.Name()), "/", "$/^") + "$"
	within := w.Time
	if within == 0 {
		within = time.Second
	}
	return crash.Program{
		Start: func(ctx context.Context, dir string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, self, only)
			cmd.Env = append(os.Environ(), role+"="+t.Name()+"\n"+dir)
			return cmd
		},
		Judge: func() crash.Judge { return judge(w.Read) },
		Again: true, Time: within, Seed: rand.Uint64(),
	}
}

// write is the process that is crashed. One without a directory does nothing.
func write(w Workload, dir string) {
	if dir == "" {
		os.Exit(0)
	}
	log := &Log{os.Stdout}
	os.Stdout = os.Stderr // what the code prints is no note
	if err := w.Write(dir, log); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// judge returns the judge of a new directory. It does not read after every third crash: there the code
// meets what a crash has left, and not what Read has made of that.
func judge(read func(string) (map[string]string, error)) crash.Judge {
	h, crashes := newHistory(), 0
	return func(dir string, printed []byte) (t crash.Tally, v *crash.Violation, err error) {
		if t.Acknowledged, err = h.extend(printed); err != nil {
			return t, nil, err
		}
		if crashes++; crashes%3 == 0 {
			return t, nil, nil
		}
		t.States = 1
		if found, err := read(dir); err != nil {
			v = &crash.Violation{Rule: "unread", Words: err.Error()}
		} else if v = h.judge(found); v == nil {
			h.restart(found)
		}
		if v != nil {
			kept, err := os.MkdirTemp("", "provetest-")
			if err = errors.Join(err, os.CopyFS(kept, os.DirFS(dir))); err != nil {
				return t, nil, err
			}
			v.Words += "; its files are in " + kept
		}
		return t, v, nil
	}
}

// A Log takes notes of what a workload does, outside of what is crashed. Any goroutine may use it.
type Log struct{ out io.Writer }

// Begin notes that a value is about to be stored under a key: from now on it may be there. The value
// "" is none: the key is about to be removed. Values of one key are better different from each other,
// and small.
func (l *Log) Begin(key, value string) { l.note("begin", key, value) }

// Ack notes that a value that was begun is acknowledged. From now on a crash must not take it, until
// another value of the key is begun.
func (l *Log) Ack(key, value string) { l.note("ack", key, value) }

func (l *Log) note(what, key, value string) {
	if _, err := fmt.Fprintf(l.out, "%s %q %q\n", what, key, value); err != nil {
		panic(err) // nothing can be judged without it
	}
}

// A history is what was noted of each key since it was last read.
type history struct {
	puts  map[string][]put
	clock int // how many notes
}

// A put is a value that was begun at a time and acknowledged at another.
type put struct {
	value        string
	begun, acked int
}

const pending = math.MaxInt

func newHistory() *history { return &history{puts: map[string][]put{}} }

// of returns the puts of a key. The first is what was there before.
func (h *history) of(key string) []put {
	if h.puts[key] == nil {
		h.puts[key] = []put{{}}
	}
	return h.puts[key]
}

// extend adds the notes of a run, and returns how many values they acknowledge. The last note may be
// cut off.
func (h *history) extend(notes []byte) (acknowledged int64, err error) {
	for line := range bytes.Lines(notes) {
		what, rest, _ := strings.Cut(string(line), " ")
		first, err := strconv.QuotedPrefix(rest)
		if err != nil || !strings.HasSuffix(rest, "\n") {
			continue
		}
		key, keyErr := strconv.Unquote(first)
		value, err := strconv.Unquote(strings.TrimSpace(rest[len(first):]))
		if keyErr != nil || err != nil {
			continue
		}
		h.clock++
		puts := h.of(key)
		if what == "begin" {
			h.puts[key] = append(puts, put{value, h.clock, pending})
			continue
		}
		i := slices.IndexFunc(puts, func(p put) bool { return p.value == value && p.acked == pending })
		if i < 0 {
			return 0, fmt.Errorf("key %q: value %q was acknowledged, and not begun", key, value)
		}
		puts[i].acked = h.clock
		acknowledged++
	}
	return acknowledged, nil
}

// judge judges what was read. A value may be there if it was begun, and no value was both begun after its
// acknowledgement and acknowledged itself. Of values that are stored at the same time, any may be the last.
func (h *history) judge(found map[string]string) *crash.Violation {
	for _, key := range slices.Sorted(maps.Keys(h.puts)) {
		is, newest := found[key], put{}
		for _, p := range h.puts[key] {
			if p.acked != pending && p.begun >= newest.begun {
				newest = p
			}
		}
		known := false
		may := slices.ContainsFunc(h.puts[key], func(p put) bool {
			known = known || p.value == is
			return p.value == is && p.acked >= newest.begun
		})
		switch {
		case may:
		case known || is == "":
			return &crash.Violation{Rule: "lost", Words: fmt.Sprintf("key %q: value %q was acknowledged, and %s is there", key, newest.value, text(is))}
		default:
			return invented(key, is)
		}
	}
	for key, is := range found {
		if h.puts[key] == nil && is != "" {
			return invented(key, is)
		}
	}
	return nil
}

func invented(key, is string) *crash.Violation {
	return &crash.Violation{Rule: "invented", Words: fmt.Sprintf("key %q: value %q is there, which was never stored", key, is)}
}

func text(value string) string {
	if value == "" {
		return "none"
	}
	return fmt.Sprintf("the older %q", value)
}

// restart forgets all but what was read, which must stay.
func (h *history) restart(found map[string]string) {
	*h = *newHistory()
	for key, value := range found {
		h.puts[key] = []put{{value: value}}
	}
}
