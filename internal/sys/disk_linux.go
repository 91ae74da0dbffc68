package sys

import (
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Disk makes the system calls that write files, each once. The caller continues after an
// interrupted call (EINTR) and a short write. It has no state but what it keeps of open descriptors: what
// it has opened, it must close. Any goroutine may call any method.
// Errors are the kernel's, a [syscall.Errno]. No call allocates, except SyncAll, SyncsAll and
// Resolve.
//
// It does not use package os, which makes up to five more system calls for each file that it opens,
// for the poller, and allocates.
type Disk struct{}

// pointer returns a pointer to the path for the kernel. The zero Name is the empty path, which no
// file has.
func (n Name) pointer() *byte {
	if n == "" {
		return unsafe.StringData("\x00")
	}
	return unsafe.StringData(string(n))
}

func errnoError(e syscall.Errno) error {
	if e != 0 {
		return e
	}
	return nil
}

// atCwd as a directory means that the name is a path.
const atCwd = AtCwd

func openat(dir int, name Name, flag int, perm uint32) (int, error) {
	fd, _, e := syscall.Syscall6(unix.SYS_OPENAT, uintptr(dir), uintptr(unsafe.Pointer(name.pointer())),
		uintptr(flag|unix.O_CLOEXEC|unix.O_NOCTTY|unix.O_LARGEFILE), uintptr(perm), 0, 0)
	if e != 0 {
		return -1, e
	}
	opened(int(fd), kindOfNew(dir, name, flag))
	return int(fd), nil
}

// OpenDir opens a directory for calls that take one, and for Sync and SyncAll.
func (Disk) OpenDir(path Name) (fd int, err error) {
	return openat(atCwd, path, os.O_RDONLY|unix.O_DIRECTORY, 0)
}

// OpenFile opens a file in a directory for writing, with flags of package os and NoFollow, and the
// permissions of a new file before umask. It never waits: a pipe without a reader is ENXIO, and a
// write to a full one EAGAIN. For files on a disk O_NONBLOCK changes nothing.
func (Disk) OpenFile(dir int, name Name, flag int, perm uint32) (fd int, err error) {
	return openat(dir, name, flag|unix.O_NONBLOCK, perm)
}

// Write writes p in one call, which may take fewer bytes.
func (Disk) Write(fd int, p []byte) (n int, err error) {
	r, _, e := syscall.Syscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
	if e != 0 {
		return 0, e
	}
	return int(r), nil
}

// WriteOnce is Write that the compiler puts into its caller. It may write nothing and return 0.
func (Disk) WriteOnce(fd int, p []byte) (n int, e syscall.Errno) {
	r, _, e := syscall.Syscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
	return max(int(r), 0), e
}

// Truncate sets a file's size.
func (Disk) Truncate(fd int, size int64) error { return syscall.Ftruncate(fd, size) }

// Sync makes a file's bytes, or a directory's names, durable: fsync(2). It also fails if the file
// system has stopped.
func (Disk) Sync(fd int) error {
	if err := syscall.Fsync(fd); err != nil {
		return err
	}
	return groundOf(fd).stopped(fd)
}

// Datasync makes a file's bytes, and the metadata to read them, durable: fdatasync(2). It also
// fails if the file system has stopped.
func (Disk) Datasync(fd int) error {
	if err := syscall.Fdatasync(fd); err != nil {
		return err
	}
	return groundOf(fd).stopped(fd)
}

// Close closes a descriptor. Linux frees the number even if the call was interrupted, so a second
// close could hit another file.
func (Disk) Close(fd int) error {
	closing(fd)
	if _, _, e := syscall.Syscall(unix.SYS_CLOSE, uintptr(fd), 0, 0); e != unix.EINTR {
		return errnoError(e)
	}
	return nil
}

// Rename renames a file in a directory, and replaces a file of the new name. (renameat2(2), because
// newer processors have no renameat.)
func (Disk) Rename(dir int, from, to Name) error {
	_, _, e := syscall.Syscall6(unix.SYS_RENAMEAT2, uintptr(dir), uintptr(unsafe.Pointer(from.pointer())),
		uintptr(dir), uintptr(unsafe.Pointer(to.pointer())), 0, 0)
	return errnoError(e)
}

// Remove removes a file's name from a directory.
func (Disk) Remove(dir int, name Name) error {
	_, _, e := syscall.Syscall(unix.SYS_UNLINKAT, uintptr(dir), uintptr(unsafe.Pointer(name.pointer())), 0)
	return errnoError(e)
}

// Stat returns the attributes of a name in a directory, and of a symbolic link itself.
func (Disk) Stat(dir int, name Name) (Stat, error) {
	return stat(dir, name, unix.AT_SYMLINK_NOFOLLOW)
}

// StatPath returns the attributes of a path; it follows symbolic links.
func (Disk) StatPath(path Name) (Stat, error) { return stat(atCwd, path, 0) }

// StatFD returns the attributes of an open file or directory. A removed file has no Links, also
// where the file system only hides it.
func (Disk) StatFD(fd int) (Stat, error) {
	var s unix.Statx_t
	err := statx(fd, "", unix.AT_EMPTY_PATH, statFields|unix.STATX_MNT_ID_UNIQUE, &s)
	is := newStat(&s)
	if err == nil && is.Links == 1 && is.Mode&unix.S_IFMT == unix.S_IFREG {
		mount := uint64(0)
		if s.Mask&unix.STATX_MNT_ID_UNIQUE != 0 { // Linux 6.8
			mount = s.Mnt_id
		}
		if isHidden(fd, mount) {
			is.Links = 0
		}
	}
	return is, err
}

// stat asks for no times. stat(2) and fstat(2) do, and after them the next write changes the inode
// (multigrain timestamps, Linux 6.13): an append of 128 bytes by RWF_DSYNC then takes 180 µs
// instead of 120 on ext4 without a journal.
func stat(dir int, name Name, flags int) (Stat, error) {
	var s unix.Statx_t
	err := statx(dir, name, flags, statFields, &s)
	return newStat(&s), err
}

const statFields = unix.STATX_TYPE | unix.STATX_MODE | unix.STATX_NLINK | unix.STATX_UID | unix.STATX_GID |
	unix.STATX_INO | unix.STATX_SIZE | unix.STATX_BLOCKS

// statx is statx(2). Before Linux 4.11, or under a filter, it is fstatat(2), which reports no
// attributes.
func statx(dir int, name Name, flags, fields int, s *unix.Statx_t) error {
	_, _, e := syscall.Syscall6(unix.SYS_STATX, uintptr(dir), uintptr(unsafe.Pointer(name.pointer())), uintptr(flags),
		uintptr(fields), uintptr(unsafe.Pointer(s)), 0)
	if e != unix.ENOSYS && e != unix.EPERM {
		return errnoError(e)
	}
	var old unix.Stat_t
	err := unix.Fstatat(dir, name.String(), &old, flags)
	at := func(t unix.Timespec) unix.StatxTimestamp {
		sec, nsec := t.Unix()
		return unix.StatxTimestamp{Sec: sec, Nsec: uint32(nsec)}
	}
	*s = unix.Statx_t{
		Dev_major: unix.Major(uint64(old.Dev)), Dev_minor: unix.Minor(uint64(old.Dev)), Ino: old.Ino,
		Nlink: uint32(old.Nlink), Mode: uint16(old.Mode), Uid: old.Uid, Gid: old.Gid,
		Size: uint64(old.Size), Blocks: uint64(old.Blocks),
		Atime: at(old.Atim), Mtime: at(old.Mtim), Ctime: at(old.Ctim),
	}
	return err
}

func newStat(s *unix.Statx_t) Stat {
	return Stat{
		Device: unix.Mkdev(s.Dev_major, s.Dev_minor),
		Inode:  s.Ino,
		Links:  uint64(s.Nlink),
		Mode:   uint32(s.Mode),
		UID:    s.Uid,
		GID:    s.Gid,
		Size:   int64(s.Size),
		Blocks: int64(s.Blocks),
	}
}

// Chmod sets a file's permissions, without umask.
func (Disk) Chmod(fd int, perm uint32) error { return syscall.Fchmod(fd, perm) }

// Chown sets the owner of a file.
func (Disk) Chown(fd int, uid, gid uint32) error { return syscall.Fchown(fd, int(uid), int(gid)) }

// Mkdir makes a directory with the given permissions, before umask.
func (Disk) Mkdir(path Name, perm uint32) error {
	dir := atCwd // a variable, because the constant does not fit
	_, _, e := syscall.Syscall(unix.SYS_MKDIRAT, uintptr(dir), uintptr(unsafe.Pointer(path.pointer())), uintptr(perm))
	return errnoError(e)
}
