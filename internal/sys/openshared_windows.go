package sys

import (
	"io/fs"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// openShared is os.OpenFile, but while the file is open it may be renamed and removed, as on Unix:
// package os opens without FILE_SHARE_DELETE. With NoFollow a link is ELOOP.
func openShared(path string, flag int, perm fs.FileMode) (*os.File, error) {
	const known = os.O_WRONLY | os.O_RDWR | os.O_CREATE | os.O_EXCL | os.O_APPEND | NoFollow
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
	open := func(attributes uint32) (windows.Handle, error) {
		return windows.CreateFile(name, access, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE, nil, mode, attributes, 0)
	}
	var h windows.Handle
	if flag&NoFollow != 0 {
		h, err = openItself(open, attributes)
	} else {
		h, err = open(attributes)
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(h), path), nil
}

// openItself opens a name that is no link; a link is ELOOP. Other reparse points, such as a file that
// is stored in a cloud or without its duplicates, are files to all programs, and are opened as such.
func openItself(open func(attributes uint32) (windows.Handle, error), attributes uint32) (windows.Handle, error) {
	h, err := open(attributes | windows.FILE_FLAG_OPEN_REPARSE_POINT)
	if err != nil {
		return windows.InvalidHandle, err
	}
	is, tag, err := reparseTag(h)
	if err == nil && tag == 0 {
		return h, nil
	}
	defer windows.CloseHandle(h) // nothing was written to it
	if err == nil && tag&nameSurrogate != 0 {
		err = syscall.ELOOP
	}
	if err != nil {
		return windows.InvalidHandle, err
	}
	whole, err := open(attributes &^ windows.FILE_FLAG_OPEN_REPARSE_POINT)
	if err != nil {
		return windows.InvalidHandle, err
	}
	var opened windows.ByHandleFileInformation
	err = windows.GetFileInformationByHandle(whole, &opened)
	if err == nil && (opened.VolumeSerialNumber != is.VolumeSerialNumber || opened.FileIndexHigh != is.FileIndexHigh || opened.FileIndexLow != is.FileIndexLow) {
		err = syscall.ELOOP // a link has taken the name meanwhile
	}
	if err != nil {
		windows.CloseHandle(whole)
		return windows.InvalidHandle, err
	}
	return whole, nil
}

// nameSurrogate is the bit of a reparse tag by which the name stands for another: of symbolic links and
// junctions, IsReparseTagNameSurrogate of ntifs.h.
const nameSurrogate = 0x20000000

// reparseTag returns the attributes of an open file, and the tag of a reparse point that was opened
// itself, else 0.
func reparseTag(h windows.Handle) (is windows.ByHandleFileInformation, tag uint32, err error) {
	if err := windows.GetFileInformationByHandle(h, &is); err != nil || is.FileAttributes&windows.FILE_ATTRIBUTE_REPARSE_POINT == 0 {
		return is, 0, err
	}
	var found struct{ attributes, tag uint32 } // FILE_ATTRIBUTE_TAG_INFO
	err = windows.GetFileInformationByHandleEx(h, windows.FileAttributeTagInfo, (*byte)(unsafe.Pointer(&found)), uint32(unsafe.Sizeof(found)))
	return is, found.tag, err
}
