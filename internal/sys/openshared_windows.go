package sys

import (
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// openShared is os.OpenFile. While a file is open for appending, other programs may rename and remove
// it, as on Unix: package os opens without FILE_SHARE_DELETE.
func openShared(path string, flag int, perm fs.FileMode) (*os.File, error) {
	const known = os.O_WRONLY | os.O_CREATE | os.O_EXCL | os.O_APPEND
	if flag&os.O_APPEND == 0 || flag&os.O_WRONLY == 0 || flag&^known != 0 {
		return os.OpenFile(path, flag, perm)
	}
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	// GENERIC_WRITE without FILE_WRITE_DATA: all writes append.
	const access = windows.STANDARD_RIGHTS_WRITE | windows.SYNCHRONIZE | windows.FILE_APPEND_DATA | windows.FILE_WRITE_ATTRIBUTES | windows.FILE_WRITE_EA | windows.FILE_READ_ATTRIBUTES
	mode, attributes := uint32(windows.OPEN_EXISTING), uint32(windows.FILE_ATTRIBUTE_NORMAL)
	switch flag & (os.O_CREATE | os.O_EXCL) {
	case os.O_CREATE | os.O_EXCL:
		mode = windows.CREATE_NEW
	case os.O_CREATE:
		mode = windows.OPEN_ALWAYS
	}
	if perm&0o200 == 0 {
		attributes = windows.FILE_ATTRIBUTE_READONLY
	}
	h, err := windows.CreateFile(name, access, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE, nil, mode, attributes, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(h), path), nil
}
