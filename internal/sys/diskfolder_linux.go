package sys

import (
	"encoding/binary"
	"errors"
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// OpenForNames opens a folder that need not be readable, for the calls that take a
// folder and a name: O_PATH, open(2). It can't be read or synced by that.
func (Disk) OpenForNames(path Name) (fd int, err error) {
	return openat(atCwd, path, unix.O_PATH|unix.O_DIRECTORY, 0)
}

// OpenFolderIn opens a folder of a folder, but not by way of a symbolic link: that
// is ENOTDIR, or ELOOP. The name ".." is the folder above.
func (Disk) OpenFolderIn(folder int, name Name) (fd int, err error) {
	return openat(folder, name, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
}

// StatFolder says what an open folder is, with its times, and whether it is the root of
// a mount: statx(2), STATX_ATTR_MOUNT_ROOT of Linux 5.8. Where there is no such call
// (before Linux 4.11, or by a filter) it is fstat(2), which does not tell that.
func (d Disk) StatFolder(fd int) (FolderStat, error) {
	var s unix.Statx_t
	err := unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_SYNC_AS_STAT, unix.STATX_BASIC_STATS, &s)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		is, err := d.StatFile(fd)
		return FolderStat{FileStat: is}, err
	}
	at := func(t unix.StatxTimestamp) time.Time { return time.Unix(t.Sec, int64(t.Nsec)) }
	return FolderStat{
		FileStat: FileStat{
			Stat: Stat{
				Device: unix.Mkdev(s.Dev_major, s.Dev_minor),
				Inode:  s.Ino,
				Links:  uint64(s.Nlink),
				Mode:   uint32(s.Mode),
				UID:    s.Uid,
				GID:    s.Gid,
				Size:   int64(s.Size),
				Blocks: int64(s.Blocks),
			},
			Accessed: at(s.Atime), Modified: at(s.Mtime), Changed: at(s.Ctime),
		},
		Mounted: s.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0,
	}, err
}

