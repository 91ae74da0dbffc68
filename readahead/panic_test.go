//go:build go1.25

package readahead

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

var errBoom = errors.New("boom")

// A panicking source gives some bytes, and then panics or ends its goroutine.
type panicking struct {
	left   int
	cause  any // nil: it ends the goroutine
	reads  int // since then
	closed int
}

func (s *panicking) Read(p []byte) (int, error) {
	if s.left == 0 {
		if s.reads++; s.cause == nil {
			runtime.Goexit()
		}
		panic(s.cause)
	}
	n := min(len(p), s.left)
	s.left -= n
	for i := range p[:n] {
		p[i] = 'x'
	}
	return n, nil
}

func (s *panicking) Close() error {
	s.closed++
	return nil
}

// ways are all that may need the bytes, each again and again until it fails.
var ways = map[string]func(r *Reader) error{
	"Read": func(r *Reader) error {
		return untilError(func() error { _, err := r.Read(make([]byte, 10)); return err })
	},
	"long": func(r *Reader) error {
		return untilError(func() error { _, err := r.Read(make([]byte, 100)); return err })
	},
	"ReadByte": func(r *Reader) error { return untilError(func() error { _, err := r.ReadByte(); return err }) },
	"ReadLine": func(r *Reader) error { return untilError(func() error { _, err := r.ReadLine(); return err }) },
	"Peek": func(r *Reader) error {
		return untilError(func() error {
			_, err := r.Peek(20)
			return errors.Join(err, second(r.Discard(1)))
		})
	},
	"Discard": func(r *Reader) error { return second(r.Discard(1000)) },
	"WriteTo": func(r *Reader) error { _, err := r.WriteTo(io.Discard); return err },
	"Bytes": func(r *Reader) error {
		for range r.Bytes() {
		}
		return r.Err()
	},
	"Blocks": func(r *Reader) error {
		for _, err := range r.Blocks() {
			if err != nil {
				return err
			}
		}
		return nil
	},
	"Lines": func(r *Reader) error {
		for _, err := range r.Lines() {
			if err != nil {
				return err
			}
		}
		return nil
	},
}

func untilError(call func() error) (err error) {
	for err == nil {
		err = call()
	}
	return err
}

func second[T any](_ T, err error) error { return err }

// TestPanicOfTheSourceIsTheCallers in each way to read, whoever reads ahead. A synctest waits for every goroutine, and
// a panic that nobody can recover ends it.
func TestPanicOfTheSourceIsTheCallers(t *testing.T) {
	for _, mode := range []Mode{Regular, Always, Never} {
		for _, cause := range []any{errBoom, "boom", nil} {
			for name, way := range ways {
				for _, given := range []int{0, 5, 64, 200} {
					synctest.Test(t, func(t *testing.T) {
						s := &panicking{left: given, cause: cause}
						r := NewReader(s, Options{Buffer: 64, ReadAhead: mode})
						what := fmt.Sprintf("mode %d, %s, %v after %d bytes", mode, name, cause, given)
						got, exited, err := isolate.Caught(func() error { return way(r) })
						if got != cause || exited != (cause == nil) || err != nil {
							t.Errorf("%s: it panics with %v, exited %v, %v", what, got, exited, err)
						}
						synctest.Wait() // the goroutine that reads ahead has ended, or waits for ever
						var failed *Error
						for again, way := range ways {
							got, exited, err = isolate.Caught(func() error { return way(r) })
							says := "Read panicked, and the source is read no more: boom"
							if cause == nil {
								says = "Read called runtime.Goexit"
							}
							if got != nil || exited || !errors.As(err, &failed) || failed.Offset != int64(given) || !strings.Contains(err.Error(), says) || errors.Is(err, errBoom) != (cause == errBoom) {
								t.Errorf("%s: later, %s: %v, panic %v", what, again, err, got)
							}
						}
						if s.reads != 1 {
							t.Errorf("%s: the source was read %d times after that", what, s.reads-1)
						}
						said := r.Err()
						if err := r.Close(); err != nil || s.closed != 1 || r.Err() != said || said == nil {
							t.Errorf("%s: Close: %v, closed %d times; Err %v and then %v", what, err, s.closed, said, r.Err())
						}
					})
				}
			}
		}
	}
}

// TestCloseHearsOfNoPanicThatLiesAhead: nobody has asked for these bytes, and no goroutine is left.
func TestCloseHearsOfNoPanicThatLiesAhead(t *testing.T) {
	for _, cause := range []any{errBoom, nil} {
		synctest.Test(t, func(t *testing.T) {
			s := &panicking{left: 128, cause: cause}
			r := NewReader(s, Options{Buffer: 64, ReadAhead: Always})
			if n, err := r.Discard(100); n != 100 || err != nil {
				t.Fatal(n, err)
			}
			synctest.Wait()
			if s.reads != 1 {
				t.Error("the test proves nothing: nothing was read ahead")
			}
			if got, exited, err := isolate.Caught(r.Close); got != nil || exited || err != nil || s.closed != 1 {
				t.Errorf("Close: panic %v, exited %v, %v", got, exited, err)
			}
		})
	}
}
