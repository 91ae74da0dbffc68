package filecopy

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/permission"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// keepAttributes gives the copy the attributes of the source. The order matters: a change of owner
// removes capabilities and the setuid bits, and every change sets the times.
//
// Without Archive the copy belongs to the caller. No user may read it who could read neither the
// source nor the replaced file. It loses the setuid and setgid bits: with them it would run as the
// caller's user or group, which the caller did not ask for.
func (j *copyJob) keepAttributes() error {
	if !j.looked {
		if err := j.lookAtCopy(); err != nil {
			return err
		}
	}
	perm := j.permFor(&j.has.Stat)
	if j.o.Archive {
		perm = j.was.Mode & vfs.PermMask
		if err := j.keepOwner(); err != nil {
			return err
		}
		if j.withoutOwner {
			perm = j.permFor(&j.has.Stat) // as without Archive: the copy is the caller's
		}
	} else if j.old != (sys.Stat{}) {
		// The copy got a list from its directory like a new file, but it replaces an old one.
		if err := j.dropList(permission.AccessList); err != nil {
			return err
		}
	}
	if j.changed || j.has.Mode&vfs.PermMask != perm {
		err := sys.Uninterrupted(func() error { return j.disk.Chmod(j.out, perm) })
		if err == nil {
			err = whetherHas(j.disk, j.out, perm)
		}
		if err = j.o.keep(&j.r, "permissions", err); err != nil {
			return j.failed("chmod", -1, err)
		}
	}
	if j.o.FreshTimes {
		return nil
	}
	err := sys.Uninterrupted(func() error { return j.disk.SetTimes(j.out, j.was.Accessed, j.was.Modified) })
	if err = j.o.keep(&j.r, "times", err); err != nil {
		return j.failed("set times", -1, err)
	}
	return nil
}

// keep returns the error of a call that gives a copy what its source has, or nil if the copy is to
// do without it. Then the result says so.
func (o *Options) keep(r *Result, what string, err error) error {
	if err == nil || o.Archive && o.Effort != holdfast.Best || !refused(err) {
		return err
	}
	r.NotKept = errors.Join(r.NotKept, &KeepError{what, err})
	return nil
}

// whetherHas returns an error unless an open file has the permissions that it was given. On some mounts
// chmod(2) succeeds and changes nothing: ntfs-3g.
func whetherHas(d vfs.CopyDisk, fd int, perm uint32) error {
	if is, err := d.StatFD(fd); err == nil && is.Mode&vfs.PermMask != perm {
		return fmt.Errorf("the file system took %04o and has %04o: %w", perm, is.Mode&vfs.PermMask, errors.ErrUnsupported)
	}
	return nil
}

// refused reports whether an error means that a file system does not have something, or that its
// mount does not let this user change it.
func refused(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL)
}

// permFor returns the permissions of a copy without Archive. has is the copy's stat data with its
// group, or nil if the group is not known yet.
func (j *copyJob) permFor(has *sys.Stat) uint32 {
	likeGroup := func(of sys.Stat, list []byte) uint32 {
		perm := permission.WithoutList(of.Mode&0o777, list)
		if has == nil || has.GID != of.GID {
			perm = permission.WithoutGroup(perm)
		}
		return perm
	}
	perm := likeGroup(j.was.Stat, j.list)
	if j.old != (sys.Stat{}) {
		perm = permission.Within(perm, likeGroup(j.old, j.oldList))
	}
	return perm
}

func (j *copyJob) noList(err error) error {
	if err == nil || errors.Is(err, sys.ErrNoAttribute) || !j.o.Archive && cannotRead(err) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return j.failed("list attributes", -1, err)
}

// cannotRead reports whether a mount answers no question about attributes, some by EIO: a security
// module, or a FUSE server. Then the mode bits say who may read.
func cannotRead(err error) bool { return refused(err) || errors.Is(err, syscall.EIO) }

// keepOwner keeps the owner, and the extended attributes.
func (j *copyJob) keepOwner() error {
	if j.has.UID != j.was.UID || j.has.GID != j.was.GID {
		if err := sys.Uninterrupted(func() error { return j.disk.Chown(j.out, j.was.UID, j.was.GID) }); err != nil {
			if err = j.o.keep(&j.r, "owner", err); err != nil {
				return j.failed("chown", -1, fmt.Errorf("owner %d and group %d can't be kept: %w", j.was.UID, j.was.GID, err))
			}
			j.withoutOwner = true
		}
		j.changed = true // the system may have cleared bits
	}
	var names []string
	err := sys.Uninterrupted(func() (err error) {
		names, err = j.attributes.Attributes(j.in)
		return err
	})
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		if j.o.Effort != holdfast.Best || !cannotRead(err) {
			return j.failed("list attributes", -1, err)
		}
		j.r.NotKept = errors.Join(j.r.NotKept, &KeepError{"attributes", err})
	}
	if !slices.Contains(names, permission.AccessList) {
		if err := j.dropList(permission.AccessList); err != nil {
			return err
		}
	}
	if j.was.Mode&vfs.KindMask == kindDir && !slices.Contains(names, permission.DefaultList) {
		if err := j.dropList(permission.DefaultList); err != nil {
			return err
		}
	}
	for _, name := range names {
		value, err := j.attribute(j.in, name)
		if err == nil {
			err = sys.Uninterrupted(func() error { return j.attributes.SetAttribute(j.out, name, value) })
		}
		if err = j.o.keep(&j.r, name, err); err != nil {
			return j.failed("set attribute", -1, fmt.Errorf("%s can't be kept: %w", name, err))
		}
		j.changed = true // an access control list changes permissions
	}
	return nil
}

// dropList removes an access control list that the copy may have inherited from its directory: it
// would permit more users than the source does.
func (j *copyJob) dropList(list string) error {
	_, err := j.attribute(j.out, list)
	if err != nil && cannotRead(err) && (!j.o.Archive || j.o.Effort == holdfast.Best) {
		return nil // nor does such a mount give lists
	}
	if err == nil {
		j.changed = true // permissions change with the list
		err = sys.Uninterrupted(func() error { return j.attributes.RemoveAttribute(j.out, list) })
	}
	if err == nil || errors.Is(err, sys.ErrNoAttribute) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return j.failed("remove attribute", -1, fmt.Errorf("%s of the directory stays: %w", list, err))
}

func (j *copyJob) attribute(fd int, name string) (value []byte, err error) {
	err = sys.Uninterrupted(func() (err error) {
		value, err = j.attributes.Attribute(fd, name)
		return err
	})
	return value, err
}
