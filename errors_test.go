//go:build go1.25

package holdfast_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
)

// asWriteError checks that err is a WriteError with these facts.
func asWriteError(t *testing.T, err error, cause error, flushed, durable int64) {
	t.Helper()
	var failed *holdfast.WriteError
	if !errors.As(err, &failed) {
		t.Fatalf("error is %v, want a WriteError", err)
	}
	if !errors.Is(err, cause) || failed.Flushed != flushed || failed.Durable != durable {
		t.Errorf("error is %v with Flushed %d and Durable %d, want %v, %d and %d", err, failed.Flushed, failed.Durable, cause, flushed, durable)
	}
}

// TestFailureInTheBackgroundIsReportedByTheNextCallOnce lets a flush by time fail once.
func TestFailureInTheBackgroundIsReportedByTheNextCallOnce(t *testing.T) {
	calls := map[string]func(w *holdfast.Writer) error{
		"Write":       func(w *holdfast.Writer) error { _, err := w.Write([]byte("x")); return err },
		"WriteString": func(w *holdfast.Writer) error { _, err := w.WriteString("x"); return err },
		"Enqueue":     func(w *holdfast.Writer) error { _, err := w.Enqueue([]byte("x")); return err },
		"ReadFrom": func(w *holdfast.Writer) error {
			_, err := w.ReadFrom(strings.NewReader("x"))
			return err
		},
		"Flush":       func(w *holdfast.Writer) error { return w.Flush() },
		"Sync":        func(w *holdfast.Writer) error { return w.Sync() },
		"WaitDurable": func(w *holdfast.Writer) error { return w.WaitDurable(context.Background(), 5) },
		"Close":       func(w *holdfast.Writer) error { return w.Close() },
	}
	for _, policy := range []string{"buffer=4KiB,flush=10ms,sync=never", "buffer=64KiB,sync=10ms", "buffer=64KiB,flush=10ms,sync=20ms"} {
		for name, call := range calls {
			if name == "WaitDurable" && policy != "buffer=4KiB,flush=10ms,sync=never" {
				continue // the sync by time tries again at once, and durable bytes are no failure
			}
			t.Run(policy+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w, f := newWriter(t, policy, fault.Fault{Op: fault.Write, First: 1, Times: 1, Take: 2, Err: syscall.EIO})
					put(t, w, 5)
					time.Sleep(10*ms + 1) // it has failed, and was not tried again
					asWriteError(t, call(w), syscall.EIO, 2, 0)
					if name != "Close" {
						if err := w.Flush(); err != nil {
							t.Errorf("the call after that = %v", err)
						}
						if err := w.Close(); err != nil {
							t.Errorf("Close = %v", err)
						}
					}
					if f.Size() < 5 || f.Size() != w.Written() {
						t.Errorf("the file holds %d bytes, Written is %d", f.Size(), w.Written())
					}
				})
			})
		}
	}
}

// TestFailureThatHealedByItselfIsReported lets the flush by time try again with success
// before anyone calls.
func TestFailureThatHealedByItselfIsReported(t *testing.T) {
	inBubble(t, "buffer=4KiB,flush=10ms,sync=never", func(t *testing.T, w *holdfast.Writer, f *fault.File) {
		put(t, w, 4)
		time.Sleep(time.Hour)
		if got := f.Size(); got != 4 {
			t.Errorf("the file holds %d bytes after an hour of flushes by time, want 4", got)
		}
		n, err := w.Write([]byte("x"))
		if n != 0 || !errors.Is(err, syscall.EIO) {
			t.Errorf("Write = %d, %v", n, err)
		}
		put(t, w, 1)
		if err := w.Close(); err != nil || f.Size() != 5 {
			t.Errorf("Close = %v, the file holds %d", err, f.Size())
		}
	}, fault.Fault{Op: fault.Write, First: 1, Times: 2, Err: syscall.EIO})
}

// TestFailureThatACallReturnedIsNotReportedAgain though the clock meets it again and again.
func TestFailureThatACallReturnedIsNotReportedAgain(t *testing.T) {
	inBubble(t, "buffer=4KiB,flush=10ms,sync=never", func(t *testing.T, w *holdfast.Writer, f *fault.File) {
		put(t, w, 10)
		time.Sleep(15 * ms)
		if n, err := w.Write([]byte("x")); n != 0 || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("Write = %d, %v", n, err)
		}
		time.Sleep(time.Second)
		put(t, w, 1)
	}, fault.Fault{Op: fault.Write, Times: 5, Err: syscall.ENOSPC})
}

// TestFailureAtAnotherByteIsReported after a call has returned the one before.
func TestFailureAtAnotherByteIsReported(t *testing.T) {
	inBubble(t, "buffer=4KiB,flush=10ms,sync=never", func(t *testing.T, w *holdfast.Writer, f *fault.File) {
		put(t, w, 10)
		time.Sleep(15 * ms)
		for _, flushed := range []int64{3, 5} {
			_, err := w.Write([]byte("x"))
			asWriteError(t, err, syscall.ENOSPC, flushed, 0)
			time.Sleep(time.Second)
		}
		put(t, w, 1)
	}, fault.Fault{Op: fault.Write, Times: 1, Take: 3, Err: syscall.ENOSPC}, fault.Fault{Op: fault.Write, First: 2, Times: 1, Take: 2, Err: syscall.ENOSPC})
}

