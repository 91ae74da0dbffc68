package fault

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
	"syscall"
)

// The methods here are for tests. They are no calls: no fault hits them, and no count
// has them. Changes by Mount, Bind, MkdirAll, WriteFile, Link and Symlink are on the disk at once.
// All other names of its directory are then on the disk too. Moves and removals are not.

// SetDescriptors sets how many descriptors the system gives: EMFILE beyond. 0 is no
// limit.
func (d *Disk) SetDescriptors(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.limit = n
}

// SetCap sets how many descriptors the disk's user promised to have at most, calls that open one
// included: more are a violation. 0 is no promise.
func (d *Disk) SetCap(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.promised = n
}

// Open returns how many descriptors are open, being opened or being closed.
func (d *Disk) Open() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.reserved
}

// MostOpen returns how many descriptors there were at most.
func (d *Disk) MostOpen() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mostOpen
}

// SetRoom sets how many bytes all files together may hold, or Unlimited.
func (d *Disk) SetRoom(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.room = n
}

// Used returns how many bytes the files hold that have a name or a descriptor.
func (d *Disk) Used() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.used
}

// SetSector sets how many bytes reach the disk as one: 512 unless set.
func (d *Disk) SetSector(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sector = n
}

// SetDirty sets how many bytes of other programs Dirty adds; less than 0 lets it
// say that it does not know.
func (d *Disk) SetDirty(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.foreign = n
}

// SetOwner sets the owner of new files, and its group: 1000 unless set.
func (d *Disk) SetOwner(id uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.owner = id
}

// SetSyncsAll sets what SyncsAll says for the file system that a path is on.
func (d *Disk) SetSyncsAll(name string, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at, err := d.findLocked(d.root, name, true); err == nil && at.file != nil {
		at.file.device.syncsAll = ok
	}
}

// SetLacksJournal sets what LacksJournal says for the file system that a path is on. A crash there
// is modelled as elsewhere, the loss by a failed sync of a file is not.
func (d *Disk) SetLacksJournal(name string, lacks bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at, err := d.findLocked(d.root, name, true); err == nil && at.file != nil {
		at.file.device.lacksJournal = lacks
	}
}

// Mount makes a directory, with those above it, that is a file system of its own.
func (d *Disk) Mount(name string) error {
	if err := d.MkdirAll(path.Dir(absolute("/", name))); err != nil {
		return err
	}
	return d.plant("mount", name, func(dir *inode) *inode { return d.newDeviceLocked() })
}

// Bind mounts a single file at a new name, which a power cut leaves and no call renames
// or removes.
func (d *Disk) Bind(old, name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	of, err := d.findLocked(d.root, old, true)
	if err == nil && !of.file.is(kindFile) {
		err = syscall.EINVAL
	}
	at, missing := d.findLocked(d.root, name, false)
	if err == nil {
		err = missing
	}
	if err == nil && at.file != nil {
		err = syscall.EEXIST
	}
	if err != nil {
		return fmt.Errorf("bind %s to %s: %w", old, name, err)
	}
	in := at.dir
	in.device.settleNamesLocked(in, in.device.nameOps) // else what the name was before comes after the mount
	if in.bound == nil {
		in.bound = map[string]bool{}
	}
	in.names[at.name], in.onDisk[at.name], in.bound[at.name] = of.file, of.file, true
	return nil
}

