// Package acltest sets access control lists, and runs code as another user. It is for tests
// only.
package acltest

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An Entry is one entry of an access control list, see acl(5): its tag, its permissions, and
// the number of its user or group.
type Entry [3]uint32

const (
	Owner, User, Group, NamedGroup, Mask, Other = 1, 2, 4, 8, 16, 32

	Access, Default = "system.posix_acl_access", "system.posix_acl_default"
)

// ListOf encodes a list for the kernel: linux/posix_acl_xattr.h.
func ListOf(entries ...Entry) []byte {
	list := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range entries {
		list = binary.LittleEndian.AppendUint16(list, uint16(e[0]))
		list = binary.LittleEndian.AppendUint16(list, uint16(e[1]))
		if e[0] != User && e[0] != NamedGroup {
			e[2] = 0xffffffff
		}
		list = binary.LittleEndian.AppendUint32(list, e[2])
	}
	return list
}

func Set(t *testing.T, path, which string, entries ...Entry) {
	t.Helper()
	if err := unix.Setxattr(path, which, ListOf(entries...), 0); errors.Is(err, unix.EOPNOTSUPP) {
		t.Skip("no access control lists here: ", err)
	} else if err != nil {
		t.Fatal(err)
	}
}

func Attribute(path, name string) string {
	buf := make([]byte, 4096)
	n, err := unix.Lgetxattr(path, name, buf)
	if err != nil {
		return err.Error()
	}
	return string(buf[:n])
}

// As calls do on a thread of another user, with a group and more groups.
func As(t *testing.T, uid, gid int, others []uint32, do func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine, and its user with it
		err := func() error {
			var p *uint32
			if len(others) > 0 {
				p = &others[0]
			}
			if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(others)), uintptr(pointerTo(p)), 0); e != 0 {
				return e
			}
			if _, _, e := unix.RawSyscall(unix.SYS_SETRESGID, uintptr(gid), uintptr(gid), uintptr(gid)); e != 0 {
				return e
			}
			if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)); e != 0 {
				return e
			}
			do()
			return nil
		}()
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal("to be another user takes root: ", err)
	}
}

func MayRead(t *testing.T, path string, uid, gid int, others ...uint32) (may bool) {
	t.Helper()
	As(t, uid, gid, others, func() {
		_, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrPermission) {
			t.Error(err)
		}
		may = err == nil
	})
	return may
}

// Directory returns a directory that every user may enter. Only root can call it.
func Directory(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("to be another user takes root")
	}
	dir := t.TempDir()
	for f := dir; f != filepath.Clean(os.TempDir()); f = filepath.Dir(f) {
		Must(t, os.Chmod(f, 0o755))
	}
	return dir
}

func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func OldFile(t *testing.T, path string, uid, gid int, mode uint32) {
	t.Helper()
	Must(t, os.WriteFile(path, []byte("old"), 0o600))
	Must(t, os.Chown(path, uid, gid))
	Must(t, unix.Chmod(path, mode))
}

func pointerTo(p *uint32) unsafe.Pointer { return unsafe.Pointer(p) }
