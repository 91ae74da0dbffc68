//go:build go1.25

package holdfast_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/catalogue"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/crashsuite"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

func TestRecordsStandWholeAndInTheirOrder(t *testing.T) {
	onEveryPolicy(t, func(s *stage) {
		const records = 60
		var group sync.WaitGroup
		for stream := range byte(5) {
			group.Go(func() {
				for i := range records {
					p := pattern(stream, i, 1+(i*i*7)%97)
					var err error
					switch {
					case i%3 == 0:
						_, err = s.w.Enqueue(p)
					case i%3 == 1:
						_, err = s.w.WriteString(string(p))
					default:
						_, err = s.w.Write(p)
					}
					if err != nil {
						s.Error(err)
					}
				}
			})
		}
		group.Wait()
		s.ok(s.w.Close())
		s.inOrder(s.content(), records, records, records, records, records)
		if n := s.w.Written(); n != int64(len(s.content())) {
			s.Errorf("Written is %d, the file holds %d", n, len(s.content()))
		}
	})
}

func TestRecordsAroundTheBufferSize(t *testing.T) {
	isolate.Once(t)
	onEveryPolicy(t, func(s *stage) {
		buffer, number := int(s.policy.Buffer), 0
		var want []byte
		for _, size := range []int{
			1, buffer - 1, buffer, buffer + 1, buffer, buffer, buffer, 1, 2*buffer - 1, 1, 2 * buffer, 2*buffer + 1,
			buffer / 2, buffer / 2, buffer/2 + 1, 1, 3*buffer + 1, buffer - 1, 2, buffer,
		} {
			p := pattern(1, number, max(0, size))
			s.takes(len(p))(s.w.Write(p))
			want = append(want, p...)
			number++
		}
		s.ok(s.w.Flush())
		s.holds(want)
		s.ok(s.w.Close())
		s.holds(want)
	})
}

func TestEmptyRecordsDoNothing(t *testing.T) {
	onEveryPolicy(t, func(s *stage) {
		for range 3 {
			s.takes(0)(s.w.Write(nil))
			s.takes(0)(s.w.WriteString(""))
			s.takes(0)(s.w.Write([]byte{}))
			end, err := s.w.Enqueue([]byte{})
			s.takes(0)(int(end), err)
			s.ok(s.w.WaitDurable(context.Background(), end))
		}
		if s.f != nil {
			time.Sleep(time.Hour)
			if n := s.f.Count(fault.Write) + s.f.Count(fault.Sync); n != 0 {
				s.Errorf("the file got %d calls", n)
			}
		}
		s.ok(s.w.Close())
		s.holds(nil)
	})
}

func TestWatermarksFollowWhatThePolicyPromises(t *testing.T) {
	onEveryPolicy(t, func(s *stage) {
		if got := s.marks(); got != "0 ≥ 0 ≥ 0" {
			s.Errorf("a new Writer's watermarks are %s", got)
		}
		loss := s.policy.Loss()
		for i := range 20 {
			s.takes(30)(s.w.Write(pattern(0, i, 30)))
			want := int64(30 * (i + 1))
			if s.w.Written() != want {
				s.Fatalf("Written is %d, want %d", s.w.Written(), want)
			}
			if loss.Process.None() && s.w.Flushed() != want {
				s.Fatalf("Flushed is %d, want %d", s.w.Flushed(), want)
			}
			if loss.Power.None() && s.w.Durable() != want {
				s.Fatalf("Durable is %d, want %d", s.w.Durable(), want)
			}
			if loss.Process.Bytes != holdfast.Unlimited && want-s.w.Flushed() > int64(loss.Process.Bytes) {
				s.Fatalf("%s, but a process crash may lose only %v", s.marks(), loss.Process)
			}
		}
		s.ok(s.w.Flush())
		if s.w.Flushed() != 600 || len(s.content()) != 600 {
			s.Errorf("after Flush: %s, the file holds %d", s.marks(), len(s.content()))
		}
		s.ok(s.w.Sync())
		if s.w.Durable() != 600 || (s.f != nil && s.f.Stable() != 600) {
			s.Errorf("after Sync: %s", s.marks())
		}
		s.takes(1)(s.w.WriteString("x"))
		s.ok(s.w.Close())
		if s.w.Written() != 601 || s.w.Flushed() != 601 || (s.policy.Sync.Mode != holdfast.SyncNever && s.w.Durable() != 601) {
			s.Errorf("after Close: %s", s.marks())
		}
	})
}

func TestCallersSliceIsNotKept(t *testing.T) {
	onEveryPolicy(t, func(s *stage) {
		var want []byte
		for i, size := range []int{5, 500, int(s.policy.Buffer) + 1} {
			p := pattern(0, 2*i, size)
			want = append(want, p...)
			s.takes(size)(s.w.Write(p))
			clear(p)
			p = pattern(0, 2*i+1, size)
			want = append(want, p...)
			end, err := s.w.Enqueue(p)
			s.takes(len(want))(int(end), err)
			clear(p)
			s.ok(s.w.Flush())
		}
		s.ok(s.w.Close())
		s.holds(want)
	})
}

