package gobuffer

import (
	"bufio"
	"io"
	"strings"
	"testing"
)

// A solution is a right Writer, or one with a mistake.
type solution struct {
	to     io.Writer
	buffer []byte
	size   int
	err    error
	wrong  string
}

func (w *solution) Write(p []byte) (int, error) {
	if w.wrong == "keeps the slice" && len(w.buffer) == 0 && len(p) < w.size {
		w.buffer = p
		return len(p), nil
	}
	if w.wrong == "gathers nothing" {
		return w.to.Write(p)
	}
	if w.wrong == "gathers all" {
		w.buffer = append(w.buffer, p...)
		return len(p), w.err
	}
	done := 0
	for len(p) > 0 {
		if len(w.buffer) == w.size {
			if err := w.Flush(); err != nil && w.wrong != "Write reports nothing" {
				return done, err
			} else if err != nil {
				w.buffer = w.buffer[:0]
			}
		}
		n := min(w.size-len(w.buffer), len(p))
		w.buffer = append(w.buffer, p[:n]...)
		if w.wrong == "a long write is cut" {
			return done + len(p), nil
		}
		done, p = done+n, p[n:]
	}
	return done, nil
}

func (w *solution) Flush() error {
	if w.err != nil && w.wrong != "an error is forgotten" {
		return w.err
	}
	if len(w.buffer) == 0 && w.wrong != "flushes nothing" {
		return nil
	}
	n, err := w.to.Write(w.buffer)
	if n < len(w.buffer) && err == nil && w.wrong != "a short write is taken for all" {
		err = io.ErrShortWrite
	}
	switch {
	case w.wrong == "flush keeps its bytes":
		return err
	case w.wrong == "panics":
		return w.to.(io.Closer).Close()
	case w.wrong == "an error is forgotten":
		w.buffer = w.buffer[:0]
		return err
	case w.wrong == "a short write is taken for all":
		n = len(w.buffer)
	}
	w.buffer = append(w.buffer[:0], w.buffer[n:]...)
	w.err = err
	return err
}

func TestEachMistakeIsNamed(t *testing.T) {
	check := func(wrong, says string) {
		t.Helper()
		faults := Check(func(to io.Writer, size int) Buffered {
			return &solution{to: to, size: size, wrong: wrong}
		})
		if all := strings.Join(faults, "\n"); says == "" && all != "" || !strings.Contains(all, says) {
			t.Errorf("%s: no %q in:\n%s", wrong, says, all)
		}
	}
	check("nothing", "")
	check("keeps the slice", "the caller's slice: byte 0")
	check("gathers nothing", "gathering: 16384 bytes, five a call, were handed on in 3277 calls")
	check("gathers all", "memory: after 40960 bytes it holds 40960")
	check("a long write is cut", "large writes: the file has")
	check("Write reports nothing", "a hundred Writes returned no error")
	check("an error is forgotten", "errors: the disk was full, and the next Flush returned nil")
	check("flushes nothing", "flush: a second Flush wrote")
	check("flush keeps its bytes", "it never ends")
	check("a short write is taken for all", "short writes: the other writer took 7 bytes of 20 without an error")
	check("panics", "it panics: interface conversion")
}

func TestBufioIsRight(t *testing.T) {
	for _, fault := range Check(func(to io.Writer, size int) Buffered { return bufio.NewWriterSize(to, size) }) {
		t.Error(fault)
	}
}

// TestTheFileIsNotWrittenYet: a student begins with it as it is.
func TestTheFileIsNotWrittenYet(t *testing.T) {
	faults := Check(func(to io.Writer, size int) Buffered { return NewWriter(to, size) })
	if len(faults) != len(cases) || !strings.Contains(faults[0], "not written yet") {
		t.Errorf("%q", faults)
	}
}

// TestTwoWritersNeedTwoBuffers makes all writers share one.
func TestTwoWritersNeedTwoBuffers(t *testing.T) {
	var one *solution
	faults := Check(func(to io.Writer, size int) Buffered {
		if one == nil || size != one.size {
			one = &solution{to: to, size: size}
		}
		one.to = to
		return one
	})
	if all := strings.Join(faults, "\n"); !strings.Contains(all, "each writer needs a buffer of its own") {
		t.Error(all)
	}
}
