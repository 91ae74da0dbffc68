package write

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
	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/readahead"
)

// A spread takes lines, finds the file of each, and gives them to the library in batches.
// A batch is what was read while the last one was written. Each line of a slow sender is
// written at once, and the lines of a fast one share calls and syncs.
type spread struct {
	destination
	outcome
	splitter splitter
	line     line
	path     []byte
	batch    batch
	others   *pile // of this batch, or nil
	flushed  int64 // the number of the last line of the batch before
	tails    *tails
	show     *pulse
}

// A destination is where the lines go, and how.
type destination struct {
	files     *files.Set
	policy    holdfast.Policy
	pattern   pattern
	mode      files.Mode // of whole files
	otherwise string     // the file for lines that have no other, or empty
	dirs      bool       // those that are missing are made
	workers   int
	ack       io.Writer // gets the number of the last line up to which all is durable, or nil
}

// An outcome is what became of the lines so far.
type outcome struct {
	seed    maphash.Seed
	paths   map[uint64]tally // by the hashes of their names
	failed  map[string]bool  // files with a reported failure
	remarks int              // on files, printed or not
	first   error            // the failure of the first of these
	totals  totals
	halt    atomic.Bool // no further file of this batch is begun
	stop    error       // why nothing more is read
}

// flush gives the batch to the library, and reports what came of it. If asked to, it
// acknowledges that all lines so far are durable, or reported to have failed.
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
	if s.ack == nil || s.stop != nil {
		return
	}
	if _, err := fmt.Fprintln(s.ack, s.batch.last); err != nil {
		s.stop = &cli.OutputFailure{Err: err}
	}
}

// errHalted is why a pile was not tried.
var errHalted = errors.New("nothing more was written")

// appendAll gives piles to the library, each behind the end of a line.
func (s *spread) appendAll(piles []*pile) {
	s.healAll(piles)
	s.inParallel(piles, s.append)
}

// inParallel does a step with each pile, many at once where each waits for the disk.
func (s *spread) inParallel(piles []*pile, do func(*pile)) {
	var next atomic.Int64
	work := func() {
		for i := next.Add(1) - 1; i < int64(len(piles)); i = next.Add(1) - 1 {
			do(piles[i])
		}
	}
	var group sync.WaitGroup
	for range min(s.workers, len(piles)) - 1 {
		group.Go(work)
	}
	work()
	group.Wait()
}

// name is what stands for a pile's path in the maps.
func (s *spread) name(p *pile) uint64 { return maphash.String(s.seed, p.path) }

// stopAt stops at a file that is not to be written to.
func (s *spread) stopAt(p *pile, why error) {
	s.stop = fmt.Errorf("%s: %w", p.path, why)
	s.halt.Store(true)
}

// remark prints one of the first remarks on files.
func (s *spread) remark(format string, args ...any) {
	if s.remarks++; s.remarks <= cli.MostFailures {
		s.show.Say(format, args...)
	}
}

