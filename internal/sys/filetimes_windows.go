package sys

import (
	"io/fs"
	"syscall"
	"time"
)

// timesOf returns the times of the last read and write, to 100 ns: WIN32_FILE_ATTRIBUTE_DATA. It
// has no time of other changes.
func timesOf(info fs.FileInfo) (accessed, modified, changed time.Time) {
	modified = info.ModTime()
	if s, ok := info.Sys().(*syscall.Win32FileAttributeData); ok {
		return time.Unix(0, s.LastAccessTime.Nanoseconds()), modified, modified
	}
	return modified, modified, modified
}

// setLinkTimes does nothing: package os can't open a link itself.
func setLinkTimes(string, time.Time, time.Time) error { return nil }
