package records

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// openOverwrite opens a file to write one record after the other over what it has, each
// durable when put returns.
func openOverwrite(path string, direct bool) (f *os.File, put func(p []byte) error, err error) {
	flags := os.O_RDWR
	if direct {
		flags |= unix.O_DIRECT | unix.O_DSYNC
	}
	if f, err = os.OpenFile(path, flags, 0); err != nil {
		return nil, nil, err
	}
	fd, at := int(f.Fd()), int64(0)
	if !direct {
		return f, func(p []byte) error {
			n, err := unix.Pwritev2(fd, [][]byte{p}, at, unix.RWF_DSYNC)
			at += int64(n)
			return err
		}, nil
	}
	block := aligned(groundBlock)
	return f, func(p []byte) error {
		for len(p) > 0 {
			in := at % groundBlock
			if in == 0 {
				clear(block)
			}
			n := copy(block[in:], p)
			if _, err := unix.Pwrite(fd, block, at-in); err != nil {
				return err
			}
			p, at = p[n:], at+int64(n)
		}
		return nil
	}, nil
}

// aligned returns memory that begins at a multiple of its size.
func aligned(size int) []byte {
	b := make([]byte, 2*size)
	off := -int(uintptr(unsafe.Pointer(&b[0]))) & (size - 1)
	return b[off : off+size : off+size]
}
