package main

import (
	"bytes"
	"errors"
	"io"

	"github.com/holdfast-go/holdfast"
)

const (
	blockSize  = 256 << 10 // of a read
	mostBlocks = 16        // that wait
	maxLine    = 64 << 20
)

// An intake reads blocks ahead of who takes lines out of them. It goes on in the
// background until the end of the input: a read of a pipe or terminal can't be
// ended, and so whoever stops before the end leaves it behind.
type intake struct {
	blocks chan block
	free   chan []byte
	gone   chan struct{} // closed by who stops taking
}

// A block is what one read gave.
type block struct {
	bytes []byte
	err   error // io.EOF at the end
}

func newIntake(r io.Reader) *intake {
	in := &intake{blocks: make(chan block, mostBlocks), free: make(chan []byte, mostBlocks+2), gone: make(chan struct{})}
	go in.run(r)
	return in
}

func (in *intake) run(input io.Reader) {
	r := holdfast.NewReader(input, holdfast.ReadOptions{Buffer: blockSize})
	for {
		b := in.memory()
		n, err := r.Read(b)
		if err != nil {
			err = closed(r, err)
		}
		if !in.pass(block{b[:n], err}) || err != nil {
			return
		}
	}
}

// pass hands a block on, unless nobody takes it and there is no room for it.
func (in *intake) pass(b block) bool {
	select {
	case in.blocks <- b:
		return true
	default:
	}
	select {
	case in.blocks <- b:
		return true
	case <-in.gone:
		return false
	}
}

// closed closes the input at its end, and returns what ended it.
func closed(r *holdfast.Reader, err error) error {
	closeErr := r.Close()
	if errors.Is(err, io.EOF) && closeErr != nil {
		return closeErr
	}
	return err
}

func (in *intake) memory() []byte {
	select {
	case b := <-in.free:
		return b[:cap(b)]
	default:
		return make([]byte, blockSize)
	}
}

// done gives the memory of a block back.
func (in *intake) done(b block) {
	select {
	case in.free <- b.bytes:
	default:
	}
}

// A splitter takes blocks apart into lines.
type splitter struct {
	rest    []byte // the beginning of a line whose end has not come yet
	dropped int    // how many bytes of a line that is too long were dropped
	most    int    // the longest line, its ending included

	each func(text []byte, tooLong bool) // called with each line, its ending included
}

// take takes the lines of a block.
func (s *splitter) take(text []byte) {
	for len(text) > 0 {
		end := bytes.IndexByte(text, '\n') + 1
		if end == 0 {
			s.hold(text)
			return
		}
		if len(s.rest) == 0 && s.dropped == 0 && end <= s.most {
			s.each(text[:end], false)
		} else {
			s.hold(text[:end])
			s.give()
		}
		text = text[end:]
	}
}

// hold keeps a part of a line, or drops what is too much.
func (s *splitter) hold(text []byte) {
	if s.dropped == 0 && len(s.rest)+len(text) <= s.most {
		s.rest = append(s.rest, text...)
		return
	}
	s.dropped += len(s.rest) + len(text)
	s.rest = nil
}

func (s *splitter) give() {
	s.each(s.rest, s.dropped > 0)
	s.rest, s.dropped = s.rest[:0], 0
}

// end takes a last line that has no line feed, and gives it one.
func (s *splitter) end() {
	if s.held() == 0 {
		return
	}
	if s.dropped == 0 {
		s.rest = append(s.rest, '\n')
	}
	s.give()
}

// held is how many bytes have come of a line whose end has not.
func (s *splitter) held() int { return len(s.rest) + s.dropped }
