package fault

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// A descriptor is an open file or directory.
type descriptor struct {
	file       *inode
	path       string
	flag       int
	offset     int64
	namesOnly  bool
	inFlight   int // Writes and syncs
	syncFailed bool
	closed     bool
	read       bool // its names
	heard      int  // how many losses of the file, and of its device, it has reported
	heardAll   int
}

// descriptorLocked looks the descriptor of a call up.
func (d *Disk) descriptorLocked(c *DiskCall) (*descriptor, error) {
	o := d.descriptors[c.FD]
	if o == nil {
		d.violationLocked(*c, "descriptor %d was never open", c.FD)
		return nil, syscall.EBADF
	}
	c.Path = o.path
	if o.closed {
		d.violationLocked(*c, "descriptor %d is closed", c.FD)
		return nil, syscall.EBADF
	}
	return o, nil
}

// onDescriptor makes a call on an open file or directory. Where before is not nil it
// judges the call when it starts.
func (d *Disk) onDescriptor(c *DiskCall, before, effect func(o *descriptor, x DiskFault) error) error {
	var o *descriptor
	start := func() (err error) {
		if o, err = d.descriptorLocked(c); err == nil && before != nil {
			err = before(o, DiskFault{})
		}
		return err
	}
	return d.do(c, start, func(x DiskFault) error { return effect(o, x) })
}

// unless fails a call if its fault has an error; otherwise the call has its effect.
func unless(effect func(o *descriptor) error) func(*descriptor, DiskFault) error {
	return func(o *descriptor, x DiskFault) error {
		if x.Err != nil {
			return x.Err
		}
		return effect(o)
	}
}

// inDir makes a call that names a file of an open directory; to is the other name of
// a Rename. The paths may be denied.
func (d *Disk) inDir(c *DiskCall, dir int, name, to string, effect func(dir *inode) error) error {
	var o *descriptor
	before := func() error {
		c.FD, c.Path = dir, path.Join("/", name)
		var err error
		if o, err = d.descriptorLocked(c); err != nil {
			return err
		}
		c.Path = absolute(o.path, name)
		if c.Op == DiskRename {
			c.To = absolute(o.path, to)
		}
		return nil
	}
	return d.do(c, before, func(x DiskFault) error {
		switch {
		case x.Err != nil:
			return x.Err
		case !o.file.is(kindDir):
			return syscall.ENOTDIR
		}
		if err := d.deniedLocked(c.Path, c.To); err != nil && c.Op != DiskStat {
			return err
		}
		return effect(o.file)
	})
}

// slashed returns a path without a volume, and with slashes: the paths of Windows have others.
func slashed(name string) string {
	return filepath.ToSlash(name[len(filepath.VolumeName(name)):])
}

// absolute returns a name's path.
func absolute(dir, name string) string {
	if name = slashed(name); path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join("/", dir, name)
}

// byPath makes a call that names a path.
func (d *Disk) byPath(c *DiskCall, effect func() error) error {
	c.Path = absolute("/", c.Path)
	c.FD = -1
	return d.do(c, func() error { return nil }, func(x DiskFault) error {
		if x.Err != nil {
			return x.Err
		}
		if err := d.deniedLocked(c.Path); err != nil && (c.Op == DiskOpenDir || c.Op == DiskOpenForNames || c.Op == DiskMkdir) {
			return err
		}
		return effect()
	})
}

func (d *Disk) openLocked(c *DiskCall, f *inode, flag int) {
	d.lastFD++
	c.FD = d.lastFD
	f.users++
	d.descriptors[c.FD] = &descriptor{file: f, path: c.Path, flag: flag,
		heard: f.lost.times, heardAll: f.device.lost.times}
}

// opened is the result of a call that opens.
func opened(c *DiskCall, err error) (int, error) {
	if err != nil {
		return -1, err
	}
	return c.FD, nil
}

// OpenDir opens a directory.
func (d *Disk) OpenDir(name sys.Name) (fd int, err error) {
	c := &DiskCall{Op: DiskOpenDir, Path: name.String()}
	return opened(c, d.byPath(c, func() error { return d.openDirLocked(c, name) }))
}

