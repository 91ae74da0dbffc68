package probe

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ReadProcessIO reads /proc/self/io (proc_pid_io(5)). The read of that very file
// is counted too, but only at the next reading. So two readings differ by one read
// call more than the process made between them.
//
// The error is errors.ErrUnsupported where the kernel was built without the counts
// (CONFIG_TASK_IO_ACCOUNTING).
func ReadProcessIO() (ProcessIO, error) {
	f, err := os.Open("/proc/self/io")
	if errors.Is(err, fs.ErrNotExist) {
		return ProcessIO{}, fmt.Errorf("/proc/self/io: %w", errors.ErrUnsupported)
	}
	if err != nil {
		return ProcessIO{}, err
	}
	defer f.Close()
	b := make([]byte, 512) // one call: the text is about 120 bytes long
	n, err := f.Read(b)
	if err != nil {
		return ProcessIO{}, err
	}
	var io ProcessIO
	var rchar, wchar int64
	_, err = fmt.Sscanf(string(b[:n]), "rchar: %d\nwchar: %d\nsyscr: %d\nsyscw: %d\n", &rchar, &wchar, &io.ReadCalls, &io.WriteCalls)
	if err != nil {
		return io, fmt.Errorf("/proc/self/io reads %q: %w", b[:n], err)
	}
	return io, nil
}
