package holdfast

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// Files are opened so that each write goes to their end, whoever else writes. One
// that is to be emptied is so when nobody else writes to it, not when it is opened.
const (
	openFlags  = os.O_WRONLY | os.O_APPEND | os.O_CREATE
	freshFlags = openFlags | os.O_EXCL
)

// writeInPlace writes the file under its own name.
func (s *scribe) writeInPlace() {
	s.files.handles.reserve()
	defer s.files.handles.release()
	perm := unixPerm(s.files.options.Perm)
	fd, err := -1, error(fs.ErrExist)
	if s.mode == ModeCreate || s.mode == ModeTruncate && !s.old {
		if fd, err = s.openFresh(perm); err == nil {
			s.writeFresh(fd)
			return
		}
	}
	for s.mode != ModeCreate && errors.Is(err, fs.ErrExist) {
		undone := s.files.undone.Load()
		if fd, err = s.open(s.name.base, openFlags, perm); err == nil && s.writeExisting(fd, undone) {
			return
		} else if err == nil {
			err = fs.ErrExist
		}
	}
	s.refuse(opOpen, asRefusal(err))
}

// openFresh makes a file that is not there, and then is counted in files.fresh. Such a file
// is empty, regular and has one name, and need not be looked at. That saves more than
// the call: Linux gives a file that was looked at a time of its own at the next write.
func (s *scribe) openFresh(perm uint32) (fd int, err error) {
	for {
		s.fresh = s.files.fresh.enter()
		fd, err = s.files.disk.OpenFile(s.folder.fd, s.name.base, freshFlags, perm)
		if err == nil {
			s.tries.progress()
			return fd, nil
		}
		s.files.fresh.leave(s.fresh)
		if s.starves(err) || !s.tries.again(s.ctx, opOpen, &err) {
			s.tries.progress()
			return fd, err
		}
	}
}

// writeFresh fills a file that openFresh has made. Who opens it by another path waits
// until it is no more in files.fresh, and that is when all is written, by one call, or when
// there is a place in the queue of those who write to it.
func (s *scribe) writeFresh(fd int) {
	err := s.writeOnce(fd)
	if err == nil && s.unwritten() == 0 {
		s.files.fresh.leave(s.fresh)
		s.finish(fd)
		return
	}
	is, _ := s.files.disk.StatFD(fd) // if it can't be looked at nobody else can either
	s.queueIdent(is)
	s.files.fresh.leave(s.fresh)
	first := s.awaitIdent(is)
	if first == nil && (err == nil || s.tries.again(s.ctx, opWrite, &err)) {
		err = s.writeBytes(fd)
	}
	if err == nil {
		err = first
	}
	s.end(fd, is, opWrite, err, first == nil)
}

// writeExisting fills a file that may have been there before. It returns false if who
// made it has removed it again: undone is how often that was done before it was opened.
func (s *scribe) writeExisting(fd int, undone int64) bool {
	is, err := s.lookAtExisting(fd)
	if err != nil {
		s.end(fd, sys.Stat{}, opStat, err, false)
		return true
	}
	if err := refuseKind(is); err != nil {
		s.files.disk.Close(fd) // nothing was written to it
		s.refuse(opOpen, err)
		return true
	}
	s.old = is.Size > 0
	s.queueIdent(is)
	if err := s.awaitIdent(is); err != nil {
		s.end(fd, is, opOpen, err, false)
		return true
	}
	if s.files.undone.Load() != undone {
		if now, err := s.look(fd); err == nil && now.Links == 0 {
			s.leaveIdent(is)
			s.files.disk.Close(fd)
			return false
		}
	}
	op, err := opWrite, s.files.streams.torn(s.name.path)
	if err == nil {
		op, err = s.fill(fd, is)
	}
	s.end(fd, is, op, err, true)
	return true
}

// lookAtExisting looks at a file when those that were being made are written.
func (s *scribe) lookAtExisting(fd int) (is sys.Stat, err error) {
	if err := s.files.fresh.await(s.ctx); err != nil {
		return is, err
	}
	return s.look(fd)
}

// end says what became of a file that is written, or was to be, and leaves its queue.
// If first, the caller had the first place.
func (s *scribe) end(fd int, is sys.Stat, op fileOp, err error, first bool) {
	if err == nil {
		s.leaveIdent(is)
		s.finish(fd)
		return
	}
	s.files.disk.Close(fd) // what the error says is not made better by it
	s.undo(is, op, err, first)
	s.leaveIdent(is)
}

