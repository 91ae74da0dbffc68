package holdfast_test

import (
	"context"
	"errors"
	"io"
	"strings"
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
				continue // the sync by time tries again at once, and what is durable is no failure
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
			if err := w.Sync(); !errors.Is(err, syscall.ENOSPC) { // and what was flushed is synced
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

// A fullFile takes so many bytes more.
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
