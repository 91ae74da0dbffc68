package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"iter"
	"os"
	"slices"
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
	folders   bool          // those that are missing are made
	workers   int
	ack       io.Writer // told up to which line all is durable, or nil

	splitter splitter
	line     line
	path     []byte
	batch    batch
	others   *pile // of this batch, or nil
	flushed  int64 // the number of the last line of the batch before

	seed   maphash.Seed
	paths  map[uint64]tally // by the hashes of their names
	failed map[string]bool  // files that were told of
	first  error            // the failure of the first of these
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
	if s.batch.last == s.flushed {
		return
	}
	s.flushed = s.batch.last
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
		s.stop = &outputFailure{err}
	}
}

// An outputFailure says that what is told on stdout did not get there.
type outputFailure struct{ err error }

func (e *outputFailure) Error() string { return "standard output: " + plainText(e.err) }
func (e *outputFailure) Unwrap() error { return e.err }

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

// append gives a pile to the library: twice if it is refused, because the first
// refusal may be for a failure of the background that has passed.
func (s *spread) append(p *pile) {
	if s.halt.Load() {
		p.err = errHalted
		return
	}
	for range 2 {
		p.err = s.files.Append(context.Background(), p.path, p.data[p.taken:])
		if p.err == nil {
			p.taken = len(p.data)
			return
		}
		var file *holdfast.FileError
		if errors.As(p.err, &file) {
			p.taken += int(file.Offset)
		}
		if p.taken == len(p.data) {
			break
		}
	}
	if isGeneral(p.err) {
		s.halt.Store(true)
	}
}

// isGeneral reports whether an error would hit other files too, as a full disk does.
func isGeneral(err error) bool {
	return errors.Is(err, holdfast.ErrTemporary) || errors.Is(err, os.ErrClosed)
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
			if rest[i].err = result.Err; result.Err == nil {
				rest[i].taken = len(rest[i].data)
			}
			if isGeneral(result.Err) {
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
		for _, p := range piles {
			if !yield(holdfast.FileWrite{Path: p.path, Data: p.data, Mode: s.mode}) || s.files.Stats().Retries > retries+manyRetries {
				return
			}
		}
	}
}

// manyRetries is more than a batch has where causes pass.
const manyRetries = 5

// judge counts what came of a pile.
func (s *spread) judge(p *pile) {
	if p.err != nil && s.isUncertain(p) {
		s.lose(p, uncertain, 0)
		s.count(p, tally{doubtful: int64(len(p.numbers)), doubtfulBytes: int64(p.taken)})
		return
	}
	lines := len(p.numbers)
	if p.err != nil {
		lines = bytes.Count(p.data[:p.taken], []byte("\n"))
		s.lose(p, refused, lines)
	}
	if p.taken > 0 {
		s.count(p, tally{lines: int64(lines), bytes: int64(p.taken)})
		s.totals.add(p.isElse, lines, p.taken)
	}
}

func (s *spread) isUncertain(p *pile) bool {
	var file *holdfast.FileError
	return errors.As(p.err, &file) && file.Outcome == holdfast.OutcomeUncertain
}

// A tally is what a file has accepted, and of what it isn't known whether it is
// durable.
type tally struct{ lines, bytes, doubtful, doubtfulBytes int64 }

// count adds to what a file has accepted.
func (s *spread) count(p *pile, more tally) {
	name := maphash.String(s.seed, p.path)
	t := s.paths[name]
	s.paths[name] = tally{t.lines + more.lines, t.bytes + more.bytes, t.doubtful + more.doubtful, t.doubtfulBytes + more.doubtfulBytes}
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
	if s.stop == nil && isGeneral(p.err) {
		s.stop = p.err
	}
	if errors.Is(p.err, errHalted) || s.failed[p.path] {
		return
	}
	if !s.batch.apart {
		s.failed[p.path] = true
	}
	s.totals.FailedFiles++
	s.first = cmp.Or(s.first, p.err)
	s.show.failure("%s%s", plainText(p.err), p.fromLine(lost))
}

// fromLine says which lines an error is of, and where the file ends now.
func (p *pile) fromLine(lost []int64) string {
	cut := p.taken - bytes.LastIndexByte(p.data[:p.taken], '\n') - 1
	switch {
	case len(lost) == 0:
		return ""
	case cut > 0:
		return fmt.Sprintf(" (%s from line %d on, of which %s are in the file)", countText(int64(len(lost)), "line"), lost[0], countText(int64(cut), "byte"))
	case len(lost) == 1:
		return fmt.Sprintf(" (line %d)", lost[0])
	}
	return fmt.Sprintf(" (%s from line %d on)", countText(int64(len(lost)), "line"), lost[0])
}

// close ends the files, and tells once of each that failed at last.
func (s *spread) close() {
	var paths []string
	last := map[string]error{}
	for _, err := range leaves(s.files.Close()) {
		var file *holdfast.FileError
		path := ""
		if errors.As(err, &file) {
			path = file.Path
			s.takeBack(path, file.Lost)
		}
		if last[path] == nil {
			paths = append(paths, path)
		}
		if last[path] == nil || file != nil && file.Lost > 0 {
			last[path] = err
		}
	}
	slices.Sort(paths)
	for _, path := range paths {
		s.totals.FailedLate++
		s.first = cmp.Or(s.first, last[path])
		if !s.failed[path] {
			s.totals.FailedFiles++
		}
		s.show.failure("%s", plainText(last[path]))
	}
	s.totals.Stats = s.files.Stats()
	s.totals.Durable = s.policy.Sync != holdfast.SyncNever && s.totals.FailedFiles == 0
	if s.stop != nil {
		s.totals.End = endStopped
	}
}

// takeBack counts bytes that were accepted, and then could not be written. What was
// in doubt is so no longer.
func (s *spread) takeBack(path string, lost int64) {
	if lost == 0 {
		return
	}
	t := s.paths[maphash.String(s.seed, path)]
	there, err := linesAtEnd(path, t.bytes+t.doubtfulBytes-lost)
	if err != nil { // then there is none, as far as anybody can tell
		there = 0
	}
	lines := int(t.lines + t.doubtful - there)
	doubtful := min(lines, int(t.doubtful))
	s.totals.Failures.add(refused, lines)
	s.totals.Failures.add(uncertain, -doubtful)
	s.totals.add(path == s.otherwise, doubtful-lines, -max(0, int(lost-t.doubtfulBytes)))
	s.totals.LostBytes += lost
	if there == 0 {
		s.totals.Files--
	}
}

// linesAtEnd counts the lines that end in the last n bytes of a file.
func linesAtEnd(path string, n int64) (lines int64, err error) {
	if n <= 0 {
		return 0, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if _, err := f.Seek(-n, io.SeekEnd); err != nil {
		return 0, err
	}
	r := holdfast.NewReader(f, holdfast.ReadOptions{})
	for block, err := range r.Blocks() {
		if err != nil {
			return 0, err
		}
		lines += int64(bytes.Count(block, []byte("\n")))
	}
	return lines, nil
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
