package files

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/permission"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/temporary"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// replace writes a temporary file in the directory of the old one, and renames it or
// leaves that to the batch. On every error up to that the temporary is removed.
func (s *fileWriter) replace() {
	base := s.name.base
	old, op, err := s.lookUp(&base)
	if err != nil {
		s.refuse(op, err)
		return
	}
	mark := s.files.marks.Take(s.dir)
	temporary, op, err := s.writeTemporary(base, old, mark != nil)
	if err == nil && s.later != nil {
		s.part.renameLater(s.later, s.dir, s.syncMode)
		s.later.base, s.later.temporary, s.later.mark, s.later.old = base, temporary, mark, old
		return
	}
	if err == nil {
		s.renameNow(temporary, base, old)
	} else {
		s.refuse(op, err)
	}
	s.files.marks.GiveBack(mark)
}

// lookUp looks the old file up; the zero Stat means that none exists. It follows a
// symbolic link: s.dir and base are then where the link leads.
func (s *fileWriter) lookUp(base *sys.Name) (old sys.Stat, op retry.Op, err error) {
	old, err = s.stat(*base)
	if err == nil && old.Mode&vfs.KindMask == vfs.KindLink {
		if s.files.options.Root == nil && sys.IsDescriptor(s.name.path) {
			return old, retry.OpOpen, errDescriptor
		}
		if op, err := s.follow(base); err != nil {
			return old, op, err
		}
		old, err = s.stat(*base)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return sys.Stat{}, "", nil
	case err != nil:
		return old, retry.OpStat, err
	}
	return old, retry.OpStat, refuseKind(old)
}

func (s *fileWriter) stat(base sys.Name) (is sys.Stat, err error) {
	for {
		is, err = s.files.disk.Stat(s.dir.Fd, base)
		if err == nil || !s.tries.Again(s.ctx, retry.OpStat, &err) {
			s.tries.Progress()
			return is, err
		}
	}
}

// writeTemporary makes a file like the old one, and fills, syncs and closes it. It
// returns what failed; then the file is gone.
func (s *fileWriter) writeTemporary(base sys.Name, old sys.Stat, known bool) (name sys.Name, op retry.Op, err error) {
	s.files.handles.Reserve()
	defer s.files.handles.Release()
	t, op, err := s.makeTemporary(base, old, known, freshFlags)
	if err != nil {
		return "", op, err
	}
	if err := s.writeBytes(t.fd); err != nil {
		return "", retry.OpWrite, s.dropTemporary(t, err)
	}
	op, err = s.endTemporary(t)
	return t.name, op, err
}

// A temporaryFile is open, and is to replace another. It gets its permissions last: until
// then no other user may read it, and a write takes the setuid bits away.
type temporaryFile struct {
	fd        int
	name      sys.Name
	has, perm uint32 // the permissions that it has, and its final ones
}

// makeTemporary makes an empty file, with all that it is to have of the old one but its
// permissions.
func (s *fileWriter) makeTemporary(base sys.Name, old sys.Stat, known bool, flags int) (t temporaryFile, op retry.Op, err error) {
	perm := unixPerm(s.files.options.Perm)
	var attributes []string
	if old != (sys.Stat{}) {
		perm = permission.Private
		if attributes, err = s.attributesOf(base); err != nil {
			return t, retry.OpListAttributes, err
		}
	}
	if t.fd, t.name, err = s.openTemporary(flags, perm, known); err != nil {
		return t, retry.OpOpen, err
	}
	if old != (sys.Stat{}) {
		if t.has, t.perm, op, err = s.likeOld(t.fd, base, old, attributes); err != nil {
			return t, op, s.dropTemporary(t, err)
		}
	}
	return t, "", nil
}

// endTemporary gives a file that is written its permissions, syncs and closes it. It
// returns what failed; then the file is gone.
func (s *fileWriter) endTemporary(t temporaryFile) (op retry.Op, err error) {
	if t.has != t.perm {
		err := s.tries.Insist(s.ctx, retry.OpChmod, func() error { return s.files.disk.Chmod(t.fd, t.perm) })
		if err != nil && s.goesOn(err) {
			s.result.stripped, err = true, nil
		}
		if err != nil {
			return retry.OpChmod, s.dropTemporary(t, err)
		}
	}
	if op, err := s.syncAndClose(t.fd); err != nil {
		return op, stillThere(err, s.files.discard(s.dir.Fd, t.name), t.name)
	}
	if s.result.stripped {
		s.files.whole.stripped.Add(1)
	}
	return "", nil
}

