package sys

import (
	"errors"
	"math"
	"os"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// OpenSource opens a file in a directory for reading. It never waits: a pipe is opened even without
// a writer. It follows a symbolic link only if the name is a path, with AtCwd: in an open directory
// a link is ELOOP.
func (Disk) OpenSource(dir int, name Name) (fd int, err error) {
	flags := os.O_RDONLY | unix.O_NONBLOCK
	if dir != AtCwd {
		flags |= unix.O_NOFOLLOW
	}
	return openat(dir, name, flags, 0)
}

// ReadAt reads in one call, which may return fewer bytes: pread(2).
func (Disk) ReadAt(fd int, p []byte, at int64) (n int, err error) {
	return transferred(unix.Pread(fd, p, at))
}

// WriteAt writes in one call, which may take fewer bytes: pwrite(2).
func (Disk) WriteAt(fd int, p []byte, at int64) (n int, err error) {
	return transferred(unix.Pwrite(fd, p, at))
}

// transferred replaces the count -1 of a failed call by 0.
func transferred(n int, err error) (int, error) { return max(n, 0), err }

// Allocate allocates a range of a file on the disk: fallocate(2). With grow the file's size grows
// to its end.
func (Disk) Allocate(fd int, at, n int64, grow bool) error {
	mode := uint32(unix.FALLOC_FL_KEEP_SIZE)
	if grow {
		mode = 0
	}
	return unix.Fallocate(fd, mode, at, n)
}

// AllocatesFaster reports whether writing after allocation is faster on fd's file system, by
// measurement. It is on ext4, whose delayed allocation then need not count every page. ext2 and
// ext3 have the same number, and no fallocate.
func (Disk) AllocatesFaster(fd int) bool {
	var s unix.Statfs_t
	return unix.Fstatfs(fd, &s) == nil && int64(uint32(s.Type)) == unix.EXT4_SUPER_MAGIC
}

// Clone makes a file share all bytes of another: ioctl_ficlone(2).
func (Disk) Clone(to, from int) error { return unix.IoctlFileClone(to, from) }

// SharesFaster reports whether sharing a small file's bytes is faster than writing them, by
// measurement, on a file system that also shares allocated ranges never written. That is btrfs,
// where written bytes are added to its trees later, while the next files wait. btrfs has an
// anonymous device, with major number 0; for other devices fd is not asked.
func (Disk) SharesFaster(fd int, device uint64) bool {
	if unix.Major(device) != 0 {
		return false
	}
	var s unix.Statfs_t
	return unix.Fstatfs(fd, &s) == nil && int64(uint32(s.Type)) == unix.BTRFS_SUPER_MAGIC
}

// IsCold reports whether the page cache has no page of a file, by cachestat(2), Linux 6.5; without
// it, false. Only the file's owner, or a user who may write it, may ask. On overlayfs the pages
// belong to the lower file, and each file seems cold.
func (Disk) IsCold(fd int) bool {
	r, err := byCachestat(fd, math.MaxInt64)
	return err == nil && r.Resident == 0
}

// CopiesRanges reports whether the file system of a file passes copy_file_range(2) on to a server,
// so that the bytes need not travel: NFS 4.2, SMB, Ceph and FUSE do (statfs(2), linux/magic.h).
func (Disk) CopiesRanges(fd int) bool {
	var s unix.Statfs_t
	if err := unix.Fstatfs(fd, &s); err != nil {
		return false
	}
	const ceph, cifs = 0x00c36400, 0xff534d42
	switch int64(uint32(s.Type)) {
	case unix.NFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.FUSE_SUPER_MAGIC, ceph, cifs:
		return true
	}
	return false
}

// CopyRange copies in the kernel, at the same offset of both files: copy_file_range(2).
func (Disk) CopyRange(to, from int, at int64, n int) (int, error) {
	in, out := at, at
	return transferred(unix.CopyFileRange(from, &in, to, &out, n, 0))
}

// pipeSize is the size of a splice's pipe: the largest for an ordinary user
// (/proc/sys/fs/pipe-max-size, pipe(7)).
const pipeSize = 1 << 20

// Pipe makes a pipe of pipeSize if it can.
func (Disk) Pipe() (r, w int, err error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return -1, -1, err
	}
	_, _ = unix.FcntlInt(uintptr(p[0]), unix.F_SETPIPE_SZ, pipeSize) // the default size works too
	return p[0], p[1], nil
}

// Splice moves bytes between a file and a pipe, whose position is -1: splice(2).
func (Disk) Splice(to int, toAt int64, from int, fromAt int64, n int) (int, error) {
	var in, out *int64
	if fromAt >= 0 {
		in = &fromAt
	}
	if toAt >= 0 {
		out = &toAt
	}
	moved, err := unix.Splice(from, in, to, out, n, unix.SPLICE_F_MOVE)
	return transferred(int(moved), err)
}

// SeekData returns the first byte of data from at on; ENXIO if there is none.
func (Disk) SeekData(fd int, at int64) (int64, error) { return unix.Seek(fd, at, unix.SEEK_DATA) }

// SeekHole returns the first byte of a hole from at on; every file ends in a hole.
func (Disk) SeekHole(fd int, at int64) (int64, error) { return unix.Seek(fd, at, unix.SEEK_HOLE) }

// The arguments of FS_IOC_FIEMAP: linux/fiemap.h, and Documentation/filesystems/fiemap.rst.
const (
	fiemapCall       = 0xc020660b // _IOWR('f', 11, struct fiemap)
	fiemapSync       = 0x1        // of a call: it first writes the file's dirty pages, and waits for them
	fiemapLast       = 0x1        // of an extent
	fiemapUnwritten  = 0x800
	fiemapSomeAtOnce = 128
)

