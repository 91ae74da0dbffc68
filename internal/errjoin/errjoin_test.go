package errjoin

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

func TestWhatIsSaidTwiceIsJoinedOnce(t *testing.T) {
	same := errors.New(io.EOF.Error())
	if err := Join(nil, nil); err != nil {
		t.Errorf("of no error: %v", err)
	}
	if err := Join(nil, io.EOF, same); err != io.EOF {
		t.Errorf("of one: %v", err)
	}
	err := Join(io.EOF, io.ErrShortWrite, same)
	if !errors.Is(err, io.EOF) || !errors.Is(err, io.ErrShortWrite) || errors.Is(err, same) {
		t.Errorf("of two: %v", err)
	}
	if err := Join(errors.Join(io.EOF, io.ErrShortWrite), same, io.ErrShortBuffer); err.Error() != "EOF\nshort write\nshort buffer" {
		t.Errorf("of joined ones: %v", err)
	}
	two := fmt.Errorf("%w after %w", io.EOF, io.ErrShortWrite)
	if err := Join(nil, two, io.EOF); err.Error() != "EOF after short write\nEOF" {
		t.Errorf("of one with a text of its own: %v", err)
	}
}
