package fault

import (
	"path"
	"slices"
	"syscall"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// The kinds of inodes, as in st_mode, and its permissions.
const (
	kindDir  = 0o040000
	kindFile = 0o100000
	kindLink = 0o120000
	permBits = 0o7777
	umask    = 0o022
	user     = 1000 // the owner of new files, and its group: see SetOwner
)

// A device is a file system.
type device struct {
	number       uint64
	top          *inode
	syncsAll     bool
	lacksJournal bool
	dirty        map[*inode]bool // files that have changes
	log          []*nameOp       // changes of names that are not on the disk yet, in order
	nameOps      int             // how many there were
	lost         loss
	stopped      error // each sync's error; nil while it runs
}

// An inode is a file, a directory or a symbolic link.
type inode struct {
	device   *device
	number   uint64
	mode     uint32
	uid, gid uint32
	links    uint64 // of a directory 2, or 0 if it was removed
	users    int    // descriptors
	target   string // of a symbolic link

	attributes map[string][]byte    // extended; what a crash leaves of them is not modelled
	lockedBy   *descriptor          // alone
	unlocked   chan struct{}        // closed when a lock ends; nil: nobody waits
	sharedBy   map[*descriptor]bool // the lock

	// Of a file: the kernel's bytes, the disk's bytes, and the writes that lead from these to
	// those. A change keeps its number, counted from 0, when others before it are gone.
	bytes   []byte
	stable  []byte
	changes []change
	settled int // how many changes are on the disk
	writing int // Writes in flight
	lost    loss

	// Of a directory: the kernel's names, and those on the disk.
	up     *inode
	names  map[string]*inode
	onDisk map[string]*inode
	bound  map[string]bool // the names at which a single file is mounted
}

// A loss is how often a file or a device lost bytes, and why at last. Each descriptor
// that was open then reports it once (Linux: errseq_t).
type loss struct {
	times int
	err   error
}

// A change is a write to a file, or a new size of it.
type change struct {
	resize bool
	at     int64 // the offset, or the new size
	data   []byte
	lost   bool // a sync of it failed: the size may reach the disk, the bytes never do
}

// whole applies all of a change to a file's bytes.
func (c change) whole(image []byte) []byte {
	if c.resize {
		return resized(image, c.at)
	}
	image = resized(image, max(int64(len(image)), c.at+int64(len(c.data))))
	if !c.lost {
		copy(image[c.at:], c.data)
	}
	return image
}

// resized cuts b or fills it up with zeros.
func resized(b []byte, size int64) []byte {
	if size <= int64(len(b)) {
		return b[:size]
	}
	return append(b, make([]byte, size-int64(len(b)))...)
}

func (f *inode) is(kind uint32) bool { return f != nil && f.mode&^permBits == kind }

// within reports whether a directory is another or in it.
func (f *inode) within(other *inode) bool {
	for ; f != other; f = f.up {
		if f.up == f || f.up == nil {
			return false
		}
	}
	return true
}

func (f *inode) stat() sys.Stat {
	s := sys.Stat{Device: f.device.number, Inode: f.number, Links: f.links, Mode: f.mode, UID: f.uid, GID: f.gid, Blocks: -1}
	switch {
	case f.is(kindFile):
		s.Size = int64(len(f.bytes))
	case f.is(kindLink):
		s.Size = int64(len(f.target))
	}
	return s
}

func (d *Disk) newDeviceLocked() (top *inode) {
	v := &device{number: uint64(len(d.devices) + 1), syncsAll: true, dirty: map[*inode]bool{}}
	d.devices = append(d.devices, v)
	v.top = d.newInodeLocked(v, kindDir|0o755)
	return v.top
}

func (d *Disk) newInodeLocked(v *device, mode uint32) *inode {
	d.inodes++
	f := &inode{device: v, number: d.inodes, mode: mode, uid: d.owner, gid: d.owner}
	if f.is(kindDir) {
		f.links, f.names, f.onDisk = 2, map[string]*inode{}, map[string]*inode{}
	}
	return f
}

// changeLocked makes a change in the kernel.
func (d *Disk) changeLocked(f *inode, c change) {
	size := len(f.bytes)
	f.bytes = c.whole(f.bytes)
	d.used += int64(len(f.bytes) - size)
	f.changes = append(f.changes, c)
	f.device.dirty[f] = true
}

// newest is the number that the next change will have.
func (f *inode) newest() int { return f.settled + len(f.changes) }

// settleLocked brings the changes below a number to the disk.
func (f *inode) settleLocked(below int) {
	n := max(0, below-f.settled)
	for _, c := range f.changes[:n] {
		f.stable = c.whole(f.stable)
	}
	f.changes = f.changes[n:]
	f.settled += n
	if len(f.changes) == 0 {
		delete(f.device.dirty, f)
	}
}

// loseLocked loses the bytes of the changes below a number, if there are any.
func (f *inode) loseLocked(below int, err error) {
	lost := false
	for i := range f.changes[:max(0, below-f.settled)] {
		if c := &f.changes[i]; !c.resize && !c.lost {
			c.lost, lost = true, true
		}
	}
	if lost {
		f.lost = loss{f.lost.times + 1, err}
		f.device.lost = loss{f.device.lost.times + 1, err}
	}
}

// forgetLocked gives the bytes of a file free that has neither a name nor a descriptor.
func (d *Disk) forgetLocked(f *inode) {
	if f.is(kindFile) && f.links == 0 && f.users == 0 {
		d.used -= int64(len(f.bytes))
	}
}

// A nameOp is one call's change of names: all of it is on the disk, or nothing.
type nameOp struct {
	number int // counted from 1, of its device
	edits  []edit
	lost   bool // a sync of it failed
}

// An edit gives a name of a directory to a file, or to none.
type edit struct {
	dir  *inode
	name string
	file *inode
}

// nameLocked edits names in the kernel.
func (d *Disk) nameLocked(edits ...edit) *nameOp {
	var unnamed []*inode
	for _, e := range edits {
		if old := e.dir.names[e.name]; old != nil {
			delete(e.dir.names, e.name)
			unnamed = append(unnamed, old)
			old.links--
		}
	}
	for _, e := range edits {
		if e.file == nil {
			continue
		}
		e.dir.names[e.name] = e.file
		e.file.links++
		if e.file.is(kindDir) {
			e.file.up, e.file.links = e.dir, 2
		}
	}
	for _, old := range unnamed {
		if old.is(kindDir) && old.links == 1 {
			old.links = 0
		}
		d.forgetLocked(old)
	}
	v := edits[0].dir.device
	v.nameOps++
	op := &nameOp{number: v.nameOps, edits: edits}
	v.log = append(v.log, op)
	return op
}

// onto applies the op to the names on a disk.
func (op *nameOp) onto(names func(dir *inode) map[string]*inode) {
	for _, e := range op.edits {
		if e.file == nil {
			delete(names(e.dir), e.name)
		} else {
			names(e.dir)[e.name] = e.file
		}
	}
}

// settleNamesLocked brings the names of a directory to the disk, or of the whole device
// if dir is nil. It applies the ops up to a number, and the ops that they build on. Of
// these, what a failed sync has lost is not there, and never will be.
func (v *device) settleNamesLocked(dir *inode, upTo int) {
	ops := v.namesOf(dir, upTo)
	settled := map[*nameOp]bool{}
	for _, op := range ops {
		settled[op] = true
		if !op.lost {
			op.onto(func(dir *inode) map[string]*inode { return dir.onDisk })
		}
	}
	v.log = slices.DeleteFunc(v.log, func(op *nameOp) bool { return settled[op] })
}

// loseNamesLocked records that such a sync failed: the kernel shows the names, holds
// them for written, and does not bring them to the disk again.
func (v *device) loseNamesLocked(dir *inode, upTo int) {
	for _, op := range v.namesOf(dir, upTo) {
		op.lost = true
	}
}

// loseNamesBesideLocked records that the sync of a file failed. Without a journal that
// takes the directories of the file's new names along (ext4_sync_parent).
func (v *device) loseNamesBesideLocked(f *inode, upTo int) {
	for _, op := range slices.Clone(v.log) {
		for _, e := range op.edits {
			if e.file == f && op.number <= upTo {
				v.loseNamesLocked(e.dir, upTo)
			}
		}
	}
}

// namesOf returns the ops up to a number that concern a directory, or the whole device
// if dir is nil. The ops that they build on come with them, in their order.
func (v *device) namesOf(dir *inode, upTo int) (ops []*nameOp) {
	with := map[*inode]bool{dir: true}
	for _, op := range slices.Backward(v.log) { // the newest takes along what is older
		touches := dir == nil
		for _, e := range op.edits {
			touches = touches || with[e.dir]
		}
		if !touches || op.number > upTo {
			continue
		}
		ops = append(ops, op)
		for _, e := range op.edits {
			with[e.dir] = true
		}
	}
	slices.Reverse(ops)
	return ops
}

// A place is where a path leads: a name in a directory, and its inode, nil if none. The name is
// empty where the path ends with no name, but at a directory.
type place struct {
	dir  *inode
	name string
	file *inode
}

// mostLinks is how many symbolic links a path may lead through: Linux's.
const mostLinks = 40

// findLocked follows a path from a directory, and, if follow says so, the symbolic link
// that its last element may be.
func (d *Disk) findLocked(from *inode, p string, follow bool) (place, error) {
	links := 0
	return d.walkLocked(from, slashed(p), follow, &links)
}

func (d *Disk) walkLocked(from *inode, p string, follow bool, links *int) (place, error) {
	if p == "" {
		return place{}, syscall.ENOENT
	}
	if p[0] == '/' {
		from = d.root
	}
	at := place{dir: from, file: from}
	for len(p) > 0 {
		var element string
		element, p = firstElement(p)
		switch {
		case element == "" || element == ".":
			continue
		case at.file == nil:
			return place{}, syscall.ENOENT
		case !at.file.is(kindDir):
			return place{}, syscall.ENOTDIR
		case element == "..":
			at = place{dir: at.file.up, file: at.file.up}
			continue
		}
		here := at.file
		at = place{here, element, here.names[element]}
		if at.file.is(kindLink) && (follow || p != "") {
			if *links++; *links > mostLinks {
				return place{}, syscall.ELOOP
			}
			var err error
			if at, err = d.walkLocked(here, at.file.target, true, links); err != nil {
				return place{}, err
			}
		}
	}
	return at, nil
}

// firstElement takes the first element off a path.
func firstElement(p string) (element, rest string) {
	for i := range len(p) {
		if p[i] == '/' {
			return p[:i], p[i+1:]
		}
	}
	return p, ""
}

// pathLocked returns the path of a place.
func (d *Disk) pathLocked(at place) string {
	p := at.name
	for f := at.dir; f != d.root; f = f.up {
		for name, file := range f.up.names {
			if file == f {
				p = name + "/" + p
			}
		}
		if f.links == 0 || f.up == f {
			break
		}
	}
	if at.name == "" && len(p) > 1 {
		p = p[:len(p)-1]
	}
	return "/" + p
}

// Resolve follows the symbolic links of a path to a file, which may be missing at
// its end. Its result begins with a slash if the path does.
func (d *Disk) Resolve(name string) (resolved string, err error) {
	err = d.byPath(&DiskCall{Op: DiskResolve, Path: name}, func() error {
		at, err := d.findLocked(d.root, name, true)
		if err != nil {
			return err
		}
		resolved = d.pathLocked(at)
		if !path.IsAbs(slashed(name)) && len(resolved) > 1 {
			resolved = resolved[1:]
		}
		return nil
	})
	return resolved, err
}
