package files

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/sys"
)

func deviceOf(is os.FileInfo) uint64 { return uint64(is.Sys().(*syscall.Stat_t).Dev) }

func writeError(fd int) error { return sys.Disk{}.WriteError(fd) }

// keepAdded keeps a second descriptor of a file that the program has given to Add: what failed of its bytes
// is told to either. If none is left the file is synced now.
func (b *Batch) keepAdded(file *os.File, x keptFile) {
	raw, err := file.SyscallConn()
	if err == nil {
		failed := raw.Control(func(fd uintptr) { x.fd, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
		if failed != nil {
			err = failed
		}
	}
	if err == nil {
		b.keep(x)
	} else {
		b.syncAdded(file, x)
	}
}
