package sys

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// SyncAll makes all bytes and names written to the file system of the directory fd before the call
// durable. It calls syncfs(2), and then fsync(2) of that directory. It reports each failed write of
// any file since fd was opened, once per descriptor.
//
// syncfs(2) writes all dirty files and waits, and makes the file system commit its log (sync_fs).
// Then it writes the device's own cache and waits (__sync_blockdev). That is enough if the commit
// comes last and ends with a flush of the drive, but not on every file system. The fsync of the
// directory closes these gaps (fs/sync.c and the file systems' super.c and fsync.c):
//
//   - ext2 keeps all but file contents in the device's cache, which is written last and
//     without a flush. Its fsync flushes, for a clean directory too.
//   - ext4 without a journal, which also serves ext2, flushes in sync_fs and then writes
//     the device's cache. Its fsync flushes again.
//   - ext4 with a journal waits for the commit of everything so far, and ensures a flush
//     after the bytes. Its fsync then finds nothing to do.
//   - xfs logs a file's growth, and its blocks as written, after the write. It forces the
//     log, with a flush before the log's own write. Bytes overwritten in place have no such
//     entry, and its fsync of a directory flushes nothing either. But package files
//     overwrites nothing.
//   - btrfs ends the writing of any bytes in a transaction, and commits the last one with
//     flushes of all devices before the super block.
//   - f2fs writes a checkpoint with flushes. If it could write none earlier, its sync_fs
//     reports nothing (f2fs_cp_error); its fsync then returns EIO.
func (d Disk) SyncAll(fd int) error {
	if err := unix.Syncfs(fd); err != nil {
		return err
	}
	return d.Sync(fd)
}

// WriteError returns an error of writing a file's bytes back that its descriptor has not reported yet. It
// syncs nothing: file_fdatawait_range in mm/filemap.c.
func (Disk) WriteError(fd int) error {
	return unix.SyncFileRange(fd, 0, 0, unix.SYNC_FILE_RANGE_WAIT_BEFORE)
}

// SyncsAll reports whether SyncAll keeps its promise on fd's file system. That is known for the
// file systems below, on Linux 5.17 and later. Since 5.8 syncfs(2) reports failed writes of files
// closed meanwhile (s_wb_err in struct super_block); before 5.17 it lost the error of sync_fs.
// Among these file systems only f2fs notices that in the fsync of a clean directory.
func (Disk) SyncsAll(fd int) bool {
	if !syncfsReports() {
		return false
	}
	switch groundOf(fd).of(fd) {
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

// releaseAtLeast parses a kernel release such as 6.1.0-18-amd64.
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

// Dirty returns the number of bytes of all programs and all file systems that are dirty or being
// written: an upper bound of the bytes that SyncAll writes.
func (Disk) Dirty() (bytes int64, ok bool) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, false
	}
	dirty, ok := meminfoBytes(text, "Dirty:")
	writeback, also := meminfoBytes(text, "Writeback:")
	return dirty + writeback, ok && also
}

// meminfoBytes parses a line such as "Dirty:   384 kB", where kB is 1024 bytes.
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