type fiemapExtent struct {
	logical, _, length uint64
	_                  [2]uint64
	flags              uint32
	_                  [3]uint32
}

type fiemap struct {
	start, length          uint64
	flags, mapped, extents uint32
	_                      uint32
}

// Unwritten appends the ranges from at on that are allocated and were never written. The next call
// begins at next, which is -1 at the end of the file.
func (Disk) Unwritten(fd int, at int64, to []Range) (ranges []Range, next int64, err error) {
	var m struct {
		fiemap
		extent [fiemapSomeAtOnce]fiemapExtent
	}
	return m.ask(fd, at, m.extent[:], to)
}

// ask gets extents, for which there is room behind m.
func (m *fiemap) ask(fd int, at int64, extents []fiemapExtent, to []Range) (ranges []Range, next int64, err error) {
	m.start, m.length, m.extents = uint64(at), math.MaxUint64-uint64(at), uint32(len(extents))
	if _, _, e := syscall.Syscall(unix.SYS_IOCTL, uintptr(fd), fiemapCall, uintptr(unsafe.Pointer(m))); e != 0 {
		return to, -1, e
	}
	next = -1
	for _, x := range extents[:m.mapped] {
		end := int64(x.logical + x.length)
		if x.flags&fiemapUnwritten != 0 {
			to = append(to, Range{int64(x.logical), end})
		}
		next = end
		if x.flags&fiemapLast != 0 {
			next = -1
		}
	}
	return to, next, nil
}

// RenameNew renames a file in a directory to an unused name; else the error is EEXIST.
func (Disk) RenameNew(dir int, from, to Name) error {
	_, _, e := syscall.Syscall6(unix.SYS_RENAMEAT2, uintptr(dir), uintptr(unsafe.Pointer(from.pointer())),
		uintptr(dir), uintptr(unsafe.Pointer(to.pointer())), unix.RENAME_NOREPLACE, 0)
	return errnoError(e)
}

// Lock locks a file against other programs and other descriptors, until it is closed: flock(2). It
// does not wait.
func (Disk) Lock(fd int) error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) }

// LockWait is Lock that waits until no other has the lock.
func (Disk) LockWait(fd int) error { return unix.Flock(fd, unix.LOCK_EX) }

// LockShared takes a shared lock. A descriptor that has one kind of lock releases it for the other,
// and has none after an error.
func (Disk) LockShared(fd int) error { return unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB) }

// Unlock ends the lock of a descriptor.
func (Disk) Unlock(fd int) error { return unix.Flock(fd, unix.LOCK_UN) }

// SetTimes sets the times of a file's last read and write, to the nanosecond if the file system
// keeps it: futimens(3).
func (Disk) SetTimes(fd int, accessed, modified time.Time) error {
	var times [2]unix.Timespec
	var err error
	if times[0], err = unix.TimeToTimespec(accessed); err != nil {
		return err
	}
	if times[1], err = unix.TimeToTimespec(modified); err != nil {
		return err
	}
	_, _, e := syscall.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(&times)), 0, 0, 0)
	return errnoError(e)
}

// Attributes returns the names of a file's extended attributes, including its access control lists:
// xattr(7).
func (Disk) Attributes(fd int) (names []string, err error) {
	return attributeNames(func(p []byte) (int, error) { return unix.Flistxattr(fd, p) })
}

// attributeNames decodes the result of listxattr(2). For a file without attributes, as most are, it
// does not allocate.
func attributeNames(list func([]byte) (int, error)) (names []string, err error) {
	if n, err := list(nil); n <= 0 {
		return nil, err
	}
	buf, err := grown(list)
	if err != nil || len(buf) == 0 {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(buf), "\x00"), "\x00"), nil
}

// Attribute returns the value of an extended attribute.
func (Disk) Attribute(fd int, name string) ([]byte, error) {
	if _, err := unix.Fgetxattr(fd, name, nil); err != nil { // most files have none, and this does not allocate
		return nil, err
	}
	return grown(func(p []byte) (int, error) { return unix.Fgetxattr(fd, name, p) })
}

// grown repeats call with a larger buffer until the result fits.
func grown(call func([]byte) (int, error)) ([]byte, error) {
	for size := 1 << 10; ; size *= 4 {
		p := make([]byte, size)
		n, err := call(p)
		if err == nil {
			return p[:n], nil
		}
		if !errors.Is(err, unix.ERANGE) || size > 1<<20 {
			return nil, err
		}
	}
}

// SetAttribute sets an extended attribute.
func (Disk) SetAttribute(fd int, name string, value []byte) error {
	return unix.Fsetxattr(fd, name, value, 0)
}

// RemoveAttribute removes an extended attribute.
func (Disk) RemoveAttribute(fd int, name string) error { return unix.Fremovexattr(fd, name) }

// Evict asks the kernel to drop a file's pages. Dirty, mapped and locked pages stay; Cached counts
// them.
func (Disk) Evict(fd int) error { return unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED) }

// Cached returns the number of a file's pages in the page cache: see [PageCache].
func (Disk) Cached(fd int, size int64) (pages int64, err error) {
	r, err := residency(fd, size)
	return r.Resident, err
}

// Free returns the number of bytes that this user may still write to a file's file system. The part
// reserved for root counts for root: fstatfs(2).
func (Disk) Free(fd int) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Fstatfs(fd, &s); err != nil {
		return 0, err
	}
	if roomUnknown(&s) {
		return math.MaxInt64, nil
	}
	blocks, size := s.Bavail, uint64(s.Bsize)
	if os.Geteuid() == 0 {
		blocks = s.Bfree
	}
	if size != 0 && blocks > math.MaxInt64/size {
		return math.MaxInt64, nil
	}
	return int64(blocks * size), nil
}
