package sys

import (
	"os"

	"golang.org/x/sys/unix"
)

// DropRefused makes the kernel drop a file's pages from its cache if the disk has refused the first write of a block at or behind an
// offset. Call it after a file was opened, and before it is written to there. It reports nothing: a failure of the disk since the
// open is reported by the next sync, as ever.
//
// On ext4 (Linux 6.18) such a block's extent stays unwritten, and its page stays in the cache as one that has a place on the disk.
// So what any process adds to that page is written to the disk, its sync succeeds, and the block is read as zeros when the page is gone.
// In a page that was read again all is well. What the disk has refused is lost in either case.
//
// A page that another process has mapped can't be dropped.
func (Disk) DropRefused(fd int, at int64) {
	if !hasUnwritten(fd, at, 0) {
		return
	}
	if kind := groundOf(fd).of(fd); kind != unix.EXT4_SUPER_MAGIC && kind != unix.OVERLAYFS_SUPER_MAGIC {
		return // other file systems look again where a page belongs, and would lose what the cache still has
	}
	// A block is unwritten also while it is written for the first time, and only clean pages are dropped. The first call waits for
	// both. It takes no failure away from the next sync, as fdatasync(2) would, and may return it itself.
	hasUnwritten(fd, at, fiemapSync)
	if hasUnwritten(fd, at, 0) {
		_ = unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED) // of a part it would leave a large folio that begins before it
	}
}

// hasUnwritten reports whether a file has bytes from an offset on in blocks that were never written.
func hasUnwritten(fd int, at int64, flags uint32) bool {
	var m struct { // small, because nearly always there is one extent; a file in many pieces is asked for in more calls
		fiemap
		extent [32]fiemapExtent
	}
	m.flags = flags
	for at >= 0 {
		var ranges []Range
		var err error
		if ranges, at, err = m.ask(fd, at, m.extent[:], nil); err != nil {
			return false
		}
		if len(ranges) > 0 {
			is, err := Disk{}.StatFD(fd)
			return err == nil && ranges[0].At < is.Size
		}
	}
	return false
}

// DropRefused is [Disk.DropRefused] for an os.File.
func DropRefused(f *os.File, at int64) {
	_ = OnDescriptor(f, func(fd int) error {
		Disk{}.DropRefused(fd, at)
		return nil
	})
}