// TestFailureBehindWhatAWaitNeedsIsReportedByTheNextCall has a flush fail when it has written enough for a WaitDurable.
func TestFailureBehindWhatAWaitNeedsIsReportedByTheNextCall(t *testing.T) {
	inBubble(t, "buffer=4KiB,sync=close", func(t *testing.T, w *holdfast.Writer, f *fault.File) {
		put(t, w, 5)
		put(t, w, 5)
		if err := w.WaitDurable(context.Background(), 5); err != nil || w.Durable() != 6 {
			t.Errorf("WaitDurable = %v, and %d bytes are durable, want the 6 that were flushed", err, w.Durable())
		}
		asWriteError(t, w.Flush(), syscall.ENOSPC, 6, 0)
		if err := w.Flush(); err != nil {
			t.Errorf("the Flush after that = %v", err)
		}
	}, fault.Fault{Op: fault.Write, Times: 1, Take: 6, Err: syscall.ENOSPC})
}

// TestFlushByTimeTriesAgainEachPeriod counts the attempts on a file that is dead.
func TestFlushByTimeTriesAgainEachPeriod(t *testing.T) {
	inBubble(t, "buffer=4KiB,flush=10ms,sync=never", func(t *testing.T, w *holdfast.Writer, f *fault.File) {
		start := time.Now()
		put(t, w, 4)
		time.Sleep(105 * ms)
		got := starts(f, fault.Write, start)
		if len(got) != 10 || got[0] != 10*ms || got[9] != 100*ms {
			t.Errorf("attempts at %v, want one each 10ms", got)
		}
		if err := w.Close(); !errors.Is(err, syscall.EIO) {
			t.Errorf("Close = %v", err)
		}
	}, fault.Fault{Op: fault.Write, Err: syscall.EIO})
}

// TestFullDiskRefusesEveryCallLosesNothingAndGoesOn fills the disk, asks every
// method, makes room, and asks again.
func TestFullDiskRefusesEveryCallLosesNothingAndGoesOn(t *testing.T) {
	for _, policy := range []string{"buffer=16B,sync=never", "buffer=4KiB,sync=never", "buffer=64KiB,sync=close", "buffer=64KiB,sync=group"} {
		inBubble(t, policy, func(t *testing.T, w *holdfast.Writer, f *fault.File) {
			f.SetRoom(3)
			if _, err := w.Enqueue([]byte("abcdef")); err != nil {
				t.Fatal(err)
			}
			asWriteError(t, w.Flush(), syscall.ENOSPC, 3, 0)
			if err := w.Sync(); !errors.Is(err, syscall.ENOSPC) { // and the flushed bytes are synced
				t.Errorf("Sync on a full disk = %v", err)
			}
			for range 3 {
				asWriteError(t, w.Sync(), syscall.ENOSPC, 3, 3)
				n, err := w.Write([]byte("x"))
				asWriteError(t, err, syscall.ENOSPC, 3, 3)
				if n != 0 {
					t.Errorf("Write on a full disk took %d", n)
				}
				end, err := w.Enqueue([]byte("x"))
				asWriteError(t, err, syscall.ENOSPC, 3, 3)
				if end != 0 {
					t.Errorf("Enqueue on a full disk returned %d", end)
				}
				asWriteError(t, w.WaitDurable(context.Background(), 6), syscall.ENOSPC, 3, 3)
			}
			f.SetRoom(fault.Unlimited)
			put(t, w, 1)
			put(t, w, 1)
			if err := w.Flush(); err != nil {
				t.Errorf("Flush with room again = %v", err)
			}
			if err := w.Close(); err != nil {
				t.Errorf("Close = %v", err)
			}
			if got := string(f.ProcessCrash()); got != "abcdef\x00\x00" {
				t.Errorf("the file holds %q", got)
			}
		})
	}
}

// TestWriteThatStartsAFailingFlushIsAccepted fills the buffer: the record that
// starts the flush is in memory already, so the failure shows at the next call.
func TestWriteThatStartsAFailingFlushIsAccepted(t *testing.T) {
	check := func(policy string, pause time.Duration) {
		inBubble(t, policy, func(t *testing.T, w *holdfast.Writer, f *fault.File) {
			p, _ := holdfast.ParsePolicy(policy)
			put(t, w, int(p.Buffer)-1)
			time.Sleep(pause) // if the strip fills slowly it is flushed in the background
			put(t, w, 1)
			synctest.Wait()
			if n, err := w.Write([]byte("x")); n != 0 || !errors.Is(err, syscall.EIO) {
				t.Errorf("the next Write = %d, %v", n, err)
			}
			put(t, w, 1)
			if err := w.Close(); err != nil || f.Size() != int64(p.Buffer)+1 {
				t.Errorf("Close = %v, the file holds %d", err, f.Size())
			}
		}, fault.Fault{Op: fault.Write, First: 1, Times: 1, Err: syscall.EIO})
	}
	for _, policy := range []string{"buffer=16B,sync=never", "buffer=4KiB,sync=never", "buffer=64KiB,sync=never"} {
		check(policy, 0)
		check(policy, time.Second)
	}
}

