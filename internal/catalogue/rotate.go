//go:build go1.25

package catalogue

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/vfs"
	"github.com/holdfast-go/holdfast/rotate"
)

// rotated is several goroutines that write to one log. It rotates after a few records, and
// compresses its backups.
func rotated() *crash.Workload {
	return &crash.Workload{Name: "rotate", About: "three goroutines, one rotate.File: small files, compressed backups", Periods: periods,
		Also:    []holdfast.Policy{holdfast.Buffered(4 * holdfast.KiB)}, // whose names are not synced either
		Targets: logTargets(logWriters), Run: func(r *crash.Run) error {
			return onLogs(r, 1, rotate.Options{Policy: r.Policy, MaxSize: rotatedSize, Compress: true})
		}}
}

// sharedLog has the log open twice, as two processes have it. Each process has its policy's Loss for itself: these lose
// nothing of memory.
func sharedLog() *crash.Workload {
	return &crash.Workload{Name: "rotate-shared", About: "the same through two rotate.Files that share the log, with a header",
		Policies: []holdfast.Policy{holdfast.Unbuffered(), holdfast.Durable()}, Outlived: true, // a process does not sync the other's bytes
		Targets: logTargets(logWriters), Run: func(r *crash.Run) error {
			return onLogs(r, 2, rotate.Options{Policy: r.Policy, MaxSize: rotatedSize, Compress: true, Shared: true, Header: []byte("# of each file\n")})
		}}
}

// processLog has the log open in several processes, which are killed together, and begun again.
func processLog() *crash.Workload {
	const count = 3
	return &crash.Workload{Name: "rotate-processes", About: "rotate-shared in 3 processes, three goroutines each", Processes: count,
		Policies: []holdfast.Policy{holdfast.Unbuffered(), holdfast.Durable()},
		Targets:  logTargets(count * logWriters), Run: func(r *crash.Run) error {
			return onLogs(r, 1, rotate.Options{Policy: r.Policy, MaxSize: rotatedSize, Compress: true, Shared: true, Header: []byte("# of each file\n")})
		}}
}

const (
	rotatedLog  = "app.log"
	rotatedSize = 700 // more than a sector, or none is torn
	logWriters  = 3   // of a process
	sector      = 512 // what reaches a disk as one, at least
)

func logTargets(writers int) func(p holdfast.Policy) []crash.Target {
	return func(p holdfast.Policy) []crash.Target {
		all := streamTargets(rotatedLog, writers)(p)
		for i := range all {
			all[i].Gather = gatherLog
		}
		return all
	}
}

// openRotated opens the log, and says how many records of each writer are there.
func openRotated(r *crash.Run, o rotate.Options) (f *rotate.File, before func(id uint32) uint64, err error) {
	there, err := r.Files("")
	for settled := r.Disk() != nil; err == nil && !settled; { // another process may rotate meanwhile: then there are other names
		read := there
		there, err = r.Files("")
		if settled = maps.EqualFunc(read, there, func(_, _ []byte) bool { return true }); settled {
			there = read
		}
	}
	if err != nil {
		return nil, nil, err
	}
	_, before, _ = crash.Records(gatherLog(there))
	if d := r.Disk(); d != nil {
		if o.Compress {
			o.Compressor = rotate.Compressor{Suffix: packedInMemory, New: packer}
		}
		f, err = vfs.OpenRotated.(func(vfs.ReadDisk, string, rotate.Options) (*rotate.File, error))(d, r.Path(rotatedLog), o)
	} else {
		f, err = rotate.Open(r.Path(rotatedLog), o)
	}
	return f, before, err
}

