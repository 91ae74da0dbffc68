// Package provetest crashes storage code in its own tests, and checks that acknowledged values
// survive.
//
// Not seen are faults that no crash shows; losses of a drive that reports a flush too early; writes by io_uring or
// io_submit, whose loss is skipped as not known; owners, permissions and times; faults that take longer than Time
// to show. An fsync of a new file keeps its name here too, as on ext4, xfs and btrfs, so a missing sync of a
// directory is found only after a rename or a link.
//
// A [Workload] uses the code. Its Write stores values in a directory, and notes in a [Log] each
// value that it begins to store and each that is acknowledged. Its Read reads the directory. [Store] makes
// a Workload from three functions: open, put and get. [Test] runs Write in another process, which runs the same test binary. It
// kills that process at a random moment, calls Read, and lets a new process continue. It reports
//
//   - lost: a value was acknowledged, and an older one or none is there;
//   - invented: a value is there that was never stored under its key;
//   - unread: Read fails after a crash;
//   - again, hang: Write fails after a crash, or acknowledges nothing for half a minute.
//
// Test knows nothing of how the code works.
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
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/crash/syscallfault"
)

// A Workload is a use of storage code.
type Workload struct {
	// Write opens the store in dir, which may be empty or left by a crash, and stores values until
	// its process is killed. It may also return. An error fails the test, except after a system
	// call that failed on purpose.
	Write func(dir string, log *Log) error
	// Read returns the values in dir by their keys. A key without a value may be left out.
	Read func(dir string) (map[string]string, error)
	// Synced says that an acknowledged value is on the disk: then it must survive a power cut too.
	Synced bool
	// Time is the approximate time for each kind of crash; 0 is a second, or a fifth of one by go test -short.
	Time time.Duration
}

// Store returns a use of a store whose put returns when its value is on the disk: four goroutines put values under
// twelve keys. open's result is closed if it is an io.Closer. get returns "" for a key that is not there.
func Store[S any](open func(dir string) (S, error), put func(s S, key, value string) error, get func(s S, key string) (string, error)) Workload {
	const goroutines, keys = 4, 3
	key := func(i, n int) string { return fmt.Sprintf("%d-%d", i, n%keys) }
	return Workload{Synced: true,
		Write: func(dir string, log *Log) error {
			s, err := open(dir)
			if err != nil {
				return err
			}
			errs := make([]error, goroutines)
			var group sync.WaitGroup
			group.Add(goroutines)
			for i := range errs {
				go func() {
					defer group.Done()
					for n := 0; errs[i] == nil; n++ {
						value := strconv.FormatInt(time.Now().UnixNano(), 36)
						log.Begin(key(i, n), value)
						if errs[i] = put(s, key(i, n), value); errs[i] == nil {
							log.Ack(key(i, n), value)
						}
					}
				}()
			}
			group.Wait()
			return errors.Join(errs...)
		},
		Read: func(dir string) (map[string]string, error) {
			s, err := open(dir)
			if err != nil {
				return nil, err
			}
			found := map[string]string{}
			for i := range goroutines * keys {
				name := key(i/keys, i)
				if found[name], err = get(s, name); err != nil {
					break
				}
			}
			if c, ok := any(s).(io.Closer); ok {
				err = errors.Join(err, c.Close())
			}
			return found, err
		}}
}

// Test crashes a workload in three subtests. Subtest kill kills its process (SIGKILL), which loses
// its memory. Subtest fault makes its system calls fail, be short or late; a sync that fails loses
// the bytes that it was to make durable. Subtest power, only if Synced, cuts the power: it traces the calls of
// some processes, each but the last of which is killed, and makes of the trace what POSIX lets a power cut leave of them. Of writes
// and changes of names that no sync has covered there is all, nothing, some in any order, or a torn one. The last
// two need Linux 5.9 on amd64 or arm64, and no root.
//
// Each process runs this test program with -test.run for this test. So it also runs TestMain and
// the code before Test in the test. On failure the files are kept. Write may note again, by Ack, a value that it
// finds: then a power cut must not take it, though a process was killed before it had acknowledged the value.
func Test(t *testing.T, w Workload) {
	t.Helper()
	p := start(t, w)
	at := func(level crash.Level) func(*testing.T) {
		return func(t *testing.T) {
			p := p
			p.Level, p.Dir = level, t.TempDir()
			p.Judge = judge(w.Read, newHistory(), level == crash.Kill, 0)
			if level != crash.Kill {
				if why := crash.CanSupervise(p.Start(t.Context(), "")); why != "" {
					t.Skip(why)
				}
			}
			v, err := p.Prove(t.Context())
			switch {
			case err != nil:
				t.Fatal(err)
			case v.Unknown != "":
				t.Skip("not known: " + v.Unknown)
			case v.Failure != nil:
				t.Fatal(words(v.Failure))
			}
			t.Logf("%d kills, %d faults, %d states read, %d values acknowledged, none lost", v.Kills, v.Faults, v.Tally.States, v.Tally.Acknowledged)
		}
	}
	t.Run("kill", at(crash.Kill))
	t.Run("fault", at(crash.Fault))
	if w.Synced {
		t.Run("power", at(crash.PowerCut))
	}
}