func TestCloseSaysTheSameAgain(t *testing.T) {
	onEveryPolicy(t, func(s *stage) {
		s.takes(3)(s.w.Write([]byte("abc")))
		for range 3 {
			s.ok(s.w.Close())
		}
		s.holds([]byte("abc"))
	})
	inMemory(t, func(s *stage) {
		s.takes(3)(s.w.Write([]byte("abc")))
		for range 3 {
			if err := s.w.Close(); !errors.Is(err, syscall.EIO) || strings.Count(err.Error(), "close 1") != 1 {
				s.Errorf("Close = %v", err)
			}
		}
		s.holds([]byte("abc"))
	}, fault.Fault{Op: fault.Close, Err: syscall.EIO})
}

// TestCloseContextEndsWithItsContext has a call of the file take an hour and fail, and asks Close for its error.
func TestCloseContextEndsWithItsContext(t *testing.T) {
	for _, op := range []fault.Op{fault.Write, fault.Sync, fault.Close} {
		inBubble(t, "buffer=4KiB,sync=close", func(t *testing.T, w *holdfast.Writer, _ *fault.File) {
			put(t, w, 3)
			start, mine := time.Now(), errors.New("mine")
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, mine)
			defer cancel()
			if err := w.CloseContext(ctx); !errors.Is(err, mine) || time.Since(start) != time.Minute {
				t.Errorf("CloseContext = %v after %v, and its context ended after a minute", err, time.Since(start))
			}
			if n, err := w.Write([]byte("x")); n != 0 || !errors.Is(err, holdfast.ErrClosed) {
				t.Errorf("Write = %d, %v", n, err)
			}
			if err := w.Close(); !errors.Is(err, syscall.EIO) || time.Since(start) != time.Hour {
				t.Errorf("Close = %v after %v, want the failure after an hour", err, time.Since(start))
			}
			if err := w.CloseContext(t.Context()); !errors.Is(err, syscall.EIO) {
				t.Errorf("CloseContext of a closed Writer = %v", err)
			}
		}, fault.Fault{Op: op, Times: 1, Delay: time.Hour, Err: syscall.EIO})
	}
}

func TestClosesAtTheSameTimeCloseOnce(t *testing.T) {
	onEveryPolicy(t, func(s *stage) {
		s.takes(3)(s.w.Write([]byte("abc")))
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				if err := s.w.Close(); err != nil {
					s.Error(err)
				}
				if n := len(s.content()); n != 3 {
					s.Errorf("Close returned while the file holds %d bytes", n)
				}
			})
		}
		group.Wait()
	})
}

func TestEveryMethodAfterCloseSaysSo(t *testing.T) {
	onEveryPolicy(t, func(s *stage) {
		s.takes(3)(s.w.Write([]byte("abc")))
		s.ok(s.w.Close())
		before := s.w.Stats()
		for _, size := range []int{1, int(s.policy.Buffer) + 1} {
			p := make([]byte, size)
			s.refuses(holdfast.ErrClosed)(s.w.Write(p))
			s.refuses(os.ErrClosed)(s.w.WriteString(string(p)))
			if _, err := s.w.Enqueue(p); !errors.Is(err, holdfast.ErrClosed) {
				s.Errorf("Enqueue = %v", err)
			}
			n, err := s.w.ReadFrom(bytes.NewReader(p))
			s.refuses(holdfast.ErrClosed)(int(n), err)
		}
		for name, err := range map[string]error{"Flush": s.w.Flush(), "Sync": s.w.Sync()} {
			if !errors.Is(err, holdfast.ErrClosed) {
				s.Errorf("%s = %v", name, err)
			}
		}
		s.ok(s.w.WaitDurable(context.Background(), s.w.Durable()))
		if s.policy.Sync.Mode == holdfast.SyncNever {
			if err := s.w.WaitDurable(context.Background(), 3); !errors.Is(err, holdfast.ErrClosed) {
				s.Errorf("WaitDurable of what is not durable = %v", err)
			}
		}
		if err := s.w.WaitDurable(context.Background(), 4); !errors.Is(err, holdfast.ErrClosed) {
			s.Errorf("WaitDurable of what was never written = %v", err)
		}
		s.holds([]byte("abc"))
		if after := s.w.Stats(); after != before {
			s.Errorf("Stats went from %+v to %+v", before, after)
		}
	})
}

func TestReadFromTakesAllThatIsThere(t *testing.T) {
	onEveryPolicy(t, func(s *stage) {
		want := pattern(0, 0, 100_000)
		n, err := s.w.ReadFrom(bytes.NewReader(want[:70_000]))
		s.takes(70_000)(int(n), err)
		n, err = s.w.ReadFrom(iotest.HalfReader(iotest.DataErrReader(bytes.NewReader(want[70_000:99_000]))))
		s.takes(29_000)(int(n), err)
		n, err = io.Copy(s.w, struct{ io.Reader }{bytes.NewReader(want[99_000:])})
		s.takes(1_000)(int(n), err)
		n, err = s.w.ReadFrom(iotest.ErrReader(io.ErrUnexpectedEOF))
		s.refuses(io.ErrUnexpectedEOF)(int(n), err)
		n, err = s.w.ReadFrom(strings.NewReader(""))
		s.takes(0)(int(n), err)
		if s.policy.Loss().Power.None() && s.w.Durable() != 100_000 {
			s.Errorf("after ReadFrom: %s", s.marks())
		}
		s.ok(s.w.Close())
		s.holds(want)
	})
}

