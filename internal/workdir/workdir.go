// Package workdir holds the directories that a program makes next to other users' directories. The
// program removes them, or a later program does after a kill.
//
// A user who may write to a directory may rename the names in it, and put a link in place of one,
// at any moment. So nothing here uses a path. A [Dir] and its parent are held open, and only this
// user may write to the Dir. Its name may be taken by others later; the Dir stays the same
// directory.
//
// Start with [Make] and [Open].
package workdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A Dir is an open directory of this user, to which no other user may write. It is for one
// goroutine, except Path and Name.
type Dir struct {
	parent, name string
	in, root     *os.Root // its parent, and itself
	file         *os.File // itself, for locks
	is           fs.FileInfo
	path         string
}

// A ForeignError reports a directory that has another owner, or to which others may write.
type ForeignError struct{ Dir string }

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%q is not this user's alone", e.Dir)
}

// errExchanged reports that a name leads to another directory than before.
var errExchanged = errors.New("it was exchanged for another")

// Make makes a new directory in parent. On a file system without owners, such as vfat
// and some shares, it does not check the owner.
func Make(parent, name string) (*Dir, error) {
	in, err := os.OpenRoot(parent)
	if err != nil {
		return nil, err
	}
	if err := in.Mkdir(name, 0o700); err != nil {
		return nil, errors.Join(Named(err, filepath.Join(parent, name)), in.Close())
	}
	d, err := open(in, parent, name)
	if err != nil {
		_ = in.Remove(name) // as in Remove
		return nil, errors.Join(err, in.Close())
	}
	if !isOwn(d.is) && !d.ownsNothing() {
		return nil, errors.Join(&ForeignError{d.Name()}, d.Close())
	}
	return d, nil
}

// Open opens an existing directory in parent. Its error is fs.ErrNotExist if there is none, and a
// [*ForeignError] if others own it or may write to it. A link to a directory is an error too.
func Open(parent, name string) (*Dir, error) {
	in, err := os.OpenRoot(parent)
	if err != nil {
		return nil, Named(err, filepath.Join(parent, name))
	}
	d, err := open(in, parent, name)
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	if !isOwn(d.is) {
		return nil, errors.Join(&ForeignError{d.Name()}, d.Close())
	}
	return d, nil
}

func open(in *os.Root, parent, name string) (*Dir, error) {
	d := &Dir{parent: parent, name: name, in: in}
	info, err := in.Lstat(name)
	if err != nil {
		return nil, Named(err, d.Name())
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is no directory", d.Name())
	}
	if d.root, err = in.OpenRoot(name); err != nil {
		return nil, Named(err, d.Name())
	}
	if d.file, err = d.root.Open("."); err != nil {
		return nil, errors.Join(err, d.root.Close())
	}
	d.is, err = d.file.Stat()
	if err == nil && !os.SameFile(d.is, info) {
		err = fmt.Errorf("%s: %w", d.Name(), errExchanged)
	}
	if err != nil {
		return nil, errors.Join(err, d.file.Close(), d.root.Close())
	}
	d.path = safePath(d.file, d.Name(), d.parent)
	return d, nil
}

// Named replaces the path in an error of an [os.Root] by the path that the user knows. A Root knows
// a file only by its name in the Root.
func Named(err error, path string) error {
	if is := (*fs.PathError)(nil); errors.As(err, &is) {
		return &fs.PathError{Op: strings.TrimSuffix(is.Op, "at"), Path: path, Err: is.Err}
	}
	return err
}

// At holds a directory of any owner open. It returns a path that leads to this directory until
// release: all files made by that path are in one place. The path is dir itself, unless this is
// root and another user may rename a part of it.
func At(dir string) (path string, release func() error, err error) {
	in, err := os.OpenRoot(dir)
	if err != nil {
		return "", nil, err
	}
	file, err := in.Open(".")
	if err := errors.Join(err, in.Close()); err != nil {
		return "", nil, err
	}
	return safePath(file, dir, dir), file.Close, nil
}

// ownsNothing reports whether a new file in the directory has another owner than this user too.
func (d *Dir) ownsNothing() bool {
	const name = "owner"
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false
	}
	info, err := f.Stat()
	return errors.Join(err, f.Close(), d.root.Remove(name)) == nil && !isOwn(info)
}

// Name is its path when it was opened, for messages. Others may have put something else there
// since.
func (d *Dir) Name() string { return filepath.Join(d.parent, d.name) }

// Path is a path that leads to it while it is open. It is Name, unless this is root and another
// user may rename a part of it. Then it leads through /proc and the open directory, also in child
// processes.
func (d *Dir) Path() string { return d.path }

// IsHeld reports whether Path ends with Close.
func (d *Dir) IsHeld() bool { return d.path != d.Name() }

// Root returns its contents, and File itself, for locks. Close closes both.
func (d *Dir) Root() *os.Root { return d.root }
func (d *Dir) File() *os.File { return d.file }

// Entries lists its entries.
func (d *Dir) Entries() ([]fs.DirEntry, error) { return fs.ReadDir(d.root.FS(), ".") }

// Still returns an error unless its name still leads to it.
func (d *Dir) Still() error {
	now, err := d.in.Lstat(d.name)
	if err == nil && !os.SameFile(now, d.is) {
		err = fmt.Errorf("%s: %w", d.Name(), errExchanged)
	}
	return err
}

// Remove removes the directory, which must be empty; Close must still be called. It leaves a file
// that others have put under its name. If that happens at this very moment, it may remove a file or
// an empty directory there, which that user may remove too.
func (d *Dir) Remove() error {
	if err := d.Still(); err != nil {
		return err
	}
	return d.in.Remove(d.name)
}

// Empty removes all its contents, and follows no link.
func (d *Dir) Empty() error {
	entries, err := d.Entries()
	for _, e := range entries {
		removeErr := RemoveAll(d.root, e.Name())
		if path := (*fs.PathError)(nil); errors.As(removeErr, &path) {
			removeErr = Named(removeErr, filepath.Join(d.Name(), path.Path))
		}
		err = errors.Join(err, removeErr)
	}
	return err
}

// RemoveAll removes a name in root with all below it. It removes a link and follows none, and its errors
// name the path from root. Note: os.Root has the like since Go 1.25.
func RemoveAll(root *os.Root, name string) error {
	failed := root.Remove(name)
	if failed == nil || errors.Is(failed, fs.ErrNotExist) {
		return nil
	}
	if info, err := root.Lstat(name); err != nil || !info.IsDir() {
		return failed
	}
	dir, err := root.OpenRoot(name)
	if err != nil {
		return err
	}
	defer dir.Close()
	entries, err := fs.ReadDir(dir.FS(), ".")
	for _, e := range entries {
		below := RemoveAll(dir, e.Name())
		if path := (*fs.PathError)(nil); errors.As(below, &path) {
			below = &fs.PathError{Op: path.Op, Path: filepath.Join(name, path.Path), Err: path.Err}
		}
		err = errors.Join(err, below)
	}
	if err == nil {
		err = root.Remove(name)
	}
	return err
}

// Again opens a directory again that was closed so that its file system could be mounted again. Its
// Path must have been its Name.
func (d *Dir) Again() (*Dir, error) {
	in, err := os.OpenRoot(d.parent)
	if err != nil {
		return nil, err
	}
	again, err := open(in, d.parent, d.name)
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	return again, nil
}

// Close releases its lock and ends its Path.
func (d *Dir) Close() error {
	return errors.Join(d.file.Close(), d.root.Close(), d.in.Close())
}
