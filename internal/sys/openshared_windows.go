package sys

import (
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// openShared is os.OpenFile, but while the file is open it may be renamed and removed, as on Unix:
// package os opens without FILE_SHARE_DELETE.
func openShared(path string, flag int, perm fs.FileMode) (*os.File, error) {
	const known = os.O_WRONLY | os.O_RDWR | os.O_CREATE | os.O_EXCL | os.O_APPEND
	if flag&^known != 0 {
		return os.OpenFile(path, flag, perm)
	}
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	access, attributes := uint32(windows.GENERIC_READ), uint32(windows.FILE_ATTRIBUTE_NORMAL)
	if flag&os.O_CREATE != 0 && perm&0o200 == 0 {
		attributes = windows.FILE_ATTRIBUTE_READONLY
	}
	switch flag & (os.O_WRONLY | os.O_RDWR) {
	case os.O_WRONLY:
		access = windows.GENERIC_WRITE | windows.FILE_READ_ATTRIBUTES
	case os.O_RDWR:
		access |= windows.GENERIC_WRITE
	default:
		attributes |= windows.FILE_FLAG_BACKUP_SEMANTICS // it may be a directory
	}
	if flag&os.O_APPEND != 0 { // without FILE_WRITE_DATA, which is in GENERIC_WRITE, all writes append
		access = access&^windows.GENERIC_WRITE | windows.FILE_GENERIC_WRITE&^windows.FILE_WRITE_DATA
	}
	mode := uint32(windows.OPEN_EXISTING)
	switch flag & (os.O_CREATE | os.O_EXCL) {
	case os.O_CREATE | os.O_EXCL:
		mode = windows.CREATE_NEW
		attributes |= windows.FILE_FLAG_OPEN_REPARSE_POINT // a link is there already
	case os.O_CREATE:
		mode = windows.OPEN_ALWAYS
	}
	h, err := windows.CreateFile(name, access, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE, nil, mode, attributes, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(h), path), nil
}
