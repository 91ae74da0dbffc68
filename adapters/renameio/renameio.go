// Package renameio has the API of github.com/google/renameio/v2 over package files: a program changes
// one import, and a file that it replaces is durable with its name. Renameio syncs the bytes alone, so
// a power cut may bring the old file back after it has said that the new one is there.
//
// It differs from renameio in three points: temporary files lie beside their destination unless the
// program names another directory, so TempDir returns its argument; a rename from another directory
// makes both directories durable; it works on Windows too. SymlinkRoot, and off Linux
// WithRoot, take Go 1.25.
package renameio

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
)

// An Option is an option of [NewPendingFile] and [WriteFile].
type Option interface{ apply(*config) }

type config struct {
	dir      string       // of the temporary file
	perm     fs.FileMode  // of a new file, before umask
	exact    *fs.FileMode // past umask; nil: none
	noUmask  bool
	existing bool
	onClose  bool
	root     *os.Root // nil: none
}

type option func(*config)

func (o option) apply(c *config) { o(c) }

// WithTempDir has the temporary file in dir, which must be of the destination's file system.
func WithTempDir(dir string) Option { return option(func(c *config) { c.dir = dir }) }

// WithPermissions gives the file perm, less the bits of umask. Without it that is 0600.
func WithPermissions(perm os.FileMode) Option {
	return option(func(c *config) { c.perm = perm.Perm() })
}

// IgnoreUmask has the file get all bits of WithPermissions.
func IgnoreUmask() Option { return option(func(c *config) { c.noUmask = true }) }

// WithStaticPermissions gives the file exactly perm.
func WithStaticPermissions(perm os.FileMode) Option {
	perm = perm.Perm()
	return option(func(c *config) { c.exact = &perm })
}

// WithExistingPermissions gives the file the permissions of the regular file that it replaces, if there
// is one.
func WithExistingPermissions() Option { return option(func(c *config) { c.existing = true }) }

// WithReplaceOnClose has Close do what CloseAtomicallyReplace does.
func WithReplaceOnClose() Option { return option(func(c *config) { c.onClose = true }) }

// WithRoot has the path, and the temporary file beside it, in a directory out of which no symbolic link
// leads. WithTempDir does not count then. The root must stay open until the file has replaced another or
// was cleaned up.
func WithRoot(root *os.Root) Option { return option(func(c *config) { c.root = root }) }

// A PendingFile is a temporary file that is to replace another. Its methods are for one goroutine at
// a time.
type PendingFile struct {
	*os.File

	path    string
	name    string // its own, below root if that is not nil
	root    *os.Root
	onClose bool
	closed  bool
	done    bool // it has replaced the file, or was removed
}

// TempFile returns a file that is to replace the one at path, or to be made there, with permissions
// 0600. The temporary file is in dir, or beside path if dir is "".
func TempFile(dir, path string) (*PendingFile, error) {
	return NewPendingFile(path, WithTempDir(dir), WithStaticPermissions(0o600))
}

