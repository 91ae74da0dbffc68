package readahead

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
)

// ErrLineTooLong is the cause of ReadLine's error for a line longer than the MaxLine of the
// [Options]. The line is not consumed: Read and the other methods can still read it.
var ErrLineTooLong = errors.New("line is too long")

// ReadLine reads a line and returns it without its ending, "\n" or "\r\n". A last line without an
// ending is a line too, unless it is empty.
//
// If the source fails in the middle of a line, ReadLine returns the part before the failure with
// the [Error]. From then on it returns the error only. So a line without an error is complete, or
// ends at the end of the source.
func (r *Reader) ReadLine() (line []byte, err error) {
	unread := r.view[r.pos:]
	if i := bytes.IndexByte(unread, '\n'); i >= 0 && i <= r.maxLine {
		r.pos += i + 1
		return withoutCR(unread[:i]), nil
	}
	return r.readLongLine()
}

// readLongLine is ReadLine for a line whose end is not in memory yet.
func (r *Reader) readLongLine() (line []byte, err error) {
	for searched := 0; ; {
		unread := r.view[r.pos:]
		i := bytes.IndexByte(unread[searched:], '\n')
		if end := searched + i; i >= 0 && end <= r.maxLine {
			r.pos += end + 1
			return withoutCR(unread[:end]), nil
		}
		searched = len(unread)
		if i >= 0 || searched > r.maxLine {
			return nil, fmt.Errorf("holdfast: %w: more than %d bytes; raise MaxLine, or take it with Read", ErrLineTooLong, r.maxLine)
		}
		if err := r.more(); err != nil {
			return r.lastLine(err)
		}
	}
}

// lastLine returns the bytes left before the error.
func (r *Reader) lastLine(err error) (line []byte, _ error) {
	line = r.view[r.pos:]
	r.pos = len(r.view)
	if len(line) == 0 {
		return nil, err
	}
	return line, notEOF(err)
}

func withoutCR(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\r' {
		return line[:n-1]
	}
	return line
}

// Lines returns an iterator over the lines of ReadLine. An error comes last, with the part of the
// line before it; the end of the source is no error. A loop that ends early has consumed the lines
// that it got.
func (r *Reader) Lines() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for {
			line, err := r.ReadLine()
			if err == io.EOF || !yield(line, err) || err != nil {
				return
			}
		}
	}
}
