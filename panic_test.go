//go:build go1.25

package holdfast_test

import (
	"context"
	"errors"
	"io/fs"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/isolate"
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
func callsOf(w *holdfast.Writer) map[string]func() error {
	short, long := []byte("0123456789012345678901234567890123456789"), make([]byte, 5000)
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
		"Close": func() error { w.Write(short); return w.Close() },
	}
}

// checkPoisoned wants every call of the Writer to return an error that names what
// happened, and Close too.
func checkPoisoned(t *testing.T, w *holdfast.Writer, cause string) {
	t.Helper()
	for name, call := range callsOf(w) {
		if name == "Close" {
			continue
		}
		if again, _, err := isolate.Caught(call); again != nil || err == nil || !strings.Contains(err.Error(), cause) && !errors.Is(err, holdfast.ErrClosed) {
			t.Errorf("later, %s: %v, panic %v; want an error that names %q", name, err, again, cause)
		}
	}
	for range 2 {
		if again, _, err := isolate.Caught(w.Close); again != nil || err == nil || !strings.Contains(err.Error(), cause) {
			t.Errorf("Close: %v, panic %v; want an error that names %q", err, again, cause)
		}
	}
	w.Stats()
}

// TestPanicOfTheFilePoisonsTheWriter has the file panic below every call.
func TestPanicOfTheFilePoisonsTheWriter(t *testing.T) {
	isolate.Once(t, isolate.Ordinary)
	for i, policy := range []string{
		"buffer=0,sync=never", "buffer=64B,sync=never", "buffer=4KiB,sync=never", "buffer=4KiB,sync=close",
		"buffer=4KiB,sync=group", "buffer=0,sync=group", "buffer=4KiB,sync=each", "buffer=4KiB,flush=24h,sync=48h",
	} {
		for j, method := range []string{"Write", "Sync", "Close"} {
			for _, exits := range []bool{false, true} {
				if isolate.RaceEnabled && exits != ((i+j)%2 == 0) { // goroutines meet in the same places either way
					continue
				}
				for name := range callsOf(nil) {
					synctest.Test(t, func(t *testing.T) {
						p, err := holdfast.ParsePolicy(policy)
						if err != nil {
							t.Fatal(err)
						}
						file := &panicking{method: method, exits: exits}
						w, err := holdfast.New(file, p)
						if err != nil {
							t.Fatal(err)
						}
						call := callsOf(w)[name]
						for range 500 { // fills memory
							cause, exited, err := isolate.Caught(call)
							switch {
							case cause != nil && cause != errBoom:
								t.Fatalf("%s, %s of the file panics: %s panics with %v", policy, method, name, cause)
							case cause != nil, exited:
								checkPoisoned(t, w, map[bool]string{false: "boom", true: "Goexit"}[exits])
								if !exits && !errors.Is(w.Err(), errBoom) {
									t.Errorf("%v does not wrap what the file panicked with", w.Err())
								}
								if file.closed != 1 {
									t.Errorf("the file was closed %d times", file.closed)
								}
								return
							}
							if err != nil {
								break
							}
						}
						// This call does not reach that method.
						isolate.Caught(w.Close)
						if file.closed != 1 {
							t.Errorf("%s, %s: the file was closed %d times", policy, name, file.closed)
						}
					})
				}
			}
		}
	}
}

// panicsWith is a file whose Write panics with any value.
type panicsWith struct {
	memory
	cause any
}

func (f *panicsWith) Write([]byte) (int, error) { panic(f.cause) }

// TestPanicIsErrPanickedAndItsCause for who asks a later error, or Close's.
func TestPanicIsErrPanickedAndItsCause(t *testing.T) {
	missing := &fs.PathError{Op: "map", Path: "file", Err: syscall.ENOENT}
	for _, cause := range []any{"text", missing} {
		w, err := holdfast.New(&panicsWith{cause: cause}, holdfast.Unbuffered())
		if err != nil {
			t.Fatal(err)
		}
		isolate.Caught(func() error { _, err := w.Write([]byte("x")); return err })
		_, writeErr := w.Write([]byte("x"))
		for name, err := range map[string]error{"Write": writeErr, "Sync": w.Sync(), "Err": w.Err(), "Close": w.Close()} {
			var path *fs.PathError
			if !errors.Is(err, holdfast.ErrPanicked) || cause == missing && (!errors.As(err, &path) || path != missing) {
				t.Errorf("%s = %v, want ErrPanicked and %v", name, err, cause)
			}
		}
	}
}

// TestCloseContextSurvivesTheEndOfItsGoroutine has the file end it in Close.
func TestCloseContextSurvivesTheEndOfItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := holdfast.New(&panicking{method: "Close", exits: true}, holdfast.Unbuffered())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := w.CloseContext(ctx); !errors.Is(err, holdfast.ErrPanicked) {
			t.Errorf("CloseContext = %v", err)
		}
	})
	w, err := holdfast.New(&panicking{method: "Close"}, holdfast.Unbuffered())
	if err != nil {
		t.Fatal(err)
	}
	if cause, _, err := isolate.Caught(func() error { return w.CloseContext(context.Background()) }); cause != errBoom {
		t.Errorf("CloseContext without an end = %v, panic %v", err, cause)
	}
}

// TestPanicInACommitIsAnErrorForThoseThatJoined has the sync of a batch panic: in the
// goroutine that leads, and nowhere else.
func TestPanicInACommitIsAnErrorForThoseThatJoined(t *testing.T) {
	for _, method := range []string{"Write", "Sync"} {
		synctest.Test(t, func(t *testing.T) {
			file := &panicking{}
			w, err := holdfast.New(file, holdfast.Durable())
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
					cause, _, err := isolate.Caught(func() error { _, err := w.Write([]byte("record")); return err })
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
			checkPoisoned(t, w, "boom")
		})
	}
}

// TestPanicInASyncLeavesWhatWasAccepted closes after a Sync that panicked: Close
// still flushes.
func TestPanicInASyncLeavesWhatWasAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := &panicking{method: "Sync"}
		w, err := holdfast.New(file, holdfast.Buffered(4*holdfast.KiB))
		if err != nil {
			t.Fatal(err)
		}
		w.Write([]byte("first "))
		if cause, _, _ := isolate.Caught(w.Sync); cause != errBoom {
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
	for _, p := range []holdfast.Policy{holdfast.Unbuffered(), holdfast.Buffered(4 * holdfast.KiB), holdfast.Durable(), holdfast.EachDurable()} {
		synctest.Test(t, func(t *testing.T) {
			file := &memory{}
			w, err := holdfast.New(file, p)
			if err != nil {
				t.Fatal(err)
			}
			if cause, _, _ := isolate.Caught(func() error { _, err := w.ReadFrom(&panickingReader{left: 2}); return err }); cause != errBoom {
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

// TestPanicReleasesAllThatWaitForRoom has a write panic for which several calls wait.
func TestPanicReleasesAllThatWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := holdfast.New(&panicking{method: "Write", delay: time.Second}, holdfast.Policy{Buffer: 4 * holdfast.KiB})
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

func TestUnknownCommandIsRefused(t *testing.T) { isolate.RefusesUnknownCommand(t) }
