package holdfast_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
)

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

// TestErrPrefersTheFinalFailure: the disk is full, and the sync of what it took fails too. Both are counted, though no one listens.
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
				want = 2 // what Close has lost is a failure of its own
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