func (d *Disk) openDirLocked(c *DiskCall, name sys.Name) error {
	at, err := d.findLocked(d.root, name.String(), true)
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
}

// OpenForNames opens a directory for the calls that take a name in it: it can't be synced.
func (d *Disk) OpenForNames(name sys.Name) (fd int, err error) {
	c := &DiskCall{Op: DiskOpenForNames, Path: name.String()}
	return opened(c, d.byPath(c, func() error {
		err := d.openDirLocked(c, name)
		if err == nil {
			d.descriptors[c.FD].namesOnly = true
		}
		return err
	}))
}

// OpenFile opens a file of a directory with flags of package os; it follows symbolic
// links, or with sys.NoFollow reports ELOOP. A new file has these permissions without the bits of umask 022.
func (d *Disk) OpenFile(dir int, name sys.Name, flag int, perm uint32) (fd int, err error) {
	c := &DiskCall{Op: DiskOpen}
	return opened(c, d.inDir(c, dir, name.String(), "", func(in *inode) error {
		f, err := d.openFileLocked(in, name.String(), flag, perm)
		if err != nil {
			return err
		}
		if flag&os.O_TRUNC != 0 && len(f.bytes) > 0 {
			d.changeLocked(f, change{resize: true})
		}
		d.openLocked(c, f, flag)
		return nil
	}))
}

func (d *Disk) openFileLocked(in *inode, name string, flag int, perm uint32) (*inode, error) {
	exclusive := flag&os.O_CREATE != 0 && flag&os.O_EXCL != 0
	at, err := d.findLocked(in, name, !exclusive && flag&sys.NoFollow == 0)
	switch {
	case err != nil:
		return nil, err
	case at.file.is(kindLink) && !exclusive:
		return nil, syscall.ELOOP
	case at.file == nil && (flag&os.O_CREATE == 0 || at.dir.links == 0):
		return nil, syscall.ENOENT
	case at.file == nil:
		f := d.newInodeLocked(at.dir.device, kindFile|perm&permBits&^umask)
		d.nameLocked(edit{at.dir, at.name, f})
		return f, nil
	case exclusive:
		return nil, syscall.EEXIST
	case at.file.is(kindDir):
		return nil, syscall.EISDIR
	}
	return at.file, nil
}

// Write writes at the descriptor's offset, or at the file's end. It takes what
// there is room for, and only if that is nothing returns ENOSPC.
func (d *Disk) Write(fd int, p []byte) (int, error) { return d.write(fd, p, ownOffset, false) }

// WriteAt writes at an offset, as Write does.
func (d *Disk) WriteAt(fd int, p []byte, at int64) (int, error) { return d.write(fd, p, at, false) }

// WriteAtDurably is WriteAt, and brings these bytes to the disk and no others. If it fails, the
// bytes that it took are lost, as by Sync. It is a violation if an earlier change of the file is
// not on the disk: the caller must not take that for durable.
func (d *Disk) WriteAtDurably(fd int, p []byte, at int64) (int, error) {
	return d.write(fd, p, at, true)
}

// ownOffset is the offset of a Write at the descriptor's own.
const ownOffset = -1

// ReadAt reads what the kernel shows of a file; less than asked for is its end.
func (d *Disk) ReadAt(fd int, p []byte, at int64) (n int, err error) {
	err = d.onDescriptor(&DiskCall{Op: DiskRead, FD: fd, Len: len(p)}, nil, unless(func(o *descriptor) error {
		if !o.file.is(kindFile) {
			return syscall.EISDIR
		}
		if at < int64(len(o.file.bytes)) {
			n = copy(p, o.file.bytes[at:])
		}
		return nil
	}))
	return n, err
}