// words says what a failure is, and keeps its files.
func words(f *crash.Failure) string {
	said := f.Violation.Rule + ": " + f.Words
	kept, err := os.MkdirTemp("", "provetest-")
	if err == nil {
		err = f.Tree().Write(kept)
	}
	if err != nil {
		return fmt.Sprintf("%s; its files can't be kept: %v", said, err)
	}
	return said + "; its files are in " + kept
}

// role is the environment variable of a process that runs a workload: the test, and the directory.
const role = "HOLDFAST_PROVETEST"

// A process between a test and its program becomes that here, before TestMain: see [syscallfault.Start] and [syscallfault.Keep].
func init() { syscallfault.Launch() }

// start returns the program that runs a workload, or runs it if this process is that program.
func start(t *testing.T, w Workload) crash.Program {
	t.Helper()
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
		if within = time.Second; testing.Short() {
			within /= 5
		}
	}
	return crash.Program{
		Start: func(ctx context.Context, dir string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, self, only)
			cmd.Env = append(os.Environ(), role+"="+t.Name()+"\n"+dir)
			return cmd
		},
		Again: true, Naming: true, Time: within, Seed: rand.Uint64(),
	}
}

// write runs the workload in the process that is crashed. Without a directory it does nothing.
func write(w Workload, dir string) {
	if dir == "" {
		os.Exit(0)
	}
	log := &Log{os.Stdout}
	os.Stdout = os.Stderr // standard output is for notes only
	if err := w.Write(dir, log); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// judge returns the judge of a directory of which something is known. If skips says so it skips Read after every third crash: then
// the code meets the remains of a crash, and not the result of a Read of them.
func judge(read func(string) (map[string]string, error), known *history, skips bool, crashes int) crash.Judge {
	return func(dir string, printed []byte) (t crash.Tally, v *crash.Violation, next crash.Judge, err error) {
		h := known.clone()
		if t.Acknowledged, err = h.extend(printed); err != nil {
			return t, nil, nil, err
		}
		next = judge(read, h, skips, crashes+1)
		if skips && crashes%3 == 2 {
			return t, nil, next, nil
		}
		t.States = 1
		if found, err := read(dir); err != nil {
			v = &crash.Violation{Rule: "unread", Words: err.Error()}
		} else if v = h.judge(found); v == nil {
			h.restart(found)
		}
		return t, v, next, nil
	}
}

// A Log records the notes of a workload, outside the process that is crashed. Any goroutine may use
// it.
type Log struct{ out io.Writer }

// Begin notes that a value is about to be stored under a key: from now on it may be there. The
// value "" means that the key is about to be removed. Values of one key should differ from each
// other, and be small.
func (l *Log) Begin(key, value string) { l.note("begin", key, value) }

// Ack notes that a begun value is acknowledged. From now on a crash must not take it, until another
// value of the key is begun.
func (l *Log) Ack(key, value string) { l.note("ack", key, value) }

func (l *Log) note(what, key, value string) {
	if _, err := fmt.Fprintf(l.out, "%s %q %q\n", what, key, value); err != nil {
		panic(err) // the judge needs every note
	}
}

// A history holds the notes of each key since the last read.
type history struct {
	puts  map[string][]put
	clock int // number of notes
}

// A put is a value with the times of its begin and its acknowledgement.
type put struct {
	value        string
	begun, acked int
	over         int // when it was acknowledged, or its process ended
}

const pending = math.MaxInt

func newHistory() *history { return &history{puts: map[string][]put{}} }

func (h *history) clone() *history {
	same := &history{puts: map[string][]put{}, clock: h.clock}
	for key, puts := range h.puts {
		same.puts[key] = slices.Clone(puts)
	}
	return same
}

// of returns the puts of a key. The first is the value that was there before.
func (h *history) of(key string) []put {
	if h.puts[key] == nil {
		h.puts[key] = []put{{}}
	}
	return h.puts[key]
}

// extend adds the notes of a run, and returns the number of values they acknowledge. The last note
// may be cut off.
func (h *history) extend(notes []byte) (acknowledged int64, err error) {
	for line := range bytes.Lines(notes) {
		if string(line) == crash.NewLife+"\n" {
			h.end()
			continue
		}
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
			h.puts[key] = append(puts, put{value, h.clock, pending, pending})
			continue
		}
		same := func(p put) bool { return p.value == value && p.acked == pending }
		i := slices.IndexFunc(puts, same)
		if i < 0 {
			if slices.ContainsFunc(puts, func(p put) bool { return p.value == value }) {
				continue // records acknowledged and found again
			}
			return 0, fmt.Errorf("key %q: value %q was acknowledged, and not begun", key, value)
		}
		puts[i].acked = h.clock
		puts[i].over = min(puts[i].over, h.clock)
		acknowledged++
	}
	return acknowledged, nil
}

// end says that the process has ended: what it had begun has happened or not.
func (h *history) end() {
	h.clock++
	for _, puts := range h.puts {
		for i := range puts {
			puts[i].over = min(puts[i].over, h.clock)
		}
	}
}

// judge checks the values that Read returned. A value may be there if it was begun, and no value
// was both begun after its acknowledgement, or after its process had ended, and acknowledged itself. Of values stored at the same
// time, any may be the last.
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
			return p.value == is && p.over >= newest.begun
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

// restart forgets all but the values that were read, which must survive the next crash.
func (h *history) restart(found map[string]string) {
	*h = *newHistory()
	for key, value := range found {
		h.puts[key] = []put{{value: value}}
	}
}
