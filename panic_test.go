package holdfast

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/panictest"
)

// panicking is a file that panics, or ends the goroutine, in one of its methods.
type panicking struct {
	memory
	method string // Write, Sync or Close
	exits  bool   // by runtime.Goexit
	delay  time.Duration
	closed int
}

var errBoom = errors.New("boom")

func (f *panicking) fail(method string) {
	if f.method != method {
		return
	}
	time.Sleep(f.delay)
	if f.exits {
		runtime.Goexit()
	}
	panic(errBoom)
}

func (f *panicking) Write(p []byte) (int, error) {
	f.fail("Write")
	return f.memory.Write(p)
}

func (f *panicking) Sync() error {
	f.fail("Sync")
	return nil
}

func (f *panicking) Close() error {
	f.closed++
	f.fail("Close")
	return nil
}

// callsOf returns every call that accepts bytes or moves them.
func callsOf(w *Writer, l *Lane) map[string]func() error {
	short, long := []byte("0123456789"), make([]byte, 5000)
	return map[string]func() error{
		"Write":       func() error { _, err := w.Write(short); return err },
		"long Write":  func() error { _, err := w.Write(long); return err },
		"WriteString": func() error { _, err := w.WriteString(string(short)); return err },
		"Enqueue":     func() error { _, err := w.Enqueue(short); return err },
		"ReadFrom":    func() error { _, err := w.ReadFrom(strings.NewReader(string(short))); return err },
		"Flush":       func() error { w.Enqueue(short); return w.Flush() },
		"Sync":        func() error { w.Enqueue(short); return w.Sync() },
		"WaitDurable": func() error {
			end, err := w.Enqueue(short)
			if err != nil {
				return err
			}
			return w.WaitDurable(context.Background(), end)
		},
		"Lane.Write":     func() error { _, err := l.Write(short); return err },
		"Lane.WriteByte": func() error { return l.WriteByte('x') },
		"Lane.Close":     func() error { l.Write(short); return l.Close() },
		"Close":          func() error { w.Write(short); return w.Close() },
	}
}

// checkPoisoned wants every call of the Writer to return an error that names what
// happened, and Close too.
func checkPoisoned(t *testing.T, w *Writer, l *Lane, cause string) {
	t.Helper()
	for name, call := range callsOf(w, l) {
		if name == "Close" || name == "Lane.Close" {
			continue
		}
		if again, _, err := panictest.Caught(call); again != nil || err == nil || !strings.Contains(err.Error(), cause) && !errors.Is(err, ErrClosed) {
			t.Errorf("later, %s: %v, panic %v; want an error that names %q", name, err, again, cause)
		}
	}
	for range 2 {
		if again, _, err := panictest.Caught(w.Close); again != nil || err == nil || !strings.Contains(err.Error(), cause) {
			t.Errorf("Close: %v, panic %v; want an error that names %q", err, again, cause)
		}
	}
	w.Stats()
}

// TestPanicInACommitIsAnErrorForThoseThatJoined has the sync of a batch panic: in the
// goroutine that leads, and nowhere else.
func TestPanicInACommitIsAnErrorForThoseThatJoined(t *testing.T) {
	for _, method := range []string{"Write", "Sync"} {
		synctest.Test(t, func(t *testing.T) {
			file := &panicking{}
			w, err := New(file, Durable())
			if err != nil {
				t.Fatal(err)
			}
			file.method, file.delay = method, time.Second
			const writers = 16
			panics, errs := 0, 0
			var mu sync.Mutex
			var group sync.WaitGroup
			for range writers {
				group.Go(func() {
					cause, _, err := panictest.Caught(func() error { _, err := w.Write([]byte("record")); return err })
					mu.Lock()
					defer mu.Unlock()
					switch {
					case cause == errBoom:
						panics++
					case errors.Is(err, errBoom):
						errs++
					default:
						t.Errorf("Write: %v, panic %v", err, cause)
					}
				})
			}
			group.Wait()
			if panics != 1 || errs != writers-1 {
				t.Errorf("%s panics once: %d Writes panicked and %d returned the error, want 1 and %d", method, panics, errs, writers-1)
			}
			checkPoisoned(t, w, w.Lane(), "boom")
		})
	}
}

// TestPanicInASyncLeavesWhatWasAccepted closes after a Sync that panicked: Close
// still flushes.
func TestPanicInASyncLeavesWhatWasAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := &panicking{method: "Sync"}
		w, err := New(file, Buffered(4*KiB))
		if err != nil {
			t.Fatal(err)
		}
		w.Write([]byte("first "))
		if cause, _, _ := panictest.Caught(w.Sync); cause != errBoom {
			t.Fatalf("Sync panics with %v", cause)
		}
		if err := w.Close(); !errors.Is(err, errBoom) {
			t.Errorf("Close: %v", err)
		}
		if got := file.String(); got != "first " {
			t.Errorf("the file holds %q", got)
		}
	})
}

// panickingReader gives some bytes and panics.
type panickingReader struct{ left int }

func (r *panickingReader) Read(p []byte) (int, error) {
	if r.left == 0 {
		panic(errBoom)
	}
	r.left--
	return copy(p, "piece "), nil
}

// TestPanicOfAReaderIsNotTheWriters goes on after ReadFrom's source has panicked.
func TestPanicOfAReaderIsNotTheWriters(t *testing.T) {
	for _, p := range []Policy{Unbuffered(), Buffered(4 * KiB), Durable(), EachDurable()} {
		synctest.Test(t, func(t *testing.T) {
			file := &memory{}
			w, err := New(file, p)
			if err != nil {
				t.Fatal(err)
			}
			if cause, _, _ := panictest.Caught(func() error { _, err := w.ReadFrom(&panickingReader{left: 2}); return err }); cause != errBoom {
				t.Fatalf("ReadFrom panics with %v", cause)
			}
			if _, err := w.WriteString("end"); err != nil {
				t.Error(err)
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			if got := file.String(); got != "piece piece end" {
				t.Errorf("%v: the file holds %q", p, got)
			}
		})
	}
}

// TestCloseClosesTheDirectoryThatNoSyncReached: the file's own sync fails first.
func TestCloseClosesTheDirectoryThatNoSyncReached(t *testing.T) {
	w, err := Create(filepath.Join(t.TempDir(), "file"), Durable())
	if err != nil {
		t.Fatal(err)
	}
	dir := w.target.entry.Dir
	w.target.file.Close()
	if err := w.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Close = %v", err)
	}
	if err := dir.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the directory was open after Close (%v)", err)
	}
}

// TestPanicReleasesAllThatWaitForRoom has a write panic for which several calls wait.
func TestPanicReleasesAllThatWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := New(&panicking{method: "Write", delay: time.Second}, Policy{Buffer: 4 * KiB})
		if err != nil {
			t.Fatal(err)
		}
		var calls sync.WaitGroup
		var failed atomic.Int32
		for i, size := range []int{4096, 4000, 100, 100, 100} {
			calls.Go(func() {
				defer func() {
					if cause := recover(); cause != nil && i > 0 {
						t.Errorf("call %d panicked: %v", i, cause)
					}
				}()
				if _, err := w.Write(make([]byte, size)); errors.Is(err, errBoom) {
					failed.Add(1)
				}
			})
			synctest.Wait()
		}
		calls.Wait()
		if got := failed.Load(); got != 3 {
			t.Errorf("%d calls that wait for room return the panic, want 3", got)
		}
		w.Close()
	})
}
