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

// OpenSource opens a file of a directory for reading. It never waits: a pipe is
// opened though no process writes it. A symbolic link is followed only where the name is a
// path, with AtCwd: in an open directory that is ELOOP.
func (Disk) OpenSource(dir int, name Name) (fd int, err error) {
	flags := os.O_RDONLY | unix.O_NONBLOCK
	if dir != AtCwd {
		flags |= unix.O_NOFOLLOW
	}
	return openat(dir, name, flags, 0)
}

// ReadAt reads what the kernel gives in one call: pread(2).
func (Disk) ReadAt(fd int, p []byte, at int64) (n int, err error) {
	return transferred(unix.Pread(fd, p, at))
}

// WriteAt writes what the kernel takes in one call: pwrite(2).
func (Disk) WriteAt(fd int, p []byte, at int64) (n int, err error) {
	return transferred(unix.Pwrite(fd, p, at))
}

// transferred turns the count of a failed call, which is -1, into 0.
func transferred(n int, err error) (int, error) { return max(n, 0), err }

// Allocate gives a range of a file its room on the disk: fallocate(2). The file's
// size grows with it if grow is set.
func (Disk) Allocate(fd int, at, n int64, grow bool) error {
	mode := uint32(unix.FALLOC_FL_KEEP_SIZE)
	if grow {
		mode = 0
	}
	return unix.Fallocate(fd, mode, at, n)
}

// AllocatesFaster reports whether it was measured that writing to a file is faster after its room
// was allocated. It was so on ext4, whose delayed allocation then need not count every page. ext2
// and ext3 have the same number, and no fallocate.
func (Disk) AllocatesFaster(fd int) bool {
	var s unix.Statfs_t
	return unix.Fstatfs(fd, &s) == nil && int64(uint32(s.Type)) == unix.EXT4_SUPER_MAGIC
}

// Clone makes a file share all bytes of another: ioctl_ficlone(2).
func (Disk) Clone(to, from int) error { return unix.IoctlFileClone(to, from) }

// SharesFaster reports whether it was measured that a file system shares the bytes of a
// small file faster than it writes them. They share room that was never written, too. That is btrfs, where what
// is written is put into its trees later, while the next files wait for these. A device that is not
// anonymous, of major number 0, is none of btrfs, and fd is not asked.
func (Disk) SharesFaster(fd int, device uint64) bool {
	if unix.Major(device) != 0 {
		return false
	}
	var s unix.Statfs_t
	return unix.Fstatfs(fd, &s) == nil && int64(uint32(s.Type)) == unix.BTRFS_SUPER_MAGIC
}

// IsCold reports whether the page cache has nothing of a file, as far as cachestat(2)
// knows, Linux 6.5: else false. Only the file's owner, or a user who may write it,
// learns it. On overlayfs the pages are those of the file below, and each file seems to
// be cold.
func (Disk) IsCold(fd int) bool {
	r, err := byCachestat(fd, math.MaxInt64)
	return err == nil && r.Resident == 0
}

// CopiesRanges reports whether the file system of a file hands copy_file_range(2) on
// to a server, which then need not send the bytes here and back: NFS 4.2, SMB, Ceph
// and FUSE do (statfs(2), linux/magic.h).
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

// CopyRange copies in the kernel, at the same place of both files: copy_file_range(2).
func (Disk) CopyRange(to, from int, at int64, n int) (int, error) {
	in, out := at, at
	return transferred(unix.CopyFileRange(from, &in, to, &out, n, 0))
}

// pipeSize is what a pipe of a splice holds: what a user may have without being
// privileged (/proc/sys/fs/pipe-max-size, pipe(7)).
const pipeSize = 1 << 20

// Pipe makes a pipe, as large as a user may have one.
func (Disk) Pipe() (r, w int, err error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return -1, -1, err
	}
	_, _ = unix.FcntlInt(uintptr(p[0]), unix.F_SETPIPE_SZ, pipeSize) // it works as it is, too
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

