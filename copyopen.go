package holdfast

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// openSource opens the source and looks what it is.
func (j *copyJob) openSource() error {
	if err := j.stopped(); err != nil {
		return err
	}
	err := j.openNow()
	if errors.Is(err, syscall.EWOULDBLOCK) && j.isRegular() {
		if err = j.openLeased(); err != nil && j.ctx.Err() != nil {
			return j.stopped()
		}
	}
	if err != nil {
		return j.notOpened(err)
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

func (j *copyJob) openNow() error {
	return uninterrupted(func() (err error) {
		j.in, err = j.disk.OpenSource(j.from.folder, j.from.name)
		return err
	})
}

// isRegular reports whether the source's name is that of a regular file.
func (j *copyJob) isRegular() bool {
	var is sys.Stat
	err := uninterrupted(func() (err error) {
		if j.from.folder == sys.AtCwd {
			is, err = j.disk.StatPath(j.from.name)
		} else {
			is, err = j.disk.Stat(j.from.folder, j.from.name)
		}
		return err
	})
	return err == nil && is.Mode&kindMask == kindRegular
}

// longestLease is more than who has a lease on a file may keep it when somebody else
// opens the file: 45 s, unless fs.lease-break-time says otherwise (proc_sys_fs(5)).
const longestLease = time.Minute

// openLeased opens a file that another program has a lease on, which the first try has
// asked for: it tries again until the lease is given back or taken. An open(2) that
// waits could not be ended with ctx.
func (j *copyJob) openLeased() error {
	end := time.NewTimer(longestLease)
	defer end.Stop()
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		next := time.NewTimer(pause)
		select {
		case <-j.ctx.Done():
			next.Stop()
			return syscall.EWOULDBLOCK
		case <-end.C:
			next.Stop()
			return fmt.Errorf("another program keeps a lease on the file: %w", syscall.EWOULDBLOCK)
		case <-next.C:
		}
		if err := j.openNow(); !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
	}
}

// notOpened says why the source can't be opened: sockets never can be, and some devices.
func (j *copyJob) notOpened(err error) error {
	if j.from.folder == sys.AtCwd && errors.Is(err, syscall.ENXIO) {
		if is, err := j.disk.StatPath(j.from.name); err == nil && is.Mode&kindMask != kindRegular {
			return j.refuseSource(is)
		}
	}
	return j.failed("open", -1, err)
}

const kindFolder = 0o040000

var kindNames = map[uint32]string{
	0o010000: "a named pipe", 0o020000: "a character device", 0o060000: "a block device", 0o140000: "a socket",
	kindLink: "a symbolic link", kindFolder: "a folder",
}

func (j *copyJob) refuseSource(is sys.Stat) error {
	switch kind := is.Mode & kindMask; kind {
	case kindRegular:
		return nil
	case kindFolder:
		return j.refused("%s is a folder; copy it with CopyAll", j.from.path)
	default:
		return j.refused("%s is %s, which has no bytes of its own; copy regular files", j.from.path, kindNames[kind])
	}
}

// openDestination makes the file to be written: under its own name, or a temporary one
// where there is a file already or the options ask for it.
func (j *copyJob) openDestination() error {
	j.made = madeCopy{folder: j.to.folder, name: j.to.name}
	if !j.o.Atomic && !j.resumes() {
		err := j.create(j.made.name)
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
	return j.opened(j.create(j.made.name)) // what a symbolic link leads to is not there
}

// create makes a file that only we have. With Archive and Resume nobody else may read it
// before it has its owner and is whole.
func (j *copyJob) create(name sys.Name) error {
	perm := j.was.Mode & 0o777
	if j.o.Archive || j.resumes() {
		perm = 0o600
	}
	return uninterrupted(func() (err error) {
		j.out, err = j.disk.OpenFile(j.made.folder, name, copyFlags, perm)
		return err
	})
}

func (j *copyJob) opened(err error) error {
	if err != nil {
		return j.failed("create", -1, err)
	}
	return nil
}

// lookAtCopy looks what the file is like that was opened.
func (j *copyJob) lookAtCopy() (err error) {
	if j.has, err = j.stat(j.out); err != nil {
		return j.failed("stat", -1, err)
	}
	j.looked = true
	return nil
}

// lookUp looks what is at the destination, and follows a symbolic link.
func (j *copyJob) lookUp() error {
	old, err := j.statAs(j.made.name)
	if err == nil && old.Mode&kindMask == kindLink {
		if j.batch {
			j.made.replaces = true
			return nil
		}
		if err := j.follow(); err != nil {
			return err
		}
		old, err = j.statAs(j.made.name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return j.failed("stat", -1, err)
	}
	j.made.replaces = true
	switch kind := old.Mode & kindMask; {
	case old.Inode != 0 && old.Inode == j.was.Inode && old.Device == j.was.Device:
		return j.refused("%s and %s are the same file; name another destination", j.from.path, j.to.path)
	case kind == kindFolder:
		return j.refused("%s is a folder; name a file in it, such as %s", j.to.path, filepath.Join(j.to.path, filepath.Base(j.from.path)))
	case kind != kindRegular:
		return j.refused("%s is %s; name a regular file or a new name", j.to.path, kindNames[kind])
	}
	return nil
}

// statAs says what a name in the destination's folder is.
func (j *copyJob) statAs(name sys.Name) (is sys.Stat, err error) {
	err = uninterrupted(func() (err error) {
		is, err = j.disk.Stat(j.made.folder, name)
		return err
	})
	return is, err
}

// follow goes to where the destination's symbolic links lead.
func (j *copyJob) follow() error {
	target, err := j.disk.Resolve(j.to.path)
	if err == nil {
		j.made.name, err = sys.NewName(target)
	}
	if err != nil {
		return j.failed("resolve", -1, err)
	}
	j.made.folder, j.made.elsewhere = sys.AtCwd, true
	return nil
}

// beside returns a name in the folder of another.
func beside(name, base sys.Name) sys.Name {
	folder, _ := filepath.Split(name.String())
	return sys.Name(folder) + base
}

// openTemporary makes a file under a name that no other has, if it can under one that is
// known again.
func (j *copyJob) openTemporary() (err error) {
	if ok, err := j.openMarked(); ok {
		return err
	}
	for range 100 {
		j.made.temporary = beside(j.made.name, temporaryName())
		if err = j.create(j.made.temporary); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return j.opened(err)
}

// roomFor refuses what does not fit on the disk, if it is large. It goes by statfs alone:
// a file system that compresses may have had room for it. Holes don't count.
func (j *copyJob) roomFor(bytes int64) error {
	if bytes < worthLooking {
		return nil
	}
	free, err := j.disk.Free(j.out)
	if err != nil || bytes <= free {
		return nil // the system knows best
	}
	asked, left := tooLarge(bytes, free)
	return j.failed("allocate", -1, fmt.Errorf("%w: it takes %s and %s are free; make room, or name another destination", errNoRoom, asked, left))
}

// worthLooking is from what size on it is asked first whether there is room.
const worthLooking = 1 << 20
