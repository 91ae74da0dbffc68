//go:build !linux

package sys

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// A Disk makes the calls that write files, by package os. It has no state of its own; any goroutine
// may call any method. Errors are the system's. Calls on a directory use the path under which it
// was opened.
type Disk struct{}

// opened maps numbers to open files, like the kernel's table of descriptors for each process.
var opened = struct {
	mu    sync.Mutex
	files map[int]*os.File
	last  int
}{files: map[int]*os.File{}}

func open(path string, flag int, perm uint32) (int, error) {
	f, err := openShared(path, flag, fileMode(perm))
	if flag&NoFollow != 0 && errors.Is(err, syscall.EMLINK) {
		return -1, syscall.ELOOP // FreeBSD has another error for a link that is not followed
	}
	if err != nil {
		return -1, plainError(err)
	}
	return Adopt(f)
}

// Adopt returns a descriptor for the calls of a Disk. It takes f.
func Adopt(f *os.File) (fd int, err error) {
	opened.mu.Lock()
	defer opened.mu.Unlock()
	opened.last++
	opened.files[opened.last] = f
	return opened.last, nil
}

func fileOf(fd int) (*os.File, error) {
	opened.mu.Lock()
	defer opened.mu.Unlock()
	if f := opened.files[fd]; f != nil {
		return f, nil
	}
	return nil, os.ErrClosed
}

// onFile makes a call on an open file.
func onFile(fd int, call func(*os.File) error) error {
	f, err := fileOf(fd)
	if err != nil {
		return err
	}
	return plainError(call(f))
}

// inDir makes a call on the path of a directory's file.
func inDir(dir int, name Name, call func(path string) error) error {
	if dir == AtCwd {
		return plainError(call(name.String()))
	}
	return onFile(dir, func(f *os.File) error {
		return call(filepath.Join(f.Name(), name.String()))
	})
}

// OpenDir opens a directory for calls that take one, and for Sync.
func (d Disk) OpenDir(path Name) (fd int, err error) {
	fd, err = open(path.String(), os.O_RDONLY, 0)
	if err != nil {
		return -1, err
	}
	is, err := d.StatFD(fd)
	if err == nil && is.Mode&kindMask != kindDir {
		err = syscall.ENOTDIR
	}
	if err != nil {
		d.Close(fd)
		return -1, err
	}
	return fd, nil
}

// OpenFile opens a file in a directory for writing, with flags of package os and NoFollow, and the
// permissions of a new file before umask. It does not wait for a pipe's reader.
func (Disk) OpenFile(dir int, name Name, flag int, perm uint32) (fd int, err error) {
	err = inDir(dir, name, func(path string) (err error) {
		fd, err = open(path, flag|WaitForNobody, perm)
		return err
	})
	if err != nil {
		return -1, err
	}
	return fd, nil
}

// Write writes p.
func (Disk) Write(fd int, p []byte) (n int, err error) {
	err = onFile(fd, func(f *os.File) (err error) {
		n, err = f.Write(p)
		return err
	})
	return n, err
}

// WriteOnce writes nothing.
func (Disk) WriteOnce(int, []byte) (n int, e syscall.Errno) { return 0, 0 }

// Truncate sets a file's size.
func (Disk) Truncate(fd int, size int64) error {
	return onFile(fd, func(f *os.File) error { return f.Truncate(size) })
}

// Sync makes a file's bytes, or a directory's names, durable. If the system can't sync directories,
// it does nothing for one: see [SyncDir].
func (Disk) Sync(fd int) error {
	return onFile(fd, func(f *os.File) error {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return f.Sync()
		}
		if err := SyncDir(f); !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
		return nil
	})
}

// Datasync is Sync: see [Handle.Datasync].
func (d Disk) Datasync(fd int) error { return d.Sync(fd) }

// Close closes a descriptor.
func (Disk) Close(fd int) error {
	f, err := fileOf(fd)
	if err != nil {
		return err
	}
	opened.mu.Lock()
	delete(opened.files, fd)
	opened.mu.Unlock()
	return plainError(f.Close())
}

// Rename renames a file in a directory, and replaces a file of the new name.
func (Disk) Rename(dir int, from, to Name) error {
	return inDir(dir, from, func(path string) error {
		return os.Rename(path, filepath.Join(filepath.Dir(path), to.String()))
	})
}

// Remove removes a file's name from a directory.
func (Disk) Remove(dir int, name Name) error { return inDir(dir, name, os.Remove) }

// Stat returns the attributes of a name in a directory, and of a symbolic link itself.
func (Disk) Stat(dir int, name Name) (s Stat, err error) {
	err = inDir(dir, name, func(path string) error {
		s, err = statOf(os.Lstat(path))
		return err
	})
	return s, err
}

// StatPath returns the attributes of a path; it follows symbolic links.
func (Disk) StatPath(path Name) (Stat, error) { return statOf(os.Stat(path.String())) }

// StatFD returns the attributes of an open file or directory.
func (Disk) StatFD(fd int) (s Stat, err error) {
	err = onFile(fd, func(f *os.File) error {
		s, err = statOf(f.Stat())
		return err
	})
	return s, err
}

func statOf(info fs.FileInfo, err error) (Stat, error) {
	if err != nil {
		return Stat{}, plainError(err)
	}
	return StatOf(info), nil
}

// StatOf returns the attributes that package os has returned.
func StatOf(info fs.FileInfo) Stat {
	s := Stat{Links: 1, Mode: statMode(info.Mode()), Size: info.Size(), Blocks: -1}
	addIdentity(&s, info)
	return s
}

// Chmod sets a file's permissions, as far as the system has them.
func (Disk) Chmod(fd int, perm uint32) error {
	return onFile(fd, func(f *os.File) error { return f.Chmod(fileMode(perm)) })
}

// Chown sets the owner of a file; where the system has no owners, it does nothing.
func (Disk) Chown(fd int, uid, gid uint32) error {
	return onFile(fd, func(f *os.File) error { return chown(f, int(uid), int(gid)) })
}

// Mkdir makes a directory with the given permissions, before umask.
func (Disk) Mkdir(path Name, perm uint32) error {
	return plainError(os.Mkdir(path.String(), fileMode(perm)))
}

// The bits of st_mode besides the nine permissions, as in inode(7).
const (
	setUser, setGroup, sticky = 0o4000, 0o2000, 0o1000

	kindMask = 0o170000
	kindDir  = 0o040000
)

func fileMode(mode uint32) fs.FileMode {
	m := fs.FileMode(mode).Perm()
	for bit, is := range map[uint32]fs.FileMode{setUser: fs.ModeSetuid, setGroup: fs.ModeSetgid, sticky: fs.ModeSticky} {
		if mode&bit != 0 {
			m |= is
		}
	}
	return m
}

func statMode(m fs.FileMode) uint32 {
	mode := uint32(m.Perm())
	for bit, is := range map[uint32]fs.FileMode{setUser: fs.ModeSetuid, setGroup: fs.ModeSetgid, sticky: fs.ModeSticky} {
		if m&is != 0 {
			mode |= bit
		}
	}
	switch {
	case m.IsRegular():
		return mode | 0o100000
	case m.IsDir():
		return mode | kindDir
	case m&fs.ModeSymlink != 0:
		return mode | 0o120000
	case m&fs.ModeNamedPipe != 0:
		return mode | 0o010000
	case m&fs.ModeSocket != 0:
		return mode | 0o140000
	case m&fs.ModeCharDevice != 0:
		return mode | 0o020000
	case m&fs.ModeDevice != 0:
		return mode | 0o060000
	}
	return mode
}