// SeekData returns where data begins from at on; there is none: ENXIO.
func (Disk) SeekData(fd int, at int64) (int64, error) { return unix.Seek(fd, at, unix.SEEK_DATA) }

// SeekHole returns where a hole begins from at on; one is behind the end of every file.
func (Disk) SeekHole(fd int, at int64) (int64, error) { return unix.Seek(fd, at, unix.SEEK_HOLE) }

// What FS_IOC_FIEMAP takes: linux/fiemap.h, and Documentation/filesystems/fiemap.rst.
const (
	fiemapCall       = 0xc020660b // _IOWR('f', 11, struct fiemap)
	fiemapLast       = 0x1
	fiemapUnwritten  = 0x800
	fiemapSomeAtOnce = 128
)

type fiemapExtent struct {
	logical, physical, length uint64
	_                         [2]uint64
	flags                     uint32
	_                         [3]uint32
}

type fiemap struct {
	start, length          uint64
	flags, mapped, extents uint32
	_                      uint32
	extent                 [fiemapSomeAtOnce]fiemapExtent
}

// Unwritten appends the ranges from at on that have room on the disk and were not
// written since. It goes on at next, which is -1 at the end of the file.
func (Disk) Unwritten(fd int, at int64, to []Range) (ranges []Range, next int64, err error) {
	m := fiemap{start: uint64(at), length: math.MaxUint64 - uint64(at), extents: fiemapSomeAtOnce}
	if _, _, e := syscall.Syscall(unix.SYS_IOCTL, uintptr(fd), fiemapCall, uintptr(unsafe.Pointer(&m))); e != 0 {
		return to, -1, e
	}
	next = -1
	for _, x := range m.extent[:m.mapped] {
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

// RenameNew gives a file of a directory another name there, which no file may have yet:
// EEXIST.
func (Disk) RenameNew(dir int, from, to Name) error {
	_, _, e := syscall.Syscall6(unix.SYS_RENAMEAT2, uintptr(dir), uintptr(unsafe.Pointer(from.pointer())),
		uintptr(dir), uintptr(unsafe.Pointer(to.pointer())), unix.RENAME_NOREPLACE, 0)
	return errnoError(e)
}

// Lock locks a file against other programs and other descriptors that lock it, until
// it is closed: flock(2). It does not wait.
func (Disk) Lock(fd int) error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) }

// LockShared is Lock for any number of descriptors at once. A descriptor that has the one
// lock gives it up for the other, and has none after an error.
func (Disk) LockShared(fd int) error { return unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB) }

// Unlock ends the lock of a descriptor.
func (Disk) Unlock(fd int) error { return unix.Flock(fd, unix.LOCK_UN) }

// SetTimes sets when a file was last read and written, to the nanosecond as far as the
// file system keeps it: futimens(3).
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

// Attributes returns the names of a file's extended attributes, with those that are
// its access control lists: xattr(7).
func (Disk) Attributes(fd int) (names []string, err error) {
	return attributeNames(func(p []byte) (int, error) { return unix.Flistxattr(fd, p) })
}

// attributeNames takes what listxattr(2) returns apart. Most files have none, and it then
// takes no memory.
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
	if _, err := unix.Fgetxattr(fd, name, nil); err != nil { // most files have none, which takes no memory
		return nil, err
	}
	return grown(func(p []byte) (int, error) { return unix.Fgetxattr(fd, name, p) })
}

// grown calls with more and more memory until all finds room.
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

// Evict asks the kernel to drop a file's pages. Those stay that are not on the disk
// yet, mapped or locked; Cached shows that.
func (Disk) Evict(fd int) error { return unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED) }

// Cached returns how many pages of a file are in the page cache: see [PageCache].
func (Disk) Cached(fd int, size int64) (pages int64, err error) {
	r, err := residency(fd, size)
	return r.Resident, err
}

// Free returns how many bytes this user may still write to a file's file system. What
// it keeps back for root counts for root: fstatfs(2).
func (Disk) Free(fd int) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Fstatfs(fd, &s); err != nil {
		return 0, err
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
