package records

import (
	"errors"
	"io"
	"iter"
	"os"
	"sync"
	"time"

	pebble "github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// The numbers in the chunks of a log and of the older one in the same blocks. By these
// pebble's reader distinguishes them. They have no type, because the type that record's
// functions want is internal to pebble.
const (
	pebbleLog    = 2
	pebbleOldLog = 1
)

func openPebble(entries int, recycled bool) func(string, work) (*sink, error) {
	return func(dir string, w work) (*sink, error) {
		f, err := createPebble(dir, w, recycled)
		if err != nil {
			return nil, err
		}
		p := &pebbleWriter{log: pebble.NewLogWriter(f, pebbleLog, pebbleConfig())}
		return &sink{
			writer: func() (io.Writer, func() error) {
				l := &pebbleLane{w: p, entries: entries, left: w.each}
				return l, func() error { return nil }
			},
			close: p.log.Close,
		}, nil
	}
}

// pebbleConfig configures a database at pebble's newest format.
func pebbleConfig() pebble.LogWriterConfig {
	return pebble.LogWriterConfig{WriteWALSyncOffsets: func() bool { return true }}
}

// createPebble opens the log's file with its name durable: new, or one that an
// older log left.
func createPebble(dir string, w work, recycled bool) (vfs.File, error) {
	f, err := openPebbleFile(logPath(dir), w, recycled)
	if err != nil {
		return nil, err
	}
	if err := syncDir(dir); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if w.sync > 0 {
		f = sleepyPebble{f, w.sync}
	}
	const memtable = 4 << 20 // pebble's default
	return vfs.NewSyncingFile(f, vfs.SyncingFileOptions{PreallocateSize: memtable + memtable/10}), nil
}

// A sleepyPebble is sleepy for pebble.
type sleepyPebble struct {
	vfs.File
	sync time.Duration
}

func (f sleepyPebble) Sync() error                { return sleep(f.sync) }
func (f sleepyPebble) SyncData() error            { return sleep(f.sync) }
func (f sleepyPebble) SyncTo(int64) (bool, error) { return true, sleep(f.sync) }

func openPebbleFile(path string, w work, recycled bool) (vfs.File, error) {
	if !recycled {
		return vfs.Default.Create(path, vfs.WriteCategoryUnspecified)
	}
	old := path + ".old"
	if err := fillPebble(old, w); err != nil {
		return nil, err
	}
	return vfs.Default.ReuseForWrite(old, path, vfs.WriteCategoryUnspecified)
}

// fillPebble leaves an older log that is a little longer than w's will be.
func fillPebble(path string, w work) error {
	f, err := vfs.Default.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	log := pebble.NewLogWriter(f, pebbleOldLog, pebbleConfig())
	rec := newRecord(w.size, 0)
	for range w.records() + w.records()/4 + 1000 {
		if _, err := log.WriteRecord(rec); err != nil {
			return errors.Join(err, log.Close())
		}
	}
	return log.Close()
}

// pebbleWriter is the lock that pebble.LogWriter asks its callers for.
type pebbleWriter struct {
	mu  sync.Mutex
	log *pebble.LogWriter
}

// pebbleLane is one goroutine's records; it waits at the end of each window and
// at its last pebble.
type pebbleLane struct {
	w       *pebbleWriter
	entries int // of a window
	left    int // records to come
	held    int // records of this window that were not waited for
	done    sync.WaitGroup
	err     error // of the sync that done waits for
}

func (l *pebbleLane) Write(p []byte) (int, error) {
	l.left--
	if l.held++; l.held < l.entries && l.left > 0 {
		return len(p), l.w.append(p, nil, nil)
	}
	l.held = 0
	l.done.Add(1)
	if err := l.w.append(p, &l.done, &l.err); err != nil {
		return 0, err
	}
	l.done.Wait()
	return len(p), l.err
}

// append adds a record. done and failed report when it is durable, with all records before
// it.
func (w *pebbleWriter) append(p []byte, done *sync.WaitGroup, failed *error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.log.SyncRecord(p, done, failed)
	return err
}

// pebbleRecords reads the log back with pebble's own reader, which checks the
// checksums and stops at the older log's chunks.
func pebbleRecords(dir string, _ work) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		f, err := os.Open(logPath(dir))
		if err != nil {
			yield(nil, err)
			return
		}
		defer f.Close()
		for log := pebble.NewReader(f, pebbleLog); ; {
			rec, err := nextPebble(log)
			if err == io.EOF || !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

func nextPebble(log *pebble.Reader) ([]byte, error) {
	r, err := log.Next()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