// open opens or makes a file of the folder.
func (s *scribe) open(name sys.Name, flags int, perm uint32) (fd int, err error) {
	for {
		fd, err = s.files.disk.OpenFile(s.folder.fd, name, flags, perm)
		if err == nil || s.starves(err) || !s.tries.again(s.ctx, opOpen, &err) {
			s.tries.progress()
			return fd, err
		}
	}
}

func (s *scribe) look(fd int) (is sys.Stat, err error) {
	for {
		is, err = s.files.disk.StatFD(fd)
		if err == nil || !s.tries.again(s.ctx, opStat, &err) {
			s.tries.progress()
			return is, err
		}
	}
}

// The kinds of files in st_mode.
const (
	kindMask    = 0o170000
	kindRegular = 0o100000
	kindLink    = 0o120000
	permMask    = 0o7777
)

var errNotRegular = errors.New("it is no regular file; write whole files only to regular ones")

func refuseKind(is sys.Stat) error {
	if is.Mode&kindMask != kindRegular {
		return errNotRegular
	}
	return nil
}

// asRefusal says why a pipe that nobody reads, or a device that is not there, can't be opened.
func asRefusal(err error) error {
	if errors.Is(err, syscall.ENXIO) {
		return fmt.Errorf("%w (%w)", errNotRegular, err)
	}
	return err
}

// queueIdent takes a place in the queue of those who write to a file, by whatever
// path, unless the system does not tell which file it is.
func (s *scribe) queueIdent(is sys.Stat) {
	if is.Inode != 0 {
		s.files.turns.queue(turnKey{device: is.Device, inode: is.Inode}, &s.ident)
	}
}

func (s *scribe) awaitIdent(is sys.Stat) error {
	if is.Inode == 0 {
		return nil
	}
	return s.files.turns.await(s.ctx, &s.ident)
}

func (s *scribe) leaveIdent(is sys.Stat) {
	if is.Inode != 0 {
		s.files.turns.leave(&s.ident)
	}
}

// fill writes the bytes when nobody else writes to the file. It returns what failed.
func (s *scribe) fill(fd int, is sys.Stat) (op fileOp, err error) {
	if s.mode == ModeTruncate && is.Size == 0 {
		if is, err = s.look(fd); err != nil { // others may have written to it meanwhile
			return opStat, err
		}
	}
	if s.mode == ModeTruncate && is.Size > 0 {
		if err := s.truncate(fd); err != nil {
			return opTruncate, err
		}
	}
	return opWrite, s.writeBytes(fd)
}

func (s *scribe) truncate(fd int) error {
	for {
		err := s.files.disk.Truncate(fd, 0)
		if err == nil || !s.tries.again(s.ctx, opTruncate, &err) {
			s.tries.progress()
			if err == nil {
				s.result.outcome = OutcomePartial
			}
			return err
		}
	}
}

// unwritten returns how many bytes of the data are not written.
func (s *scribe) unwritten() int { return len(s.data) - int(s.result.bytes) }

// writeBytes writes the data, from the byte on where a write before it ended.
func (s *scribe) writeBytes(fd int) error {
	for s.unwritten() > 0 {
		if err := s.writeOnce(fd); err != nil && !s.tries.again(s.ctx, opWrite, &err) {
			return err
		}
	}
	return nil
}

// writeOnce writes what the system takes of the data in one call.
func (s *scribe) writeOnce(fd int) error {
	if s.unwritten() == 0 {
		return nil
	}
	n, err := s.files.disk.Write(fd, s.data[s.result.bytes:])
	if n > 0 {
		s.result.bytes += int64(n)
		s.tries.progress()
	}
	if n == 0 && err == nil {
		err = io.ErrShortWrite
	}
	return err
}

// leftAs says what became of a file of which not all was written. If it was empty
// it can't be told from one that was made.
func (s *scribe) leftAs(was sys.Stat) Outcome {
	if s.result.bytes == 0 && was.Size > 0 && s.result.outcome != OutcomePartial {
		return OutcomeUntouched
	}
	return OutcomePartial
}

// undo removes a file that ModeCreate has made, if it still is that one, so that
// nobody takes a part for the whole, and says what became of it. A file to which
// others have written, or are about to, stays.
func (s *scribe) undo(is sys.Stat, op fileOp, err error, first bool) {
	became := s.leftAs(is)
	if s.mode == ModeCreate {
		now, statErr := s.files.disk.Stat(s.folder.fd, s.name.base)
		same := statErr == nil && now.Device == is.Device && now.Inode == is.Inode && now.Size == s.result.bytes
		if first && same && s.files.disk.Remove(s.folder.fd, s.name.base) == nil {
			s.files.undone.Add(1)
			s.files.streams.stale(is.Device, is.Inode)
			s.refuse(op, err)
			return
		}
		became = OutcomePartial
	}
	s.result.fail(op, err, became)
}
