package gobuffer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// A Buffered is the buffered writer that the drill asks for; a bufio.Writer is one too.
type Buffered interface {
	io.Writer
	Flush() error
}

// A disk takes what a Buffered hands on, and fails where its fields say so.
type disk struct {
	got    bytes.Buffer
	calls  int
	most   int   // bytes that a call takes; 0 is all
	failAt int   // the number of the call that fails, from 1; 0 is none
	err    error // with which it fails; nil takes fewer bytes and says nothing
}

var errFull = errors.New("no space left on device")

func (d *disk) Write(p []byte) (int, error) {
	if d.calls++; d.calls > 100_000 || d.got.Len() > 1<<20 {
		panic("it calls the other writer again and again: it never ends")
	}
	if d.failAt > 0 && d.calls >= d.failAt {
		n := min(d.most, len(p))
		d.got.Write(p[:n])
		return n, d.err
	}
	return d.got.Write(p)
}

// text returns n bytes in which no stretch looks like its neighbour.
func text(n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(i % 251)
	}
	return p
}

// holds describes the first difference between want and the bytes that the disk got, or returns
// nothing.
func (d *disk) holds(want []byte) string {
	got := d.got.Bytes()
	same := 0
	for same < len(got) && same < len(want) && got[same] == want[same] {
		same++
	}
	switch {
	case same < len(got) && same < len(want):
		return fmt.Sprintf("byte %d of the file is %d, and %d was written there", same, got[same], want[same])
	case len(got) < len(want):
		return fmt.Sprintf("the file has %d bytes, and %d were written: %d are lost", len(got), len(want), len(want)-len(got))
	case len(got) > len(want):
		return fmt.Sprintf("the file has %d bytes, and only %d were written: some stand there twice", len(got), len(want))
	}
	return ""
}

// put writes p in pieces, and says what Write returned if that is wrong.
func put(w Buffered, p []byte, piece int) string {
	for len(p) > 0 {
		n := min(piece, len(p))
		if took, err := w.Write(p[:n]); took != n || err != nil {
			return fmt.Sprintf("Write of %d bytes returned %d, %v; nothing had failed", n, took, err)
		}
		p = p[n:]
	}
	return ""
}

func flush(w Buffered) string {
	if err := w.Flush(); err != nil {
		return fmt.Sprintf("Flush returned %v; nothing had failed", err)
	}
	return ""
}

// first returns the first text that is not empty.
func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// bufferSize is the buffer size of the writers that are checked.
const bufferSize = 4096

