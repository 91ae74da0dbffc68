package filecopy

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/internal/permission"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// openSource opens the source, and refuses one that is not a regular file.
func (j *copyJob) openSource() error {
	if err := j.stopped(); err != nil {
		return err
	}
	err := j.openNow()
	if errors.Is(err, syscall.EAGAIN) && j.isRegular() {
		if err = j.openLeased(); err != nil && j.ctx.Err() != nil {
			return j.stopped()
		}
	}
	if err != nil {
		// Sockets and some devices can't be opened: the error names the source's kind.
		if j.from.dir == sys.AtCwd && errors.Is(err, syscall.ENXIO) {
			if is, err := j.disk.StatPath(j.from.name); err == nil && is.Mode&vfs.KindMask != vfs.KindRegular {
				return j.refuseSource(is)
			}
		}
		return j.failed("open", -1, err)
	}
	if j.was, err = j.stat(j.in); err != nil {
		err = j.failed("stat", -1, err)
	} else {
		err = j.refuseSource(j.was.Stat)
	}
	if err != nil {
		j.disk.Close(j.in) // it was only read
		return err
	}
	if !j.batch && j.o.Progress != nil {
		j.copier.moved = j.progressOf(j.from.path, j.was.Size)
	}
	return nil
}

// progressOf returns a function that reports the progress of one file to Progress.
func (c *copier) progressOf(source string, size int64) func(n int64) {
	began := time.Now()
	var last time.Time
	var done int64
	return func(n int64) {
		done += n
		now := time.Now()
		if now.Sub(last) < progressEvery {
			return
		}
		last = now
		c.o.Progress(Progress{FilesTotal: 1, Bytes: done, BytesTotal: max(size, done), Listed: true, Elapsed: now.Sub(began), Source: source})
	}
}

func (j *copyJob) openNow() error {
	return sys.Uninterrupted(func() (err error) {
		j.in, err = j.disk.OpenSource(j.from.dir, j.from.name)
		return err
	})
}

// isRegular reports whether the source's name belongs to a regular file.
func (j *copyJob) isRegular() bool {
	var is sys.Stat
	err := sys.Uninterrupted(func() (err error) {
		if j.from.dir == sys.AtCwd {
			is, err = j.disk.StatPath(j.from.name)
		} else {
			is, err = j.disk.Stat(j.from.dir, j.from.name)
		}
		return err
	})
	return err == nil && is.Mode&vfs.KindMask == vfs.KindRegular
}

// longestLease is longer than a program may keep a lease on a file after another program opens the
// file: 45 s, unless fs.lease-break-time differs (proc_sys_fs(5)).
const longestLease = time.Minute

// openLeased opens a file on which another program has a lease. The first open has asked for the
// lease, and openLeased tries again until it is released or broken. An open(2) that waits could not
// be ended with ctx.
func (j *copyJob) openLeased() error {
	end := time.NewTimer(longestLease)
	defer end.Stop()
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		next := time.NewTimer(pause)
		select {
		case <-j.ctx.Done():
			next.Stop()
			return syscall.EAGAIN
		case <-end.C:
			next.Stop()
			return fmt.Errorf("another program keeps a lease on the file: %w", syscall.EAGAIN)
		case <-next.C:
		}
		if err := j.openNow(); !errors.Is(err, syscall.EAGAIN) {
			return err
		}
	}
}

const kindDir = 0o040000

func kindNames() map[uint32]string {
	return map[uint32]string{
		0o010000: "a named pipe", 0o020000: "a character device", 0o060000: "a block device", 0o140000: "a socket",
		vfs.KindLink: "a symbolic link", kindDir: "a directory",
	}
}

func (j *copyJob) refuseSource(is sys.Stat) error {
	switch kind := is.Mode & vfs.KindMask; kind {
	case vfs.KindRegular:
		return nil
	case kindDir:
		return j.refused("%s is a directory; copy it with filecopy.All", j.from.path)
	default:
		return j.refused("%s is %s, which has no bytes of its own; copy regular files", j.from.path, kindNames()[kind])
	}
}

