//go:build cgo && unix

package records

/*
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

static int drain(int fd, const char *p, long left) {
	while (left > 0) {
		long n = write(fd, p, left < 262144 ? left : 262144);
		if (n < 0)
			return errno;
		p += n;
		left -= n;
	}
	return 0;
}

// append_all numbers the record n times, as Go does, and gathers it in memory of that room. It writes
// when that is full, and a record's rest begins the next: so each write begins at a page's beginning.
static int append_all(int fd, char *record, long size, long n, char *memory, long room) {
	long used = 0;
	for (uint64_t i = 0; i < (uint64_t)n; ++i) {
		uint64_t inverted = ~i;
		memcpy(record, &i, 8);
		memcpy(record + size - 8, &inverted, 8);
		long fits = size < room - used ? size : room - used;
		memcpy(memory + used, record, fits);
		used += fits;
		if (used == room) {
			int failed = drain(fd, memory, used);
			if (failed)
				return failed;
			used = size - fits;
			memcpy(memory, record + fits, used);
		}
	}
	return drain(fd, memory, used);
}
*/
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

// openC appends all records in one call to C. A C compiler that the machine's bytes suit is
// asked for: the numbers are little-endian.
func openC(dir string, w work) (*sink, error) {
	f, err := create(dir)
	if err != nil {
		return nil, err
	}
	return &sink{writer: shared(inC{f}), close: f.Close}, nil
}

type inC struct{ *os.File }

func (c inC) produce(w work, goroutine int) error {
	rec, memory := newRecord(w.size, goroutine), make([]byte, max(block, w.size))
	failed := C.append_all(C.int(c.Fd()), (*C.char)(unsafe.Pointer(&rec[0])), C.long(w.size), C.long(w.each), (*C.char)(unsafe.Pointer(&memory[0])), C.long(len(memory)))
	runtime.KeepAlive(c.File)
	if failed != 0 {
		return fmt.Errorf("in C: %w", syscall.Errno(failed))
	}
	return nil
}
