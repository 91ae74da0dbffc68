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

// A store reads the files of the directory, and caches the results of reading them. It follows no
// link out of the directory. Any number of goroutines may use it.
type store struct {
	root    *os.Root
	studies study.List

	// reading is held while a file is read: a run takes up to 1 GiB of memory.
	reading chan struct{}

	mu    sync.Mutex
	cache map[string]*cached
}

// A cached is the listing of a file with the attributes that the file had.
type cached struct {
	info fs.FileInfo
	listing
}

// A listing is a row of the list.
type listing struct {
	Name  string
	When  time.Time // the run's begin; for damaged results, the last write
	State string    // the run's progress, or the problem of the file

	// Set for results that can be shown.
	Shown    bool
	Study    string
	Host     string // "": not known
	Machine  string
	Policies []string
	Growing  bool // it has no end, and was written to lately
}

const (
	ext          = ".jsonl"
	magic        = `{"kind":"header",` // the start of every results file
	mostResults  = 512 << 20           // more bytes than the trials of one report take
	stillGrowing = 5 * time.Minute     // longer than the trials of most runs
)

// readNames returns the entries of the directory.
func readNames(root *os.Root) ([]fs.DirEntry, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	entries, err := dir.ReadDir(-1)
	return entries, errors.Join(err, dir.Close())
}

// entries returns the results in the directory, the newest first. A file is read again only after
// it has changed.
func (s *store) entries(ctx context.Context) ([]listing, error) {
	names, err := readNames(s.root)
	if err != nil {
		return nil, err
	}
	present := map[string]bool{}
	var list []listing
	for _, d := range names {
		if d.IsDir() {
			continue
		}
		k, ok := s.stat(ctx, d.Name())
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if ok {
			present[d.Name()] = true
			list = append(list, k.listing)
		}
	}
	s.mu.Lock()
	for name := range s.cache {
		if !present[name] {
			delete(s.cache, name)
		}
	}
	s.mu.Unlock()
	slices.SortFunc(list, func(a, b listing) int {
		if c := b.When.Compare(a.When); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return list, nil
}

// stat returns the listing of a file; ok is false if it holds no results.
func (s *store) stat(ctx context.Context, name string) (k cached, ok bool) {
	info, err := s.root.Stat(name)
	if err != nil {
		why := reason(err)
		if link, err := s.root.Lstat(name); err == nil && link.Mode()&fs.ModeSymlink != 0 {
			why = "is a link to a file outside of this directory, or to none"
		} else if err != nil {
			return cached{}, false // the file is gone
		}
		return cached{listing: listing{Name: name, State: why}}, isNamed(name)
	}
	s.mu.Lock()
	seen := s.cache[name]
	s.mu.Unlock()
	if seen != nil && os.SameFile(seen.info, info) && seen.info.Size() == info.Size() && seen.info.ModTime().Equal(info.ModTime()) {
		return seen.now(), true
	}
	if !isNamed(name) && !s.hasMagic(name) {
		return cached{}, false
	}
	run, err := s.read(ctx, name, result.Read)
	if ctx.Err() != nil {
		return cached{}, false
	}
	k = cached{info, newListing(name, info, run, err)}
	s.mu.Lock()
	s.cache[name] = &k
	s.mu.Unlock()
	return k.now(), true
}

// now returns the cached listing with Growing at the current time.
func (k *cached) now() cached {
	n := *k
	n.Growing = n.Growing && time.Since(n.info.ModTime()) < stillGrowing
	return n
}

// isNamed reports whether a file has the extension of results.
func isNamed(name string) bool { return strings.EqualFold(filepath.Ext(name), ext) }

// hasMagic reports whether a file begins as results do.
func (s *store) hasMagic(name string) bool {
	f, err := s.open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	text := make([]byte, len(magic))
	n, _ := io.ReadFull(f, text)
	return bytes.Equal(text[:n], []byte(magic))
}

func newListing(name string, info fs.FileInfo, run result.Run, err error) listing {
	e := listing{Name: name, When: info.ModTime()}
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

// machineText names the measured machine and file system.
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

// reason returns in words why a file can't be shown.
func reason(err error) string {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "may not be read"
	}
	return cli.PlainText(cli.Cause(err))
}

// errNotFile is the error for a pipe, a device or a directory.
var errNotFile = errors.New("is not a regular file")

// open opens a regular file in the directory, and nothing else: a pipe would wait, and a device may
// act.
func (s *store) open(name string) (*os.File, error) {
	if name == "" || name != filepath.Base(name) || !filepath.IsLocal(name) || !utf8.ValidString(name) {
		return nil, fs.ErrNotExist
	}
	if info, err := s.root.Stat(name); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, errNotFile
	}
	// The name may be a pipe's by now.
	f, err := s.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNotFile
	}
	if err == nil && info.Size() > mostResults {
		err = fmt.Errorf("is larger than %s; use holdfast report for it", cli.BytesText(mostResults))
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
