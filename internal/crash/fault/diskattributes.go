package fault

import (
	"bytes"
	"maps"
	"os"
	"slices"
	"syscall"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// OpenDirIn opens a directory of a directory.
func (d *Disk) OpenDirIn(dir int, name sys.Name) (fd int, err error) {
	c := &DiskCall{Op: DiskOpenDir}
	return opened(c, d.inDir(c, dir, name.String(), "", func(in *inode) error {
		at, err := d.findLocked(in, name.String(), false)
		switch {
		case err != nil:
			return err
		case at.file == nil:
			return syscall.ENOENT
		case !at.file.is(kindDir):
			return syscall.ENOTDIR
		}
		d.openLocked(c, at.file, os.O_RDONLY)
		return nil
	}))
}

// ReadNames appends all names of a directory, in their order, and none at the next call.
func (d *Disk) ReadNames(fd int, _ []byte, to []sys.DirEntry) ([]sys.DirEntry, error) {
	err := d.onDescriptor(&DiskCall{Op: DiskReadNames, FD: fd}, nil, unless(func(o *descriptor) error {
		if !o.file.is(kindDir) {
			return syscall.ENOTDIR
		}
		for _, name := range sortedNames(o.file.names) {
			if f := o.file.names[name]; !o.read {
				to = append(to, sys.DirEntry{Name: sys.Name(name + "\x00"), Inode: f.number, Kind: f.mode &^ permBits})
			}
		}
		o.read = true
		return nil
	}))
	return to, err
}

// unlock ends the lock of a descriptor.
func (o *descriptor) unlock() {
	if o.file.lockedBy != o && !o.file.sharedBy[o] {
		return
	}
	if o.file.lockedBy == o {
		o.file.lockedBy = nil
	}
	delete(o.file.sharedBy, o)
	if o.file.unlocked != nil {
		close(o.file.unlocked)
		o.file.unlocked = nil
	}
}

// locking gives up the lock of a descriptor, as flock(2) does, and takes the next.
func (d *Disk) locking(fd int, take func(o *descriptor) error) error {
	return d.onDescriptor(&DiskCall{Op: DiskLock, FD: fd}, nil, unless(func(o *descriptor) error {
		o.unlock()
		return take(o)
	}))
}

// Lock locks a file for one descriptor alone.
func (d *Disk) Lock(fd int) error {
	_, err := d.lockAlone(fd)
	return err
}

// LockWait is Lock that waits while another descriptor has the lock.
func (d *Disk) LockWait(fd int) error {
	for {
		unlocked, err := d.lockAlone(fd)
		if unlocked == nil {
			return err
		}
		<-unlocked
	}
}

// lockAlone is Lock. If another descriptor has the lock, it returns a channel that is closed when a lock ends.
func (d *Disk) lockAlone(fd int) (unlocked chan struct{}, err error) {
	err = d.locking(fd, func(o *descriptor) error {
		if o.file.lockedBy == nil && len(o.file.sharedBy) == 0 {
			o.file.lockedBy = o
			return nil
		}
		if o.file.unlocked == nil {
			o.file.unlocked = make(chan struct{})
		}
		unlocked = o.file.unlocked
		return syscall.EAGAIN
	})
	return unlocked, err
}

// LockShared locks a file for any number of descriptors.
func (d *Disk) LockShared(fd int) error {
	return d.locking(fd, func(o *descriptor) error {
		if o.file.lockedBy != nil {
			return syscall.EAGAIN
		}
		if o.file.sharedBy == nil {
			o.file.sharedBy = map[*descriptor]bool{}
		}
		o.file.sharedBy[o] = true
		return nil
	})
}

// Unlock ends the lock of a descriptor.
func (d *Disk) Unlock(fd int) error { return d.locking(fd, func(*descriptor) error { return nil }) }

func (f *inode) attributeNames() []string { return slices.Sorted(maps.Keys(f.attributes)) }

func (f *inode) attribute(name string) ([]byte, error) {
	value, ok := f.attributes[name]
	if !ok {
		return nil, sys.ErrNoAttribute
	}
	return bytes.Clone(value), nil
}

// onAttributes makes a call on an open file's attributes.
func (d *Disk) onAttributes(fd int, call func(f *inode) error) error {
	return d.onDescriptor(&DiskCall{Op: DiskAttribute, FD: fd}, nil, unless(func(o *descriptor) error { return call(o.file) }))
}

// Attributes returns the names of a file's extended attributes.
func (d *Disk) Attributes(fd int) (names []string, err error) {
	err = d.onAttributes(fd, func(f *inode) error {
		names = f.attributeNames()
		return nil
	})
	return names, err
}

// Attribute returns the value of an extended attribute.
func (d *Disk) Attribute(fd int, name string) (value []byte, err error) {
	err = d.onAttributes(fd, func(f *inode) (err error) {
		value, err = f.attribute(name)
		return err
	})
	return value, err
}

// SetAttribute sets an extended attribute. An access control list's attribute changes no
// permissions here.
func (d *Disk) SetAttribute(fd int, name string, value []byte) error {
	return d.onAttributes(fd, func(f *inode) error {
		if f.attributes == nil {
			f.attributes = map[string][]byte{}
		}
		f.attributes[name] = bytes.Clone(value)
		return nil
	})
}

// RemoveAttribute removes an extended attribute.
func (d *Disk) RemoveAttribute(fd int, name string) error {
	return d.onAttributes(fd, func(f *inode) error {
		_, err := f.attribute(name)
		delete(f.attributes, name)
		return err
	})
}

// attributesIn makes a call on the attributes of a name.
func (d *Disk) attributesIn(dir int, name sys.Name, call func(f *inode) error) error {
	return d.inDir(&DiskCall{Op: DiskAttribute}, dir, name.String(), "", func(in *inode) error {
		at, err := d.findLocked(in, name.String(), false)
		if err == nil && at.file == nil {
			err = syscall.ENOENT
		}
		if err != nil {
			return err
		}
		return call(at.file)
	})
}

// AttributesIn returns the names of the extended attributes of a name.
func (d *Disk) AttributesIn(dir int, name sys.Name) (names []string, err error) {
	err = d.attributesIn(dir, name, func(f *inode) error {
		names = f.attributeNames()
		return nil
	})
	return names, err
}

// AttributeIn returns the value of an extended attribute of a name.
func (d *Disk) AttributeIn(dir int, name sys.Name, attribute string) (value []byte, err error) {
	err = d.attributesIn(dir, name, func(f *inode) (err error) {
		value, err = f.attribute(attribute)
		return err
	})
	return value, err
}
