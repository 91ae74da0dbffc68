package write

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/files"
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

// run takes lines until the input ends, ctx does, or a failure that would hit every
// line. What was taken until then is given to the library in any case: that is why
// no call of it gets ctx.
func (s *spread) run(ctx context.Context, in *intake) {
	s.splitter.each = s.take
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
		for i := 0; more && i < mostBlocks; i++ { // what was read before the interrupt, and no more
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

// take gets each line from the splitter.
func (s *spread) take(text []byte, isTooLong bool) {
	if s.stop != nil {
		return
	}
	s.totals.Lines++
	s.line.reset(text, s.totals.Lines)
	s.batch.last = s.line.number
	path, err := s.path[:0], error(nil)
	if isTooLong {
		err = &lineError{tooLong, fmt.Sprintf("it is longer than %v", holdfast.Size(s.splitter.most))}
	} else {
		path, err = s.pattern.appendPath(path, &s.line)
	}
	s.path = path
	switch {
	case err == nil:
		s.batch.add(path, text, s.line.number)
	case s.otherwise != "" && !isTooLong:
		if s.others == nil {
			s.others = &pile{path: s.otherwise, isElse: true}
		}
		s.others.data = append(s.others.data, text...)
		s.others.numbers = append(s.others.numbers, s.line.number)
		s.batch.bytes += len(text)
	default:
		var why *lineError
		if errors.As(err, &why) {
			s.totals.Failures.add(why.kind, 1)
			s.show.Failure(err, "line %d: %v", s.line.number, err)
		}
	}
	if s.batch.full() {
		s.flush()
	}
}

// A batch is lines that are given to the library together: the lines of one file in one
// piece, which costs one call.
type batch struct {
	apart bool // each line is a file of its own
	piles []*pile
	byKey map[string]*pile
	spare []*pile
	bytes int
	lines int
	last  int64 // the number of the last line that was read before it is written
}

// A pile is lines of one file.
type pile struct {
	path    string
	data    []byte
	numbers []int64      // of the lines
	isElse  bool         // it is the file for lines that have no other
	taken   int          // bytes that the library has accepted
	err     error        // why not all, or that all is perhaps not durable
	removed *files.Error // lines before it went with a removed file
}

const (
	mostBatch  = 1 << 20  // bytes of a batch
	mostApart  = 4096     // files of a batch, as many as the library syncs together
	mostSpared = 64 << 10 // bytes of memory that a pile may keep
)

// add puts a line on the pile of its file.
func (b *batch) add(path, text []byte, number int64) {
	var p *pile
	if !b.apart {
		p = b.byKey[string(path)]
	}
	if p == nil {
		p = b.pile(string(path))
	}
	p.data = append(p.data, text...)
	p.numbers = append(p.numbers, number)
	b.bytes += len(text)
	b.lines++
}

// pile begins a new one.
func (b *batch) pile(path string) *pile {
	p := &pile{}
	if n := len(b.spare); n > 0 {
		p, b.spare = b.spare[n-1], b.spare[:n-1]
	}
	*p = pile{path: path, data: p.data[:0], numbers: p.numbers[:0]}
	b.piles = append(b.piles, p)
	if !b.apart {
		b.byKey[p.path] = p
	}
	return p
}

// full reports whether the batch is to be written before it grows.
func (b *batch) full() bool {
	return b.bytes >= mostBatch || b.apart && len(b.piles) >= mostApart
}

// reset empties the batch and keeps its memory.
func (b *batch) reset() {
	for _, p := range b.piles {
		if cap(p.data) <= mostSpared && len(b.spare) < mostApart {
			b.spare = append(b.spare, p)
		}
	}
	b.piles, b.bytes, b.lines = b.piles[:0], 0, 0
	clear(b.byKey)
}