// dropTemporary closes and removes a file because of err, which it returns.
func (s *fileWriter) dropTemporary(t temporaryFile, err error) error {
	s.files.disk.Close(t.fd) // it is removed
	return stillThere(err, s.files.discard(s.dir.Fd, t.name), t.name)
}

// openTemporary makes a file under a name that no other has.
func (s *fileWriter) openTemporary(flags int, perm uint32, known bool) (fd int, name sys.Name, err error) {
	for range 100 {
		name = temporary.Name()
		if known {
			name = temporary.KnownName()
		}
		fd, err = s.open(name, flags, perm)
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return fd, name, err
}

// goesOn reports whether a replacement does without what a mount refuses: permissions, or any word
// about attributes.
func (s *fileWriter) goesOn(err error) bool {
	return s.files.options.Effort == holdfast.Best &&
		(errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EIO) || errors.Is(err, syscall.EINVAL))
}

// attributesOf returns the names of the old file's extended attributes, its access control list
// among them.
func (s *fileWriter) attributesOf(base sys.Name) (names []string, err error) {
	for {
		names, err = s.files.attributes.AttributesIn(s.dir.Fd, base)
		if err == nil || !s.tries.Again(s.ctx, retry.OpListAttributes, &err) {
			break
		}
	}
	s.tries.Progress()
	if errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, sys.ErrNoProc) {
		return nil, nil
	}
	if err != nil && s.goesOn(err) {
		s.result.stripped = true
		return nil, nil
	}
	return names, err
}

// likeOld gives a private file the owner, the access control list and the attributes of
// the old one. It returns the permissions that the file has then, and its final ones. No user may
// get more than the old file gave. Where the group can't be kept, the new group and the old one,
// which counts as others now, get only what both had before.
func (s *fileWriter) likeOld(fd int, base sys.Name, old sys.Stat, attributes []string) (has, perm uint32, op retry.Op, err error) {
	made, owner, group, op, err := s.chownLike(fd, old)
	if err != nil {
		return 0, 0, op, err
	}
	has, perm = made.Mode&vfs.PermMask, old.Mode&vfs.PermMask
	if !owner {
		perm &^= permission.SetUser
	}
	if !group {
		perm = permission.WithoutGroup(perm &^ permission.SetGroup)
	}
	if !owner || !group {
		s.result.stripped = true
	}
	if op, err := s.dropInherited(fd); err != nil {
		return 0, 0, op, err
	}
	for _, name := range attributes {
		switch name {
		case permission.AccessList:
			list, err := s.keepList(fd, base, group)
			if err != nil {
				return 0, 0, retry.OpSetAttribute, err
			}
			// With the list, the group's permission bits are the list's mask.
			perm = old.Mode&0o770 | perm&(vfs.PermMask&^0o777) | permission.OtherOf(list)
			has = perm & 0o777
		case "security.capability", "security.ima", "security.evm":
			// They are of the old bytes. A write takes them away too.
		default:
			if err := s.keepAttribute(fd, base, name); err != nil {
				return 0, 0, retry.OpSetAttribute, err
			}
		}
	}
	return has, perm, "", nil
}

// chownLike gives a file the old one's owner and group, as far as the system lets us, and
// reports which of these it has. The owner and mode that a new file gets in this directory were
// recorded at the first file: it assumes that the process does not change its user.
func (s *fileWriter) chownLike(fd int, old sys.Stat) (made sys.Stat, owner, group bool, op retry.Op, err error) {
	made = s.files.handles.MadeIn(s.dir)
	if made.Mode == 0 {
		if made, err = s.look(fd); err != nil {
			return made, false, false, retry.OpStat, err
		}
		s.files.handles.SetMadeIn(s.dir, made)
	}
	owner, group = made.UID == old.UID, made.GID == old.GID
	if !owner || !group {
		done, err := s.chown(fd, old.UID, old.GID)
		if err == nil && !done && !owner && !group { // the group alone may be ours to give
			if group, err = s.chown(fd, made.UID, old.GID); err == nil {
				return made, owner, group, "", nil
			}
		}
		if err != nil {
			return made, false, false, retry.OpChown, err
		}
		owner, group = owner || done, group || done
	}
	return made, owner, group, "", nil
}

