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

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/rotate"
)

// rotated is several goroutines that write to one log. It rotates after a few records, and
// compresses its backups.
func rotated() *crash.Workload {
	return &crash.Workload{Name: "rotate", About: "three goroutines, one rotate.File: small files, compressed backups", Files: true, Also: closeAlone,
		Targets: logTargets, Run: onLog}
}

const (
	rotatedLog = "app.log"
	logWriters = 3
)

func logTargets(p holdfast.Policy) []crash.Target {
	all := streamTargets(rotatedLog, logWriters)(p)
	for i := range all {
		all[i].Gather = gatherLog
	}
	return all
}

func onLog(r *crash.Run) error {
	there, err := crash.Files(r.Path(""))
	if err != nil {
		return err
	}
	_, before, _ := crash.Records(gatherLog(there))
	f, err := rotate.Open(r.Path(rotatedLog), rotate.Options{Policy: r.Policy, MaxSize: 700, Compress: true}) // more than a sector, or none is torn
	if err != nil {
		return err
	}
	never := r.Policy.Sync.Mode == holdfast.SyncNever
	synced := crash.Durable
	if never {
		synced = crash.Flushed // in files before the last one
	}
	streams, errs := make([]*stream, logWriters), make([]error, logWriters+1)
	durable := func(s *stream) (err error) {
		if err = f.Sync(); err == nil {
			r.Note(synced, s.id, s.next)
		}
		return err
	}
	var group sync.WaitGroup
	for id := range logWriters {
		s := newStream(r, uint32(id), before(uint32(id)))
		streams[id] = s
		group.Go(func() {
			for errs[id] == nil && r.More(s.made) {
				s.buf = append(s.record(), '\n') // Open ends a torn record with it
				if _, errs[id] = f.Write(s.buf); errs[id] != nil {
					break
				}
				s.accepted(r.Policy)
				if s.rand.IntN(16) == 0 { // a run under a fault has few records
					errs[id] = durable(s)
				}
			}
			if !never && r.Policy != closeAlone[0] { // a sync that no call waited for may have failed, or another goroutine's
				errs[id] = errors.Join(errs[id], durable(s))
			}
		})
	}
	group.Wait()
	errs[logWriters] = f.Close()
	if err := errors.Join(errs...); err != nil {
		return errors.Join(err, f.Err()) // the background may have met the cause
	}
	noteAll(r, synced, streams)
	return nil
}

// gatherLog returns the records of a log and its backups in some directories, the oldest first. Records
// behind a missing one are lost, as in one file behind a torn one, until they are written again. The
// records of several directories are in the order of their numbers.
func gatherLog(dirs ...map[string][]byte) (all []byte) {
	type line struct {
		crash.Record
		data []byte
	}
	var lines []line
	for _, files := range dirs {
		for _, name := range slices.Sorted(maps.Keys(files)) { // app-… before app.log
			for b, at := unpacked(files, name), 0; at < len(b); {
				r, ok := crash.ReadRecord(b[at:])
				if !ok || at > 0 && b[at-1] != '\n' { // torn, or glued to a torn one: a line behind it begins a new one
					next := bytes.IndexByte(b[at:], '\n')
					if next < 0 {
						break
					}
					at += next + 1
					continue
				}
				lines = append(lines, line{r, b[at : at+r.Size]})
				at += r.Size
			}
		}
	}
	if len(dirs) > 1 {
		slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.N, b.N) })
	}
	next := map[uint32]uint64{}
	for _, l := range lines {
		if l.N <= next[l.ID] { // one that occurs twice is in disorder
			next[l.ID] = l.N + 1
			all = append(all, l.data...)
		}
	}
	return all
}

// unpacked returns what is in a file of the log, if it is one.
func unpacked(files map[string][]byte, name string) []byte {
	plain, packed := strings.CutSuffix(name, ".gz")
	switch _, both := files[plain]; {
	case !strings.HasPrefix(name, strings.TrimSuffix(rotatedLog, ".log")) || strings.HasSuffix(name, ".part"):
		return nil
	case !packed:
		return files[name]
	case both: // until the compressed one is durable
		return nil
	}
	z, err := gzip.NewReader(bytes.NewReader(files[name]))
	if err != nil {
		return nil
	}
	data, _ := io.ReadAll(z) // unreadable records are lost
	return data
}
