package write

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/bits"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/retry"
)

// A spread takes lines, finds the file of each, and gives them to the library in batches.
// A batch is the lines read while the last one was written. Each line of a slow sender is
// written at once, and the lines of a fast one share calls and syncs. Only append runs beside others.
type spread struct {
	target
	column    int    // from 1; 0: all lines go to one file
	separator []byte // of columns; empty is white space
	appends   bool   // to files that have bytes
	policy    holdfast.Policy
	set       *files.Set
	workers   int         // that append
	ack       io.Writer   // gets the number of the last line up to which all is durable, or nil
	input     fs.FileInfo // standard input, if that is a regular file
	show      *pulse

	splitter splitter
	files    map[string]*file     // by the value of their column
	recent   [1 << slotBits]*file // some of them, by slot
	batch    []*file              // with a pile
	bytes    int                  // of the batch
	least    int                  // bytes of a batch with large enough piles
	spare    []*pile
	spared   int   // bytes of memory of all spare piles
	flushed  int64 // the number of the last line of the batch before

	totals totals
	first  error       // the failure of the first file that has one
	halt   atomic.Bool // no further file of this batch is begun
	stop   error       // why nothing more is read
}

// A file is one that lines go to.
type file struct {
	value  string // of the column
	path   string
	pile   *pile // of the batch, or nil
	bad    error // why it takes no lines
	failed bool  // it has a reported failure

	lines, bytes, doubtful, doubtfulBytes int64 // accepted; doubtful: whether they are durable is not known
}

// A pile is lines of one file in a batch. They go to the library in one piece, which costs one call.
type pile struct {
	data    []byte
	count   int64
	first   int64        // the number of the first line
	numbers []int64      // of all lines, where they are not in a row
	taken   int          // bytes that the library has accepted
	err     error        // why not all, or that all is perhaps not durable
	removed *files.Error // lines before it went with a removed file
	size    int          // of its memory, while it is spare
}

const (
	mostBatch  = 1 << 20       // bytes of a batch, but for one block
	leastBatch = 256 << 10     // bytes of a batch whose piles are large enough: then they stay in a CPU's cache
	leastPile  = 4 << 10       // bytes, on average, of large enough piles: a call of the library takes as long as some lines
	leastLent  = mostBatch / 2 // bytes of lines of the one file that are a batch by themselves: they are not copied
	mostSpared = 8 << 20       // bytes of memory of the piles that are kept
	slotBits   = 12            // so that few of some hundred values share a slot
)

// add puts lines on the pile of their file.
func (s *spread) add(value, text []byte, count int64) {
	recent := &s.recent[slot(value)]
	f := *recent
	if f == nil || f.value != string(value) {
		f = s.file(value)
		*recent = f
	}
	p := f.pile
	if p == nil {
		if n := len(s.spare); n > 0 {
			p, s.spare = s.spare[n-1], s.spare[:n-1]
			s.spared -= p.size
		} else {
			p = &pile{}
		}
		*p = pile{data: p.data[:0], numbers: p.numbers[:0], first: s.totals.Lines + 1}
		f.pile, s.batch = p, append(s.batch, f)
	}
	s.totals.Lines += count
	p.count += count
	if s.column == 0 && len(p.data) == 0 && len(text) >= leastLent {
		own := p.data
		p.data = text // the intake's again after the flush
		s.flush()
		p.data = own
		return
	}
	p.data = append(p.data, text...)
	if s.column > 0 {
		p.numbers = append(p.numbers, s.totals.Lines)
	}
	if s.bytes += len(text); s.bytes >= min(mostBatch, max(s.least, leastPile*len(s.batch))) {
		s.flush()
	}
}

// file returns the file of a value.
func (s *spread) file(value []byte) *file {
	f := s.files[string(value)]
	if f == nil {
		f = &file{value: string(value), path: s.path(value)}
		f.bad = s.look(f.path)
		s.files[f.value] = f
	}
	return f
}

// slot is the place of a value's file in recent, by its length and up to 16 of its bytes at both ends. The map takes as
// long as the rest of a line.
func slot(value []byte) uint64 {
	n := len(value)
	key := uint64(n)
	switch {
	case n >= 8:
		key += binary.LittleEndian.Uint64(value) ^ bits.RotateLeft64(binary.LittleEndian.Uint64(value[n-8:]), 29)
	case n >= 4:
		key += uint64(binary.LittleEndian.Uint32(value))<<32 ^ uint64(binary.LittleEndian.Uint32(value[n-4:]))<<3
	case n > 0:
		key += uint64(value[0])<<24 | uint64(value[n/2])<<16 | uint64(value[n-1])<<8
	}
	return key * 0x9e3779b97f4a7c15 >> (64 - slotBits)
}