func TestReadFromKeepsWhatCameBeforeAnError(t *testing.T) {
	onEveryPolicy(t, func(s *stage) {
		r := io.MultiReader(strings.NewReader("before"), iotest.ErrReader(io.ErrNoProgress))
		n, err := s.w.ReadFrom(r)
		if n != 6 || !errors.Is(err, io.ErrNoProgress) {
			s.Errorf("ReadFrom = %d, %v", n, err)
		}
		s.ok(s.w.Close())
		s.holds([]byte("before"))
	})
}

// A readerFunc is a source that may say anything.
type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestReadFromEndsWhereTheSourceMakesNoProgress(t *testing.T) {
	const most = 100 // Reads of nothing in a row: as a bufio.Writer
	inMemory(t, func(s *stage) {
		reads := 0
		from := func(nothing int) (int64, error) {
			reads = 0
			return s.w.ReadFrom(readerFunc(func(p []byte) (int, error) {
				if reads++; reads == 1 || reads == nothing+2 {
					return copy(p, "x"), nil
				} else if reads > nothing+2 {
					return 0, io.EOF
				}
				return 0, nil
			}))
		}
		n, err := from(most - 1)
		s.takes(2)(int(n), err)
		if n, err := from(most); n != 1 || !errors.Is(err, io.ErrNoProgress) || reads != most+1 {
			s.Errorf("ReadFrom = %d, %v after %d Reads", n, err, reads)
		}
		s.ok(s.w.Close())
		s.holds([]byte("xxx"))
	})
}

// TestReadFromReadsNothingThatItCannotWrite, and returns why also of a source without a byte.
func TestReadFromReadsNothingThatItCannotWrite(t *testing.T) {
	onEveryPolicy(t, func(s *stage) {
		s.ok(s.w.Close())
		for _, text := range []string{"", "lost"} {
			r := strings.NewReader(text)
			if n, err := s.w.ReadFrom(r); n != 0 || !errors.Is(err, holdfast.ErrClosed) || r.Len() != len(text) {
				s.Errorf("%q: ReadFrom = %d, %v and leaves %d bytes", text, n, err, r.Len())
			}
		}
	})
}

func TestEnqueueReportsTheEnd(t *testing.T) {
	onEveryPolicy(t, func(s *stage) {
		buffer, end := int(s.policy.Buffer), int64(0)
		for i, size := range []int{1, 10, buffer + 1, 1, max(1, buffer)} {
			got, err := s.w.Enqueue(pattern(0, i, size))
			s.ok(err)
			if end += int64(size); got != end {
				s.Fatalf("Enqueue of %d bytes = %d, want %d", size, got, end)
			}
		}
		s.ok(s.w.WaitDurable(context.Background(), end))
		if s.w.Durable() < end {
			s.Errorf("after WaitDurable: %s", s.marks())
		}
		if err := s.w.WaitDurable(context.Background(), end+1); err == nil || !strings.Contains(err.Error(), "byte") {
			s.Errorf("WaitDurable of what is not written = %v", err)
		}
		s.ok(s.w.Close())
	})
}

// TestEnqueueWaitsForNoSync: where a sync by bytes bounds what is not durable, up to that bound.
func TestEnqueueWaitsForNoSync(t *testing.T) {
	inMemory(t, func(s *stage) {
		start, most := time.Now(), 1000
		if limit := s.policy.Sync.Bytes; limit > 0 {
			most = min(most, 2*int(limit))
		}
		for i := range most / 10 {
			_, err := s.w.Enqueue(pattern(0, i, 10))
			s.ok(err)
		}
		if d := time.Since(start); d != 0 {
			s.Errorf("%d Enqueues took %v", most/10, d)
		}
	}, fault.Fault{Op: fault.Sync, Delay: time.Second})
}

func TestWaitDurableEndsWithItsContext(t *testing.T) {
	inMemory(t, func(s *stage) {
		end, err := s.w.Enqueue([]byte("abc"))
		s.ok(err)
		ctx, cancel := context.WithTimeout(context.Background(), 300*ms)
		defer cancel()
		var group sync.WaitGroup
		group.Go(func() {
			if err := s.w.WaitDurable(context.Background(), end); err != nil {
				s.Error(err)
			}
		})
		synctest.Wait()
		start := time.Now()
		if err := s.w.WaitDurable(ctx, end); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 300*ms {
			s.Errorf("WaitDurable = %v after %v", err, time.Since(start))
		}
		group.Wait()
		s.ok(s.w.WaitDurable(ctx, end)) // it is durable: no need to wait
	}, fault.Fault{Op: fault.Sync, Delay: time.Second})
}

// TestWaitDurableThatLeadsEndsWithItsContext has just one caller, which has no other
// to leave the sync to, and a sync that takes an hour.
func TestWaitDurableThatLeadsEndsWithItsContext(t *testing.T) {
	inMemory(t, func(s *stage) {
		end, err := s.w.Enqueue([]byte("abc"))
		s.ok(err)
		mine := errors.New("mine")
		ctx, cancel := context.WithTimeoutCause(context.Background(), time.Minute, mine)
		defer cancel()
		start := time.Now()
		if err := s.w.WaitDurable(ctx, end); !errors.Is(err, mine) {
			s.Errorf("WaitDurable that leads = %v, want the cause of its context", err)
		}
		if d := time.Since(start); d != time.Minute {
			s.Errorf("it returned after %v, and its context ended after a minute", d)
		}
		if n := s.f.Count(fault.Sync); n != 1 {
			s.Fatalf("%d syncs began, want 1", n)
		}
		if err := s.w.WaitDurable(ctx, end); !errors.Is(err, mine) {
			s.Errorf("WaitDurable with a context that has ended = %v", err)
		}
		// Close waits for the sync that is under way, which covers the bytes.
		s.ok(s.w.Close())
		if d := time.Since(start); d < time.Hour {
			s.Errorf("Close returned after %v, while the sync was under way", d)
		}
		if got := s.w.Durable(); got != end {
			s.Errorf("Durable is %d after Close, want %d", got, end)
		}
	}, fault.Fault{Op: fault.Sync, Delay: time.Hour})
}

