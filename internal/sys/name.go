package sys

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"
)

// ErrNoProc reports that attributes can't be read because proc is not mounted and the kernel is
// older than Linux 6.13. It is [errors.ErrUnsupported] too.
var ErrNoProc error = noProc{}

type noProc struct{}

func (noProc) Error() string {
	return "its attributes can't be looked at: proc is not mounted: " + errors.ErrUnsupported.Error()
}

func (noProc) Unwrap() error { return errors.ErrUnsupported }

// A Closed is an error that is [os.ErrClosed] too. fmt.Errorf would allocate it before main, in
// each program that imports the package.
type Closed string

func (e Closed) Error() string { return string(e) + ": " + os.ErrClosed.Error() }

// Unwrap returns [os.ErrClosed].
func (Closed) Unwrap() error { return os.ErrClosed }

// A Name is a path with a zero byte at its end, as the kernel takes it, so that a call needs no
// copy. The zero Name is no path.
type Name string

// NewName returns the Name of a path, or an error if no file can have it.
func NewName(path string) (Name, error) {
	var own strings.Builder
	return NameIn(&own, path, 0)
}

// NameIn is NewName for many names: they share memory blocks of the given size, if they fit.
func NameIn(block *strings.Builder, path string, size int) (Name, error) {
	if err := nameable(path); err != nil {
		return "", err
	}
	if block.Cap()-block.Len() <= len(path) {
		block.Reset()
		block.Grow(max(size, len(path)+1))
	}
	at := block.Len()
	block.WriteString(path)
	block.WriteByte(0)
	return Name(block.String()[at:]), nil
}

// NameOver is NewName in memory that it returns for the next name. The Name is valid until then.
func NameOver(memory []byte, path string) (Name, []byte, error) {
	if err := nameable(path); err != nil {
		return "", memory, err
	}
	memory = append(append(memory[:0], path...), 0)
	return Name(unsafe.String(&memory[0], len(memory))), memory, nil
}

func nameable(path string) error {
	if path == "" {
		return errors.New("a file has no name")
	}
	if strings.IndexByte(path, 0) >= 0 {
		return errors.New("a file's name holds a zero byte")
	}
	return nil
}

// String returns a copy of the path, without the zero byte: see NameOver.
func (n Name) String() string {
	if n == "" {
		return ""
	}
	return strings.Clone(string(n[:len(n)-1]))
}

// Absolute makes a path independent of the working directory. It cleans nothing: only the system
// knows what ".." after a link means.
func Absolute(path string) (string, error) {
	switch {
	case path == "" || filepath.IsAbs(path):
		return path, nil
	case os.PathSeparator != '/':
		return filepath.Abs(path)
	}
	working, err := syscall.Getwd() // os.Getwd makes two more system calls
	if err != nil {
		working, err = os.Getwd() // the path is longer than the first buffer
	}
	if err != nil {
		return "", plainError(err)
	}
	return working + "/" + path, nil
}

// A Stat holds the attributes of a file: see inode(7).
type Stat struct {
	Device, Inode, Links uint64 // Device and Inode are 0 where the system does not report them
	Mode                 uint32 // permissions and kind, as in st_mode
	UID, GID             uint32
	Size                 int64
	Blocks               int64 // blocks of 512 bytes on the disk; -1 where the system does not report them
}