func (d *Disk) write(fd int, p []byte, offset int64, durably bool) (int, error) {
	given := bytes.Clone(p)
	c := &DiskCall{Op: DiskWrite, FD: fd, Len: len(p)}
	err := d.onDescriptor(c, func(o *descriptor, _ DiskFault) error {
		if !o.file.is(kindFile) || o.flag&(os.O_WRONLY|os.O_RDWR) == 0 {
			return syscall.EBADF
		}
		if len(p) == 0 {
			d.violationLocked(*c, "no bytes")
		}
		if o.file.writing > 0 {
			d.violationLocked(*c, "another write to the file is in flight")
		}
		o.file.writing++
		o.inFlight++
		return nil
	}, func(o *descriptor, x DiskFault) error {
		o.file.writing--
		o.inFlight--
		if !bytes.Equal(given, p) {
			d.violationLocked(*c, "its bytes changed while it was in flight")
		}
		at := offset
		switch {
		case offset != ownOffset:
		case o.flag&os.O_APPEND != 0:
			at = int64(len(o.file.bytes))
		default:
			at = o.offset
		}
		if durably && len(o.file.changes) > 0 {
			d.violationLocked(*c, "it writes durably behind changes that are not")
		}
		c.Bytes = d.takeLocked(o.file, at, given, x.Take)
		if offset == ownOffset {
			o.offset = at + int64(c.Bytes)
		}
		if durably && x.Err != nil {
			o.file.loseLocked(o.file.newest(), x.Err)
			o.heard, o.syncFailed = o.file.lost.times, true
		} else if durably {
			o.file.settleLocked(o.file.newest())
		}
		if x.Err == nil && c.Bytes == 0 && x.Take != 0 && len(given) > 0 {
			return syscall.ENOSPC
		}
		return x.Err
	})
	return c.Bytes, err
}

// takeLocked writes as much of p as there is room for and take lets it.
func (d *Disk) takeLocked(f *inode, at int64, p []byte, take int) int {
	n := int64(len(p))
	if take != All {
		n = min(n, int64(take))
	}
	if d.room != Unlimited {
		n = max(0, min(n, int64(len(f.bytes))+d.room-d.used-at))
	}
	if n > 0 {
		d.changeLocked(f, change{at: at, data: p[:n:n]})
	}
	return int(n)
}

// Truncate cuts a file, or fills it up with zeros.
func (d *Disk) Truncate(fd int, size int64) error {
	return d.onDescriptor(&DiskCall{Op: DiskTruncate, FD: fd}, nil, unless(func(o *descriptor) error {
		if !o.file.is(kindFile) || o.flag&(os.O_WRONLY|os.O_RDWR) == 0 || size < 0 {
			return syscall.EINVAL
		}
		d.changeLocked(o.file, change{resize: true, at: size})
		return nil
	}))
}

// Sync brings what was done to a file's bytes, or to a directory's names, before it
// started to the disk. If it fails, a file's bytes are lost, though the kernel shows them and
// the next Sync returns nil. So are a directory's names, and on a file system without a
// journal those beside a new name of the file. If bytes were lost by another call since the
// descriptor was opened, it reports that, once; of names it reports nothing.
func (d *Disk) Sync(fd int) error { return d.sync(DiskSync, fd) }

// Datasync is the same as Sync here.
func (d *Disk) Datasync(fd int) error { return d.sync(DiskDatasync, fd) }

func (d *Disk) sync(op DiskOp, fd int) error {
	var below, names int
	return d.syncing(&DiskCall{Op: op, FD: fd}, func(o *descriptor) {
		below, names = o.file.newest(), o.file.device.nameOps
	}, func(o *descriptor, err error) error {
		f := o.file
		if err != nil && f.is(kindDir) {
			f.device.loseNamesLocked(f, names)
		} else if err != nil {
			f.loseLocked(below, err)
			if f.device.lacksJournal {
				f.device.loseNamesBesideLocked(f, names)
			}
		} else if f.lost.times > o.heard {
			err = f.lost.err
		}
		o.heard = f.lost.times
		if err == nil && f.is(kindDir) {
			f.device.settleNamesLocked(f, names)
		} else if err == nil {
			f.settleLocked(below)
		}
		return err
	})
}