// TestWaitDurableWhoseContextHasEndedBeginsNoSync, and no flush.
func TestWaitDurableWhoseContextHasEndedBeginsNoSync(t *testing.T) {
	inBubble(t, "buffer=4KiB,sync=close", func(t *testing.T, w *holdfast.Writer, f *fault.File) {
		put(t, w, 3)
		mine := errors.New("mine")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(mine)
		if err := w.WaitDurable(ctx, 3); err != mine {
			t.Errorf("WaitDurable = %v, want the cause", err)
		}
		synctest.Wait()
		if n := len(f.Calls()); n != 0 {
			t.Errorf("the file got %d calls", n)
		}
	})
}

func TestStatsAreTrue(t *testing.T) {
	onEveryPolicy(t, func(s *stage) {
		for i := range 50 {
			s.takes(20)(s.w.Write(pattern(0, i, 20)))
		}
		s.ok(s.w.Sync())
		s.ok(s.w.Close())
		got := s.w.Stats()
		if got.Writes != 50 {
			s.Errorf("Writes is %d, want 50", got.Writes)
		}
		if s.f == nil {
			if got.SystemCalls < got.Flushes+got.Syncs {
				s.Errorf("SystemCalls is less than Flushes and Syncs: %+v", got)
			}
			return
		}
		flushes, syncs := int64(s.f.Count(fault.Write)), int64(s.f.Count(fault.Sync))
		if got.Flushes != flushes || got.Syncs != syncs || got.SystemCalls != flushes+syncs+1 || got.Waits != 0 {
			s.Errorf("Stats are %+v, the file got %d writes, %d syncs and a close", got, flushes, syncs)
		}
	})
}

func TestNewRefusesAPolicyThatIsNotValid(t *testing.T) {
	f := fault.New()
	if w, err := holdfast.New(f, holdfast.Policy{Buffer: -1}); w != nil || err == nil || !strings.Contains(err.Error(), "buffer=-1") {
		t.Errorf("New = %v, %v", w, err)
	}
	if f.Count(fault.Close) != 0 {
		t.Error("New closed the file that it refused")
	}
}

// writesBack is a reader that uses the Writer that reads from it.
type writesBack struct {
	w    *holdfast.Writer
	left int
}

func (r *writesBack) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	r.left--
	if _, err := r.w.Write([]byte("w")); err != nil {
		return 0, err
	}
	if err := r.w.Sync(); err != nil {
		return 0, err
	}
	return copy(p, "r"), nil
}

func TestReadFromHoldsNothingWhileItReads(t *testing.T) {
	onEveryPolicy(t, func(s *stage) {
		n, err := s.w.ReadFrom(&writesBack{s.w, 3})
		s.takes(3)(int(n), err)
		s.ok(s.w.Close())
		s.holds([]byte("wrwrwr"))
	})
}

// liar is a file that says that it wrote what it did not.
type liar struct {
	fault.File
	says []int
}

func (f *liar) Write(p []byte) (n int, err error) {
	n, f.says = f.says[0], f.says[1:]
	return n, nil
}

func TestFileThatMiscountsIsAnError(t *testing.T) {
	for _, says := range [][]int{{-1}, {4}, {1, 3}, {2, -1}} {
		w, err := holdfast.New(&liar{says: says}, holdfast.Unbuffered())
		if err != nil {
			t.Fatal(err)
		}
		right := int64(0)
		if len(says) > 1 {
			right = int64(says[0])
		}
		if k, err := w.Write([]byte("abc")); int64(k) != right || err == nil || w.Flushed() != right {
			t.Errorf("Write of 3 bytes to a file that says %v = %d, %v; %d are flushed", says, k, err, w.Flushed())
		}
		w.Close()
	}
}

// TestNoFlushEndsInsideARecord has records of all sizes come while the file is slow.
func TestNoFlushEndsInsideARecord(t *testing.T) {
	inMemory(t, func(s *stage) {
		const records = 60
		var group sync.WaitGroup
		for stream := range byte(4) {
			group.Go(func() {
				for i := range records {
					_, err := s.w.Enqueue(pattern(stream, i, 1+(i*i*7)%97))
					s.ok(err)
					time.Sleep(time.Duration(i%5) * ms)
				}
			})
		}
		group.Wait()
		s.ok(s.w.Close())
		data := s.content()
		s.inOrder(data, records, records, records, records)
		for _, c := range s.f.Calls() {
			if c.Op == fault.Write && c.To < int64(len(data)) && data[c.To] < 0x80 {
				s.Errorf("a write of %d..%d ends inside a record", c.From, c.To)
			}
		}
	}, fault.Fault{Op: fault.Write, Take: fault.All, Delay: 3 * ms})
}