// TestFullStripIsTriedOnceACall has a strip fill beside a flush that fails: no call is made, and nothing is tried again.
func TestFullStripIsTriedOnceACall(t *testing.T) {
	inBubble(t, "buffer=4KiB,flush=16B,sync=never", func(t *testing.T, w *holdfast.Writer, f *fault.File) {
		go w.Write(make([]byte, 20))
		synctest.Wait()
		put(t, w, 20)
		time.Sleep(time.Minute)
		if n := f.Count(fault.Write); n != 1 {
			t.Errorf("%d writes were tried, want 1", n)
		}
	}, fault.Fault{Op: fault.Write, Delay: time.Second, Err: syscall.ENOSPC})
}

// TestWritePastMemoryReportsHowMuchTheFileHas has a record larger than the buffer
// torn, and goes on with the rest as the caller sees fit.
func TestWritePastMemoryReportsHowMuchTheFileHas(t *testing.T) {
	for _, policy := range []string{"buffer=0,sync=never", "buffer=4B,sync=never", "buffer=0,sync=close", "buffer=0,sync=10ms"} {
		inBubble(t, policy, func(t *testing.T, w *holdfast.Writer, f *fault.File) {
			n, err := w.Write([]byte("abcdef"))
			if n != 2 {
				t.Errorf("Write = %d, %v; want 2", n, err)
			}
			asWriteError(t, err, syscall.EIO, 2, 0)
			if w.Written() != 2 || w.Flushed() != 2 {
				t.Errorf("Written is %d, Flushed %d, want 2", w.Written(), w.Flushed())
			}
			if n, err := w.Write([]byte("cdef!")); n != 5 || err != nil {
				t.Errorf("Write of the rest = %d, %v", n, err)
			}
			if err := w.Close(); err != nil || string(f.ProcessCrash()) != "abcdef!" {
				t.Errorf("Close = %v, the file holds %q", err, f.ProcessCrash())
			}
		}, fault.Fault{Op: fault.Write, First: 1, Times: 1, Take: 2, Err: syscall.EIO})
	}
}

// TestShortWritesAndInterruptsAreNoErrors has every write of the file take one
// byte, or be interrupted.
func TestShortWritesAndInterruptsAreNoErrors(t *testing.T) {
	for _, x := range []fault.Fault{
		{Op: fault.Write, Take: 1},
		{Op: fault.Write, First: 1, Times: 3, Err: syscall.EINTR},
		{Op: fault.Write, First: 1, Times: 3, Err: syscall.EINTR, Take: 1},
	} {
		inMemory(t, func(s *stage) {
			want := pattern(0, 0, 40)
			for i := range 4 {
				s.takes(10)(s.w.Write(want[10*i : 10*i+10]))
			}
			s.ok(s.w.Close())
			s.holds(want)
		}, x)
	}
}

// TestInterruptsEnd has the file be interrupted for ever, without and with a byte taken.
func TestInterruptsEnd(t *testing.T) {
	const most = 1000 // in a row
	inBubble(t, "buffer=4KiB,sync=never", func(t *testing.T, w *holdfast.Writer, f *fault.File) {
		put(t, w, 10)
		asWriteError(t, w.Flush(), syscall.EINTR, 0, 0)
		if n := f.Count(fault.Write); n != most+1 {
			t.Errorf("the file was tried %d times, want %d", n, most+1)
		}
	}, fault.Fault{Op: fault.Write, Times: 10 * most, Err: syscall.EINTR})
	inBubble(t, "buffer=4KiB,sync=never", func(t *testing.T, w *holdfast.Writer, f *fault.File) {
		put(t, w, 3*most)
		if err := w.Flush(); err != nil || w.Flushed() != 3*most {
			t.Errorf("Flush = %v, and %d bytes are flushed", err, w.Flushed())
		}
	}, fault.Fault{Op: fault.Write, Err: syscall.EINTR, Take: 1})
}

func TestWriteOfNothingIsAnError(t *testing.T) {
	inMemory(t, func(s *stage) {
		_, err := s.w.Write([]byte("abc"))
		if err == nil {
			err = s.w.Flush()
		}
		asWriteError(s.T, err, io.ErrShortWrite, 0, 0)
		s.f.Mend()
		s.ok(s.w.Flush())
	}, fault.Fault{Op: fault.Write})
}

// A fullFile has room for left more bytes; then it returns ENOSPC.
type fullFile struct{ left int }

func (f *fullFile) Write(p []byte) (n int, err error) {
	n = min(len(p), f.left)
	if f.left -= n; n < len(p) {
		err = syscall.ENOSPC
	}
	return n, err
}

func (*fullFile) Sync() error  { return nil }
func (*fullFile) Close() error { return nil }