// onLogs has goroutines write to a log that is open a number of times.
func onLogs(r *crash.Run, open int, o rotate.Options) error {
	logs, before := make([]*rotate.File, open), func(uint32) uint64 { return 0 }
	for i := range logs {
		f, there, err := openRotated(r, o)
		if err != nil {
			for _, f := range logs[:i] {
				err = errors.Join(err, f.Close())
			}
			return err
		}
		if logs[i] = f; i == 0 { // an open log packs its backups, and what is read meanwhile lacks some
			before = there
		}
	}
	never := r.Policy.Sync.Mode == holdfast.SyncNever
	synced := crash.Durable
	if never {
		synced = crash.Flushed // in files before the last one
	}
	streams, errs := make([]*stream, logWriters), make([]error, logWriters)
	durable := func(f *rotate.File, s *stream) (err error) {
		if err = f.Sync(); err == nil {
			r.Note(synced, s.id, s.next)
		}
		return err
	}
	var group sync.WaitGroup
	for id := range logWriters {
		n := uint32(r.Process*logWriters + id)
		f, s := logs[id%open], newStream(r, n, before(n))
		streams[id] = s
		group.Go(func() {
			for errs[id] == nil && r.More(5*s.made) { // in memory each state unpacks all backups
				if s.rand.IntN(8) == 0 || s.made == 0 && s.rand.IntN(3) == 0 { // then a killed process's lines come to a backup
					for errs[id] = f.Rotate(); errors.Is(errs[id], syscall.ENOSPC); { // the log tries again by itself, and at the next Rotate
						if errs[id] = nil; s.rand.IntN(2) == 0 {
							errs[id] = f.Rotate()
						}
					}
				}
				if errs[id] == nil {
					errs[id] = s.line(f)
				}
				if errs[id] != nil {
					break
				}
				if s.rand.IntN(16) == 0 { // a run under a fault has few records
					errs[id] = durable(f, s)
				}
			}
			if !never { // a sync that no call waited for may have failed, or another goroutine's
				errs[id] = errors.Join(errs[id], durable(f, s))
			}
		})
	}
	group.Wait()
	var causes []error // the background may have met one
	for _, f := range logs {
		errs, causes = append(errs, f.Close()), append(causes, f.Err())
	}
	if err := errors.Join(errs...); err != nil {
		return errors.Join(err, errors.Join(causes...))
	}
	noteAll(r, synced, streams)
	return nil
}

// line writes a record as a line of a log. Where the disk is full it tries again for a while.
func (s *stream) line(f *rotate.File) error {
	const most = 20
	s.buf = append(s.record(), '\n') // Open ends a torn record with it
	for tries := 0; ; tries++ {
		n, err := f.Write(s.buf)
		if err == nil {
			if err := failedSync(f); err != nil {
				return err
			}
			s.accepted(s.run.Policy)
			if s.run.Fake && s.run.Pause == nil && s.rand.IntN(16) == 0 { // what has failed in the background is tried again before the next rotation
				time.Sleep(2 * time.Minute)
			}
			return nil
		}
		if n > 0 || tries == most || !errors.Is(err, syscall.ENOSPC) {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

// failedSync is a sync of the log that has failed. It may have taken records that were there when the log was opened. A Write that waits
// for a sync answers for its own record alone.
func failedSync(f *rotate.File) error {
	all, _ := f.Err().(interface{ Unwrap() []error })
	if all == nil {
		return nil
	}
	for _, err := range all.Unwrap() {
		if failed := (*rotate.Error)(nil); errors.As(err, &failed) && failed.Op == "sync" && !errors.Is(err, syscall.ENOSPC) { // then nothing was synced
			return err
		}
	}
	return nil
}

// closedLog opens a log again and again. Where no Write waits for a sync, only Close acknowledges its records.
func closedLog() *crash.Workload {
	return &crash.Workload{Name: "rotate-close", About: "a rotate.File, which is closed after some records",
		Policies: []holdfast.Policy{holdfast.Periodic(time.Second), {Buffer: 4 * holdfast.KiB, Sync: holdfast.Sync{Mode: holdfast.SyncClose}}, holdfast.Durable()},
		Targets:  logTargets(1), Reopens: true,
		Run: func(r *crash.Run) error {
			random := r.Random(1)
			for made := 0; r.More(made); {
				size := []holdfast.Size{700, holdfast.MiB}[random.IntN(2)]
				f, before, err := openRotated(r, rotate.Options{Policy: r.Policy, MaxSize: size})
				if err != nil {
					return err
				}
				s := newStream(r, 0, before(0))
				for range 1 + random.IntN(6) {
					made++
					if err := s.line(f); err != nil {
						return errors.Join(err, f.Close())
					}
				}
				if err := f.Close(); err != nil {
					return err
				}
				r.Note(crash.Durable, 0, s.next)
			}
			return nil
		}}
}

// gatherLog returns the records of a log and its backups in some directories, the oldest first. Records
// behind a missing one are lost, as in one file behind a torn one, until they are written again. The
// records of several directories are in the order of their numbers.
func gatherLog(dirs ...map[string][]byte) (all []byte) {
	var parts [][]line
	size := 0
	for _, files := range dirs {
		for _, name := range slices.Sorted(maps.Keys(files)) { // app-… before app.log
			part := linesOf(files, name)
			for _, l := range part {
				size += len(l.data)
			}
			parts = append(parts, part)
		}
	}
	lines := slices.Concat(parts...)
	if len(dirs) > 1 {
		slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.N, b.N) })
	}
	next := map[uint32]uint64{}
	all = make([]byte, 0, size)
	for _, l := range lines {
		if l.N <= next[l.ID] { // one that occurs twice is in disorder
			next[l.ID] = l.N + 1
			all = append(all, l.data...)
		}
	}
	return all
}