// ReadNames appends some of an open folder's names, without "." and "..", and goes on
// behind them at the next call. It appends none when there are no more. The names of
// one call share their memory, which is not buf's.
func (Disk) ReadNames(fd int, buf []byte, to []FolderEntry) ([]FolderEntry, error) {
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

// appendEntries takes struct linux_dirent64 apart: see getdents(2).
func appendEntries(to []FolderEntry, records string) []FolderEntry {
	const kindAt, nameAt = 18, 19
	for len(records) > nameAt {
		length := int(records[16]) | int(records[17])<<8
		record := records[:length]
		records = records[length:]
		end := nameAt
		for record[end] != 0 {
			end++
		}
		if isSelfOrAbove(record[nameAt:end]) {
			continue
		}
		to = append(to, FolderEntry{
			Name:  Name(record[nameAt : end+1]),
			Inode: binary.NativeEndian.Uint64([]byte(record[:8])),
			Kind:  uint32(record[kindAt]) << 12, // DT_REG and its like are S_IFMT shifted
		})
	}
	return to
}

// MkdirIn makes a folder in a folder, with these permissions before umask.
func (Disk) MkdirIn(folder int, name Name, perm uint32) error {
	_, _, e := syscall.Syscall(unix.SYS_MKDIRAT, uintptr(folder), uintptr(unsafe.Pointer(name.pointer())), uintptr(perm))
	return errnoError(e)
}

// ReadLinkIn returns what a symbolic link of a folder says.
func (Disk) ReadLinkIn(folder int, name Name) (string, error) {
	for size := 256; ; size *= 2 {
		buf := make([]byte, size)
		n, _, e := syscall.Syscall6(unix.SYS_READLINKAT, uintptr(folder), uintptr(unsafe.Pointer(name.pointer())),
			uintptr(unsafe.Pointer(&buf[0])), uintptr(size), 0, 0)
		if e != 0 {
			return "", e
		}
		if int(n) < size {
			return string(buf[:n]), nil
		}
	}
}

// SymlinkIn makes a symbolic link in a folder.
func (Disk) SymlinkIn(target Name, folder int, name Name) error {
	_, _, e := syscall.Syscall(unix.SYS_SYMLINKAT, uintptr(unsafe.Pointer(target.pointer())), uintptr(folder),
		uintptr(unsafe.Pointer(name.pointer())))
	return errnoError(e)
}

// LinkIn gives a file of a folder another name, in the same or another folder. A
// symbolic link is not followed.
func (Disk) LinkIn(fromFolder int, from Name, toFolder int, to Name) error {
	_, _, e := syscall.Syscall6(unix.SYS_LINKAT, uintptr(fromFolder), uintptr(unsafe.Pointer(from.pointer())),
		uintptr(toFolder), uintptr(unsafe.Pointer(to.pointer())), 0, 0)
	return errnoError(e)
}

// ChownIn sets whose a name of a folder is; of a symbolic link, the link itself.
func (Disk) ChownIn(folder int, name Name, uid, gid uint32) error {
	_, _, e := syscall.Syscall6(unix.SYS_FCHOWNAT, uintptr(folder), uintptr(unsafe.Pointer(name.pointer())),
		uintptr(uid), uintptr(gid), unix.AT_SYMLINK_NOFOLLOW, 0)
	return errnoError(e)
}

// TimesIn returns when a name of a folder was last read and changed; of a symbolic
// link, the link itself.
func (Disk) TimesIn(folder int, name Name) (accessed, modified time.Time, err error) {
	var s unix.Stat_t
	err = fstatat(folder, name, &s, unix.AT_SYMLINK_NOFOLLOW)
	return time.Unix(s.Atim.Unix()), time.Unix(s.Mtim.Unix()), err
}

// SetTimesIn sets what TimesIn returns.
func (Disk) SetTimesIn(folder int, name Name, accessed, modified time.Time) error {
	times, err := timespecs(accessed, modified)
	if err != nil {
		return err
	}
	_, _, e := syscall.Syscall6(unix.SYS_UTIMENSAT, uintptr(folder), uintptr(unsafe.Pointer(name.pointer())),
		uintptr(unsafe.Pointer(&times)), unix.AT_SYMLINK_NOFOLLOW, 0, 0)
	return errnoError(e)
}

// procPath is the path of a name of an open folder. The calls for attributes take no
// folder before Linux 6.13; proc(5) leads to the folder that is open, wherever that is
// now. The path is in no folder where proc is not mounted.
func procPath(folder int, name Name) string {
	return "/proc/self/fd/" + strconv.Itoa(folder) + "/" + name.String()
}

// withoutProc tells a missing proc from a missing file.
func withoutProc(err error) error {
	if !errors.Is(err, unix.ENOENT) {
		return err
	}
	if unix.Access("/proc/self/fd", unix.F_OK) != nil {
		return errors.ErrUnsupported
	}
	return err
}

// AttributesIn returns the names of the extended attributes of a name of a folder; of a
// symbolic link, the link's own: llistxattr(2). Where proc is not mounted they can't be
// had: [errors.ErrUnsupported].
func (Disk) AttributesIn(folder int, name Name) (names []string, err error) {
	path := procPath(folder, name)
	names, err = attributeNames(func(p []byte) (int, error) { return unix.Llistxattr(path, p) })
	return names, withoutProc(err)
}

// AttributeIn returns the value of one of AttributesIn: lgetxattr(2).
func (Disk) AttributeIn(folder int, name Name, attribute string) ([]byte, error) {
	path := procPath(folder, name)
	value, err := grown(func(p []byte) (int, error) { return unix.Lgetxattr(path, attribute, p) })
	return value, withoutProc(err)
}

// SetAttributeIn sets an extended attribute of a name of a folder; of a symbolic link,
// the link's own: lsetxattr(2).
func (Disk) SetAttributeIn(folder int, name Name, attribute string, value []byte) error {
	return withoutProc(unix.Lsetxattr(procPath(folder, name), attribute, value, 0))
}

func timespecs(accessed, modified time.Time) (times [2]unix.Timespec, err error) {
	if times[0], err = unix.TimeToTimespec(accessed); err == nil {
		times[1], err = unix.TimeToTimespec(modified)
	}
	return times, err
}

// isSelfOrAbove reports whether a name is one that every folder has.
func isSelfOrAbove(name string) bool { return name == "." || name == ".." }
