package write

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/cli"
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

// A block is the result of one read.
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
	for {
		var b []byte
		select {
		case b = <-in.free:
			b = b[:cap(b)]
		default:
			b = make([]byte, blockSize)
		}
		n, err := input.Read(b)
		select {
		case in.blocks <- block{b[:n], err}:
		case <-in.gone:
			return
		}
		if err != nil {
			return
		}
	}
}

// done gives the memory of a block back.
func (in *intake) done(b block) {
	select {
	case in.free <- b.bytes:
	default:
	}
}

// A splitter takes blocks apart into whole lines.
type splitter struct {
	rest    []byte // the beginning of a line, until its end comes
	dropped int    // bytes of a line that is too long
	most    int    // the longest line that more than one block has, its line feed included

	lines   func(text []byte) // called with whole lines
	tooLong func()            // called for a line that was dropped
}

func (s *splitter) take(block []byte) {
	if s.held() > 0 {
		end := bytes.IndexByte(block, '\n') + 1
		if end == 0 {
			s.hold(block)
			return
		}
		s.hold(block[:end])
		s.give()
		block = block[end:]
	}
	end := bytes.LastIndexByte(block, '\n') + 1
	if end > 0 {
		s.lines(block[:end])
	}
	s.hold(block[end:])
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
	if s.dropped > 0 {
		s.tooLong()
	} else {
		s.lines(s.rest)
	}
	s.rest, s.dropped = s.rest[:0], 0
}

// end takes a last line that has no line feed, and gives it one.
func (s *splitter) end() {
	if s.held() > 0 {
		s.take([]byte("\n"))
	}
}

// held is how many bytes have come of a line without its end.
func (s *splitter) held() int { return len(s.rest) + s.dropped }

// run takes lines until the input ends, ctx does, or a failure that would hit every
// line. Bytes taken until then are given to the library in any case: that is why no call of it gets
// ctx.
func (s *spread) run(ctx context.Context, in *intake) {
	more := true
	for more && s.stop == nil && ctx.Err() == nil {
		select {
		case b := <-in.blocks:
			more = s.takeBlock(in, b)
			continue
		default:
		}
		s.flush() // before it waits for a block
		select {
		case b := <-in.blocks:
			more = s.takeBlock(in, b)
		case <-ctx.Done():
		}
	}
	if more && s.stop == nil {
		s.totals.End = cli.EndInterrupted
		for i := 0; more && i < mostBlocks; i++ { // the bytes read before the interrupt, and no more
			select {
			case b := <-in.blocks:
				more = s.takeBlock(in, b)
			default:
				more = false
			}
		}
	}
	close(in.gone)
	s.totals.Cut = s.splitter.held()
	s.flush()
}

// takeBlock takes the lines of a block, and reports whether another one comes.
func (s *spread) takeBlock(in *intake, b block) (more bool) {
	s.splitter.take(b.bytes)
	in.done(b)
	switch {
	case b.err == nil:
		return true
	case errors.Is(b.err, io.EOF):
		s.splitter.end()
	default:
		s.stop = &inputError{s.totals.Lines, b.err}
	}
	return false
}

// takeLines puts whole lines on the piles of their files.
func (s *spread) takeLines(text []byte) {
	if s.column == 0 && s.stop == nil {
		s.add(nil, text, int64(bytes.Count(text, []byte("\n"))))
		return
	}
	for len(text) > 0 && s.stop == nil {
		end := bytes.IndexByte(text, '\n')
		value, ok := columnOf(bytes.TrimSuffix(text[:end], []byte("\r")), s.separator, s.column)
		if ok {
			s.add(value, text[:end+1], 1)
		} else {
			s.totals.Lines++
			s.miss(missing, fmt.Errorf("it has no column %d", s.column))
		}
		text = text[end+1:]
	}
}

func (s *spread) takeTooLong() {
	if s.stop != nil {
		return
	}
	s.flush() // the lines of a pile have numbers in a row where no column is looked at
	s.totals.Lines++
	s.miss(tooLong, fmt.Errorf("it is longer than %v", holdfast.Size(s.splitter.most)))
}

// miss counts the last line, which has no file.
func (s *spread) miss(why failure, err error) {
	s.totals.Failures[why]++
	s.show.Failure(err, "line %d: %v", s.totals.Lines, err)
}

// An inputError says that the input could not be read on.
type inputError struct {
	lines int64 // that were read before
	err   error
}

func (e *inputError) Error() string {
	return fmt.Sprintf("reading standard input after line %d: %v", e.lines, cli.PlainText(e.err))
}
func (e *inputError) Unwrap() error { return e.err }
