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
	"github.com/holdfast-go/holdfast/internal/fault"
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

// TestWriteThatStartsAFailingFlushIsAccepted fills the buffer: the record that
// starts the flush is in memory already, so the failure shows at the next call.
func TestWriteThatStartsAFailingFlushIsAccepted(t *testing.T) {
	for _, policy := range []string{"buffer=16B,sync=never", "buffer=4KiB,sync=never", "buffer=64KiB,sync=never"} {
		inBubble(t, policy, func(t *testing.T, w *holdfast.Writer, f *fault.File) {
			p, _ := holdfast.ParsePolicy(policy)
			put(t, w, int(p.Buffer)-1)
			put(t, w, 2)
			synctest.Wait()
			if n, err := w.Write([]byte("x")); n != 0 || !errors.Is(err, syscall.EIO) {
				t.Errorf("the next Write = %d, %v", n, err)
			}
			put(t, w, 1)
			if err := w.Close(); err != nil || f.Size() != int64(p.Buffer)+2 {
				t.Errorf("Close = %v, the file holds %d", err, f.Size())
			}
		}, fault.Fault{Op: fault.Write, First: 1, Times: 1, Err: syscall.EIO})
	}
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

// TestCloseFlushesWhatWasAcceptedBeforeASyncFailed leaves bytes in memory when the
// sync fails.
func TestCloseFlushesWhatWasAcceptedBeforeASyncFailed(t *testing.T) {
	inBubble(t, "buffer=4KiB,sync=never", func(t *testing.T, w *holdfast.Writer, f *fault.File) {
		lane := w.Lane()
		put(t, w, 3)
		done := make(chan error)
		go func() { done <- w.Sync() }()
		synctest.Wait()
		put(t, w, 2)
		put(t, lane, 2)
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
