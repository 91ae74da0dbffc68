//go:build cgo && unix

package files

/*
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

// write_all makes n files. Their paths lie stride bytes apart. *done is how many
// are written.
static int write_all(char *paths, long stride, char *data, long size, long n, int sync, long *done) {
	for (*done = 0; *done < n; ++*done) {
		int fd = open(paths + *done * stride, O_WRONLY | O_CREAT | O_TRUNC, 0666);
		if (fd < 0)
			return errno;
		long wrote = write(fd, data + *done * size, size);
		int failed = wrote < 0 ? errno : wrote != size ? EIO : sync && fsync(fd) < 0 ? errno : 0;
		if (close(fd) < 0 && !failed)
			failed = errno;
		if (failed)
			return failed;
	}
	return 0;
}
*/
import "C"

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"
)

// loopInC writes the files in one call to C. All paths are of one length.
func loopInC(sync bool) func(s *site) (func() error, error) {
	return func(s *site) (func() error, error) {
		var paths []byte
		for _, path := range s.paths {
			paths = append(append(paths, path...), 0)
		}
		write := func(s *site) error { return s.inC(paths, sync) }
		if sync {
			write = thenDir(write)
		}
		return func() error { return write(s) }, nil
	}
}

func (s *site) inC(paths []byte, sync bool) error {
	var done C.long
	flag := C.int(0)
	if sync {
		flag = 1
	}
	failed := C.write_all((*C.char)(unsafe.Pointer(unsafe.SliceData(paths))), C.long(len(s.paths[0])+1),
		(*C.char)(unsafe.Pointer(unsafe.SliceData(s.data))), C.long(s.Size), C.long(s.Files), flag, &done)
	if failed != 0 {
		return &os.PathError{Op: "write", Path: s.paths[done], Err: fmt.Errorf("in C: %w", syscall.Errno(failed))}
	}
	return nil
}
