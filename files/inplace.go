package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"syscall"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// writeInPlace writes the file under its own name.
func (s *fileWriter) writeInPlace() {
	s.files.handles.Reserve()
	defer s.files.handles.Release()
	perm := unixPerm(s.files.options.Perm)
	fd, err := -1, error(fs.ErrExist)
	if s.mode == Create || s.mode == Truncate && !s.old {
		if fd, err = s.openFresh(perm); err == nil {
			s.writeFresh(fd)
			return
		}
	}
	base, followed := s.name.base, false
	for s.mode != Create && errors.Is(err, fs.ErrExist) {
		undone := s.files.undone.Load()
		fd, err = s.open(base, openFlags, perm)
		switch {
		case err == nil && s.writeExisting(fd, undone):
			return
		case err == nil:
			err = fs.ErrExist
		case errors.Is(err, syscall.ELOOP) && !followed:
			followed = true
			if op, err := s.follow(&base); err != nil {
				s.refuse(op, err)
				return
			}
			err = fs.ErrExist
		}
	}
	if errors.Is(err, syscall.ENXIO) { // a pipe without a reader, or a device that does not exist
		err = fmt.Errorf("%w (%w)", errNotRegular, err)
	}
	s.refuse(retry.OpOpen, err)
}

// openFresh makes a file that is not there, and then is counted in files.fresh. Such a file
// is empty, regular and has one name, and need not be looked at. That saves more than
// the call: Linux gives a file that was looked at a time of its own at the next write.
func (s *fileWriter) openFresh(perm uint32) (fd int, err error) {
	for {
		s.fresh = s.files.fresh.enter()
		fd, err = s.files.disk.OpenFile(s.dir.Fd, s.name.base, freshFlags, perm)
		if err == nil {
			s.tries.Progress()
			return fd, nil
		}
		s.files.fresh.leave(s.fresh)
		if s.starves(err) || !s.tries.Again(s.ctx, retry.OpOpen, &err) {
			s.tries.Progress()
			return fd, err
		}
	}
}

// writeFresh fills a file that openFresh has made. A call that opens it by another path
// waits until it has left files.fresh. It leaves when one system call has written all, or
// when this call has its place in the file's queue.
func (s *fileWriter) writeFresh(fd int) {
	err := s.writeOnce(fd)
	if err == nil && s.unwritten() == 0 {
		s.files.fresh.leave(s.fresh)
		s.finish(fd)
		return
	}
	is, _ := s.files.disk.StatFD(fd) // if this fails, it fails for other calls too
	s.queueIdent(is)
	s.files.fresh.leave(s.fresh)
	first := s.awaitIdent(is)
	if first == nil && (err == nil || s.tries.Again(s.ctx, retry.OpWrite, &err)) {
		err = s.writeBytes(fd)
	}
	if err == nil {
		err = first
	}
	s.end(fd, is, retry.OpWrite, err, first == nil)
}

// writeExisting fills a file that may have existed before. It returns false if the call
// that made the file has removed it again. undone is Set.undone before the open.
func (s *fileWriter) writeExisting(fd int, undone int64) bool {
	var is sys.Stat
	err := s.files.fresh.await(s.ctx) // until then it may be one that is just being made
	if err == nil {
		is, err = s.look(fd)
	}
	if err != nil {
		// A file with bytes under that name was not made by us.
		if named, e := s.files.disk.Stat(s.dir.Fd, s.name.base); e == nil && refuseKind(named) == nil {
			is = sys.Stat{Size: named.Size}
		}
		s.end(fd, is, retry.OpStat, err, false)
		return true
	}
	if err := refuseKind(is); err != nil {
		s.files.disk.Close(fd) // nothing was written to it
		s.refuse(retry.OpOpen, err)
		return true
	}
	s.old = is.Size > 0
	if s.syncMode == together && is.Device != s.dir.Is.Device { // a file of another device is mounted there
		s.syncMode = file
		s.part.waits.Store(true)
	}
	s.queueIdent(is)
	if err := s.awaitIdent(is); err != nil {
		s.end(fd, is, retry.OpOpen, err, false)
		return true
	}
	if s.files.undone.Load() != undone {
		if now, err := s.look(fd); err == nil && now.Links == 0 {
			s.leaveIdent(is)
			s.files.disk.Close(fd)
			return false
		}
	}
	op, err := retry.OpWrite, s.files.flusher.torn(s.name.path)
	if err == nil {
		op, err = s.fill(fd, is)
	}
	s.end(fd, is, op, err, true)
	return true
}

// end finishes a file that is written, or undoes it after an error, and leaves its queue.
// If first, the caller had the first place.
func (s *fileWriter) end(fd int, is sys.Stat, op retry.Op, err error, first bool) {
	if err == nil {
		s.leaveIdent(is)
		s.finish(fd)
		return
	}
	s.undo(fd, is, op, err, first)
	s.leaveIdent(is)
}