// A line is a record that stands in a file of a log by itself.
type line struct {
	crash.Record
	data []byte
}

// linesOf returns the lines of a file of the log, if it is one.
func linesOf(files map[string][]byte, name string) []line {
	plain, packed := strings.CutSuffix(name, ".gz")
	if !packed {
		plain, packed = strings.CutSuffix(name, packedInMemory)
	}
	switch _, both := files[plain]; {
	case !strings.HasPrefix(name, strings.TrimSuffix(rotatedLog, ".log")) || strings.HasSuffix(name, ".part"):
		return nil
	case packed && both: // until the compressed one is durable
		return nil
	case !packed:
		return parsed(files[name])
	}
	return parsedPacked(files[name])
}

// parsed returns the lines in bytes.
func parsed(b []byte) (lines []line) {
	for at := 0; at < len(b); {
		r, ok := crash.ReadRecord(b[at:])
		if !ok || at%sector != 0 && b[at-1] != '\n' { // torn, or glued to a torn one: a line behind it begins a new one
			next := (at/sector + 1) * sector // what another process's failed sync has lost may end here
			if end := bytes.IndexByte(b[at:min(next, len(b))], '\n'); end >= 0 {
				next = at + end + 1
			}
			at = next
			continue
		}
		lines = append(lines, line{r, b[at : at+r.Size]})
		at += r.Size
	}
	return lines
}

// parsedPacked is parsed of compressed bytes. A log's states have the same backups again and again: it remembers some.
func parsedPacked(b []byte) []line {
	const most = 1 << 12
	known.Lock()
	lines, ok := known.lines[string(b)]
	known.Unlock()
	if ok {
		return lines
	}
	z := unpackers.Get().(*gzip.Reader)
	defer unpackers.Put(z)
	if z.Reset(bytes.NewReader(b)) == nil {
		data, _ := io.ReadAll(z) // unreadable records are lost
		lines = parsed(data)
	}
	known.Lock()
	defer known.Unlock()
	if len(known.lines) == most {
		clear(known.lines)
	}
	known.lines[string(b)] = lines
	return lines
}

var known = struct {
	sync.Mutex
	lines map[string][]line
}{lines: map[string][]line{}}

// unpackers and packers keep their memory: to make it takes longer than the work.
var (
	unpackers = sync.Pool{New: func() any { return new(gzip.Reader) }}
	packers   = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}
)

// packedInMemory is the suffix of backups in memory. They have the format of those with the usual suffix, whose packer a log makes itself.
const packedInMemory = ".mgz"

// A kept is a writer of packers, which has it back when it is closed.
type kept struct{ *gzip.Writer }

func packer(w io.Writer) (io.WriteCloser, error) {
	z := packers.Get().(*gzip.Writer)
	z.Reset(w)
	return kept{z}, nil
}

func (k kept) Close() error {
	defer packers.Put(k.Writer)
	return k.Writer.Close()
}