// append gives a pile to the library. It does so twice if it is refused,
// because the first refusal may be for a background failure that has passed.
func (s *spread) append(p *pile) {
	switch {
	case p.err != nil:
		return
	case s.halt.Load():
		p.err = errHalted
		return
	}
	for range 2 {
		p.err = s.files.Append(context.Background(), p.path, p.data[p.taken:])
		if p.err == nil {
			p.taken = len(p.data)
			return
		}
		var file *files.Error
		if errors.As(p.err, &file) {
			p.taken += int(file.Offset)
			if file.Lost > 0 {
				p.removed = file
			}
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
	return errors.Is(err, files.ErrTemporary) || errors.Is(err, os.ErrClosed)
}

// writeAll makes the piles files of their own. It begins no more of them once one
// has failed for a reason that would hit all.
func (s *spread) writeAll() {
	switch s.mode {
	case files.Append:
		s.healAll(s.batch.piles)
	case files.Truncate, files.Replace:
		for _, p := range s.batch.piles {
			if s.tails.isInput(p.path) {
				s.stopAt(p, errIsInput)
			}
		}
	}
	var rest []*pile
	for _, p := range s.batch.piles {
		if p.err == nil {
			p.err = errHalted
			rest = append(rest, p)
		}
	}
	for len(rest) > 0 && !s.halt.Load() {
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
func (s *spread) wholeFiles(piles []*pile) iter.Seq[files.Write] {
	return func(yield func(files.Write) bool) {
		retries := s.files.Stats().Retries
		for _, p := range piles {
			if !yield(files.Write{Path: p.path, Data: p.data, Mode: s.mode}) || s.files.Stats().Retries > retries+manyRetries {
				return
			}
		}
	}
}

// manyRetries is more than a batch has where causes pass.
const manyRetries = 5

// judge counts what came of a pile.
func (s *spread) judge(p *pile) {
	if p.removed != nil { // earlier lines were lost with a removed file
		s.totals.LostBytes += p.removed.Lost
		if !s.failed[p.path] {
			s.failed[p.path] = true
			s.totals.FailedFiles++
		}
		s.first = cmp.Or(s.first, error(p.removed))
		s.show.Failure(p.removed, "%s", cli.PlainText(p.removed))
	}
	var file *files.Error
	if errors.As(p.err, &file) && file.Outcome == holdfast.OutcomeUncertain {
		s.lose(p, uncertain, 0)
		s.count(p, tally{doubtful: int64(len(p.numbers)), doubtfulBytes: int64(p.taken)})
		return
	}
	lines := len(p.numbers)
	if p.err != nil {
		lines = bytes.Count(p.data[:p.taken], []byte("\n"))
		s.lose(p, refused, lines)
		if p.cut() > 0 {
			s.tails.paths[s.name(p)] = true
		}
	}
	if p.taken > 0 {
		s.count(p, tally{lines: int64(lines), bytes: int64(p.taken)})
		s.totals.add(p.isElse, lines, p.taken)
	}
}

// A tally is what a file has accepted, and of what it isn't known whether it is
// durable.
type tally struct{ lines, bytes, doubtful, doubtfulBytes int64 }

// count adds to what a file has accepted.
func (s *spread) count(p *pile, more tally) {
	name := s.name(p)
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
	s.show.Failure(p.err, "%s%s", cli.PlainText(p.err), p.fromLine(lost))
}

// cut is how many bytes were taken of a line that was not taken whole.
func (p *pile) cut() int { return p.taken - bytes.LastIndexByte(p.data[:p.taken], '\n') - 1 }

// fromLine says which lines an error is of, and where the file ends now.
func (p *pile) fromLine(lost []int64) string {
	cut := p.cut()
	switch {
	case len(lost) == 0:
		return ""
	case cut > 0:
		return fmt.Sprintf(" (%s from line %d on; %s of them are in the file)", cli.CountText(int64(len(lost)), "line"), lost[0], cli.CountText(int64(cut), "byte"))
	case len(lost) == 1:
		return fmt.Sprintf(" (line %d)", lost[0])
	}
	return fmt.Sprintf(" (%s from line %d on)", cli.CountText(int64(len(lost)), "line"), lost[0])
}

// close ends the files, and reports each failed one once.
func (s *spread) close() {
	var paths []string
	last := map[string]error{}
	for _, err := range cli.Leaves(s.files.Close()) {
		var file *files.Error
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
		s.show.Failure(last[path], "%s", cli.PlainText(last[path]))
	}
	s.totals.Stats = s.files.Stats()
	s.totals.Durable = s.policy.Sync.Mode != holdfast.SyncNever && s.totals.FailedFiles == 0
	if s.stop != nil {
		s.totals.End = cli.EndStopped
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
	if err != nil { // then it is taken to have none
		there = 0
	}
	lines := int(t.lines + t.doubtful - there)
	doubtful := min(lines, int(t.doubtful))
	s.totals.Failures.add(refused, lines)
	s.totals.Failures.add(uncertain, -doubtful)
	s.totals.add(path == s.otherwise, doubtful-lines, -max(0, int(lost-t.doubtfulBytes)))
	s.totals.LostBytes += lost
	s.totals.FirstLost = 0 // the numbers of these lines are not known
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
	r := readahead.NewReader(f, readahead.Options{})
	for block, err := range r.Blocks() {
		if err != nil {
			return 0, err
		}
		lines += int64(bytes.Count(block, []byte("\n")))
	}
	return lines, nil
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
