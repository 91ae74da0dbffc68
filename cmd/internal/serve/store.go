package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// A store is the directory, and what is known of its files. It follows no link out of the
// directory. It is for any number of goroutines.
type store struct {
	root    *os.Root
	studies study.List

	// reading is held while a file is read: a run takes up to 1 GiB of memory.
	reading chan struct{}

	mu    sync.Mutex
	known map[string]*known
}

// A known file is an entry with the file that it was made of.
type known struct {
	info fs.FileInfo
	entry
}

// An entry is a file as the list shows it.
type entry struct {
	Name  string
	When  time.Time // it began; of damaged results it was written last
	State string    // how far it is, or what is wrong

	// Of results that can be shown.
	Shown    bool
	Study    string
	Host     string // empty: not known
	Machine  string
	Policies []string
	Growing  bool // it has no end, and was written to not long ago
}

const (
	ending       = ".jsonl"
	begins       = `{"kind":"header",` // results of any name
	mostResults  = 512 << 20           // more than the trials of one report take
	stillGrowing = 5 * time.Minute     // longer than the trials of most runs
)

// readNames returns the names in the directory that may be of files.
func readNames(root *os.Root) ([]fs.DirEntry, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	entries, err := dir.ReadDir(-1)
	return entries, errors.Join(err, dir.Close())
}

// entries returns the results in the directory, the newest first. What it knows of a file counts
// until the file changes.
func (s *store) entries(ctx context.Context) ([]entry, error) {
	names, err := readNames(s.root)
	if err != nil {
		return nil, err
	}
	present := map[string]bool{}
	var list []entry
	for _, d := range names {
		if d.IsDir() {
			continue
		}
		k, ok := s.look(ctx, d.Name())
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if ok {
			present[d.Name()] = true
			list = append(list, k.entry)
		}
	}
	s.mu.Lock()
	for name := range s.known {
		if !present[name] {
			delete(s.known, name)
		}
	}
	s.mu.Unlock()
	slices.SortFunc(list, func(a, b entry) int {
		if c := b.When.Compare(a.When); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return list, nil
}

// look returns the entry of a file; ok is false if it is none of results.
func (s *store) look(ctx context.Context, name string) (k known, ok bool) {
	info, err := s.root.Stat(name)
	if err != nil {
		why := reason(err)
		if link, err := s.root.Lstat(name); err == nil && link.Mode()&fs.ModeSymlink != 0 {
			why = "is a link that leads to nothing in this directory"
		} else if err != nil {
			return known{}, false // it is gone
		}
		return known{entry: entry{Name: name, State: why}}, isNamed(name)
	}
	s.mu.Lock()
	seen := s.known[name]
	s.mu.Unlock()
	if seen != nil && os.SameFile(seen.info, info) && seen.info.Size() == info.Size() && seen.info.ModTime().Equal(info.ModTime()) {
		return seen.now(), true
	}
	if !isNamed(name) && !s.begins(name) {
		return known{}, false
	}
	run, err := s.read(ctx, name, result.Read)
	if ctx.Err() != nil {
		return known{}, false
	}
	k = known{info, newEntry(name, info, run, err)}
	s.mu.Lock()
	s.known[name] = &k
	s.mu.Unlock()
	return k.now(), true
}

// now is what is known, but for the time that has passed.
func (k *known) now() known {
	n := *k
	n.Growing = n.Growing && time.Since(n.info.ModTime()) < stillGrowing
	return n
}

// isNamed reports whether a file is one of results by its name.
func isNamed(name string) bool { return strings.EqualFold(filepath.Ext(name), ending) }

// begins reports whether a file begins as results do.
func (s *store) begins(name string) bool {
	f, err := s.open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	text := make([]byte, len(begins))
	n, _ := io.ReadFull(f, text)
	return bytes.Equal(text[:n], []byte(begins))
}

func newEntry(name string, info fs.FileInfo, run result.Run, err error) entry {
	e := entry{Name: name, When: info.ModTime()}
	if err != nil {
		e.State = reason(err)
		return e
	}
	h := run.Header
	e.Shown, e.Study, e.When, e.Machine = true, h.Study, h.StartedAt, machineText(h)
	if host := machine.Get(h.Machine, machine.HostName).Value; host != machine.Unknown {
		e.Host = host
	}
	for _, c := range h.Cells {
		if p := c.Policy.String(); c.Group == "" && !c.Empty && !slices.Contains(e.Policies, p) {
			e.Policies = append(e.Policies, p)
		}
	}
	e.State, e.Growing = run.Mark(), run.End == nil
	if e.State == "" {
		e.State = "complete: " + cli.CountText(int64(run.Rounds()), "round")
	}
	return e
}

// machineText names the machine and the file system that were measured.
func machineText(h result.Header) string {
	var parts []string
	add := func(name, text string) {
		if v := machine.Get(h.Machine, name).Value; v != machine.Unknown && v != "" {
			parts = append(parts, fmt.Sprintf(text, v))
		}
	}
	add("CPU model", "%s")
	add("CPUs", "%s CPUs")
	add("kernel", "kernel %s")
	if len(h.FileSystems) == 0 {
		add("file system", "%s")
	}
	for _, f := range h.FileSystems {
		parts = append(parts, f.Name)
	}
	add("device stack", "on %s")
	return strings.Join(parts, ", ")
}

// reason says in words why a file can't be shown.
func reason(err error) string {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "may not be read"
	}
	return cli.PlainText(cli.Cause(err))
}

// errNotFile reports a pipe, a device or a directory.
var errNotFile = errors.New("is no regular file")

// open opens a regular file in the directory. It opens nothing else: a pipe would wait, and a
// device may act.
func (s *store) open(name string) (*os.File, error) {
	if name == "" || name != filepath.Base(name) || !filepath.IsLocal(name) || !utf8.ValidString(name) {
		return nil, fs.ErrNotExist
	}
	if info, err := s.root.Stat(name); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, errNotFile
	}
	// By now the name may be a pipe's.
	f, err := s.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNotFile
	}
	if err == nil && info.Size() > mostResults {
		err = fmt.Errorf("is larger than %s; holdfast report reads it", cli.BytesText(mostResults))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// read reads the results of a file with a function such as result.Read.
func (s *store) read(ctx context.Context, name string, with func(io.Reader) (result.Run, error)) (result.Run, error) {
	select {
	case s.reading <- struct{}{}:
		defer func() { <-s.reading }()
	case <-ctx.Done():
		return result.Run{}, ctx.Err()
	}
	f, err := s.open(name)
	if err != nil {
		return result.Run{}, err
	}
	defer f.Close()
	run, err := with(cancelable{ctx, io.LimitReader(f, mostResults)})
	if err == nil {
		err = s.studies.Known(run.Header)
	}
	return cli.PlainRun(run), err
}

// A cancelable reader ends with its context.
type cancelable struct {
	ctx context.Context
	io.Reader
}

func (c cancelable) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.Reader.Read(p)
}
