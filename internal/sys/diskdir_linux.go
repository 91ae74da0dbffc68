package sys

import (
	"encoding/binary"
	"errors"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// OpenForNames opens a directory that need not be readable, for calls that take a directory and a
// name: O_PATH, open(2). The descriptor can't be read or synced.
func (Disk) OpenForNames(path Name) (fd int, err error) {
	return openat(atCwd, path, unix.O_PATH|unix.O_DIRECTORY, 0)
}

// OpenDirIn opens a directory in a directory, but not through a symbolic link: that is ENOTDIR, or
// ELOOP. The name ".." is the parent.
func (Disk) OpenDirIn(dir int, name Name) (fd int, err error) {
	return openat(dir, name, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
}

// StatDir returns the attributes of an open directory with its times, and whether it is the root of
// a mount: STATX_ATTR_MOUNT_ROOT, Linux 5.8.
func (Disk) StatDir(fd int) (DirStat, error) {
	var s unix.Statx_t
	err := statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_BASIC_STATS, &s)
	return DirStat{
		FileStat: FileStat{
			Stat:     newStat(&s),
			Accessed: timeOf(s.Atime), Modified: timeOf(s.Mtime), Changed: timeOf(s.Ctime),
		},
		Mounted: s.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0,
	}, err
}

// StatFile returns the attributes of an open file with its times and blocks.
func (d Disk) StatFile(fd int) (FileStat, error) {
	is, err := d.StatDir(fd)
	return is.FileStat, err
}

func timeOf(t unix.StatxTimestamp) time.Time { return time.Unix(t.Sec, int64(t.Nsec)) }

// ReadNames appends the next names of an open directory, without "." and "..", and none after the
// last. The names of one call share memory, which is not buf's.
func (Disk) ReadNames(fd int, buf []byte, to []DirEntry) ([]DirEntry, error) {
	for {
		n, err := unix.Getdents(fd, buf)
		if err != nil || n == 0 {
			return to, err
		}
		had := len(to)
		to = appendEntries(to, string(buf[:n]))
		if len(to) > had {
			return to, nil
		}
	}
}

// appendEntries decodes struct linux_dirent64: see getdents(2).
func appendEntries(to []DirEntry, records string) []DirEntry {
	const kindAt, nameAt = 18, 19
	for len(records) > nameAt {
		length := int(binary.NativeEndian.Uint16([]byte(records[16:18])))
		record := records[:length]
		records = records[length:]
		end := nameAt
		for record[end] != 0 {
			end++
		}
		if isSelfOrAbove(record[nameAt:end]) {
			continue
		}
		to = append(to, DirEntry{
			Name:  Name(record[nameAt : end+1]),
			Inode: binary.NativeEndian.Uint64([]byte(record[:8])),
			Kind:  uint32(record[kindAt]) << 12, // DT_REG and its like are S_IFMT shifted
		})
	}
	return to
}

// MkdirIn makes a directory in a directory with the given permissions, before umask.
func (Disk) MkdirIn(dir int, name Name, perm uint32) error {
	_, _, e := syscall.Syscall(unix.SYS_MKDIRAT, uintptr(dir), uintptr(unsafe.Pointer(name.pointer())), uintptr(perm))
	return errnoError(e)
}

// ReadLinkIn returns the target of a symbolic link in a directory.
func (Disk) ReadLinkIn(dir int, name Name) (string, error) {
	for size := 256; ; size *= 2 {
		buf := make([]byte, size)
		n, _, e := syscall.Syscall6(unix.SYS_READLINKAT, uintptr(dir), uintptr(unsafe.Pointer(name.pointer())),
			uintptr(unsafe.Pointer(&buf[0])), uintptr(size), 0, 0)
		if e != 0 {
			return "", e
		}
		if int(n) < size {
			return string(buf[:n]), nil
		}
	}
}

// SymlinkIn makes a symbolic link in a directory.
func (Disk) SymlinkIn(target Name, dir int, name Name) error {
	_, _, e := syscall.Syscall(unix.SYS_SYMLINKAT, uintptr(unsafe.Pointer(target.pointer())), uintptr(dir),
		uintptr(unsafe.Pointer(name.pointer())))
	return errnoError(e)
}

// LinkIn gives a file in a directory another name, in the same or another directory. It does not
// follow a symbolic link.
func (Disk) LinkIn(fromDir int, from Name, toDir int, to Name) error {
	_, _, e := syscall.Syscall6(unix.SYS_LINKAT, uintptr(fromDir), uintptr(unsafe.Pointer(from.pointer())),
		uintptr(toDir), uintptr(unsafe.Pointer(to.pointer())), 0, 0)
	return errnoError(e)
}

// ChownIn sets the owner of a name in a directory, and of a symbolic link itself.
func (Disk) ChownIn(dir int, name Name, uid, gid uint32) error {
	_, _, e := syscall.Syscall6(unix.SYS_FCHOWNAT, uintptr(dir), uintptr(unsafe.Pointer(name.pointer())),
		uintptr(uid), uintptr(gid), unix.AT_SYMLINK_NOFOLLOW, 0)
	return errnoError(e)
}

// TimesIn returns the times of the last read and write of a name in a directory, and of a symbolic
// link itself.
func (Disk) TimesIn(dir int, name Name) (accessed, modified time.Time, err error) {
	var s unix.Statx_t
	err = statx(dir, name, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_ATIME|unix.STATX_MTIME, &s)
	return timeOf(s.Atime), timeOf(s.Mtime), err
}

// SetTimesIn sets the times of TimesIn.
func (Disk) SetTimesIn(dir int, name Name, accessed, modified time.Time) error {
	times, err := timespecs(accessed, modified)
	if err != nil {
		return err
	}
	_, _, e := syscall.Syscall6(unix.SYS_UTIMENSAT, uintptr(dir), uintptr(unsafe.Pointer(name.pointer())),
		uintptr(unsafe.Pointer(&times)), unix.AT_SYMLINK_NOFOLLOW, 0, 0)
	return errnoError(e)
}

// procPath returns a path of a name in an open directory. The calls for attributes take no
// directory before Linux 6.13; proc(5) leads to the open directory, at its current place.
// Without proc the path leads nowhere.
func procPath(dir int, name Name) string {
	if dir == AtCwd {
		return name.String()
	}
	return "/proc/self/fd/" + strconv.Itoa(dir) + "/" + name.String()
}

// withoutProc returns ErrNoProc if proc is missing, and not the file.
func withoutProc(err error) error {
	if !errors.Is(err, unix.ENOENT) {
		return err
	}
	if unix.Access("/proc/self/fd", unix.F_OK) != nil {
		return ErrNoProc
	}
	return err
}

// noListAt is set if the kernel has no listxattrat(2).
var noListAt atomic.Bool

// listAttributesAt is listxattrat(2) of Linux 6.13, which needs no proc and does not allocate.
func listAttributesAt(dir int, name Name, p []byte) (n int, err error) {
	r, _, e := syscall.Syscall6(unix.SYS_LISTXATTRAT, uintptr(dir), uintptr(unsafe.Pointer(name.pointer())),
		unix.AT_SYMLINK_NOFOLLOW, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), 0)
	if e != 0 {
		return 0, e
	}
	return int(r), nil
}