func TestReadFromCountsWhatAFullFileTook(t *testing.T) {
	w, err := holdfast.New(&fullFile{left: 100_000}, holdfast.Unbuffered())
	if err != nil {
		t.Fatal(err)
	}
	n, err := w.ReadFrom(strings.NewReader(strings.Repeat("x", 150_000)))
	if n != 100_000 || w.Written() != n {
		t.Errorf("ReadFrom = %d, %v; %d are written", n, err, w.Written())
	}
	asWriteError(t, err, syscall.ENOSPC, n, 0)
	w.Close() // it has nothing to write
}

// TestFailedSyncIsFinal has a sync fail, and asks every method, many times.
func TestFailedSyncIsFinal(t *testing.T) {
	inMemory(t, func(s *stage) {
		if _, err := s.w.Enqueue([]byte("abc")); err != nil {
			s.Fatal(err)
		}
		is := func(what string, n int, err error) {
			s.Helper()
			var failed *holdfast.SyncError
			if n != 0 || !errors.As(err, &failed) || !errors.Is(err, syscall.EIO) || failed.Durable != 0 {
				s.Errorf("%s = %d, %v; want a SyncError", what, n, err)
			}
		}
		is("Sync", 0, s.w.Sync())
		for range 3 {
			for _, size := range []int{1, int(s.policy.Buffer) + 1} {
				n, err := s.w.Write(make([]byte, size))
				is("Write", n, err)
				_, err = s.w.Enqueue(make([]byte, size))
				is("Enqueue", 0, err)
			}
			n, err := s.w.ReadFrom(strings.NewReader("x"))
			is("ReadFrom", int(n), err)
			is("Flush", 0, s.w.Flush())
			is("Sync", 0, s.w.Sync())
			is("WaitDurable", 0, s.w.WaitDurable(context.Background(), 3))
			time.Sleep(time.Minute)
		}
		is("Close", 0, s.w.Close())
		is("Close", 0, s.w.Close())
		s.holds([]byte("abc"))
		if n := s.f.Count(fault.Sync); n != 1 {
			s.Errorf("the file was synced %d times", n)
		}
	}, fault.Fault{Op: fault.Sync, First: 1, Times: 1, Err: syscall.EIO})
}

// TestCloseFlushesWhatWasAcceptedBeforeASyncFailed leaves bytes in memory when the
// sync fails.
func TestCloseFlushesWhatWasAcceptedBeforeASyncFailed(t *testing.T) {
	inBubble(t, "buffer=4KiB,sync=never", func(t *testing.T, w *holdfast.Writer, f *fault.File) {
		put(t, w, 3)
		done := make(chan error)
		go func() { done <- w.Sync() }()
		synctest.Wait()
		put(t, w, 4)
		if err := <-done; err == nil {
			t.Error("Sync = nil")
		}
		var failed *holdfast.SyncError
		if err := w.Close(); !errors.As(err, &failed) {
			t.Errorf("Close = %v", err)
		}
		if f.Size() != 7 {
			t.Errorf("the file holds %d bytes, want 7", f.Size())
		}
	}, fault.Fault{Op: fault.Sync, Err: syscall.EIO, Delay: ms})
}

// TestSyncErrorNamesWhatIsDurable has the second sync fail.
func TestSyncErrorNamesWhatIsDurable(t *testing.T) {
	inMemory(t, func(s *stage) {
		if _, err := s.w.Enqueue([]byte("abc")); err != nil {
			s.Fatal(err)
		}
		s.ok(s.w.Sync())
		if _, err := s.w.Enqueue([]byte("defg")); err != nil {
			s.Fatal(err)
		}
		err := s.w.Sync()
		var failed *holdfast.SyncError
		if !errors.As(err, &failed) || failed.Durable != 3 || s.w.Durable() != 3 {
			s.Errorf("Sync = %v, Durable is %d, want 3", err, s.w.Durable())
		}
		s.ok(s.w.WaitDurable(context.Background(), 3))
	}, fault.Fault{Op: fault.Sync, First: 2, Times: 1, Err: syscall.EIO})
}

// TestCloseReportsEveryFailure has write, sync and close fail, at Close and before.
func TestCloseReportsEveryFailure(t *testing.T) {
	check := func(policy string, want []string, faults ...fault.Fault) {
		t.Helper()
		inBubble(t, policy, func(t *testing.T, w *holdfast.Writer, f *fault.File) {
			w.Enqueue([]byte("abc"))
			time.Sleep(11 * ms)
			err := w.Close()
			if err == nil {
				t.Fatal("Close = nil")
			}
			for _, part := range want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("Close = %v, which does not tell of %s", err, part)
				}
			}
			if again := w.Close(); again == nil || again.Error() != err.Error() {
				t.Errorf("Close again = %v, want %v", again, err)
			}
			if f.Count(fault.Close) != 1 {
				t.Errorf("the file was closed %d times", f.Count(fault.Close))
			}
		}, faults...)
	}
	write := fault.Fault{Op: fault.Write, Err: syscall.EIO}
	writeOnce := fault.Fault{Op: fault.Write, First: 1, Times: 1, Err: syscall.EIO}
	sync := fault.Fault{Op: fault.Sync, Err: syscall.EIO}
	closing := fault.Fault{Op: fault.Close, Err: syscall.EIO}
	check("buffer=4KiB,sync=never", []string{"write 1", "close 1"}, write, closing)
	check("buffer=4KiB,sync=close", []string{"sync 1", "close 1"}, sync, closing)
	check("buffer=4KiB,flush=10ms,sync=never", []string{"write 1"}, writeOnce)
	check("buffer=4KiB,flush=10ms,sync=close", []string{"write 1", "sync 1", "close 1"}, writeOnce, sync, closing)
	check("buffer=4KiB,sync=10ms", []string{"sync 1", "close 1"}, sync, closing)
	check("buffer=4KiB,sync=group", []string{"write 1", "close 1"}, write, closing)
}