// chown reports whether the system let us.
func (s *fileWriter) chown(fd int, uid, gid uint32) (done bool, err error) {
	err = s.tries.Insist(s.ctx, retry.OpChown, func() error { return s.files.disk.Chown(fd, uid, gid) })
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) {
		return false, nil
	}
	return err == nil, err
}

// dropInherited removes the access control list that a file has got from its directory.
func (s *fileWriter) dropInherited(fd int) (op retry.Op, err error) {
	var names []string
	for {
		names, err = s.files.attributes.Attributes(fd)
		if err == nil || !s.tries.Again(s.ctx, retry.OpListAttributes, &err) {
			break
		}
	}
	s.tries.Progress()
	if err != nil && !errors.Is(err, errors.ErrUnsupported) && !s.goesOn(err) {
		return retry.OpListAttributes, err
	}
	if !slices.Contains(names, permission.AccessList) {
		return "", nil
	}
	return retry.OpSetAttribute, s.tries.Insist(s.ctx, retry.OpSetAttribute, func() error { return s.files.attributes.RemoveAttribute(fd, permission.AccessList) })
}

// keepList gives a file the old one's access control list, and returns it.
func (s *fileWriter) keepList(fd int, base sys.Name, group bool) (list []byte, err error) {
	err = s.tries.Insist(s.ctx, retry.OpSetAttribute, func() (err error) {
		list, err = s.files.attributes.AttributeIn(s.dir.Fd, base, permission.AccessList)
		return err
	})
	if err != nil {
		return nil, err
	}
	if !group {
		permission.ListWithoutGroup(list)
	}
	return list, s.tries.Insist(s.ctx, retry.OpSetAttribute, func() error { return s.files.attributes.SetAttribute(fd, permission.AccessList, list) })
}

// keepAttribute keeps an extended attribute, or notes in the result that it can't. If the
// attribute decides which users may read the file, that is an error.
func (s *fileWriter) keepAttribute(fd int, base sys.Name, name string) error {
	var value []byte
	err := sys.Uninterrupted(func() (err error) {
		value, err = s.files.attributes.AttributeIn(s.dir.Fd, base, name)
		return err
	})
	if err == nil {
		err = sys.Uninterrupted(func() error { return s.files.attributes.SetAttribute(fd, name, value) })
	}
	if err == nil {
		return nil
	}
	if has, e := s.files.attributes.Attribute(fd, name); e == nil && value != nil && bytes.Equal(has, value) {
		return nil // it has such a label from its directory
	}
	if strings.HasPrefix(name, "system.") {
		return fmt.Errorf("%s can't be kept: %w", name, err)
	}
	s.result.stripped = true
	return nil
}

// renameNow renames the temporary file, and makes its name durable if its sync mode
// is that.
func (s *fileWriter) renameNow(temporary, base sys.Name, old sys.Stat) {
	r := replacement{pending: pending{result: s.result}, base: base, temporary: temporary, old: old}
	err := s.files.rename(s.ctx, &s.tries, s.dir, &r)
	if torn := (tornError{}); errors.As(err, &torn) {
		s.result.fail(retry.OpRename, err, holdfast.OutcomeUncertain)
		return
	}
	if err != nil {
		s.refuse(retry.OpRename, stillThere(err, s.files.discard(s.dir.Fd, r.temporary), r.temporary))
		return
	}
	s.result.outcome = holdfast.OutcomeWritten
	if s.syncMode == alone {
		s.syncName()
	}
}

// For errors.Is, an [Error] is ErrTemporary if its cause may pass by itself: a
// full disk, a used-up quota, no memory, no descriptor left. Such a call has
// changed nothing more than the error says. It may be made again later, with the data behind the
// error's Offset. An error of a sync or a close is never of these.
var ErrTemporary = errors.New("holdfast: the cause may pass")

// Is reports whether target is [ErrTemporary] and the cause may pass.
func (e *Error) Is(target error) bool {
	// Another Error answers for its own call.
	return target == ErrTemporary && !errors.As(e.Err, new(*Error)) && retry.RemedyFor(retry.Op(e.Op), e.Err) != retry.GiveUp
}
