package sys

import (
	"io/fs"
	"syscall"
	"time"
)

// timesOf returns when a file was last read and written, to 100 ns:
// WIN32_FILE_ATTRIBUTE_DATA. It does not report what else was changed, and when.
func timesOf(info fs.FileInfo) (accessed, modified, changed time.Time) {
	modified = info.ModTime()
	if s, ok := info.Sys().(*syscall.Win32FileAttributeData); ok {
		return time.Unix(0, s.LastAccessTime.Nanoseconds()), modified, modified
	}
	return modified, modified, modified
}

// setLinkTimes does nothing: to open a link itself takes more than package os can.
func setLinkTimes(string, time.Time, time.Time) error { return nil }
