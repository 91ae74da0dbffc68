package sys

import (
	"os"
	"strings"
	"sync/atomic"
)

// A ground is the kind of the file system of an open file, which the file never leaves: fstatfs(2) is
// asked once, and not at each sync. The nil ground asks each time.
type ground struct{ kind atomic.Uint32 } // 0: not asked yet, or the kernel does not say

// of returns the kind, or 0 if the kernel does not say it.
func (g *ground) of(fd int) uint32 {
	if g == nil {
		return fileSystem(fd)
	}
	kind := g.kind.Load()
	if kind == 0 {
		kind = fileSystem(fd)
		g.kind.Store(kind)
	}
	return kind
}

// stopped returns the error of a file system that takes no more changes, or nil. It is called after
// each successful sync. After ext4 or xfs could not write its journal, or btrfs its trees, the
// unwritten changes are lost. But fsync(2) of a directory still succeeds, and on ext4 also of a
// file whose bytes were written and whose size was not.
func (g *ground) stopped(fd int) error {
	if canStop(g.of(fd)) {
		return refusal(fd)
	}
	return nil
}

// grounds are those of the descriptors that a Disk has opened, until it closes them. They are global, as
// descriptors are. A descriptor from elsewhere has none: nobody says when its number is another file's.
var grounds [1024]atomic.Pointer[[1024]descriptor]

type descriptor struct {
	open atomic.Bool
	ground
}

// descriptorOf returns the place of a descriptor, or nil if there is none.
func descriptorOf(fd int, makes bool) *descriptor {
	if fd < 0 || fd >= len(grounds)*1024 {
		return nil
	}
	page := &grounds[fd/1024]
	if page.Load() == nil {
		if !makes {
			return nil
		}
		page.CompareAndSwap(nil, new([1024]descriptor))
	}
	return &page.Load()[fd%1024]
}

// groundOf returns the ground of a descriptor that a Disk has opened, or nil.
func groundOf(fd int) *ground {
	if d := descriptorOf(fd, false); d != nil && d.open.Load() {
		return &d.ground
	}
	return nil
}

func opened(fd int, kind uint32) {
	if d := descriptorOf(fd, true); d != nil {
		d.kind.Store(kind)
		d.open.Store(true)
	}
}

// kindOfNew returns the kind of a file that openat has made in a directory: the directory's. It is 0 if
// that is not known. Any other name may be where another file system is mounted.
func kindOfNew(dir int, name Name, flag int) uint32 {
	const makes = os.O_CREATE | os.O_EXCL
	if flag&makes != makes || strings.Contains(string(name), "/") {
		return 0
	}
	if g := groundOf(dir); g != nil {
		return g.kind.Load()
	}
	return 0
}

// closing is called before the number may be another file's.
func closing(fd int) {
	if d := descriptorOf(fd, false); d != nil {
		d.open.Store(false)
	}
}