// TestNewRefusesNoFile gives it nil, and a nil *os.File.
func TestNewRefusesNoFile(t *testing.T) {
	var none *os.File
	for _, f := range []holdfast.File{nil, none} {
		if w, err := holdfast.New(f, holdfast.Buffered(4096)); w != nil || err == nil || !strings.Contains(err.Error(), "nil") {
			t.Errorf("New = %v, %v", w, err)
		}
	}
}

// TestNewRefusesToSyncAPipe gives it what has no stable storage.
func TestNewRefusesToSyncAPipe(t *testing.T) {
	r, pipe, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, p := range []holdfast.Policy{holdfast.Durable(), holdfast.Periodic(time.Second)} {
		if w, err := holdfast.New(pipe, p); w != nil || err == nil || !strings.Contains(err.Error(), "use sync=never") {
			t.Errorf("%v: New = %v, %v", p, w != nil, err)
		}
	}
	w, err := holdfast.New(pipe, holdfast.Unbuffered())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// TestLargestBufferIsTwiceAnInt takes the largest buffer, and one byte more.
func TestLargestBufferIsTwiceAnInt(t *testing.T) {
	largest := min(holdfast.GiB, holdfast.Size(math.MaxInt/2))
	if err := holdfast.Buffered(largest).Validate(); err != nil {
		t.Error(err)
	}
	more := holdfast.Buffered(largest + 1)
	if err := more.Validate(); err == nil || !strings.Contains(err.Error(), more.Buffer.String()) || !strings.Contains(err.Error(), largest.String()) {
		t.Errorf("buffer=%v: %v; want an error that names it and %v", more.Buffer, err, largest)
	}
}

// TestTruncatedUnderneathLeavesNoHole truncates the file between two Writes, as
// logrotate's copytruncate does.
func TestTruncatedUnderneathLeavesNoHole(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a file that is truncated when it is opened has a position of its own on Windows")
	}
	for name, open := range map[string]func(string, holdfast.Policy) (*holdfast.Writer, error){"Create": holdfast.Create, "Append": holdfast.Append} {
		for _, p := range []holdfast.Policy{holdfast.Unbuffered(), holdfast.Buffered(64), holdfast.Durable()} {
			path := filepath.Join(t.TempDir(), "log")
			w, err := open(path, p)
			if err != nil {
				t.Fatal(err)
			}
			write := func(s string) {
				if _, err := w.ReadFrom(strings.NewReader(s)); err != nil {
					t.Fatal(err)
				}
				if err := w.Flush(); err != nil {
					t.Fatal(err)
				}
			}
			write("before\n")
			if err := os.Truncate(path, 0); err != nil {
				t.Fatal(err)
			}
			write("after\n")
			write(strings.Repeat("long", 100))
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if got, _ := os.ReadFile(path); string(got) != "after\n"+strings.Repeat("long", 100) {
				t.Errorf("%s, %v: the file holds %q", name, p, got)
			}
		}
	}
}

// TestZeroWriterRefusesEveryCall, also one that has nothing to write or to wait for.
func TestZeroWriterRefusesEveryCall(t *testing.T) {
	var w holdfast.Writer
	calls := callsOf(&w)
	calls["Write of nothing"] = func() error { _, err := w.Write(nil); return err }
	calls["Enqueue of nothing"] = func() error { _, err := w.Enqueue(nil); return err }
	calls["ReadFrom of nothing"] = func() error { _, err := w.ReadFrom(strings.NewReader("")); return err }
	calls["WaitDurable of nothing"] = func() error { return w.WaitDurable(context.Background(), 0) }
	calls["CloseContext"] = func() error { return w.CloseContext(context.Background()) }
	for name, call := range calls {
		if err := call(); err == nil || !strings.Contains(err.Error(), "has no file") {
			t.Errorf("%s = %v", name, err)
		}
	}
	w.OnError(func(err error) { t.Error(err) })
	if s := w.Stats(); s.Writes != 0 || w.Written() != 0 || w.Flushed() != 0 || w.Durable() != 0 || w.Err() != nil {
		t.Errorf("%+v, Err = %v", s, w.Err())
	}
}

// TestNoWriterStarvesWhereEachWriteHasASync has 64 goroutines write for some hundred
// syncs each. On its disk a goroutine that comes back at once finds the turn free.
func TestNoWriterStarvesWhereEachWriteHasASync(t *testing.T) {
	for _, policy := range []string{"buffer=0,sync=each", "buffer=64KiB,sync=each"} {
		inBubble(t, policy, func(t *testing.T, w *holdfast.Writer, f *fault.File) {
			const writers, syncs = 64, 64 * 20
			var counts [writers]int
			var left atomic.Int64
			left.Store(syncs)
			var group sync.WaitGroup
			for i := range writers {
				group.Go(func() {
					for left.Add(-1) >= 0 {
						put(t, w, 10)
						counts[i]++
					}
				})
			}
			group.Wait()
			least := counts[0]
			for _, n := range counts {
				least = min(least, n)
			}
			if mean := syncs / writers; 2*least < mean {
				t.Errorf("the slowest of %d writers made %d Writes of %d on average: %v", writers, least, mean, counts)
			}
		}, fault.Fault{Op: fault.Sync, Delay: 200 * time.Microsecond})
	}
}