// SyncAll brings all that was done to the file system of a descriptor before it
// started to the disk. If it fails, the bytes are lost as by Sync. If bytes of any
// file were lost by another call since the descriptor was opened, it reports that,
// once.
func (d *Disk) SyncAll(fd int) error {
	below := map[*inode]int{}
	var names int
	return d.syncing(&DiskCall{Op: DiskSyncAll, FD: fd}, func(o *descriptor) {
		names = o.file.device.nameOps
		for f := range o.file.device.dirty {
			below[f] = f.newest()
		}
	}, func(o *descriptor, err error) error {
		v := o.file.device
		for f, n := range below {
			if err != nil {
				f.loseLocked(n, err)
			} else {
				f.settleLocked(n)
			}
		}
		if err != nil {
			v.loseNamesLocked(nil, names)
		} else {
			v.settleNamesLocked(nil, names)
			if v.lost.times > o.heardAll {
				err = v.lost.err
			}
		}
		o.heardAll = v.lost.times
		return err
	})
}

// syncing makes a call that syncs: start notes what it covers.
func (d *Disk) syncing(c *DiskCall, start func(o *descriptor), end func(o *descriptor, err error) error) error {
	return d.onDescriptor(c, func(o *descriptor, _ DiskFault) error {
		if o.namesOnly {
			return syscall.EBADF
		}
		if o.syncFailed {
			d.violationLocked(*c, "a sync of the descriptor failed before")
		}
		o.inFlight++
		start(o)
		return nil
	}, func(o *descriptor, x DiskFault) error {
		o.inFlight--
		v := o.file.device
		if x.Stops {
			v.stopped = x.Err
		}
		if x.Err == nil {
			x.Err = v.stopped
		}
		err := end(o, x.Err)
		o.syncFailed = o.syncFailed || err != nil
		return err
	})
}

// SyncsAll reports what SetSyncsAll said for the file system of a descriptor: at
// first true.
func (d *Disk) SyncsAll(fd int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := d.descriptors[fd]
	return o != nil && !o.closed && o.file.device.syncsAll
}

// LacksJournal reports what SetLacksJournal said for the file system of a descriptor: at
// first false.
func (d *Disk) LacksJournal(fd int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := d.descriptors[fd]
	return o != nil && !o.closed && o.file.device.lacksJournal
}

// Dirty returns how many bytes are not on the disk, SetDirty's included.
func (d *Disk) Dirty() (n int64, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.foreign < 0 {
		return 0, false
	}
	for _, v := range d.devices {
		for f := range v.dirty {
			for _, c := range f.changes {
				n += int64(len(c.data))
			}
		}
	}
	return n + d.foreign, true
}

// Close closes the descriptor, also when it fails.
func (d *Disk) Close(fd int) error {
	c := &DiskCall{Op: DiskClose, FD: fd}
	return d.onDescriptor(c, func(o *descriptor, _ DiskFault) error {
		if o.inFlight > 0 {
			d.violationLocked(*c, "%d calls on the descriptor are in flight", o.inFlight)
		}
		o.closed = true
		return nil
	}, func(o *descriptor, x DiskFault) error {
		d.reserved--
		o.unlock()
		o.file.users--
		d.forgetLocked(o.file)
		return x.Err
	})
}

// Rename lets a name of the directory be another, which it replaces.
func (d *Disk) Rename(dir int, from, to sys.Name) error {
	return d.inDir(&DiskCall{Op: DiskRename}, dir, from.String(), to.String(), func(in *inode) error {
		return d.renameLocked(in, from.String(), to.String())
	})
}

