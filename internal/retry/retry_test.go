//go:build go1.25

package retry

import (
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/handles"
)

// fileOps is all calls that may fail.
var fileOps = []Op{
	OpOpen, OpWrite, OpTruncate, OpSync, OpClose, OpRename, OpStat, OpMkdir, OpChmod, OpChown, OpResolve,
}

func TestErrorIsAnsweredAsItsCallAllows(t *testing.T) {
	never := []syscall.Errno{
		syscall.ENOENT, syscall.EEXIST, syscall.EACCES, syscall.EPERM, syscall.EROFS, syscall.EISDIR, syscall.ENOTDIR,
		syscall.ENAMETOOLONG, syscall.ELOOP, syscall.EFBIG, syscall.EINVAL, syscall.ENXIO, syscall.ESTALE,
		syscall.ENODEV, syscall.EPIPE, syscall.EBADF, syscall.EXDEV, syscall.ENOTEMPTY, syscall.EMLINK, syscall.ENOSYS,
	}
	check := func(errno syscall.Errno, want func(Op) remedy) {
		t.Helper()
		for _, op := range fileOps {
			expect := want(op)
			if op == OpSync || op == OpClose {
				expect = GiveUp
			}
			for _, err := range []error{errno, &os.PathError{Op: "open", Path: "a", Err: errno}, errors.Join(errno, context.Canceled)} {
				if got := RemedyFor(op, err); got != expect {
					t.Errorf("remedyFor(%s, %#v) = %d, want %d", op, err, got, expect)
				}
			}
		}
	}
	always := func(r remedy) func(Op) remedy { return func(Op) remedy { return r } }
	asked := func(op Op) remedy {
		if op == OpOpen || op == OpStat || op == OpResolve {
			return afterPause
		}
		return GiveUp
	}
	check(syscall.EINTR, always(atOnce))
	check(syscall.EMFILE, always(AfterSpare))
	check(syscall.ENFILE, always(AfterSpare))
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.ENOMEM, syscall.ENOBUFS, syscall.EAGAIN} {
		check(errno, always(afterPause))
	}
	check(syscall.EBUSY, func(op Op) remedy {
		if op == OpWrite {
			return GiveUp
		}
		return afterPause
	})
	check(syscall.EIO, asked)
	check(syscall.ETIMEDOUT, asked)
	for _, errno := range never {
		check(errno, always(GiveUp))
	}
	for _, err := range []error{io.ErrShortWrite, context.Canceled, context.DeadlineExceeded, errors.New("else"), nil} {
		for _, op := range fileOps {
			if RemedyFor(op, err) != GiveUp {
				t.Errorf("%s: %v is tried again", op, err)
			}
		}
	}
}

func TestPauseStaysBetweenHalfAndAllOfItsBound(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 7))
	for range 10000 {
		r := Limits{Base: time.Duration(1 + random.Int64N(int64(time.Second)))}
		r.Cap = r.Base + time.Duration(random.Int64N(int64(time.Hour)))
		if random.IntN(10) == 0 {
			r = Limits{Base: math.MaxInt64 - time.Duration(random.IntN(2)), Cap: math.MaxInt64}
		}
		n := random.IntN(100)
		bound := time.Duration(math.MaxInt64)
		if n < 62 && r.Base <= bound>>n {
			bound = r.Base << n
		}
		bound = min(bound, r.Cap)
		if got := r.pause(n); got > bound || got <= bound/2 {
			t.Fatalf("%+v.pause(%d) = %v, want more than half of %v and no more than it", r, n, got, bound)
		}
	}
	for bound := range time.Duration(10) {
		for range 100 {
			if got := (Limits{Base: bound, Cap: bound}).pause(0); got > bound || got <= bound/2 && bound > 0 {
				t.Fatalf("a pause of %d ns became %d", bound, got)
			}
			if got := (Limits{Base: time.Hour, Cap: bound}).pause(3); got > bound {
				t.Fatalf("a cap of %d ns became %d", bound, got)
			}
		}
	}
}