// TestCloseOfABrokenFileDoesNotCallItDurable has the flush in Close fail: nothing
// is synced as if it were whole, and Written says what is missing.
func TestCloseOfABrokenFileDoesNotCallItDurable(t *testing.T) {
	inBubble(t, "buffer=4KiB,sync=close", func(t *testing.T, w *holdfast.Writer, f *fault.File) {
		put(t, w, 10)
		err := w.Close()
		asWriteError(t, err, syscall.ENOSPC, 4, 0)
		if w.Written() != 10 || w.Flushed() != 4 || w.Durable() > 4 {
			t.Errorf("watermarks are %d, %d, %d", w.Written(), w.Flushed(), w.Durable())
		}
		if w.Durable() > f.Stable() {
			t.Errorf("Durable is %d, stable are %d", w.Durable(), f.Stable())
		}
	}, fault.Fault{Op: fault.Write, Take: 4, First: 1, Times: 1, Full: true})
}

// TestGroupReportsAllWhomAFailedSyncCovered has the sync of a batch fail.
func TestGroupReportsAllWhomAFailedSyncCovered(t *testing.T) {
	for _, policy := range []string{"buffer=0,sync=group", "buffer=64KiB,sync=group", "buffer=0,sync=each"} {
		inBubble(t, policy, func(t *testing.T, w *holdfast.Writer, f *fault.File) {
			results := make(chan error, 20)
			for range 20 {
				go func() {
					n, err := w.Write([]byte("x"))
					if n != 0 && n != 1 {
						t.Errorf("Write = %d, %v", n, err)
					}
					results <- err
				}()
			}
			for range 20 {
				var failed *holdfast.SyncError
				if err := <-results; !errors.As(err, &failed) {
					t.Errorf("Write = %v, want a SyncError", err)
				}
			}
		}, fault.Fault{Op: fault.Sync, Delay: ms, Err: syscall.EIO})
	}
}

// reports collects what OnError has reported.
type reports struct {
	mu  sync.Mutex
	all []error
}

func (r *reports) add(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, err)
}

// taken returns what was reported since the last call, when nothing else will be.
func (r *reports) taken() []error {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.all
	r.all = nil
	return all
}

// TestBackgroundFailuresAreHeardWithoutACall writes once, and makes no call after it.
func TestBackgroundFailuresAreHeardWithoutACall(t *testing.T) {
	check := func(policy string, x fault.Fault, is func(err error) bool) {
		t.Run(policy, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, err := holdfast.ParsePolicy(policy)
				if err != nil {
					t.Fatal(err)
				}
				w, err := holdfast.New(fault.New(x), p)
				if err != nil {
					t.Fatal(err)
				}
				var heard reports
				w.OnError(heard.add)
				if _, err = w.Write([]byte("record")); err != nil {
					t.Fatal(err)
				}
				if got := heard.taken(); len(got) != 0 || w.Err() != nil {
					t.Errorf("before the flush: %v, %v", got, w.Err())
				}
				time.Sleep(time.Minute) // it tries again, and that is the same failure
				got := heard.taken()
				if len(got) != 1 || !errors.Is(got[0], x.Err) || !is(got[0]) {
					t.Fatalf("heard %v", got)
				}
				if err := w.Err(); !errors.Is(err, x.Err) {
					t.Errorf("Err = %v", err)
				}
				if n := w.Stats().Errors; n != 1 {
					t.Errorf("%d errors are counted", n)
				}
				w.Close()
			})
		})
	}
	write := func(err error) bool {
		var e *holdfast.WriteError
		return errors.As(err, &e) && e.AtRisk == 6 && e.Flushed == 0
	}
	sync := func(err error) bool {
		var e *holdfast.SyncError
		return errors.As(err, &e) && e.AtRisk == 6 && e.Durable == 0
	}
	check("buffer=4KiB,flush=10ms,sync=never", fault.Fault{Op: fault.Write, Err: syscall.ENOSPC}, write)
	check("buffer=4KiB,sync=10ms", fault.Fault{Op: fault.Write, Err: syscall.ENOSPC}, write)
	check("buffer=4KiB,flush=10ms,sync=20ms", fault.Fault{Op: fault.Sync, Err: syscall.EIO}, sync)
	check("buffer=0,sync=10ms", fault.Fault{Op: fault.Sync, Err: syscall.EIO}, sync)
	check("buffer=4KiB,flush=10ms,sync=1B", fault.Fault{Op: fault.Sync, Err: syscall.EIO}, sync)
}