// TestCloseOnAFullDiskSyncsWhatWasFlushed fills the disk in the middle of a flush.
func TestCloseOnAFullDiskSyncsWhatWasFlushed(t *testing.T) {
	for _, policy := range []string{"buffer=64KiB,sync=close", "buffer=64KiB,sync=1h"} {
		inBubble(t, policy, func(t *testing.T, w *holdfast.Writer, f *fault.File) {
			f.SetRoom(1000)
			if _, err := w.Write(make([]byte, 3000)); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("Close = %v, want ENOSPC", err)
			}
			if got := len(f.ProcessCrash()); got != 1000 {
				t.Fatalf("%d bytes are in the kernel, want 1000", got)
			}
			if got := f.Stable(); got != 1000 {
				t.Errorf("1000 bytes are in the kernel, %d are stable after Close", got)
			}
			if got := w.Durable(); got != 1000 {
				t.Errorf("Durable is %d, want 1000", got)
			}
		})
	}
}

// TestRecordsOfSomeKiBSpillWhole writes records that leave some KiB behind a block when
// they have filled it.
func TestRecordsOfSomeKiBSpillWhole(t *testing.T) {
	for size := 3000; size <= 8192; size += 307 {
		inBubble(t, "buffer=64KiB,sync=never", func(t *testing.T, w *holdfast.Writer, f *fault.File) {
			var want []byte
			for i := range 100 {
				p := pattern(1, i, size)
				want = append(want, p...)
				if _, err := w.Write(p); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if got := f.ProcessCrash(); !bytes.Equal(got, want) {
				t.Errorf("records of %d bytes: the file differs from byte %d on", size, firstDifference(got, want))
			}
		})
	}
}

// TestLeaderWokenInVainWakesTheNext has two wait for the next batch. The sync
// before it covers the first of them too, because its leader had to wait for another
// flush. So the first is woken to lead, has no need to, and must wake the second.
func TestLeaderWokenInVainWakesTheNext(t *testing.T) {
	inBubble(t, "buffer=64KiB,sync=never", func(t *testing.T, w *holdfast.Writer, f *fault.File) {
		var group sync.WaitGroup
		var done [3]atomic.Bool
		enqueue := func() int64 {
			end, err := w.Enqueue([]byte("x"))
			if err != nil {
				t.Error(err)
			}
			return end
		}
		wait := func(i int) {
			end := enqueue()
			group.Go(func() {
				if err := w.WaitDurable(context.Background(), end); err != nil {
					t.Error(err)
				}
				done[i].Store(true)
			})
			synctest.Wait()
		}
		enqueue()
		group.Go(func() { w.Flush() })
		synctest.Wait()
		wait(0) // leads, and waits for the flush
		wait(1)
		time.Sleep(1500 * ms) // the leader flushes what both need
		wait(2)
		time.Sleep(time.Minute)
		for i := range done {
			if !done[i].Load() {
				t.Errorf("WaitDurable %d waits for a batch that nobody leads", i)
				go w.Sync() // lets it go
			}
		}
		group.Wait()
		if n := f.Count(fault.Sync); n != 2 {
			t.Errorf("%d syncs, want 2: the case is not the one that is meant", n)
		}
	}, fault.Fault{Op: fault.Sync, Delay: time.Second}, fault.Fault{Op: fault.Write, Take: fault.All, Delay: time.Second})
}

// TestCloseAcceptsNothingBesideAFlush begins while a flush takes an hour, and memory has room.
func TestCloseAcceptsNothingBesideAFlush(t *testing.T) {
	inBubble(t, "buffer=4KiB,sync=never", func(t *testing.T, w *holdfast.Writer, _ *fault.File) {
		put(t, w, 10)
		go w.Flush()
		synctest.Wait()
		put(t, w, 1)
		go w.Close()
		synctest.Wait()
		if n, err := w.Write([]byte("x")); n != 0 || !errors.Is(err, holdfast.ErrClosed) {
			t.Errorf("Write = %d, %v", n, err)
		}
		if end, err := w.Enqueue([]byte("x")); end != 0 || !errors.Is(err, holdfast.ErrClosed) {
			t.Errorf("Enqueue = %d, %v", end, err)
		}
	}, fault.Fault{Op: fault.Write, Take: fault.All, Delay: time.Hour})
}

// TestWaitDurableBesideCloseIsForItsSync: Close makes the bytes durable, and the wait began after it.
func TestWaitDurableBesideCloseIsForItsSync(t *testing.T) {
	inBubble(t, "buffer=4KiB,sync=close", func(t *testing.T, w *holdfast.Writer, _ *fault.File) {
		end, err := w.Enqueue([]byte("record"))
		if err != nil {
			t.Fatal(err)
		}
		go w.Close()
		synctest.Wait()
		if err := w.WaitDurable(context.Background(), end+1); !errors.Is(err, holdfast.ErrClosed) {
			t.Errorf("WaitDurable of what was never written = %v", err)
		}
		if err := w.WaitDurable(context.Background(), end); err != nil || w.Durable() != end {
			t.Errorf("WaitDurable = %v, with %d durable", err, w.Durable())
		}
	}, fault.Fault{Op: fault.Sync, Delay: time.Second})
}

// TestCloseOnAFullDiskWaitsForTheSyncInFlight, which another call started for fewer bytes.
func TestCloseOnAFullDiskWaitsForTheSyncInFlight(t *testing.T) {
	inBubble(t, "buffer=4KiB,sync=close", func(t *testing.T, w *holdfast.Writer, f *fault.File) {
		f.SetRoom(1000)
		write := func(n int) {
			if _, err := w.Write(make([]byte, n)); err != nil {
				t.Error(err)
			}
		}
		write(500)
		synced := make(chan error, 1)
		go func() { synced <- w.Sync() }()
		synctest.Wait()
		write(3000)
		if err := w.Close(); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("Close = %v, want ENOSPC", err)
		}
		if err := <-synced; err != nil || f.Stable() != 1000 || w.Durable() != 1000 {
			t.Errorf("Sync = %v; %d bytes are stable, %d durable, want 1000", err, f.Stable(), w.Durable())
		}
	}, fault.Fault{Op: fault.Sync, Times: 1, Delay: time.Second})
}