// open opens or makes a file of the directory.
func (s *fileWriter) open(name sys.Name, flags int, perm uint32) (fd int, err error) {
	for {
		fd, err = s.files.disk.OpenFile(s.dir.Fd, name, flags, perm)
		if err == nil || s.starves(err) || !s.tries.Again(s.ctx, retry.OpOpen, &err) {
			s.tries.Progress()
			return fd, err
		}
	}
}

func (s *fileWriter) look(fd int) (is sys.Stat, err error) {
	for {
		is, err = s.files.disk.StatFD(fd)
		if err == nil || !s.tries.Again(s.ctx, retry.OpStat, &err) {
			s.tries.Progress()
			return is, err
		}
	}
}

var errNotRegular = errors.New("it is no regular file; write whole files only to regular ones")

func refuseKind(is sys.Stat) error {
	if is.Mode&vfs.KindMask != vfs.KindRegular {
		return errNotRegular
	}
	return nil
}

// queueIdent takes a place in the queue of a file, which all calls that write to it share,
// whatever their path. Where the system reports no inodes there is no queue.
func (s *fileWriter) queueIdent(is sys.Stat) {
	if is.Inode != 0 {
		s.files.turns.Join(keyed.Key{Device: is.Device, Inode: is.Inode}, &s.ident)
	}
}

func (s *fileWriter) awaitIdent(is sys.Stat) error {
	if is.Inode == 0 {
		return nil
	}
	return s.files.turns.Await(s.ctx, &s.ident)
}

func (s *fileWriter) leaveIdent(is sys.Stat) {
	if is.Inode != 0 {
		s.files.turns.Leave(&s.ident)
	}
}

// fill writes the bytes in the file's turn. It returns what failed.
func (s *fileWriter) fill(fd int, is sys.Stat) (op retry.Op, err error) {
	if s.mode == Truncate && is.Size == 0 {
		if is, err = s.look(fd); err != nil { // others may have written to it meanwhile
			return retry.OpStat, err
		}
	}
	if s.mode == Truncate && is.Size > 0 {
		for {
			err = s.files.disk.Truncate(fd, 0)
			if err == nil || !s.tries.Again(s.ctx, retry.OpTruncate, &err) {
				break
			}
		}
		s.tries.Progress()
		if err != nil {
			return retry.OpTruncate, err
		}
		s.result.outcome = holdfast.OutcomePartial
	}
	if s.mode == Append && is.Size > 0 && s.files.options.Policy.Sync.Mode != holdfast.SyncNever {
		vfs.DropRefused(s.files.disk, fd, is.Size-1)
	}
	return retry.OpWrite, s.writeBytes(fd)
}

// unwritten returns how many bytes of the data are not written.
func (s *fileWriter) unwritten() int { return len(s.data) - int(s.result.bytes) }

// writeBytes writes the data, from the byte on where a write before it ended.
func (s *fileWriter) writeBytes(fd int) error {
	for s.unwritten() > 0 {
		if err := s.writeOnce(fd); err != nil && !s.tries.Again(s.ctx, retry.OpWrite, &err) {
			return err
		}
	}
	return nil
}

// writeOnce writes what the system takes of the data in one call.
func (s *fileWriter) writeOnce(fd int) error {
	if s.unwritten() == 0 {
		return nil
	}
	n, err := s.files.disk.Write(fd, s.data[s.result.bytes:])
	if n > 0 {
		s.result.bytes += int64(n)
		s.tries.Progress()
	}
	if n == 0 && err == nil {
		err = io.ErrShortWrite
	}
	return err
}

// removesOpen says that the system can remove an open file.
const removesOpen = runtime.GOOS != "windows"

// undo closes a file that was not written whole, and sets its result. If Create has made
// the file, undo removes it, so that a part is never taken for the whole. A file stays if
// other calls have written to it, or are about to.
//
// The file is still open when its name is looked at: no file that another program
// puts there can have its inode. Linux has no call that removes a name only if it
// is that file's. So a file that is put there between the look and the removal is lost.
func (s *fileWriter) undo(fd int, is sys.Stat, op retry.Op, err error, first bool) {
	remove := false
	if s.mode == Create && first {
		now, err := s.files.disk.Stat(s.dir.Fd, s.name.base)
		remove = err == nil && now.Device == is.Device && now.Inode == is.Inode && now.Size == s.result.bytes
	}
	if !removesOpen {
		s.files.disk.Close(fd)
	}
	removed := remove && s.files.disk.Remove(s.dir.Fd, s.name.base) == nil
	if removesOpen {
		s.files.disk.Close(fd) // it does not mend the error
	}
	switch {
	case removed:
		s.files.undone.Add(1)
		s.files.open.stale(keyed.Key{Device: is.Device, Inode: is.Inode})
		s.refuse(op, err)
	case s.mode != Create && s.result.bytes == 0 && is.Size > 0 && s.result.outcome != holdfast.OutcomePartial:
		s.result.fail(op, err, holdfast.OutcomeUntouched)
	default: // an existing empty file looks like one that was made just now
		s.result.fail(op, err, holdfast.OutcomePartial)
	}
}