// MkdirAll makes a directory and those above it that are missing.
func (d *Disk) MkdirAll(name string) error {
	p := ""
	for element := range strings.SplitSeq(strings.Trim(absolute("/", name), "/"), "/") {
		p += "/" + element
		d.mu.Lock()
		at, err := d.findLocked(d.root, p, true)
		d.mu.Unlock()
		if err == nil && at.file.is(kindDir) {
			continue
		}
		err = d.plant("mkdir", p, func(dir *inode) *inode {
			return d.newInodeLocked(dir.device, kindDir|0o755)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// WriteFile makes a new file with these bytes.
func (d *Disk) WriteFile(name string, data []byte, perm uint32) error {
	return d.plant("write", name, func(dir *inode) *inode {
		f := d.newInodeLocked(dir.device, kindFile|perm&permBits)
		d.changeLocked(f, change{data: bytes.Clone(data)})
		f.settleLocked(f.newest())
		return f
	})
}

// Symlink makes a symbolic link.
func (d *Disk) Symlink(target, name string) error {
	return d.plant("symlink", name, func(dir *inode) *inode {
		f := d.newInodeLocked(dir.device, kindLink|0o777)
		f.target = target
		return f
	})
}

// Link makes another name for a file.
func (d *Disk) Link(old, name string) error {
	d.mu.Lock()
	of, err := d.findLocked(d.root, old, false)
	d.mu.Unlock()
	if err != nil || of.file == nil || of.file.is(kindDir) {
		return fmt.Errorf("link %s: it is no file", old)
	}
	return d.plant("link", name, func(dir *inode) *inode { return of.file })
}

// Lose makes the kernel fail to write a file back without a sync: what is not on the
// disk yet never gets there. Each open descriptor of the file reports err once, and so
// does SyncAll on a descriptor that was open. A descriptor opened from now on does
// not.
func (d *Disk) Lose(name string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at, found := d.findLocked(d.root, name, true); found == nil && at.file.is(kindFile) {
		at.file.loseLocked(at.file.newest(), err)
	}
}

// plant puts what create returns under a new name, and this on the disk.
func (d *Disk) plant(what, name string, create func(dir *inode) *inode) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, err := d.findLocked(d.root, name, false)
	switch {
	case err == nil && at.file != nil:
		err = syscall.EEXIST
	case err == nil && at.dir.links == 0:
		err = syscall.ENOENT
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", what, name, err)
	}
	file := create(at.dir)
	if !file.is(kindDir) && file.device != at.dir.device {
		return fmt.Errorf("%s %s: %w", what, name, syscall.EXDEV)
	}
	d.nameLocked(edit{at.dir, at.name, file})
	at.dir.device.settleNamesLocked(at.dir, at.dir.device.nameOps)
	return nil
}

// Move renames a file or a directory, also one that is open.
func (d *Disk) Move(old, name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.renameLocked(d.root, old, name); err != nil {
		return fmt.Errorf("move %s to %s: %w", old, name, err)
	}
	return nil
}

// Displace moves a directory away and makes an empty one at its path. Both are on the disk at
// once, and no sync comes between them.
func (d *Disk) Displace(old, name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, err := d.findLocked(d.root, old, false)
	if err == nil {
		err = d.renameLocked(d.root, old, name)
	}
	if err != nil {
		return fmt.Errorf("displace %s to %s: %w", old, name, err)
	}
	v := at.dir.device
	d.nameLocked(edit{at.dir, at.name, d.newInodeLocked(v, at.file.mode)})
	v.settleNamesLocked(at.dir, v.nameOps)
	return nil
}

// RemoveAll removes a file or a directory with all that is in it, also what is open.
func (d *Disk) RemoveAll(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, err := d.findLocked(d.root, name, false)
	if err == nil && (at.file == nil || at.name == "") {
		err = syscall.ENOENT
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	d.removeLocked(at)
	return nil
}

func (d *Disk) removeLocked(at place) {
	for _, name := range sortedNames(at.file.names) {
		d.removeLocked(place{at.file, name, at.file.names[name]})
	}
	d.nameLocked(edit{at.dir, at.name, nil})
}

// sortedNames returns the keys in their order.
func sortedNames(names map[string]*inode) []string {
	all := make([]string, 0, len(names))
	for name := range names {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// ReadFile returns what the kernel shows of a file.
func (d *Disk) ReadFile(name string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, err := d.findLocked(d.root, name, true)
	if err == nil && at.file == nil {
		err = syscall.ENOENT
	}
	if err == nil && !at.file.is(kindFile) {
		err = syscall.EISDIR
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return bytes.Clone(at.file.bytes), nil
}
