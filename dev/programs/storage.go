package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/storage"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
)

// A Storage is go-git's of a repository's directory, by go-git's public interfaces alone. A reference
// leads to durable objects: a barrier stands before each. Objects take their names there, and their
// readers find them before.
type Storage struct {
	*filesystem.Storage
	objects *objectFiles
	set     *files.Set
	refs    sync.Mutex // one reference changes at a time
}

// NewStorage returns the storage of a .git directory. Close must be called.
func NewStorage(dir string) (*Storage, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	set, err := files.New(files.Options{Policy: holdfast.Durable(), MkdirAll: true})
	if err != nil {
		return nil, err
	}
	objects := &objectFiles{Filesystem: osfs.New(dir), dir: dir, set: set, batch: set.Begin(), named: map[string]string{}}
	s := &Storage{filesystem.NewStorage(objects, cache.NewObjectLRUDefault()), objects, set, sync.Mutex{}}
	return s, nil
}

// Close makes durable what has no reference yet.
func (s *Storage) Close() error { return errors.Join(s.barrier(), s.set.Close()) }

// barrier makes durable all objects that were stored before.
func (s *Storage) barrier() error {
	b, named := s.objects.next(s.set.Begin())
	_, err := b.Commit(context.Background())
	s.objects.forget(named)
	return err
}

// SetReference is go-git's, and durable.
func (s *Storage) SetReference(ref *plumbing.Reference) error {
	return s.CheckAndSetReference(ref, nil)
}

// CheckAndSetReference is go-git's, and durable.
func (s *Storage) CheckAndSetReference(ref, old *plumbing.Reference) error {
	s.refs.Lock()
	defer s.refs.Unlock()
	if old != nil {
		switch is, err := s.Reference(old.Name()); {
		case errors.Is(err, plumbing.ErrReferenceNotFound):
		case err != nil:
			return err
		case is.Hash() != old.Hash():
			return storage.ErrReferenceHasChanged
		}
	}
	if err := s.barrier(); err != nil {
		return err
	}
	text := ref.Strings()
	return s.replace(filepath.FromSlash(string(ref.Name())), []byte(text[1]+"\n"))
}

// SetIndex is go-git's. A crash leaves the index before or the new one, where go-git's may leave none.
func (s *Storage) SetIndex(i *index.Index) error {
	var text bytes.Buffer
	if err := index.NewEncoder(&text).Encode(i); err != nil {
		return err
	}
	return s.replace("index", text.Bytes())
}

func (s *Storage) replace(name string, data []byte) error {
	_, err := s.set.WriteFile(context.Background(), filepath.Join(s.objects.dir, name), data, files.Replace)
	return err
}

// objectFiles are the files of a .git directory. A temporary one belongs to a batch when it is closed,
// and takes the name that it is given later at the batch's barrier.
type objectFiles struct {
	billy.Filesystem
	dir  string
	set  *files.Set
	made atomic.Int64 // temporary files

	mu    sync.Mutex
	batch *files.Batch
	named map[string]string // the temporary name of each file that awaits its own
}

// next begins another batch. It returns the one before, and the files that it names.
func (o *objectFiles) next(b *files.Batch) (before *files.Batch, named map[string]string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before, o.batch = o.batch, b
	return before, maps.Clone(o.named)
}

// forget is called when files have their names.
func (o *objectFiles) forget(named map[string]string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.named, func(name, temporary string) bool { return named[name] == temporary })
}

func (o *objectFiles) path(name string) string { return filepath.Join(o.dir, name) }

// A temporaryFile is one that go-git writes before it names it.
type temporaryFile struct {
	*os.File
	of   *objectFiles
	name string
}

func (f *temporaryFile) Name() string  { return f.name }
func (f *temporaryFile) Lock() error   { return nil } // nobody else knows it
func (f *temporaryFile) Unlock() error { return nil }

// Close has the file synced by the descriptor that wrote it.
func (f *temporaryFile) Close() error {
	f.of.mu.Lock()
	err := f.of.batch.Add(f.File)
	f.of.mu.Unlock()
	return errors.Join(err, f.File.Close())
}

// TempFile is billy's. An object is read only from the first on.
func (o *objectFiles) TempFile(dir, prefix string) (billy.File, error) {
	for {
		name := o.Join(dir, fmt.Sprintf("%s%d_%d", prefix, os.Getpid(), o.made.Add(1)))
		f, err := os.OpenFile(o.path(name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o444)
		if errors.Is(err, fs.ErrNotExist) {
			if err = o.MkdirAll(dir, 0o777); err == nil {
				continue
			}
		}
		if !errors.Is(err, fs.ErrExist) {
			return &temporaryFile{f, o, name}, err
		}
	}
}

// Rename gives a file its name at the next barrier.
func (o *objectFiles) Rename(from, to string) error {
	if err := o.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.batch.Rename(o.path(from), o.path(to)); err != nil {
		return err
	}
	o.named[filepath.Clean(to)] = from
	return nil
}

// MkdirAll is billy's. The names are durable at the next barrier.
func (o *objectFiles) MkdirAll(dir string, perm os.FileMode) error {
	if _, err := os.Stat(o.path(dir)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := o.MkdirAll(filepath.Dir(filepath.Clean(dir)), perm); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.batch.Mkdir(o.path(dir), perm); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// A wholeFile is written anew: the configuration.
type wholeFile struct {
	*files.Pending
	name string
}

func (f wholeFile) Name() string                      { return f.name }
func (f wholeFile) Lock() error                       { return nil } // nobody else knows it
func (f wholeFile) Unlock() error                     { return nil }
func (f wholeFile) Read([]byte) (int, error)          { return 0, billy.ErrNotSupported }
func (f wholeFile) ReadAt([]byte, int64) (int, error) { return 0, billy.ErrNotSupported }
func (f wholeFile) Close() error                      { return f.Commit(context.Background()) }

// Create makes a file that is durable when it is closed.
func (o *objectFiles) Create(name string) (billy.File, error) {
	p, err := o.set.Pending(o.path(name))
	if err != nil {
		return nil, err
	}
	return wholeFile{p, name}, nil
}

// as calls do with a name, or with the temporary one of a file that awaits it.
func (o *objectFiles) as(name string, do func(name string) error) error {
	err := do(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	o.mu.Lock()
	temporary, waits := o.named[filepath.Clean(name)]
	o.mu.Unlock()
	if !waits {
		return do(name) // it may have taken it just now
	}
	if err = do(temporary); errors.Is(err, fs.ErrNotExist) {
		err = do(name)
	}
	return err
}

func (o *objectFiles) Open(name string) (f billy.File, err error) {
	err = o.as(name, func(name string) error { f, err = o.Filesystem.Open(name); return err })
	return f, err
}

func (o *objectFiles) Stat(name string) (info os.FileInfo, err error) {
	err = o.as(name, func(name string) error { info, err = o.Filesystem.Stat(name); return err })
	return info, err
}

func (o *objectFiles) Lstat(name string) (info os.FileInfo, err error) {
	err = o.as(name, func(name string) error { info, err = o.Filesystem.Lstat(name); return err })
	return info, err
}