// TestWriterKeepsThePromises by Write, and by Enqueue and WaitDurable.
func TestWriterKeepsThePromises(t *testing.T) {
	isolate.Once(t, isolate.Ordinary)
	o := crashsuite.Opener{
		Name: "Writer",
		Open: func(g *crashsuite.Ground) (crashsuite.Subject, error) { return openWriter(g) },
		Slow: true,
		AtRisk: func(err error) int64 {
			var write *holdfast.WriteError
			var sync *holdfast.SyncError
			switch {
			case errors.As(err, &write):
				return write.AtRisk
			case errors.As(err, &sync):
				return sync.AtRisk
			}
			return 0
		},
		Read: func(_ *testing.T, files map[string][]byte) ([][]byte, error) {
			return crashsuite.Lines(files["log"]), nil
		},
	}
	t.Run("Write", func(t *testing.T) { crashsuite.Run(t, o) })
	// Of a record that is larger than the buffer, a failed Enqueue does not say how much is in the file.
	o.Policies = func(p holdfast.Policy) bool { return p.Buffer >= 4*holdfast.KiB }
	o.Open = func(g *crashsuite.Ground) (crashsuite.Subject, error) {
		w, err := openWriter(g)
		return enqueuer{w, g.Policy.Sync.Waits()}, err
	}
	t.Run("Enqueue", func(t *testing.T) { crashsuite.Run(t, o) })
}

// TestWorkloadsOfTheWriterHold: what holdfast prove runs.
func TestWorkloadsOfTheWriterHold(t *testing.T) {
	crashsuite.Prove(t, time.Second, catalogue.Find("writer"), catalogue.Find("writer-large"), catalogue.Find("writer-mixed"), catalogue.Find("enqueue"))
}

func openWriter(g *crashsuite.Ground) (w *holdfast.Writer, err error) {
	if g.Disk == nil {
		w, err = holdfast.Append(filepath.Join(g.Dir, "log"), g.Policy)
	} else {
		var f holdfast.File
		if f, err = g.File("log"); err == nil {
			w, err = holdfast.New(f, g.Policy)
		}
	}
	if err == nil {
		w.OnError(g.OnError)
	}
	return w, err
}

// An enqueuer writes by Enqueue, and waits where the policy does.
type enqueuer struct {
	*holdfast.Writer
	waits bool
}

func (w enqueuer) Write(p []byte) (n int, err error) {
	end, err := w.Enqueue(p)
	if err != nil {
		return 0, err
	}
	if w.waits {
		err = w.WaitDurable(context.Background(), end)
	}
	return len(p), err
}

// contractPolicies are the policies that the whole contract is tested under.
var contractPolicies = []string{
	"buffer=0,sync=never",
	"buffer=16B,sync=never",
	"buffer=4KiB,sync=never",
	"buffer=256KiB,sync=never",
	"buffer=4KiB,flush=10ms,sync=never",
	"buffer=256KiB,flush=10ms,sync=never",
	"buffer=0,sync=10ms",
	"buffer=4KiB,sync=10ms",
	"buffer=4KiB,flush=5ms,sync=20ms",
	"buffer=256KiB,flush=20ms,sync=5ms",
	"buffer=256KiB,flush=4KiB,sync=never",
	"buffer=4KiB,flush=5ms/100B,sync=never",
	"buffer=0,sync=100B",
	"buffer=4KiB,sync=1KiB",
	"buffer=4KiB,flush=100B,sync=20ms/300B",
	"buffer=256KiB,sync=5ms/1MiB",
	"buffer=0,sync=close",
	"buffer=4KiB,sync=close",
	"buffer=0,sync=group",
	"buffer=64KiB,sync=group",
	"buffer=64KiB,flush=5ms,sync=group",
	"buffer=0,sync=each",
	"buffer=64KiB,sync=each",
}

// A stage is one Writer under test, on the fault file in a bubble of fake time
// or on a real file.
type stage struct {
	*testing.T
	policy holdfast.Policy
	w      *holdfast.Writer
	f      *fault.File // nil on a real file
	path   string      // "" on the fault file
}

// onEveryPolicy runs a test under every policy, on the fault file and on a real one.
func onEveryPolicy(t *testing.T, test func(s *stage)) {
	inMemory(t, test)
	onFiles(t, test)
}

// inMemory runs a test under every policy on a fault file with these faults.
func inMemory(t *testing.T, test func(s *stage), faults ...fault.Fault) {
	for _, text := range contractPolicies {
		t.Run("memory/"+text, func(t *testing.T) {
			watch(t)
			synctest.Test(t, func(t *testing.T) {
				s := &stage{T: t, f: fault.New(faults...)}
				s.open(text, func(p holdfast.Policy) (*holdfast.Writer, error) { return holdfast.New(s.f, p) })
				test(s)
				s.end()
			})
		})
	}
}

