package sys

import (
	"io/fs"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// timesOf returns the times of the last read, write and change: stat(2).
func timesOf(info fs.FileInfo) (accessed, modified, changed time.Time) {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(s.Atimespec.Unix()), time.Unix(s.Mtimespec.Unix()), time.Unix(s.Ctimespec.Unix())
	}
	return info.ModTime(), info.ModTime(), info.ModTime()
}

// setLinkTimes sets the times of a symbolic link itself: utimensat(2), AT_SYMLINK_NOFOLLOW.
func setLinkTimes(path string, accessed, modified time.Time) error {
	var times [2]unix.Timespec
	var err error
	if times[0], err = unix.TimeToTimespec(accessed); err != nil {
		return err
	}
	if times[1], err = unix.TimeToTimespec(modified); err != nil {
		return err
	}
	return unix.UtimesNanoAt(unix.AT_FDCWD, path, times[:], unix.AT_SYMLINK_NOFOLLOW)
}