// openDestination creates the file to be written: under a temporary name if a file exists or the
// options ask for one, else under its own.
func (j *copyJob) openDestination() error {
	// With an access control list, the source's group permission bits are the list's mask.
	if !j.o.Archive && j.was.Mode&0o077 != 0 {
		var err error
		j.list, err = j.attribute(j.in, permission.AccessList)
		if err := j.noList(err); err != nil {
			return err
		}
	}
	j.made = madeCopy{dir: j.to.dir, name: j.to.name, given: j.to.given}
	if !j.o.Atomic && !j.resumes() {
		err := j.createNew()
		if err == nil || !errors.Is(err, fs.ErrExist) {
			return j.opened(err)
		}
	}
	if err := j.lookUp(); err != nil {
		return err
	}
	switch {
	case j.resumes():
		return j.openPartial()
	case j.made.replaces || j.o.Atomic:
		return j.openTemporary()
	}
	return j.opened(j.create(j.made.name)) // the target of a symbolic link does not exist
}

// create makes a new file. With Archive or Resume only the caller may read it until it has its
// owner and is complete. Otherwise it has no permission that the finished copy lacks.
func (j *copyJob) create(name sys.Name) error {
	perm := uint32(permission.Private)
	if !j.o.Archive && !j.resumes() {
		perm = j.permFor(nil)
	}
	return sys.Uninterrupted(func() (err error) {
		j.out, err = j.disk.OpenFile(j.made.dir, name, copyFlags, perm)
		return err
	})
}

// createNew makes the file under its own name.
func (j *copyJob) createNew() error {
	if j.made.given == nil { // without a closure, which would be allocated
		return j.create(j.made.name)
	}
	return j.give(j.made.given, j.made.dir, j.made.name, func() error { return j.create(j.made.name) })
}

func (j *copyJob) opened(err error) error {
	if err != nil {
		return j.failed(string(givenBy("create", err)), -1, err)
	}
	return nil
}

// lookAtCopy reads the attributes of the file in writing.
func (j *copyJob) lookAtCopy() (err error) {
	if j.has, err = j.stat(j.out); err != nil {
		return j.failed("stat", -1, err)
	}
	j.looked = true
	return nil
}

// lookUp reads the attributes of the destination, with its access control list, and follows a
// symbolic link.
func (j *copyJob) lookUp() error {
	old, err := j.statAs(j.made.name)
	if err == nil && old.Mode&vfs.KindMask == vfs.KindLink {
		if j.batch {
			j.made.replaces = true
			return nil
		}
		target, failed := j.disk.Resolve(j.to.path)
		if failed == nil {
			j.made.name, failed = sys.NewName(target)
		}
		if failed != nil {
			return j.failed("resolve", -1, failed)
		}
		j.made.dir, j.made.elsewhere = sys.AtCwd, true
		old, err = j.statAs(j.made.name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return j.failed("stat", -1, err)
	}
	j.made.replaces, j.old = true, old
	switch kind := old.Mode & vfs.KindMask; {
	case old.Inode != 0 && old.Inode == j.was.Inode && old.Device == j.was.Device:
		return j.refused("%s and %s are the same file; name another destination", j.from.path, j.to.path)
	case kind == kindDir:
		return j.refused("%s is a directory; name a file in it, such as %s", j.to.path, filepath.Join(j.to.path, filepath.Base(j.from.path)))
	case kind != vfs.KindRegular:
		return j.refused("%s is %s; name a regular file or a new name", j.to.path, kindNames()[kind])
	}
	if j.o.Archive || old.Mode&0o077 == 0 {
		return nil
	}
	err = sys.Uninterrupted(func() (err error) {
		j.oldList, err = j.attributes.AttributeIn(j.made.dir, j.made.name, permission.AccessList)
		return err
	})
	return j.noList(err)
}

// statAs returns the attributes of a name in the destination's directory.
func (j *copyJob) statAs(name sys.Name) (is sys.Stat, err error) {
	err = sys.Uninterrupted(func() (err error) {
		is, err = j.disk.Stat(j.made.dir, name)
		return err
	})
	return is, err
}

// beside returns a name in the directory of another.
func beside(name, base sys.Name) sys.Name {
	dir, _ := filepath.Split(name.String())
	return sys.Name(dir) + base
}
