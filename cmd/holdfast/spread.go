package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"iter"
	"os"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast"
)

// A spread takes lines, finds out the file of each, and gives them to the library
// in batches. A batch is what was read since the last one was begun: whoever sends
// slowly has each line written at once, and whoever sends fast shares calls and
// syncs.
type spread struct {
	files     *holdfast.Files
	policy    holdfast.Policy
	pattern   pattern
	mode      holdfast.Mode // of whole files
	otherwise string        // the file for lines that have no other, or empty
	workers   int
	ack       io.Writer // told up to which line all is durable, or nil

	splitter splitter
	line     line
	path     []byte
	batch    batch
	others   *pile // of this batch, or nil

	seed   maphash.Seed
	paths  map[uint64]struct{} // of the files, by their hashes
	failed map[string]bool     // files that were told of
	totals totals
	show   *pulse
	halt   atomic.Bool // no further file of this batch is begun
	stop   error       // why nothing more is read
}

// run takes lines until the input ends, ctx does, or a failure that would hit every
// line. What was taken until then is given to the library in any case: that is why
// no call of it gets ctx.
func (s *spread) run(ctx context.Context, in *intake) {
	s.splitter.each = s.take
	for s.stop == nil {
		b, ok := s.next(ctx, in)
		if !ok {
			s.interrupt(in)
			break
		}
		if !s.takeBlock(in, b) {
			break
		}
	}
	close(in.gone)
	s.totals.Cut = s.splitter.held()
	s.flush()
}

// next returns the next block. Before it waits for one it writes the batch.
func (s *spread) next(ctx context.Context, in *intake) (b block, ok bool) {
	if ctx.Err() != nil {
		return b, false
	}
	select {
	case b = <-in.blocks:
		return b, true
	default:
	}
	s.flush()
	select {
	case b = <-in.blocks:
		return b, true
	case <-ctx.Done():
		return b, false
	}
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

// interrupt takes what was read before the interrupt, and no more.
func (s *spread) interrupt(in *intake) {
	s.totals.End = endInterrupted
	for range mostBlocks {
		select {
		case b := <-in.blocks:
			if !s.takeBlock(in, b) {
				return
			}
		default:
			return
		}
	}
}

// take is what the splitter calls with each line.
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
		s.addOther(text)
	default:
		s.refuse(err)
	}
	if s.batch.full() {
		s.flush()
	}
}

// addOther keeps a line for the file for lines that have no other.
func (s *spread) addOther(text []byte) {
	if s.others == nil {
		s.others = &pile{path: s.otherwise, isElse: true}
	}
	s.others.data = append(s.others.data, text...)
	s.others.numbers = append(s.others.numbers, s.line.number)
	s.batch.bytes += len(text)
}

// refuse counts a line that has no file.
func (s *spread) refuse(err error) {
	var why *lineError
	if errors.As(err, &why) {
		s.totals.Failures.add(why.kind, 1)
		s.show.failure("line %d: %v", s.line.number, err)
	}
}

// flush gives the batch to the library, and tells what came of it.
func (s *spread) flush() {
	if len(s.batch.piles) == 0 && s.others == nil {
		return
	}
	if s.batch.apart {
		s.writeAll()
	} else {
		s.appendAll(s.batch.piles)
	}
	if s.others != nil {
		s.appendAll([]*pile{s.others})
		s.judge(s.others)
		s.others = nil
	}
	for _, p := range s.batch.piles {
		s.judge(p)
	}
	s.batch.reset()
	s.show.see(s.totals)
	s.acknowledge()
}

// acknowledge tells that all lines so far are durable, or were told to have failed.
func (s *spread) acknowledge() {
	if s.ack == nil || s.stop != nil {
		return
	}
	if _, err := fmt.Fprintln(s.ack, s.batch.last); err != nil {
		s.stop = err
	}
}

// errHalted is why a pile was not tried.
var errHalted = errors.New("nothing more was written")

// appendAll gives piles to the library, many at once where each waits for the disk.
func (s *spread) appendAll(piles []*pile) {
	var next atomic.Int64
	work := func() {
		for i := next.Add(1) - 1; i < int64(len(piles)); i = next.Add(1) - 1 {
			s.append(piles[i])
		}
	}
	var group sync.WaitGroup
	for range min(s.workers, len(piles)) - 1 {
		group.Go(work)
	}
	work()
	group.Wait()
}

