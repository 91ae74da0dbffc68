package holdfast

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// keepAttributes gives the copy what else the source has. A change of owner takes
// capabilities and the setuid bits away, and every change sets the times: so the order.
//
// Without Archive the copy is a file of who makes it. With the setuid and setgid bits
// it would run as that user or group, which nobody has asked for.
func (j *copyJob) keepAttributes() error {
	if !j.looked {
		if err := j.lookAtCopy(); err != nil {
			return err
		}
	}
	perm := j.was.Mode & 0o777
	if j.o.Archive {
		perm = j.was.Mode & permMask
		if err := j.keepOwner(); err != nil {
			return err
		}
	}
	if j.changed || j.has.Mode&permMask != perm {
		if err := uninterrupted(func() error { return j.disk.Chmod(j.out, perm) }); err != nil {
			return j.failed("chmod", -1, err)
		}
	}
	err := uninterrupted(func() error { return j.disk.SetTimes(j.out, j.was.Accessed, j.was.Modified) })
	if err != nil {
		return j.failed("set times", -1, err)
	}
	return nil
}

// keepOwner keeps the owner, and the extended attributes.
func (j *copyJob) keepOwner() error {
	if j.has.UID != j.was.UID || j.has.GID != j.was.GID {
		if err := uninterrupted(func() error { return j.disk.Chown(j.out, j.was.UID, j.was.GID) }); err != nil {
			return j.failed("chown", -1, fmt.Errorf("owner %d and group %d can't be kept: %w", j.was.UID, j.was.GID, err))
		}
		j.changed = true // bits may have gone
	}
	return j.keepExtended()
}

// The extended attributes that are a file's access control list, and the one that a
// folder gives to what is made in it: acl(5).
const (
	accessList  = "system.posix_acl_access"
	defaultList = "system.posix_acl_default"
)

// keepExtended keeps the extended attributes.
func (j *copyJob) keepExtended() error {
	var names []string
	err := uninterrupted(func() (err error) {
		names, err = j.disk.Attributes(j.in)
		return err
	})
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return j.failed("list attributes", -1, err)
	}
	if !slices.Contains(names, accessList) {
		if err := j.dropList(accessList); err != nil {
			return err
		}
	}
	if j.was.Mode&kindMask == kindFolder && !slices.Contains(names, defaultList) {
		if err := j.dropList(defaultList); err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := j.keepAttribute(name); err != nil {
			return j.failed("set attribute", -1, fmt.Errorf("%s can't be kept: %w", name, err))
		}
		j.changed = true // an access control list has changed it
	}
	return nil
}

// dropList removes a list that the copy may have got from its folder: it would let other
// users in than the source does.
func (j *copyJob) dropList(list string) error {
	_, err := j.attribute(j.out, list)
	if err == nil {
		j.changed = true // permissions go with the list
		err = uninterrupted(func() error { return j.disk.RemoveAttribute(j.out, list) })
	}
	if err == nil || errors.Is(err, syscall.ENODATA) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return j.failed("remove attribute", -1, fmt.Errorf("%s of the folder stays: %w", list, err))
}

func (j *copyJob) attribute(fd int, name string) (value []byte, err error) {
	err = uninterrupted(func() (err error) {
		value, err = j.disk.Attribute(fd, name)
		return err
	})
	return value, err
}

func (j *copyJob) keepAttribute(name string) error {
	value, err := j.attribute(j.in, name)
	if err != nil {
		return err
	}
	return uninterrupted(func() error { return j.disk.SetAttribute(j.out, name, value) })
}

// cutRange returns the part of a range that lies in another.
func cutRange(r, in sys.Range) sys.Range {
	return sys.Range{At: max(r.At, in.At), End: min(r.End, in.End)}
}
