package write

import (
	"bytes"
)

const (
	blockSize  = 256 << 10 // of a read
	mostBlocks = 16        // that wait
	maxLine    = 64 << 20
)

// An intake reads blocks ahead in the background, until the end of the input. A read of a
// pipe or terminal can't be ended: a run that stops earlier leaves the intake behind.
type intake struct {
	blocks chan block
	free   chan []byte
	gone   chan struct{} // closed when no more blocks are taken
}

// A block is what one read gave.
type block struct {
	bytes []byte
	err   error // io.EOF at the end
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
	rest    []byte // the beginning of a line, until its end comes
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

// held is how many bytes have come of a line without its end.
func (s *splitter) held() int { return len(s.rest) + s.dropped }
