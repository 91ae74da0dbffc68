package holdfast

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"strconv"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// A replacement is what a replaced file leaves for its batch to do: the temporary
// file is to be renamed when it is durable, and when those before it in the queue
// of its path have left.
type replacement struct {
	ticket    ticket
	result    *record
	place     *place   // where it is: not in the folder of the result's path if that is a symbolic link
	base      sys.Name // what it is to be named
	temporary sys.Name // how it is named; "" if it could not be written, or is gone
	old       sys.Stat // the file that it replaces, if there is one
	together  bool     // it is synced with all of its device
}

// temporaryPrefix is how the names of temporary files begin: hidden, and telling
// whose they are if the machine dies.
const temporaryPrefix = ".holdfast-"

// temporaryName returns a name that probably no file has. It is not made of the
// name of the file to be replaced, which may be as long as a name can be.
func temporaryName() sys.Name {
	var b [len(temporaryPrefix) + 14]byte
	return sys.Name(append(strconv.AppendUint(append(b[:0], temporaryPrefix...), rand.Uint64(), 36), 0))
}

// replace writes a temporary file in the folder of the old one, and renames it or
// leaves that to the batch. On every error up to that the temporary is removed.
func (s *scribe) replace() {
	base := s.name.base
	old, op, err := s.lookUp(&base)
	if err != nil {
		s.refuse(op, err)
		return
	}
	temporary, op, err := s.writeTemporary(old)
	if err != nil {
		s.refuse(op, err)
		return
	}
	if s.later != nil {
		s.batch.renameLater(s.later, s.folder, s.manner)
		s.later.base, s.later.temporary, s.later.old = base, temporary, old
		return
	}
	s.renameNow(temporary, base, old)
}

// lookUp looks the old file up, of which the zero Stat says that there is none. It
// follows a symbolic link: s.folder and base are then where it leads.
func (s *scribe) lookUp(base *sys.Name) (old sys.Stat, op fileOp, err error) {
	old, err = s.stat(*base)
	if err == nil && old.Mode&kindMask == kindLink {
		if op, err := s.follow(base); err != nil {
			return old, op, err
		}
		old, err = s.stat(*base)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return sys.Stat{}, "", nil
	case err != nil:
		return old, opStat, err
	}
	return old, opStat, refuseKind(old)
}

func (s *scribe) stat(base sys.Name) (is sys.Stat, err error) {
	for {
		is, err = s.files.disk.Stat(s.folder.fd, base)
		if err == nil || !s.tries.again(s.ctx, opStat, &err) {
			s.tries.progress()
			return is, err
		}
	}
}

// follow goes to the folder to which the path's symbolic links lead.
func (s *scribe) follow(base *sys.Name) (op fileOp, err error) {
	var target string
	err = s.tries.insist(s.ctx, opResolve, func() (err error) {
		target, err = s.files.disk.Resolve(s.name.path)
		return err
	})
	if err != nil {
		return opResolve, err
	}
	name, err := NewName(target)
	if err != nil {
		return opResolve, err
	}
	s.leaveFolder() // a turn is for one folder
	if op, err := s.enterFolder(name.folder); err != nil {
		return op, err
	}
	*base = name.base
	s.manner = s.files.mannerIn(s.batch, s.folder)
	s.losses = s.files.handles.losses(s.folder)
	return "", nil
}

// writeTemporary makes a file with the old one's permissions and owner, and
// fills, syncs and closes it. It returns what failed; then the file is gone.
func (s *scribe) writeTemporary(old sys.Stat) (name sys.Name, op fileOp, err error) {
	perm := unixPerm(s.files.options.Perm)
	if old.Inode != 0 || old.Mode != 0 {
		perm = old.Mode & permMask
	}
	s.files.handles.reserve()
	defer s.files.handles.release()
	fd, name, err := s.openTemporary(perm)
	if err != nil {
		return "", opOpen, err
	}
	op, err = s.fillTemporary(fd, old, perm)
	if err != nil {
		s.files.disk.Close(fd) // it is removed
	} else {
		op, err = s.syncAndClose(fd)
	}
	if err != nil {
		s.files.disk.Remove(s.folder.fd, name) // what failed first is what is told
		return "", op, err
	}
	return name, op, nil
}

// openTemporary makes a file under a name that no other has.
func (s *scribe) openTemporary(perm uint32) (fd int, name sys.Name, err error) {
	for range 100 {
		name = temporaryName()
		fd, err = s.open(name, freshFlags, perm)
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return fd, name, err
}

func (s *scribe) fillTemporary(fd int, old sys.Stat, perm uint32) (op fileOp, err error) {
	if old != (sys.Stat{}) {
		if op, err := s.likeOld(fd, old, perm); err != nil {
			return op, err
		}
	}
	return opWrite, s.writeBytes(fd)
}

// likeOld gives the file the old one's owner, where the system lets us, and its
// permissions. What a file of this folder is given when it is made was seen when
// the first was: the umask and the user are taken to stay.
func (s *scribe) likeOld(fd int, old sys.Stat, perm uint32) (op fileOp, err error) {
	made := s.files.handles.madeIn(s.folder, perm)
	if made.Mode == 0 {
		if made, err = s.look(fd); err != nil {
			return opStat, err
		}
		s.files.handles.setMadeIn(s.folder, perm, made)
	}
	chowned := made.UID != old.UID || made.GID != old.GID
	if chowned {
		err := s.tries.insist(s.ctx, opChown, func() error { return s.files.disk.Chown(fd, old.UID, old.GID) })
		if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, errors.ErrUnsupported) {
			return opChown, err
		}
	}
	// A change of owner may take the setuid bits away.
	if made.Mode&permMask != perm || chowned && perm&^0o777 != 0 {
		if err := s.tries.insist(s.ctx, opChmod, func() error { return s.files.disk.Chmod(fd, perm) }); err != nil {
			return opChmod, err
		}
	}
	return "", nil
}

// renameNow renames the temporary file, and makes its name durable if its manner
// is that.
func (s *scribe) renameNow(temporary, base sys.Name, old sys.Stat) {
	if err := s.files.rename(s.ctx, &s.tries, s.folder, temporary, base, old); err != nil {
		s.files.disk.Remove(s.folder.fd, temporary) // what failed first is what is told
		s.refuse(opRename, err)
		return
	}
	s.result.outcome = OutcomeWritten
	if s.manner == alone {
		s.syncName()
	}
}

// rename puts a temporary file in the place of the old one.
func (f *Files) rename(ctx context.Context, t *tries, in *folder, temporary, base sys.Name, old sys.Stat) error {
	for {
		err := f.disk.Rename(in.fd, temporary, base)
		if err == nil {
			break
		}
		if !t.again(ctx, opRename, &err) {
			return err
		}
	}
	t.progress()
	if old.Inode != 0 {
		f.streams.stale(old.Device, old.Inode)
	}
	return nil
}
