package prove

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/rotate"
)

// Workload rotate is several goroutines that write to one log. It rotates after a few records, and
// compresses its backups.
func (all *catalogue) rotate() {
	const writers = 3
	*all = append(*all, &Workload{Name: "rotate", About: "three goroutines, one rotate.File: small files, compressed backups", Files: true,
		Targets: func(p holdfast.Policy) []Target {
			all := streamTargets("app.log", writers)(p)
			for i := range all {
				all[i].Log = true
			}
			return all
		},
		Run: func(r *Run) error { return r.onLog(writers) }})
}

func (r *Run) onLog(writers int) (err error) {
	log := Target{Path: "app.log", Log: true}
	data, err := log.read(r.Path(""))
	if err != nil {
		return err
	}
	there := newParse()
	there.extend(data)
	f, err := rotate.Open(r.Path(log.Path), rotate.Options{Policy: r.Policy, MaxSize: 700, Compress: true}) // more than a sector, or none is torn
	if err != nil {
		return err
	}
	never := r.Policy.Sync.Mode == holdfast.SyncNever
	synced := Durable
	if never {
		synced = Flushed // in files before the last one
	}
	streams, errs := make([]*stream, writers), make([]error, writers+1)
	durable := func(s *stream) (err error) {
		if err = f.Sync(); err == nil {
			r.Note(synced, s.id, s.next)
		}
		return err
	}
	var group sync.WaitGroup
	for id := range writers {
		s := r.stream(uint32(id), uint64(len(there.ends[uint32(id)])))
		streams[id] = s
		group.Add(1)
		go func() {
			defer group.Done()
			for errs[id] == nil && r.more(s.made) {
				s.buf = append(s.record(), '\n') // Open ends a torn record with it
				if _, errs[id] = f.Write(s.buf); errs[id] != nil {
					break
				}
				s.accepted(r.Policy)
				if s.rand.IntN(16) == 0 { // a run under a fault has few records
					errs[id] = durable(s)
				}
			}
			if !never { // a sync that no call waited for may have failed, or that of another goroutine
				errs[id] = errors.Join(errs[id], durable(s))
			}
		}()
	}
	group.Wait()
	errs[writers] = f.Close()
	if err := errors.Join(errs...); err != nil {
		return errors.Join(err, f.Err()) // the background may have met the cause
	}
	noteAll(r, synced, streams)
	return nil
}

// read returns what is in a target's file in a directory, or the records of a log and its backups in
// some directories.
func (t *Target) read(dirs ...string) ([]byte, error) {
	if !t.Log {
		return real{dirs[0]}.ReadFile(path.Base(t.Path))
	}
	var all []map[string][]byte
	for _, dir := range dirs {
		files, err := real{dir}.logFiles()
		if err != nil {
			return nil, err
		}
		all = append(all, files)
	}
	return t.logged(all...), nil
}

// logged returns the records of a log and its backups in some directories, the oldest first. What is
// behind a record that is missing is lost, as in one file behind a torn one, until it is written
// again. The records of several directories are in the order of their numbers.
func (t *Target) logged(dirs ...map[string][]byte) (all []byte) {
	type line struct {
		Record
		data []byte
	}
	var lines []line
	for _, files := range dirs {
		for _, name := range slices.Sorted(maps.Keys(files)) { // app-… before app.log
			for b, at := t.unpacked(files, name), 0; at < len(b); {
				r, ok := ReadRecord(b[at:])
				if !ok || at > 0 && b[at-1] != '\n' { // torn, or glued to a torn one: a line behind it begins a new one
					next := bytes.Index(b[at+1:], binary.LittleEndian.AppendUint32(nil, magic))
					if next < 0 {
						break
					}
					at += 1 + next
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

// logFiles returns what is in the files of a directory, not of those below.
func (s real) logFiles() (files map[string][]byte, err error) {
	entries, err := os.ReadDir(s.dir)
	files = map[string][]byte{}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		data, err := os.ReadFile(s.Path(e.Name()))
		switch {
		case err == nil:
			files[e.Name()] = data
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return files, err
}

// unpacked returns what is in a file of the log, if it is one.
func (t *Target) unpacked(files map[string][]byte, name string) []byte {
	plain, packed := strings.CutSuffix(name, ".gz")
	switch _, both := files[plain]; {
	case !strings.HasPrefix(name, strings.TrimSuffix(path.Base(t.Path), ".log")) || strings.HasSuffix(name, ".part"):
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
	data, _ := io.ReadAll(z) // what can't be read is lost
	return data
}
