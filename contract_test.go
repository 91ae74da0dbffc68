package holdfast_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
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

// TestCloseContextEndsWithItsContext has a call of the file take an hour and fail, and asks Close for what became of it.
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