// TestFailedWritesAreOneFailureUntilOneWorks has the disk full twice.
func TestFailedWritesAreOneFailureUntilOneWorks(t *testing.T) {
	inMemory(t, func(s *stage) {
		var heard reports
		s.w.OnError(heard.add)
		for round := range 2 {
			s.f.Add(fault.Fault{Op: fault.Write, Err: syscall.ENOSPC})
			for range 5 {
				s.w.Write([]byte("record"))
				s.w.Flush()
				time.Sleep(time.Second)
			}
			if got := heard.taken(); len(got) != 1 || !errors.Is(got[0], syscall.ENOSPC) {
				s.Fatalf("round %d: heard %v", round, got)
			}
			if !errors.Is(s.w.Err(), syscall.ENOSPC) {
				s.Errorf("round %d: Err = %v", round, s.w.Err())
			}
			s.f.Mend()
			for s.w.Flush() != nil { // it returns what failed in the background first
				time.Sleep(time.Second)
			}
			s.takes(1)(s.w.Write([]byte("x")))
			s.ok(s.w.Flush())
			if err := s.w.Err(); err != nil {
				s.Errorf("round %d: mended, and Err = %v", round, err)
			}
		}
		s.ok(s.w.Close())
		if got := heard.taken(); len(got) != 0 || s.w.Stats().Errors != 2 {
			s.Errorf("heard %v, counted %d", got, s.w.Stats().Errors)
		}
	})
}

// TestErrPrefersTheFinalFailure: the disk is full, and the sync of the bytes it took fails too. Both are counted,
// though no one listens.
func TestErrPrefersTheFinalFailure(t *testing.T) {
	inBubble(t, "buffer=4KiB,sync=close", func(t *testing.T, w *holdfast.Writer, f *fault.File) {
		f.SetRoom(3)
		put(t, w, 10)
		var failed *holdfast.SyncError
		if err := w.Sync(); !errors.As(err, &failed) || w.Err() != err {
			t.Errorf("Sync = %v, and Err = %v", err, w.Err())
		}
		if n := w.Stats().Errors; n != 2 {
			t.Errorf("%d failures are counted, want 2", n)
		}
	}, fault.Fault{Op: fault.Sync, Err: syscall.EIO})
}

// TestErrorsSayWhatBecomesOfTheBytes that were accepted and not written.
func TestErrorsSayWhatBecomesOfTheBytes(t *testing.T) {
	inBubble(t, "buffer=4KiB,sync=never", func(t *testing.T, w *holdfast.Writer, f *fault.File) {
		f.SetRoom(3)
		put(t, w, 10)
		if err := w.Flush(); err == nil || !strings.HasSuffix(err.Error(), "; 7 accepted bytes wait in memory, and each call tries again") {
			t.Errorf("Flush = %v", err)
		}
		if err := w.Close(); err == nil || !strings.HasSuffix(err.Error(), "; 7 accepted bytes are lost with the Writer") {
			t.Errorf("Close = %v", err)
		}
	})
}

// TestOnErrorMayCallTheWriter calls every method from within: a lock that is held would be a
// deadlock, which the bubble of fake time reports.
func TestOnErrorMayCallTheWriter(t *testing.T) {
	for _, op := range []fault.Op{fault.Write, fault.Sync} {
		inMemory(t, func(s *stage) {
			calls, inside := 0, 0
			done := make(chan struct{})
			s.w.OnError(func(error) {
				calls++
				if inside++; inside != 1 {
					s.Error("OnError is called within OnError")
				}
				s.w.Write([]byte("from within"))
				s.w.Flush()
				s.w.Sync()
				s.w.Stats()
				if s.w.Err() == nil {
					s.Error("nothing fails")
				}
				if calls == 1 {
					if err := s.w.Close(); (err == nil) != (s.w.Stats().NotFlushed == 0 && op == fault.Write) {
						s.Error("of Close:", err)
					}
					close(done)
				}
				inside--
			})
			s.w.Write([]byte("record"))
			s.w.Sync()
			<-done
			synctest.Wait()
			want := 1
			if op == fault.Write && s.w.Stats().NotFlushed > 0 {
				want = 2 // Close's own loss is a further failure
			}
			if calls != want {
				s.Errorf("%d calls, want %d", calls, want)
			}
		}, fault.Fault{Op: op, Err: syscall.EIO})
	}
}

func TestPanicsAndFailedClosesAreHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fault.New(fault.Fault{Op: fault.Close, Err: syscall.EIO})
		w, err := holdfast.New(f, holdfast.Durable())
		if err != nil {
			t.Fatal(err)
		}
		var heard reports
		w.OnError(heard.add)
		if err := w.Close(); !errors.Is(err, syscall.EIO) || w.Err() != err {
			t.Errorf("Close = %v, Err = %v", err, w.Err())
		}
		if got := heard.taken(); len(got) != 1 || !errors.Is(got[0], syscall.EIO) {
			t.Errorf("of Close: heard %v", got)
		}
		if w, err = holdfast.New(panics{}, holdfast.Unbuffered()); err != nil {
			t.Fatal(err)
		}
		w.OnError(heard.add)
		func() {
			defer func() { _ = recover() }()
			w.Write([]byte("record"))
		}()
		if got := heard.taken(); len(got) != 1 || got[0] != w.Err() {
			t.Errorf("of a panic: heard %v, Err = %v", got, w.Err())
		}
		w.Close()
	})
}

// panics is a file whose Write panics.
type panics struct{}

func (panics) Write([]byte) (int, error) { panic("planned") }
func (panics) Sync() error               { return nil }
func (panics) Close() error              { return nil }

// TestBytesAtRiskAndTheirAge follows records through memory, kernel and disk.
func TestBytesAtRiskAndTheirAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fault.New(fault.Fault{Op: fault.Sync, Delay: 3 * time.Second}, fault.Fault{Op: fault.Write, Delay: time.Second, Take: fault.All})
		w, err := holdfast.New(f, holdfast.Buffered(4*holdfast.KiB))
		if err != nil {
			t.Fatal(err)
		}
		check := func(when string, notFlushed, notDurable int64, oldest time.Duration) {
			t.Helper()
			if s := w.Stats(); s.NotFlushed != notFlushed || s.NotDurable != notDurable || s.Oldest != oldest {
				t.Errorf("%s: %d not flushed, %d not durable, the oldest waits for %v; want %d, %d, %v", when, s.NotFlushed, s.NotDurable, s.Oldest, notFlushed, notDurable, oldest)
			}
		}
		put := func(n int) {
			if _, err := w.Write(make([]byte, n)); err != nil {
				t.Error(err)
			}
		}
		check("new", 0, 0, 0)
		put(10)
		time.Sleep(5 * time.Second)
		put(20)
		check("in memory", 30, 30, 5*time.Second)
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		check("in the kernel", 0, 30, 6*time.Second)
		synced := make(chan error)
		go func() { synced <- w.Sync() }()
		time.Sleep(time.Second)
		put(5)
		check("while it syncs", 5, 35, 7*time.Second)
		if err := <-synced; err != nil {
			t.Fatal(err)
		}
		check("what came meanwhile", 5, 5, 2*time.Second)
		if err := w.Sync(); err != nil {
			t.Fatal(err)
		}
		check("all is durable", 0, 0, 0)
		time.Sleep(time.Hour) // no byte waits
		put(0)                // is no byte
		time.Sleep(time.Hour)
		put(1)
		time.Sleep(time.Second)
		check("after a pause", 1, 1, time.Second)
		if err := w.Sync(); err != nil {
			t.Fatal(err)
		}
		check("synced", 0, 0, 0)
		s := w.Stats()
		if s.Sync.Count() != s.Syncs || s.Sync.Max() != 3*time.Second || s.LongestSync != 3*time.Second || s.Flush.Count() != 1 || s.Flush.Max() != time.Second {
			t.Errorf("%+v", s)
		}
		put(1)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		check("closed, and sync=never syncs nothing", 0, 1, 0)
	})
}

func TestOpenFileTakesWhatOSOpenFileTakes(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	write := func(flag int, text string) error {
		t.Helper()
		w, err := holdfast.OpenFile(path, flag, 0o600, holdfast.Durable())
		if err != nil {
			return err
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Error(err)
		}
		return w.Close()
	}
	if err := write(os.O_WRONLY, "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without O_CREATE: %v", err)
	}
	if err := write(os.O_WRONLY|os.O_CREATE|os.O_EXCL, "abcdef"); err != nil {
		t.Error(err)
	}
	if err := write(os.O_WRONLY|os.O_CREATE|os.O_EXCL, "x"); !errors.Is(err, os.ErrExist) {
		t.Errorf("with O_EXCL: %v", err)
	}
	if err := write(os.O_RDWR, "AB"); err != nil {
		t.Error(err)
	}
	if err := write(os.O_WRONLY|os.O_APPEND, "gh"); err != nil {
		t.Error(err)
	}
	if err := write(os.O_CREATE, "x"); err == nil || err.Error() != "holdfast: flag 0x40 opens "+path+" for reading alone; add os.O_WRONLY" && os.O_CREATE == 0x40 {
		t.Errorf("without O_WRONLY: %v", err)
	}
	if text, err := os.ReadFile(path); string(text) != "ABcdefgh" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if is, err := os.Stat(path); err != nil || is.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		t.Errorf("%v, %v", is.Mode(), err)
	}
}

