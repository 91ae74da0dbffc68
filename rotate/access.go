package rotate

import (
	"errors"
	"slices"

	"github.com/holdfast-go/holdfast/internal/permission"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// An access holds a file's stat data and its access control list, or nil if it has none.
type access struct {
	sys.Stat
	list []byte
}

// accessOf returns the access of an open file. If its list can't be read, the users in it are
// unknown: then the Mode permits the owner only.
func accessOf(d disk, fd int) (a access, err error) {
	if a.Stat, err = d.StatFD(fd); err != nil {
		return a, err
	}
	if a.list, err = listOf(d, fd); err != nil {
		a.Mode &^= 0o077
	}
	return a, nil
}

// listOf returns a file's access control list, and no error if it has none.
func listOf(d disk, fd int) (list []byte, err error) {
	err = sys.Uninterrupted(func() (err error) {
		list, err = vfs.AttributesOf(d).Attribute(fd, permission.AccessList)
		return err
	})
	if errors.Is(err, sys.ErrNoAttribute) || errors.Is(err, errors.ErrUnsupported) {
		return nil, nil
	}
	return list, err
}

// private returns the permissions of a new file before imitate has given it this access.
func (a *access) private() uint32 { return a.Mode & permission.Private }

// imitate gives a new private file the owner, the group, the list and the permissions of another,
// by the rules of package permission. No user gets more than the other file gives. The permissions
// come last. A failure does not stop the log: it leaves the file to fewer users.
func (l *logFile) imitate(like *access) error {
	is, err := l.disk.StatFD(l.fd)
	if err != nil {
		return err
	}
	perm := like.Mode & vfs.PermMask
	owner, group := is.UID == like.UID, is.GID == like.GID
	if (!owner || !group) && l.chown(like.UID, like.GID) {
		owner, group = true, true
	}
	if !group && !owner {
		group = l.chown(is.UID, like.GID) // the process may be permitted to change the group only
	}
	if !owner {
		perm &^= permission.SetUser
	}
	if !group {
		perm &^= permission.SetGroup
	}
	switch list := slices.Clone(like.list); {
	case list != nil && l.setList(list, group):
		// With a list, the group's permission bits are the list's mask.
		perm = perm&^0o007 | permission.OtherOf(list)
	default:
		perm = permission.WithoutList(perm, list)
		if !group {
			perm = permission.WithoutGroup(perm)
		}
		if !l.hasNoList() {
			perm &^= 0o070
		}
	}
	return sys.Uninterrupted(func() error { return l.disk.Chmod(l.fd, perm) })
}

// chown reports whether the system permitted it.
func (l *logFile) chown(uid, gid uint32) bool {
	return sys.Uninterrupted(func() error { return l.disk.Chown(l.fd, uid, gid) }) == nil
}

// setList gives the file a list, and reports whether it succeeded. If the file has another group,
// it removes the list's entry of the owning group first.
func (l *logFile) setList(list []byte, group bool) bool {
	if !group {
		permission.ListWithoutGroup(list)
	}
	return sys.Uninterrupted(func() error {
		return vfs.AttributesOf(l.disk).SetAttribute(l.fd, permission.AccessList, list)
	}) == nil
}

// hasNoList removes the list that a new file has inherited from its directory, because it may name
// other users. It reports whether the file has none now.
func (l *logFile) hasNoList() bool {
	list, err := listOf(l.disk, l.fd)
	if list != nil {
		err = sys.Uninterrupted(func() error {
			return vfs.AttributesOf(l.disk).RemoveAttribute(l.fd, permission.AccessList)
		})
	}
	return err == nil
}