func onFiles(t *testing.T, test func(s *stage)) {
	for _, text := range contractPolicies {
		t.Run("file/"+text, func(t *testing.T) {
			watch(t)
			s := &stage{T: t, path: filepath.Join(t.TempDir(), "file")}
			s.open(text, func(p holdfast.Policy) (*holdfast.Writer, error) { return holdfast.Create(s.path, p) })
			test(s)
			s.end()
		})
	}
}

// watch says which test hangs: a Writer that spins stops the clock of its bubble, and on a real file only the real clock runs.
func watch(t *testing.T) {
	hang := time.AfterFunc(2*time.Minute, func() { panic("hangs: " + t.Name()) })
	t.Cleanup(func() { hang.Stop() })
}

func (s *stage) open(text string, open func(p holdfast.Policy) (*holdfast.Writer, error)) {
	s.Helper()
	p, err := holdfast.ParsePolicy(text)
	if err != nil {
		s.Fatal(err)
	}
	s.policy = p
	if s.w, err = open(p); err != nil {
		s.Fatal(err)
	}
}

// end closes the Writer, if the test has not, and checks what must hold whatever
// the test did.
func (s *stage) end() {
	s.Helper()
	s.w.Close()
	s.noGoroutines()
	if s.f == nil {
		return
	}
	for _, v := range s.f.Violations() {
		s.Errorf("violation: %s", v)
	}
	if n := s.f.Count(fault.Close); n != 1 {
		s.Errorf("the file was closed %d times", n)
	}
}

// noGoroutines checks that no goroutine of a Writer is left.
func (s *stage) noGoroutines() {
	s.Helper()
	if left := goroutinesLeft(s.f != nil); left != "" {
		s.Errorf("goroutines are left:\n%s", left)
	}
}

// goroutinesLeft returns the stacks of goroutines that run code of package holdfast, once
// goroutines that are about to end have had time to. No call may be on its way.
func goroutinesLeft(inBubble bool) (left string) {
	for range 1000 {
		if inBubble {
			synctest.Wait()
		}
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		left = ""
		for stack := range strings.SplitSeq(string(stacks), "\n\n") {
			if strings.Contains(stack, "github.com/holdfast-go/holdfast.") {
				left += stack + "\n\n"
			}
		}
		if left == "" {
			return ""
		}
		runtime.Gosched()
	}
	return left
}

// content returns what the kernel has of the file.
func (s *stage) content() []byte {
	s.Helper()
	if s.f != nil {
		return s.f.ProcessCrash()
	}
	data, err := os.ReadFile(s.path)
	if err != nil {
		s.Fatal(err)
	}
	return data
}

func (s *stage) holds(want []byte) {
	s.Helper()
	if got := s.content(); !bytes.Equal(got, want) {
		s.Errorf("the file holds %d bytes, want %d; they differ from byte %d on", len(got), len(want), firstDifference(got, want))
	}
}

func firstDifference(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// marks returns the watermarks as text.
func (s *stage) marks() string {
	return fmt.Sprintf("%d ≥ %d ≥ %d", s.w.Written(), s.w.Flushed(), s.w.Durable())
}

// takes checks the result of a call that is given n bytes: s.takes(3)(w.Write(p)).
func (s *stage) takes(want int) func(n int, err error) {
	s.Helper()
	return func(n int, err error) {
		s.Helper()
		if n != want || err != nil {
			s.Fatalf("n = %d, %v; want %d", n, err, want)
		}
	}
}

// refuses checks the result of a call that must take nothing.
func (s *stage) refuses(want error) func(n int, err error) {
	s.Helper()
	return func(n int, err error) {
		s.Helper()
		if n != 0 || !errors.Is(err, want) {
			s.Fatalf("n = %d, %v; want 0, %v", n, err, want)
		}
	}
}

func (s *stage) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// pattern returns a record that holds its stream (0 to 7), its number and its
// size. No piece of another record can look like it, because only a first byte
// has the highest bit set.
func pattern(stream byte, number, size int) []byte {
	p := make([]byte, size)
	for i := range p {
		p[i] = byte(number*31+i*7+int(stream)*3) & 0x7f
	}
	if size > 0 {
		p[0] = 0x80 | stream<<4 | byte(number)&0x0f
	}
	if size > 1 {
		p[1] = byte(number) & 0x7f
	}
	return p
}

// inOrder checks that data is made of whole records, each stream's in its order
// and all of them: counts[i] of stream i.
func (s *stage) inOrder(data []byte, counts ...int) {
	s.Helper()
	next := make([]int, 8)
	for at := 0; at < len(data); {
		end := at + 1
		for end < len(data) && data[end] < 0x80 {
			end++
		}
		stream := data[at] >> 4 & 7
		if want := pattern(stream, next[stream], end-at); data[at] < 0x80 || !bytes.Equal(data[at:end], want) {
			s.Fatalf("byte %d: no whole record %d of stream %d", at, next[stream], stream)
		}
		next[stream]++
		at = end
	}
	for stream, want := range counts {
		if next[stream] != want {
			s.Errorf("stream %d has %d records, want %d", stream, next[stream], want)
		}
	}
}
