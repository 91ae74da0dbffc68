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
	chunkSize  = 1 << 20  // of memory that is read into
	leastRead  = 64 << 10 // a chunk with less room is full; no pipe gives more at once, unless it was made larger
	headroom   = 4 << 10  // at the beginning of a chunk, for the beginning of the first line
	mostChunks = 2        // one is filled while the lines of the other are written: so both stay in a CPU's cache
	mostBlocks = 16       // that wait
	maxLine    = 64 << 20
)

// An intake reads blocks ahead in the background, until the end of the input. A read of a
// pipe or terminal can't be ended: a run that stops earlier leaves the intake behind.
type intake struct {
	blocks chan block
	free   chan []byte   // chunks
	gone   chan struct{} // closed when no more blocks are taken
}

// A block is the result of one read. It is the end of a chunk that is filled from front to back: what is before it
// was taken already.
type block struct {
	chunk []byte // up to the end of the block
	from  int    // where the block begins
	last  bool   // of its chunk
	err   error  // io.EOF at the end
}

func newIntake(r io.Reader) *intake {
	in := &intake{blocks: make(chan block, mostBlocks), free: make(chan []byte, mostChunks), gone: make(chan struct{})}
	for range mostChunks {
		in.free <- nil
	}
	go in.run(r)
	return in
}

func (in *intake) run(input io.Reader) {
	var chunk []byte
	for b := (block{last: true}); b.err == nil; {
		if b.last {
			select {
			case chunk = <-in.free:
			case <-in.gone:
				return
			}
			if chunk == nil {
				chunk = make([]byte, chunkSize)
			}
			b.chunk = chunk[:headroom]
		}
		b.from = len(b.chunk)
		n, err := input.Read(chunk[b.from:])
		b = block{chunk[:b.from+n], b.from, len(chunk)-b.from-n < leastRead, err}
		select {
		case in.blocks <- b:
		case <-in.gone:
			return
		}
	}
}

// done gives the memory of a block back.
func (in *intake) done(b block) {
	if b.last {
		in.free <- b.chunk[:chunkSize]
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

// takeBehind takes the end of a chunk. What is before it is free for the beginning of its first line: then all its lines
// are in one piece.
func (s *splitter) takeBehind(chunk []byte, from int) {
	if n := len(s.rest); s.dropped == 0 && n <= from && n+len(chunk)-from <= s.most {
		from -= copy(chunk[from-n:], s.rest)
		s.rest = s.rest[:0]
	}
	s.take(chunk[from:])
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
	s.splitter.takeBehind(b.chunk, b.from)
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
		line := text[:end]
		if end > 0 && line[end-1] == '\r' {
			line = line[:end-1]
		}
		value, ok := columnOf(line, s.separator, s.column)
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