// NewPendingFile returns a file that is to replace the one at path, or to be made there, with
// permissions 0600 before umask unless an option says otherwise. A symbolic link at path is replaced
// itself.
func NewPendingFile(path string, options ...Option) (*PendingFile, error) {
	c := config{perm: 0o600}
	for _, o := range options {
		o.apply(&c)
	}
	if c.noUmask && c.exact == nil {
		c.exact = &c.perm
	}
	dir, lstat, open := cmp.Or(c.dir, filepath.Dir(path)), os.Lstat, os.OpenFile
	if c.root != nil {
		if err := (files.Options{Root: c.root}).Validate(); err != nil {
			return nil, err
		}
		dir, lstat, open = filepath.Dir(path), c.root.Lstat, c.root.OpenFile
	}
	if c.existing {
		switch is, err := lstat(path); {
		case err == nil && is.Mode().IsRegular():
			perm := is.Mode().Perm()
			c.perm, c.exact = perm, &perm
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	var f *os.File
	name, err := temporary(dir, filepath.Base(path), func(name string) (err error) {
		f, err = open(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, c.perm)
		return err
	})
	if err != nil {
		return nil, err
	}
	p := &PendingFile{File: f, path: path, name: name, root: c.root, onClose: c.onClose}
	if c.exact != nil {
		is, err := f.Stat()
		if err == nil && is.Mode().Perm() != *c.exact {
			err = f.Chmod(*c.exact)
		}
		if err != nil {
			return nil, errors.Join(err, p.Cleanup())
		}
	}
	return p, nil
}

// CloseAtomicallyReplace closes the file and has it replace the one at its path, in one step. If it
// returns nil the file is there, whole and durable with its name. After an error Cleanup removes
// what is left.
func (p *PendingFile) CloseAtomicallyReplace() error {
	err := rename(p.root, p.name, p.path, func(b *files.Batch) error {
		if err := b.Add(p.File); err != nil { // its bytes are synced by this descriptor
			return err
		}
		p.closed = true
		return p.File.Close()
	})
	lstat := os.Lstat
	if p.root != nil {
		lstat = p.root.Lstat
	}
	if _, left := lstat(p.name); errors.Is(left, fs.ErrNotExist) {
		p.done = true // also if the sync of its directory has failed
	}
	return err
}

// rename renames a file, below root if that is not nil, once what before gives to the batch is durable, and
// makes its name durable.
func rename(root *os.Root, from, to string, before func(*files.Batch) error) error {
	set, err := files.New(files.Options{Policy: holdfast.Durable(), Root: root})
	if err != nil {
		return err
	}
	defer set.Close() // nothing was appended, so it has no failure to report
	b := set.Begin()
	defer b.Discard()
	if err := before(b); err != nil {
		return err
	}
	if err := b.Rename(from, to); err != nil {
		return err
	}
	_, err = b.Commit(context.Background())
	var failed *files.Error
	if !errors.As(err, &failed) {
		return err
	}
	if number := syscall.Errno(0); failed.Op == "rename" && errors.As(failed.Err, &number) {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: number} // for os.IsPermission and its like
	}
	return failed
}

// Close closes the file, which then awaits Cleanup. With WithReplaceOnClose it is
// CloseAtomicallyReplace.
func (p *PendingFile) Close() error {
	if p.onClose {
		return p.CloseAtomicallyReplace()
	}
	p.closed = true
	return p.File.Close()
}

// Cleanup closes and removes the temporary file. After CloseAtomicallyReplace returned nil it does
// nothing, so it may be deferred.
func (p *PendingFile) Cleanup() error {
	if p.done {
		return nil
	}
	var err error
	if !p.closed {
		p.closed = true
		err = p.File.Close()
	}
	remove := os.Remove
	if p.root != nil {
		remove = p.root.Remove
	}
	if removed := remove(p.name); removed != nil {
		return removed
	}
	p.done = true
	return err
}

// WriteFile is os.WriteFile in one step: the file at filename is the old one, or the new one whole and
// durable with its name. A regular file keeps its permissions.
func WriteFile(filename string, data []byte, perm os.FileMode, options ...Option) error {
	p, err := NewPendingFile(filename, append([]Option{WithPermissions(perm), WithExistingPermissions()}, options...)...)
	if err != nil {
		return err
	}
	defer p.Cleanup() // its error is less than the one that is returned
	if _, err := p.Write(data); err != nil {
		return err
	}
	return p.CloseAtomicallyReplace()
}

// TempDir returns a directory for the temporary files of files in dest: dest itself.
func TempDir(dest string) string { return dest }

// Symlink is os.Symlink, and replaces a symbolic link, or a file, that has the name. It is durable.
func Symlink(oldname, newname string) error {
	return symlink(nil, oldname, newname, os.Symlink, os.Remove)
}

func symlink(root *os.Root, oldname, newname string, link func(oldname, newname string) error, remove func(name string) error) error {
	name, err := temporary(filepath.Dir(newname), filepath.Base(newname), func(name string) error { return link(oldname, name) })
	if err != nil {
		return err
	}
	err = rename(root, name, newname, func(*files.Batch) error { return nil })
	if err != nil {
		_ = remove(name) // if it is there; the first failure is the one to report
	}
	return err
}

// temporary makes a file under a name that no other has.
func temporary(dir, base string, make func(name string) error) (name string, err error) {
	for range 10000 {
		name = filepath.Join(dir, "."+base+strconv.FormatUint(rand.Uint64(), 10))
		if err = make(name); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return name, err
}
