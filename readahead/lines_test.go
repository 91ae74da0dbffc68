//go:build go1.25

package readahead_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/readahead"
)

// linesOf is the simplest definition of lines.
func linesOf(data []byte) (lines []string) {
	for line := range strings.Lines(string(data)) {
		if whole, ok := strings.CutSuffix(line, "\n"); ok {
			line = strings.TrimSuffix(whole, "\r")
		}
		lines = append(lines, line)
	}
	return lines
}

// byReadLine and byLines read all lines.
func byReadLine(r *readahead.Reader) (lines []string, err error) {
	for {
		line, err := r.ReadLine()
		if len(line) > 0 || err == nil {
			lines = append(lines, string(line))
		}
		if err != nil {
			return lines, notEOF(err)
		}
	}
}

func byLines(r *readahead.Reader) (lines []string, err error) {
	for line, err := range r.Lines() {
		if len(line) > 0 || err == nil {
			lines = append(lines, string(line))
		}
		if err != nil {
			return lines, err
		}
	}
	return lines, nil
}

func byLinesLeftEarly(r *readahead.Reader) (lines []string, err error) {
	for more := true; more; {
		more = false
		for line, err := range r.Lines() {
			if len(line) > 0 || err == nil {
				lines = append(lines, string(line))
			}
			if err != nil {
				return lines, err
			}
			more = true
			break
		}
	}
	return lines, nil
}

var lineWays = []func(*readahead.Reader) ([]string, error){byReadLine, byLines, byLinesLeftEarly}

func TestLinesAreThoseOfTheText(t *testing.T) {
	texts := [][]byte{
		nil, []byte("\n"), []byte("\r\n"), []byte("\r"), []byte("a"), []byte("a\r"), []byte("a\n"), []byte("\n\na"), []byte("a\r\r\n"),
		bytes.Repeat([]byte("x"), 10*testBlock),
		append(bytes.Repeat([]byte("x"), 10*testBlock), "\r\nshort\n"...),
	}
	for _, size := range readSizes(testBlock) {
		texts = append(texts, text(size))
	}
	for _, data := range texts {
		for _, o := range readAheads {
			for i, way := range lineWays {
				for _, source := range readSources {
					r := readahead.NewReader(source.open(t, data), o)
					got, err := way(r)
					if want := linesOf(data); !slices.Equal(got, want) || err != nil {
						t.Errorf("way %d, %s, %+v: %q is %q, %v; want %q", i, source.name, o, data, got, err, want)
					}
					if err := r.Close(); err != nil {
						t.Error(err)
					}
				}
			}
		}
	}
}

func TestLineThatBreaksOffIsNotTakenForWhole(t *testing.T) {
	for _, o := range readAheads {
		for _, way := range lineWays {
			data := []byte("whole\nbroken off here")
			turns := append(piecesOf(len(data), 1), fault.Turn{Err: syscall.EIO})
			r := readahead.NewReader(fault.NewSource(data, turns...), o)
			lines, err := way(r)
			if want := []string{"whole", "broken off here"}; !slices.Equal(lines, want) || !errors.Is(err, syscall.EIO) {
				t.Errorf("%+v: %q, %v; want %q with EIO", o, lines, err, want)
			}
			if line, again := r.ReadLine(); line != nil || again != err {
				t.Errorf("%+v: then %q, %v; want no line and the same error", o, line, again)
			}
			r.Close()
		}
	}
}

func TestLineTooLongLosesNothing(t *testing.T) {
	check := func(length, most int, tooLong bool) {
		t.Helper()
		data := fmt.Sprintf("first\n%s\nlast\n", strings.Repeat("x", length))
		for _, o := range readAheads {
			o.MaxLine = holdfast.Size(most)
			r := readahead.NewReader(iotest.HalfReader(strings.NewReader(data)), o)
			defer r.Close()
			first, err := r.ReadLine()
			if string(first) != "first" || err != nil {
				t.Errorf("ReadLine = %q, %v", first, err)
			}
			if !tooLong {
				continue
			}
			for range 2 {
				if line, err := r.ReadLine(); line != nil || !errors.Is(err, readahead.ErrLineTooLong) {
					t.Errorf("%d of %d bytes, %+v: %d bytes, %v; want ErrLineTooLong", length, most, o, len(line), err)
				}
			}
			rest, err := io.ReadAll(r)
			if string(rest) != data[len("first\n"):] || err != nil {
				t.Errorf("%d of %d bytes, %+v: after ErrLineTooLong %d bytes of %d, %v", length, most, o, len(rest), len(data)-6, err)
			}
		}
	}
	for _, most := range []int{5, testBlock, 10 * testBlock} {
		check(most, most, false)
		check(most+1, most, true)
		check(20*most, most, true)
	}
}

func TestLinesMayBeLongerThanTheMemoryOfABlock(t *testing.T) {
	for _, length := range []int{1 << 16, 1<<20 - 1, 1 << 20, 3 << 20} {
		long := bytes.Repeat([]byte("0123456789abcdef"), length/16)
		data := append(append([]byte("short\n"), long...), "\nafter\n"...)
		for _, mode := range []readahead.Mode{readahead.Regular, readahead.Always} {
			r := readahead.NewReader(bytes.NewReader(data), readahead.Options{ReadAhead: mode})
			r.ReadLine()
			if line, err := r.ReadLine(); !bytes.Equal(line, long) || err != nil {
				t.Errorf("a line of %d bytes: %d bytes, %v", len(long), len(line), err)
			}
			if line, err := r.ReadLine(); string(line) != "after" || err != nil {
				t.Errorf("after a line of %d bytes: %q, %v", len(long), line, err)
			}
			r.Close()
		}
	}
}

// TestNoReadAsksForMoreThanTheBuffer, also where a long line has made the memory larger.
func TestNoReadAsksForMoreThanTheBuffer(t *testing.T) {
	const buffer = 4 << 10
	asked := 0
	source := strings.NewReader(strings.Repeat("x", 40*buffer) + "\n")
	r := readahead.NewReader(readerFunc(func(p []byte) (int, error) {
		asked = max(asked, len(p))
		return source.Read(p)
	}), readahead.Options{Buffer: buffer, ReadAhead: readahead.Never})
	defer r.Close()
	if line, err := r.ReadLine(); err != nil || len(line) != 40*buffer {
		t.Fatalf("%d bytes, %v", len(line), err)
	}
	if asked != buffer {
		t.Errorf("a Read asks for %d bytes, want %d", asked, buffer)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