func (d *Disk) renameLocked(in *inode, from, to string) error {
	source, err := d.findLocked(in, from, false)
	if err != nil {
		return err
	}
	target, err := d.findLocked(in, to, false)
	switch {
	case err != nil:
		return err
	case source.dir.device != target.dir.device:
		return syscall.EXDEV
	case source.name == "" || target.name == "", source.dir.bound[source.name], target.dir.bound[target.name]:
		return syscall.EBUSY
	case source.file == nil || target.dir.links == 0:
		return syscall.ENOENT
	case source.file.device != target.dir.device: // what is mounted there
		return syscall.EXDEV
	case source.file.is(kindDir) && target.dir.within(source.file):
		return syscall.EINVAL
	case target.file.is(kindDir) && source.dir.within(target.file):
		return syscall.ENOTEMPTY
	case source.file == target.file:
		return nil // as POSIX wants it: two links stay two links
	case target.file.is(kindDir) && !source.file.is(kindDir):
		return syscall.EISDIR
	case target.file.is(kindDir) && len(target.file.names) > 0:
		return syscall.ENOTEMPTY
	case target.file != nil && !target.file.is(kindDir) && source.file.is(kindDir):
		return syscall.ENOTDIR
	}
	d.nameLocked(edit{source.dir, source.name, nil}, edit{target.dir, target.name, source.file})
	return nil
}

// Remove takes a file's or a symbolic link's name away.
func (d *Disk) Remove(dir int, name sys.Name) error {
	return d.inDir(&DiskCall{Op: DiskRemove}, dir, name.String(), "", func(in *inode) error {
		at, err := d.findLocked(in, name.String(), false)
		switch {
		case err != nil:
			return err
		case at.file == nil:
			return syscall.ENOENT
		case at.file.is(kindDir):
			return syscall.EISDIR
		case at.dir.bound[at.name]:
			return syscall.EBUSY
		}
		d.nameLocked(edit{at.dir, at.name, nil})
		return nil
	})
}

// Stat says what a name of a directory is; of a symbolic link, that it is one.
func (d *Disk) Stat(dir int, name sys.Name) (s sys.Stat, err error) {
	err = d.inDir(&DiskCall{Op: DiskStat}, dir, name.String(), "", func(in *inode) (err error) {
		s, err = d.statLocked(in, name.String(), false)
		return err
	})
	return s, err
}

// StatPath says what a path is; it follows symbolic links.
func (d *Disk) StatPath(name sys.Name) (s sys.Stat, err error) {
	err = d.byPath(&DiskCall{Op: DiskStatPath, Path: name.String()}, func() (err error) {
		s, err = d.statLocked(d.root, name.String(), true)
		return err
	})
	return s, err
}

func (d *Disk) statLocked(in *inode, name string, follow bool) (sys.Stat, error) {
	at, err := d.findLocked(in, name, follow)
	if err != nil {
		return sys.Stat{}, err
	}
	if at.file == nil {
		return sys.Stat{}, syscall.ENOENT
	}
	return at.file.stat(), nil
}

// StatFD says what an open file or directory is.
func (d *Disk) StatFD(fd int) (s sys.Stat, err error) {
	err = d.onDescriptor(&DiskCall{Op: DiskStatFD, FD: fd}, nil, unless(func(o *descriptor) error {
		s = o.file.stat()
		return nil
	}))
	return s, err
}

// Chmod sets permissions. A crash's effect on them is not modelled.
func (d *Disk) Chmod(fd int, perm uint32) error {
	return d.onDescriptor(&DiskCall{Op: DiskChmod, FD: fd}, nil, unless(func(o *descriptor) error {
		o.file.mode = o.file.mode&^permBits | perm&permBits
		return nil
	}))
}

// Chown sets the owner and the group. A crash's effect on them is not modelled.
func (d *Disk) Chown(fd int, uid, gid uint32) error {
	return d.onDescriptor(&DiskCall{Op: DiskChown, FD: fd}, nil, unless(func(o *descriptor) error {
		o.file.uid, o.file.gid = uid, gid
		return nil
	}))
}

// Mkdir makes a directory, with these permissions without the bits of umask 022.
func (d *Disk) Mkdir(name sys.Name, perm uint32) error {
	return d.byPath(&DiskCall{Op: DiskMkdir, Path: name.String()}, func() error {
		at, err := d.findLocked(d.root, name.String(), false)
		switch {
		case err != nil:
			return err
		case at.file != nil:
			return syscall.EEXIST
		case at.dir.links == 0:
			return syscall.ENOENT
		}
		d.nameLocked(edit{at.dir, at.name, d.newInodeLocked(at.dir.device, kindDir|perm&permBits&^umask)})
		return nil
	})
}