func TestPausesDiffer(t *testing.T) {
	r := Limits{}.WithDefaults()
	seen := map[time.Duration]bool{}
	for range 100 {
		seen[r.pause(0)] = true
	}
	if len(seen) < 50 {
		t.Errorf("100 pauses had %d lengths; calls that one disk stopped would all come back at once", len(seen))
	}
}

// made makes a call that fails with these errors, then succeeds.
func made(ctx context.Context, tr *Tries, op Op, failures ...error) (calls int, err error) {
	for {
		calls++
		err = nil
		if calls <= len(failures) {
			err = failures[calls-1]
		}
		if err == nil || !tr.Again(ctx, op, &err) {
			return calls, err
		}
	}
}

func repeated(err error, n int) []error {
	all := make([]error, n)
	for i := range all {
		all[i] = err
	}
	return all
}

func TestCallIsMadeAgainAfterGrowingPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var retries atomic.Int64
		tr, begin := Tries{Limits: Limits{Attempts: 8}.WithDefaults(), Retries: &retries}, time.Now()
		calls, err := made(t.Context(), &tr, OpOpen, repeated(syscall.ENOSPC, 7)...)
		if calls != 8 || err != nil || tr.Attempts() != 8 || retries.Load() != 7 {
			t.Errorf("%d calls, %v, %d attempts, %d retries", calls, err, tr.Attempts(), retries.Load())
		}
		// 0.1 + 0.2 + 0.4 + 0.8 + 3 of the cap, or more than half of that.
		if d := time.Since(begin); d > 4500*time.Millisecond || d <= 2250*time.Millisecond {
			t.Errorf("the pauses took %v", d)
		}
	})
}

func TestAttemptsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := Tries{Limits: Limits{Attempts: 3}.WithDefaults()}
		calls, err := made(t.Context(), &tr, OpWrite, repeated(syscall.ENOSPC, 100)...)
		if calls != 3 || err != syscall.ENOSPC || tr.Attempts() != 3 {
			t.Errorf("%d calls, %v, %d attempts", calls, err, tr.Attempts())
		}
		tr.Progress()
		calls, err = made(t.Context(), &tr, OpWrite, syscall.EDQUOT, syscall.EDQUOT)
		if calls != 3 || err != nil || tr.Attempts() != 5 {
			t.Errorf("after progress: %d calls, %v, %d attempts", calls, err, tr.Attempts())
		}
	})
}

// TestInsistBeginsWithAllAttempts, whether the call before it worked or not.
func TestInsistBeginsWithAllAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := Tries{Limits: Limits{Attempts: 3}.WithDefaults()}
		for _, failures := range []int{2, 3, 2} {
			calls := 0
			err := tr.Insist(t.Context(), OpOpen, func() error {
				if calls++; calls <= failures {
					return syscall.ENOSPC
				}
				return nil
			})
			if calls != 3 || (err == nil) != (failures < 3) {
				t.Errorf("%d failures: %d calls, %v", failures, calls, err)
			}
		}
	})
}

func TestOneAttemptMakesNoPauseAndKeepsTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		tr := Tries{Limits: Limits{Attempts: 1}.WithDefaults()}
		calls, err := made(t.Context(), &tr, OpOpen, syscall.ENOSPC)
		if calls != 1 || err != syscall.ENOSPC || tr.Attempts() != 1 || time.Since(begin) != 0 {
			t.Errorf("%d calls, %v, %d attempts, %v", calls, err, tr.Attempts(), time.Since(begin))
		}
		// A try without a pause is no retry.
		calls, err = made(t.Context(), &tr, OpOpen, syscall.EINTR, syscall.EINTR)
		if calls != 3 || err != nil || tr.Attempts() != 1 {
			t.Errorf("interrupted: %d calls, %v, %d attempts", calls, err, tr.Attempts())
		}
	})
}

func TestPermanentErrorIsNotTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		tr := Tries{Limits: Limits{}.WithDefaults()}
		calls, err := made(t.Context(), &tr, OpWrite, repeated(syscall.EIO, 3)...)
		if calls != 1 || err != syscall.EIO || time.Since(begin) != 0 {
			t.Errorf("%d calls, %v, %v", calls, err, time.Since(begin))
		}
	})
}

func TestSignalsThatNeverEndAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := Tries{Limits: Limits{Attempts: 2}.WithDefaults()}
		calls, err := made(t.Context(), &tr, OpWrite, repeated(syscall.EINTR, 1e6)...)
		if want := 2 * (mostAtOnce + 1); calls != want || err != syscall.EINTR {
			t.Errorf("%d calls, %v; want %d", calls, err, want)
		}
	})
}

func TestIdleDescriptorIsSparedBeforeAnyPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h handles.Cache
		closed := 0
		for range 2 {
			h.Idle.Add(&handles.Handle{Drop: func() { closed++ }})
		}
		tr, begin := Tries{Limits: Limits{Attempts: 2}.WithDefaults(), Handles: &h}, time.Now()
		if calls, err := made(t.Context(), &tr, OpOpen, syscall.EMFILE, syscall.ENFILE); calls != 3 || err != nil {
			t.Errorf("%d calls, %v", calls, err)
		}
		if closed != 2 || time.Since(begin) != 0 || tr.Attempts() != 1 {
			t.Errorf("%d spared, after %v, %d attempts", closed, time.Since(begin), tr.Attempts())
		}
		if calls, err := made(t.Context(), &tr, OpOpen, syscall.EMFILE, syscall.EMFILE); calls != 2 || err != syscall.EMFILE {
			t.Errorf("with none to spare: %d calls, %v", calls, err)
		}
		if time.Since(begin) == 0 || tr.Attempts() != 2 {
			t.Errorf("with none to spare: paused %v, %d attempts", time.Since(begin), tr.Attempts())
		}
	})
}

func TestCancelEndsAPauseAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("the service stops")
		ctx, cancel := context.WithCancelCause(t.Context())
		tr, begin := Tries{Limits: Limits{Attempts: 9, Base: time.Hour, Cap: time.Hour}}, time.Now()
		time.AfterFunc(time.Minute, func() { cancel(cause) })
		calls, err := made(ctx, &tr, OpOpen, repeated(syscall.ENOSPC, 9)...)
		if calls != 1 || !errors.Is(err, syscall.ENOSPC) || !errors.Is(err, cause) || time.Since(begin) != time.Minute {
			t.Errorf("%d calls, %v after %v", calls, err, time.Since(begin))
		}
		for _, failure := range []error{syscall.ENOSPC, syscall.EINTR, syscall.EMFILE} {
			if calls, err := made(ctx, &tr, OpOpen, failure); calls != 1 || !errors.Is(err, failure) || !errors.Is(err, cause) {
				t.Errorf("after the cancel: %d calls, %v", calls, err)
			}
		}
		if calls, err := made(ctx, &tr, OpOpen, syscall.ENOENT); calls != 1 || err != syscall.ENOENT {
			t.Errorf("a permanent error has nothing to do with the cancel: %d calls, %v", calls, err)
		}
	})
}

func TestTriesTakeNoMemoryUnlessTheyFail(t *testing.T) {
	ctx, n := t.Context(), 0
	got := testing.AllocsPerRun(100, func() {
		tr := Tries{Limits: Limits{}.WithDefaults()}
		for {
			n++
			var err error
			if n%2 == 0 {
				err = syscall.EINTR
			}
			if err == nil || !tr.Again(ctx, OpOpen, &err) {
				break
			}
		}
	})
	if got != 0 {
		t.Errorf("%v allocations", got)
	}
}
