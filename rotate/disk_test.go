package rotate

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// A memory is a disk that fails, and its reader: the calls of a fault.Disk write only.
type memory struct {
	*fault.Disk
	dir      string    // of the log
	modified time.Time // of every file; zero: not known

	mu      sync.Mutex
	sources map[int]string
	readErr error
}

func newMemory(t *testing.T) *memory {
	t.Helper()
	d := &memory{Disk: fault.NewDisk(), dir: "/log", sources: map[int]string{}}
	if err := d.MkdirAll("/log"); err != nil {
		t.Fatal(err)
	}
	return d
}

// OpenSource opens a file of the directory of the log.
func (d *memory) OpenSource(dir int, name sys.Name) (int, error) {
	fd, err := d.OpenFile(dir, name, os.O_RDONLY|sys.NoFollow, 0)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sources[fd] = path.Join(d.dir, name.String())
	return fd, err
}

func (d *memory) ReadAt(fd int, p []byte, at int64) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.readErr != nil {
		return 0, d.readErr
	}
	data, err := d.ReadFile(d.sources[fd])
	if err != nil || at >= int64(len(data)) {
		return 0, err
	}
	return copy(p, data[at:]), nil
}

func (d *memory) StatFile(fd int) (s sys.FileStat, err error) {
	s.Stat, err = d.StatFD(fd)
	s.Modified = d.modified
	return s, err
}

func (d *memory) StatDir(fd int) (sys.DirStat, error) { return sys.DirStat{}, errors.ErrUnsupported }

// policies are one of each kind.
var policies = []holdfast.Policy{
	holdfast.Unbuffered(),
	{Buffer: 256, FlushEvery: 100 * time.Millisecond},
	{Buffer: 256, Sync: holdfast.SyncEvery(200 * time.Millisecond)},
	{Buffer: 256, Sync: holdfast.Sync{Mode: holdfast.SyncClose}},
	holdfast.Durable(),
	holdfast.EachDurable(),
}

// logs returns the files of the log in a crash image, by their names.
func logs(m *fault.Image) map[string][]byte {
	files := map[string][]byte{}
	for p, data := range m.Files {
		if dir, name := path.Split(p); dir == "/log/" && name != "other.txt" {
			files[name] = data
		}
	}
	return files
}

// logsIn returns the files of a real directory.
func logsIn(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// text joins the files of a log, the oldest first. Each but the last ends with a record.
func text(files map[string][]byte, mayTear bool) (all []byte, err error) {
	names := make([]string, 0, len(files))
	for name := range files {
		_, plain := files[strings.TrimSuffix(name, packed)]
		if name != "app.log" && !strings.HasSuffix(name, partly) && !(strings.HasSuffix(name, packed) && plain) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range append(names, "app.log") {
		data := files[name]
		if strings.HasSuffix(name, packed) {
			z, err := gzip.NewReader(bytes.NewReader(data))
			if err == nil {
				data, err = io.ReadAll(z)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		if len(data) > 0 && data[len(data)-1] != '\n' && name != "app.log" && !mayTear {
			return nil, fmt.Errorf("%s ends in the middle of a record: %q", name, data[max(0, len(data)-40):])
		}
		all = append(all, data...)
	}
	return all, nil
}

// record is goroutine g's nth record.
func record(g, n int) []byte {
	return fmt.Appendf(nil, "%d %d %s.\n", g, n, strings.Repeat("x", n*7%60))
}

// A ledger is how many records were accepted of each goroutine: they were given in order.
type ledger map[int]int

// holds returns what is wrong with a log: an accepted record that is lost, or one that
// comes twice, split or too early.
func (l ledger) holds(files map[string][]byte) error {
	all, err := text(files, false)
	if err != nil {
		return err
	}
	next := map[int]int{}
	for line := range bytes.Lines(all) {
		var g, n int
		if len(line) == 1 {
			continue // a line feed that has ended a torn line which was ended
		}
		if _, err := fmt.Sscanf(string(line), "%d %d ", &g, &n); err != nil || !bytes.Equal(line, record(g, n)) {
			return fmt.Errorf("%q is no record", line)
		}
		if n != next[g] {
			return fmt.Errorf("goroutine %d: record %d comes where %d should: one is lost, twice or too early", g, n, next[g])
		}
		next[g]++
	}
	for g, n := range l {
		if next[g] < n {
			return fmt.Errorf("goroutine %d: %d records were accepted, %d are there", g, n, next[g])
		}
	}
	return nil
}

// names returns the names of files, sorted.
func names(files map[string][]byte) []string {
	var all []string
	for name := range files {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

func sysName(path string) sys.Name { return sys.Name(path + "\x00") }