// cases are the checks; each returns a description of the fault, or nothing.
var cases = []struct {
	name string
	try  func(make func(io.Writer, int) Buffered) string
}{
	{"flush", func(make func(io.Writer, int) Buffered) string {
		d := &disk{}
		w := make(d, bufferSize)
		if why := first(put(w, text(10), 1), flush(w), d.holds(text(10))); why != "" {
			return why + ": Flush hands on what the buffer holds"
		}
		if calls := d.calls; flush(w) != "" || d.calls != calls {
			return "a second Flush wrote though there was nothing to write"
		}
		return ""
	}},
	{"gathering", func(make func(io.Writer, int) Buffered) string {
		d := &disk{}
		w := make(d, bufferSize)
		if why := first(put(w, text(4*bufferSize), 5), flush(w), d.holds(text(4*bufferSize))); why != "" {
			return why
		}
		if d.calls > 6 {
			return fmt.Sprintf("%d bytes, five a call, were handed on in %d calls; 4 are enough: gather them in the buffer", 4*bufferSize, d.calls)
		}
		return ""
	}},
	{"memory", func(make func(io.Writer, int) Buffered) string {
		d := &disk{}
		w := make(d, bufferSize)
		for range 10 * bufferSize {
			if _, err := w.Write([]byte{1}); err != nil {
				return fmt.Sprintf("Write returned %v; nothing had failed", err)
			}
		}
		if held := 10*bufferSize - d.got.Len(); held > 2*bufferSize {
			return fmt.Sprintf("after %d bytes it holds %d of them in memory, and its buffer is to be %d: hand them on when it is full", 10*bufferSize, held, bufferSize)
		}
		return ""
	}},
	{"large writes", func(make func(io.Writer, int) Buffered) string {
		d := &disk{}
		w := make(d, 16)
		if why := first(put(w, text(3), 3), put(w, text(1000)[3:], 997), flush(w), d.holds(text(1000))); why != "" {
			return why + ": a Write may be for more bytes than the buffer has room for, and they stay in order"
		}
		return ""
	}},
	{"the caller's slice", func(make func(io.Writer, int) Buffered) string {
		d := &disk{}
		w := make(d, bufferSize)
		p := []byte("before")
		if why := put(w, p, len(p)); why != "" {
			return why
		}
		copy(p, "AFTER!")
		if why := first(flush(w), d.holds([]byte("before"))); why != "" {
			return why + ": copy the bytes, for the caller may use its slice again"
		}
		return ""
	}},
	{"two writers", func(make func(io.Writer, int) Buffered) string {
		one, two := &disk{}, &disk{}
		a, b := make(one, bufferSize), make(two, bufferSize)
		for _, c := range text(6000) {
			if why := first(put(a, []byte{c}, 1), put(b, []byte{^c}, 1)); why != "" {
				return why
			}
		}
		turned := text(6000)
		for i := range turned {
			turned[i] = ^turned[i]
		}
		if why := first(flush(a), flush(b), one.holds(text(6000)), two.holds(turned)); why != "" {
			return why + ": each writer needs a buffer of its own"
		}
		return ""
	}},
	{"errors", func(make func(io.Writer, int) Buffered) string {
		d := &disk{failAt: 1, err: errFull}
		w := make(d, bufferSize)
		if why := put(w, text(10), 10); why != "" {
			return why
		}
		if err := w.Flush(); !errors.Is(err, errFull) {
			return fmt.Sprintf("the disk was full, 10 bytes are lost, and Flush returned %v", err)
		}
		if err := w.Flush(); err == nil {
			return "the disk was full, and the next Flush returned nil: a caller that looks only at the last one takes the bytes for written"
		}
		d = &disk{failAt: 1, err: errFull}
		w = make(d, 16)
		for range 100 {
			if n, err := w.Write(text(10)); n > 10 || err != nil && !errors.Is(err, errFull) {
				return fmt.Sprintf("Write of 10 bytes returned %d, %v", n, err)
			} else if err != nil {
				return ""
			}
		}
		return "the disk was full from the first flush on, and a hundred Writes returned no error"
	}},
	{"short writes", func(make func(io.Writer, int) Buffered) string {
		d := &disk{failAt: 1, most: 7}
		w := make(d, bufferSize)
		if why := put(w, text(20), 20); why != "" {
			return why
		}
		err := w.Flush()
		for range 3 { // some writers go on with the rest
			if d.got.Len() < 20 {
				_ = w.Flush()
			}
		}
		switch {
		case !bytes.HasPrefix(text(20), d.got.Bytes()):
			return "the other writer took 7 bytes of 20, and then got bytes that it had taken already, or none of the next"
		case err == nil && d.got.Len() < 20:
			return fmt.Sprintf("the other writer took %d bytes of 20 without an error, and Flush returned nil: return io.ErrShortWrite", d.got.Len())
		}
		return ""
	}},
}

// Check says in plain words what is wrong with the writers that make returns: a sentence
// for each case, or none.
func Check(make func(to io.Writer, size int) Buffered) (faults []string) {
	for _, c := range cases {
		if why := tried(c.try, make); why != "" {
			faults = append(faults, c.name+": "+why)
		}
	}
	return faults
}

// tried returns the fault that a case finds, or nothing; a panic is a fault too.
func tried(try func(func(io.Writer, int) Buffered) string, make func(io.Writer, int) Buffered) (why string) {
	defer func() {
		if p := recover(); p != nil {
			why = fmt.Sprintf("it panics: %v", p)
		}
	}()
	why = try(make)
	if strings.Contains(why, errTODO.Error()) {
		return "it is not written yet"
	}
	return why
}