func (s *spread) append(p *pile) {
	if s.halt.Load() {
		p.err = errHalted
		return
	}
	p.err = s.files.Append(context.Background(), p.path, p.data)
	if errors.Is(p.err, holdfast.ErrTemporary) {
		s.halt.Store(true)
	}
}

// writeAll makes the piles files of their own. It begins no more of them once one
// has failed for a reason that would hit all.
func (s *spread) writeAll() {
	for _, p := range s.batch.piles {
		p.err = errHalted
	}
	for rest := s.batch.piles; len(rest) > 0 && !s.halt.Load(); {
		results, err := s.files.WriteAll(context.Background(), s.wholeFiles(rest))
		if results == nil {
			rest[0].err = err
			s.halt.Store(true)
			return
		}
		for i, result := range results.All() {
			rest[i].err = result.Err
			if errors.Is(result.Err, holdfast.ErrTemporary) {
				s.halt.Store(true)
			}
		}
		rest = rest[results.Len():]
	}
}

// wholeFiles are the files of piles, until so many calls were made again that one
// of those before may have failed for good.
func (s *spread) wholeFiles(piles []*pile) iter.Seq[holdfast.FileWrite] {
	return func(yield func(holdfast.FileWrite) bool) {
		retries := s.files.Stats().Retries
		for i, p := range piles {
			if i%64 == 63 && s.files.Stats().Retries > retries+manyRetries {
				return
			}
			if !yield(holdfast.FileWrite{Path: p.path, Data: p.data, Mode: s.mode}) {
				return
			}
		}
	}
}

// manyRetries is more than a batch has where causes pass.
const manyRetries = 30

// judge counts what came of a pile.
func (s *spread) judge(p *pile) {
	written := len(p.data)
	var file *holdfast.FileError
	switch {
	case p.err == nil:
	case errors.As(p.err, &file) && file.Outcome == holdfast.OutcomeUncertain:
		written = 0
		s.lose(p, uncertain, 0)
	case file != nil && !s.batch.apart:
		written = int(file.Offset)
		s.lose(p, refused, bytes.Count(p.data[:written], []byte("\n")))
	default:
		written = 0
		s.lose(p, refused, 0)
	}
	lines := bytes.Count(p.data[:written], []byte("\n"))
	if lines > 0 {
		s.paths[maphash.String(s.seed, p.path)] = struct{}{}
	}
	s.totals.add(p.isElse, lines, written)
	s.totals.Files = len(s.paths)
}

// lose counts the lines from one on that a file has not taken, and stops where no
// other file would take them either.
func (s *spread) lose(p *pile, kind lineErrorKind, from int) {
	lost := p.numbers[from:]
	s.totals.Failures.add(kind, len(lost))
	if len(lost) > 0 && (s.totals.FirstLost == 0 || lost[0] < s.totals.FirstLost) {
		s.totals.FirstLost = lost[0]
	}
	if s.stop == nil && (errors.Is(p.err, holdfast.ErrTemporary) || errors.Is(p.err, os.ErrClosed)) {
		s.stop = p.err
	}
	if errors.Is(p.err, errHalted) || s.failed[p.path] {
		return
	}
	if !s.batch.apart {
		s.failed[p.path] = true
	}
	s.totals.FailedFiles++
	s.show.failure("%s%s", plainText(p.err), fromLine(lost))
}

// fromLine says which lines an error is of.
func fromLine(lost []int64) string {
	switch len(lost) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf(" (line %d)", lost[0])
	}
	return fmt.Sprintf(" (%d lines from line %d on)", len(lost), lost[0])
}

// close ends the files, and tells of each that failed at last.
func (s *spread) close() {
	for _, err := range leaves(s.files.Close()) {
		var file *holdfast.FileError
		if errors.As(err, &file) && s.failed[file.Path] {
			continue
		}
		s.totals.FailedFiles++
		s.totals.FailedLate++
		s.show.failure("%s", plainText(err))
	}
	s.totals.Stats = s.files.Stats()
}

// leaves returns the errors that were joined.
func leaves(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, leaves(e)...)
	}
	return all
}

// An inputError says that the input could not be read on.
type inputError struct {
	lines int64 // that were read before
	err   error
}

func (e *inputError) Error() string {
	return fmt.Sprintf("reading standard input after line %d: %v", e.lines, plainText(e.err))
}
func (e *inputError) Unwrap() error { return e.err }