// number returns the number of a line of the input.
func (p *pile) number(i int64) int64 {
	if len(p.numbers) == 0 {
		return p.first + i
	}
	return p.numbers[i]
}

// The reasons to give a file no lines. The library opens a file only to flush to it, and would find them later.
var (
	errIsInput    = errors.New("it is also the standard input")
	errExists     = errors.New("it has bytes, and nothing is overwritten")
	errNotRegular = errors.New("it is not a regular file; write appends only to regular files")
)

// look says why a file takes no lines, and stops the run where it would harm what is there.
func (s *spread) look(path string) error {
	is, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case s.input != nil && os.SameFile(s.input, is):
		err = errIsInput
	case !is.Mode().IsRegular():
		return fmt.Errorf("%s: %w", path, errNotRegular)
	case is.Size() > 0 && !s.appends:
		err = errExists
	default:
		return nil
	}
	s.stop = fmt.Errorf("%s: %w", path, err)
	return errHalted
}

// errHalted is why a pile was not tried.
var errHalted = errors.New("nothing more was written")

// flush gives the batch to the library, and reports what came of it. If asked to, it
// acknowledges that all lines so far are durable, or reported to have failed.
func (s *spread) flush() {
	if s.totals.Lines == s.flushed {
		return
	}
	s.flushed = s.totals.Lines
	s.appendAll()
	for _, f := range s.batch {
		s.judge(f)
		p := f.pile
		p.size = cap(p.data) + 8*cap(p.numbers)
		if f.pile = nil; s.spared+p.size <= mostSpared {
			s.spare = append(s.spare, p)
			s.spared += p.size
		}
	}
	s.batch, s.bytes = s.batch[:0], 0
	s.show.see(s.totals)
	if s.ack == nil || s.stop != nil {
		return
	}
	switch _, err := fmt.Fprintln(s.ack, s.flushed); {
	case retry.Is(err, syscall.EPIPE): // which is silent where the output is only for people
		s.stop = errNoReader
	case err != nil:
		s.stop = &cli.OutputFailure{Err: err}
	}
}

// errNoReader is why a write with --ack ends early.
var errNoReader = errors.New("nobody reads the acknowledgements of --ack any more")

// appendAll gives the piles to the library, many at once where each waits for the disk.
func (s *spread) appendAll() {
	var next atomic.Int64
	work := func() {
		for i := next.Add(1) - 1; i < int64(len(s.batch)); i = next.Add(1) - 1 {
			s.append(s.batch[i])
		}
	}
	var group sync.WaitGroup
	for range min(s.workers, len(s.batch)) - 1 {
		group.Go(work)
	}
	work()
	group.Wait()
}

