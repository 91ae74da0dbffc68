package sys

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// SyncAll makes all that was written to the file system of the directory fd before the call
// durable, with its names. It calls syncfs(2), and then fsync(2) of that directory. It reports what
// of any file could not be written since fd was opened, and each such failure once for a
// descriptor.
//
// syncfs(2) writes all dirty files and waits, and has the file system commit what it
// logs (sync_fs). Then it writes and awaits what it keeps in the device's own cache
// (__sync_blockdev). That is enough where the commit comes last and ends with a flush
// of the drive, but not everywhere. The fsync of the directory closes these gaps
// (fs/sync.c and the file systems' super.c and fsync.c):
//
//   - ext2 keeps all but the bytes in the device's cache, which is written last, and
//     sends no flush behind that. Its fsync does, for a clean directory too.
//   - ext4 without a journal, as which it also serves ext2, flushes in sync_fs and
//     writes the device's cache behind that. Its fsync flushes again.
//   - ext4 with a journal waits for the commit of everything so far, and sees to it
//     that a flush came after the bytes. Its fsync then finds nothing to do.
//   - xfs logs a file's growth, and that its blocks were written, when they were. It forces the
//     log, with a flush before the log's own write. What was overwritten in place has no such
//     entry, and its fsync of a directory flushes nothing either. But package files overwrites
//     nothing.
//   - btrfs ends the writing of any bytes in a transaction, and commits the last one
//     with flushes of all devices before the super block.
//   - f2fs writes a checkpoint with flushes. If it could write none earlier its
//     sync_fs says nothing (f2fs_cp_error); its fsync then says EIO.
func (d Disk) SyncAll(fd int) error {
	if err := unix.Syncfs(fd); err != nil {
		return err
	}
	return d.Sync(fd)
}

// SyncsAll reports whether SyncAll does where fd is what it says. That is known of
// these file systems, on Linux 5.17 and later. Since 5.8 syncfs(2) reports the failed
// writes of files that were closed meanwhile (s_wb_err in struct super_block); before
// 5.17 it lost the error of sync_fs. Of these file systems only f2fs finds out about
// that in the fsync of a clean directory.
func (Disk) SyncsAll(fd int) bool {
	var s unix.Statfs_t
	if !syncfsReports() || unix.Fstatfs(fd, &s) != nil {
		return false
	}
	switch uint32(s.Type) { // it may come out negative
	case unix.EXT4_SUPER_MAGIC, // ext2 and ext3 too
		unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC:
		return true
	}
	return false
}

func syncfsReports() bool {
	var u unix.Utsname
	return unix.Uname(&u) == nil && releaseAtLeast(unix.ByteSliceToString(u.Release[:]), 5, 17)
}

// releaseAtLeast reads a kernel's release, such as 6.1.0-18-amd64.
func releaseAtLeast(release string, major, minor int) bool {
	a, rest, _ := strings.Cut(release, ".")
	if i := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
		rest = rest[:i]
	}
	has, err := strconv.Atoi(a)
	if err != nil {
		return false
	}
	then, err := strconv.Atoi(rest)
	return err == nil && (has > major || has == major && then >= minor)
}

// Dirty returns how many bytes of all programs and all file systems wait to be written, or are
// being written. It is an upper bound of what SyncAll takes along.
func (Disk) Dirty() (bytes int64, ok bool) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, false
	}
	dirty, ok := meminfoBytes(text, "Dirty:")
	writeback, also := meminfoBytes(text, "Writeback:")
	return dirty + writeback, ok && also
}

// meminfoBytes reads a line such as "Dirty:   384 kB", where kB is 1024 bytes.
func meminfoBytes(text []byte, key string) (int64, bool) {
	for line := range bytes.Lines(text) {
		if after, ok := bytes.CutPrefix(line, []byte(key)); ok {
			number, kilo := bytes.CutSuffix(bytes.TrimSpace(after), []byte(" kB"))
			n, err := strconv.ParseInt(string(number), 10, 64)
			return n << 10, kilo && err == nil
		}
	}
	return 0, false
}