// AttributesIn returns the names of the extended attributes of a name in a directory, and of a
// symbolic link itself. It calls listxattrat(2), or llistxattr(2) through proc. If neither works it
// returns [ErrNoProc].
func (Disk) AttributesIn(dir int, name Name) (names []string, err error) {
	if !noListAt.Load() {
		names, err = attributeNames(func(p []byte) (int, error) { return listAttributesAt(dir, name, p) })
		switch {
		case errors.Is(err, unix.ENOSYS):
			noListAt.Store(true)
		case !errors.Is(err, unix.EPERM): // a filter's answer to calls that it does not know
			return names, err
		}
	}
	path := procPath(dir, name)
	names, err = attributeNames(func(p []byte) (int, error) { return unix.Llistxattr(path, p) })
	return names, withoutProc(err)
}

// AttributeIn returns the value of an extended attribute: see AttributesIn. It is lgetxattr(2).
func (Disk) AttributeIn(dir int, name Name, attribute string) ([]byte, error) {
	path := procPath(dir, name)
	value, err := grown(func(p []byte) (int, error) { return unix.Lgetxattr(path, attribute, p) })
	return value, withoutProc(err)
}

// SetAttributeIn sets an extended attribute of a name in a directory, and of a symbolic link
// itself: lsetxattr(2).
func (Disk) SetAttributeIn(dir int, name Name, attribute string, value []byte) error {
	return withoutProc(unix.Lsetxattr(procPath(dir, name), attribute, value, 0))
}

// MakeLike makes a device, a pipe or a socket as the one of another name is, for the owner alone.
func (Disk) MakeLike(fromDir int, from Name, toDir int, to Name) error {
	var s unix.Statx_t
	if err := statx(fromDir, from, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_TYPE, &s); err != nil {
		return err
	}
	kind := uint32(s.Mode) & unix.S_IFMT
	switch kind {
	case unix.S_IFIFO, unix.S_IFSOCK, unix.S_IFCHR, unix.S_IFBLK:
	default:
		return unix.ESTALE // the name is another file's by now
	}
	return unix.Mknodat(toDir, to.String(), kind|0o600, int(unix.Mkdev(s.Rdev_major, s.Rdev_minor)))
}

// ChmodIn sets the permissions of a name in a directory, and follows no symbolic link.
func (Disk) ChmodIn(dir int, name Name, perm uint32) error {
	err := unix.Fchmodat(dir, name.String(), perm, unix.AT_SYMLINK_NOFOLLOW)
	if !errors.Is(err, unix.EOPNOTSUPP) {
		return err
	}
	// Before Linux 6.6 it takes a descriptor, which opens nothing of a device.
	fd, err := unix.Openat(dir, name.String(), unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return withoutProc(unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), perm))
}

func timespecs(accessed, modified time.Time) (times [2]unix.Timespec, err error) {
	if times[0], err = unix.TimeToTimespec(accessed); err == nil {
		times[1], err = unix.TimeToTimespec(modified)
	}
	return times, err
}

// isSelfOrAbove reports whether a name is "." or "..".
func isSelfOrAbove(name string) bool { return name == "." || name == ".." }