// append gives a pile to the library. It does so twice if nothing of it is taken,
// because the first refusal may be for a background failure that has passed.
func (s *spread) append(f *file) {
	p := f.pile
	if f.bad != nil || s.halt.Load() {
		p.err = cmp.Or(f.bad, errHalted)
		return
	}
	for range 2 {
		p.err = s.set.Append(context.Background(), f.path, p.data)
		if p.err == nil {
			p.taken = len(p.data)
			return
		}
		var failed *files.Error
		if errors.As(p.err, &failed) {
			p.taken = int(failed.Offset)
			if failed.Lost > 0 {
				p.removed = failed
			}
		}
		if p.taken > 0 {
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

// judge counts what came of a pile.
func (s *spread) judge(f *file) {
	p := f.pile
	if p.removed != nil { // earlier lines were lost with a removed file
		s.totals.LostBytes += p.removed.Lost
		s.fail(f, p.removed)
		s.show.Failure(p.removed, "%s", cli.PlainText(p.removed))
	}
	had := f.has()
	var failed *files.Error
	if errors.As(p.err, &failed) && failed.Outcome == holdfast.OutcomeUncertain {
		s.lose(f, uncertain, 0)
		f.doubtful += p.count
		f.doubtfulBytes += int64(p.taken)
	} else {
		lines := p.count
		if p.err != nil {
			lines = int64(bytes.Count(p.data[:p.taken], []byte("\n")))
			s.lose(f, refused, lines)
		}
		f.lines += lines
		f.bytes += int64(p.taken)
		s.totals.Written += lines
		s.totals.Bytes += int64(p.taken)
	}
	if !had && f.has() {
		s.totals.Files++
	}
}

// has reports whether the file has accepted something.
func (f *file) has() bool { return f.bytes > 0 || f.doubtful > 0 }

// lose counts the lines from one on that a file has not taken, and stops where no
// other file would take them either.
func (s *spread) lose(f *file, why failure, from int64) {
	p := f.pile
	lost := p.count - from
	s.totals.Failures[why] += lost
	if lost > 0 && (s.totals.FirstLost == 0 || p.number(from) < s.totals.FirstLost) {
		s.totals.FirstLost = p.number(from)
	}
	if s.stop == nil && isGeneral(p.err) {
		s.stop = p.err
	}
	if errors.Is(p.err, errHalted) || f.failed {
		return
	}
	s.fail(f, p.err)
	s.show.Failure(p.err, "%s%s", textOf(p.err), p.fromLine(from))
}

// textOf returns an error without the number of bytes that the library took of its call: a user knows lines, not calls.
func textOf(err error) string {
	if failed, ok := err.(*files.Error); ok {
		one := *failed
		one.Offset = 0
		err = &one
	}
	return cli.PlainText(err)
}

// fail counts a file once.
func (s *spread) fail(f *file, why error) {
	if !f.failed {
		f.failed = true
		s.totals.FailedFiles++
	}
	s.first = cmp.Or(s.first, why)
}

// fromLine says which lines an error is of, and where the file ends now.
func (p *pile) fromLine(from int64) string {
	lost := p.count - from
	cut := p.taken - bytes.LastIndexByte(p.data[:p.taken], '\n') - 1
	switch {
	case lost == 0:
		return ""
	case cut > 0:
		return fmt.Sprintf(" (%s from line %d on; %s of them are in the file)", cli.CountText(lost, "line"), p.number(from), cli.CountText(int64(cut), "byte"))
	case lost == 1:
		return fmt.Sprintf(" (line %d)", p.number(from))
	}
	return fmt.Sprintf(" (%s from line %d on)", cli.CountText(lost, "line"), p.number(from))
}

// close ends the files, and reports each failed one once.
func (s *spread) close() {
	byPath, last := map[string]*file{}, map[string]error{}
	for _, err := range cli.Leaves(s.set.Close()) {
		if len(byPath) == 0 {
			for _, f := range s.files {
				byPath[f.path] = f
			}
		}
		path, lost := "", int64(0)
		var failed *files.Error
		if errors.As(err, &failed) {
			path, lost = failed.Path, failed.Lost
		}
		if f := byPath[path]; f != nil && lost > 0 {
			s.takeBack(f, lost)
		}
		if last[path] == nil || lost > 0 {
			last[path] = err
		}
	}
	for _, path := range slices.Sorted(maps.Keys(last)) {
		s.totals.FailedLate++
		f := byPath[path]
		if f == nil {
			f = &file{}
		}
		s.fail(f, last[path])
		s.show.Failure(last[path], "%s", cli.PlainText(last[path]))
	}
	s.totals.Stats = s.set.Stats()
	s.totals.Healed = s.totals.Stats.Healed
	s.totals.Durable = s.policy.Sync.Mode != holdfast.SyncNever && s.totals.FailedFiles == 0
	if s.stop != nil {
		s.totals.End = cli.EndStopped
	}
}

// takeBack counts bytes that were accepted, and then could not be written. The doubt is resolved.
func (s *spread) takeBack(f *file, lost int64) {
	there, err := linesAtEnd(f.path, f.bytes+f.doubtfulBytes-lost)
	if err != nil { // then it is taken to have none
		there = 0
	}
	lines := f.lines + f.doubtful - there
	doubtful := min(lines, f.doubtful)
	s.totals.Failures[refused] += lines
	s.totals.Failures[uncertain] -= doubtful
	s.totals.Written += doubtful - lines
	s.totals.Bytes -= max(0, lost-f.doubtfulBytes)
	s.totals.LostBytes += lost
	s.totals.FirstLost = 0 // the numbers of these lines are not known
	if there == 0 {
		s.totals.Files--
	}
}

// linesAtEnd counts the lines that end in the last n bytes of a file.
func linesAtEnd(path string, n int64) (int64, error) {
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
	var lines lineCount
	_, err = io.Copy(&lines, f)
	return int64(lines), err
}

// A lineCount counts the lines that are written to it.
type lineCount int64

func (c *lineCount) Write(p []byte) (int, error) {
	*c += lineCount(bytes.Count(p, []byte("\n")))
	return len(p), nil
}