// TestErrorsCountWhatIsAtRisk in memory, in the kernel, or in both.
func TestErrorsCountWhatIsAtRisk(t *testing.T) {
	write := func(t *testing.T, w *holdfast.Writer, n int) {
		if _, err := w.Write(make([]byte, n)); err != nil {
			t.Error(err)
		}
	}
	inBubble(t, "buffer=4KiB,sync=close", func(t *testing.T, w *holdfast.Writer, _ *fault.File) {
		write(t, w, 10)
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		write(t, w, 3)
		var failed *holdfast.WriteError
		if err := w.Flush(); !errors.As(err, &failed) || failed.AtRisk != 3 || failed.Flushed != 10 || failed.Durable != 0 {
			t.Errorf("Flush = %v (%+v); memory holds 3 bytes, and the kernel 10", err, failed)
		}
	}, fault.Fault{Op: fault.Write, First: 2, Times: 1, Err: syscall.EIO})
	inBubble(t, "buffer=4KiB,sync=close", func(t *testing.T, w *holdfast.Writer, _ *fault.File) {
		write(t, w, 10)
		synced := make(chan error, 1)
		go func() { synced <- w.Sync() }()
		synctest.Wait()
		write(t, w, 3)
		var failed *holdfast.SyncError
		if err := <-synced; !errors.As(err, &failed) || failed.AtRisk != 13 || failed.Durable != 0 {
			t.Errorf("Sync = %v (%+v); 13 bytes are not durable", err, failed)
		}
	}, fault.Fault{Op: fault.Sync, Delay: time.Second, Err: syscall.EIO})
}

// TestWhatASyncDoesNotCoverKeepsItsAge, though it was accepted before that sync began, and is in
// the kernel when it ends.
func TestWhatASyncDoesNotCoverKeepsItsAge(t *testing.T) {
	inBubble(t, "buffer=4KiB,sync=1h", func(t *testing.T, w *holdfast.Writer, _ *fault.File) {
		end, err := w.Enqueue(make([]byte, 10))
		if err == nil {
			err = w.Flush()
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if _, err := w.Enqueue(make([]byte, 5)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synced := make(chan error, 1)
		go func() { synced <- w.WaitDurable(context.Background(), end) }()
		synctest.Wait()
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if err := <-synced; err != nil {
			t.Fatal(err)
		}
		if s := w.Stats(); s.NotFlushed != 0 || s.NotDurable != 5 || s.Oldest < 2*time.Second {
			t.Errorf("%d not flushed, %d not durable, the oldest waits for %v; the 5 bytes came 2s ago", s.NotFlushed, s.NotDurable, s.Oldest)
		}
	}, fault.Fault{Op: fault.Sync, Delay: time.Second})
}

// A WaitDurable whose context ends leaves its flush behind. If that flush fails, the next call says so.
func TestFailureAfterAnEndedWaitIsReported(t *testing.T) {
	for _, policy := range []string{"buffer=100B,sync=never", "buffer=1KiB,sync=close", "buffer=64B,sync=group", "buffer=1KiB,sync=1h"} {
		t.Run(policy, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, err := holdfast.ParsePolicy(policy)
				if err != nil {
					t.Fatal(err)
				}
				f := fault.New(fault.Fault{Op: fault.Write, Times: 1, Err: syscall.EIO, Delay: 2 * time.Second})
				w, err := holdfast.New(f, p)
				if err != nil {
					t.Fatal(err)
				}
				end, err := w.Enqueue([]byte("record"))
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := w.WaitDurable(ctx, end); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("WaitDurable returned %v", err)
				}
				time.Sleep(time.Minute) // of the bubble's time: the flush fails meanwhile
				if err := w.Flush(); !errors.Is(err, syscall.EIO) {
					t.Errorf("Flush returned %v, not the failure", err)
				}
				if err := w.Close(); err != nil {
					t.Errorf("Close returned %v", err)
				}
				if got := string(f.ProcessCrash()); got != "record" {
					t.Errorf("the file holds %q", got)
				}
			})
		})
	}
}

// A WaitDurable that ends well because another call's sync covered its bytes after its own flush had
// failed leaves that failure to the next call.
func TestFailureBeforeAnotherSyncIsReported(t *testing.T) {
	rounds := 20_000 // few of them meet the order of goroutines that lost the failure
	if testing.Short() {
		rounds = 2000
	}
	for range rounds {
		w, err := holdfast.New(fault.New(fault.Fault{Op: fault.Write, Times: 1, Err: syscall.EIO}), holdfast.Durable())
		if err != nil {
			t.Fatal(err)
		}
		end, err := w.Enqueue([]byte("record"))
		if err != nil {
			t.Fatal(err)
		}
		var calls sync.WaitGroup
		var reported atomic.Int64
		call := func(wait func() error) {
			calls.Go(func() {
				if err := wait(); errors.Is(err, syscall.EIO) {
					reported.Add(1)
				} else if err != nil {
					t.Error(err)
				}
			})
		}
		call(func() error { return w.WaitDurable(t.Context(), end) })
		call(w.Flush)
		call(func() error { _, err := w.Write([]byte("more")); return err })
		calls.Wait()
		if err := w.Close(); errors.Is(err, syscall.EIO) {
			reported.Add(1)
		}
		if reported.Load() == 0 {
			t.Fatal("no call returned the failure of the write")
		}
	}
}
