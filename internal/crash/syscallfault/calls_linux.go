//go:build amd64 || arm64

package syscallfault

import (
	"maps"

	"golang.org/x/sys/unix"
)

// An operand says where a call names its file: a descriptor, or a path below a directory.
type operand struct {
	kind Kind
	name string
	dir  int8 // the argument with the directory of the path, or none
	path int8 // the argument with the path, or none
	file int8 // the argument with the descriptor of the file, or none
}

const none = -1

// callsByNumber has the calls of all kinds.
func callsByNumber() map[int32]operand {
	all := map[int32]operand{
		unix.SYS_WRITE:           {Write, "write", none, none, 0},
		unix.SYS_PWRITE64:        {Write, "pwrite64", none, none, 0},
		unix.SYS_WRITEV:          {Write, "writev", none, none, 0},
		unix.SYS_PWRITEV:         {Write, "pwritev", none, none, 0},
		unix.SYS_PWRITEV2:        {Write, "pwritev2", none, none, 0},
		unix.SYS_SENDFILE:        {Write, "sendfile", none, none, 0},
		unix.SYS_SPLICE:          {Write, "splice", none, none, 2},
		unix.SYS_COPY_FILE_RANGE: {Write, "copy_file_range", none, none, 2},
		unix.SYS_FSYNC:           {Sync, "fsync", none, none, 0},
		unix.SYS_FDATASYNC:       {Sync, "fdatasync", none, none, 0},
		unix.SYS_SYNCFS:          {Sync, "syncfs", none, none, 0},
		unix.SYS_SYNC_FILE_RANGE: {Sync, "sync_file_range", none, none, 0},
		unix.SYS_MSYNC:           {Sync, "msync", none, none, none},
		unix.SYS_SYNC:            {Sync, "sync", none, none, none},
		unix.SYS_OPENAT:          {Open, "openat", 0, 1, none},
		unix.SYS_OPENAT2:         {Open, "openat2", 0, 1, none},
		unix.SYS_RENAMEAT:        {Rename, "renameat", 2, 3, none},
		unix.SYS_RENAMEAT2:       {Rename, "renameat2", 2, 3, none},
		unix.SYS_LINKAT:          {Link, "linkat", 2, 3, none},
		unix.SYS_SYMLINKAT:       {Link, "symlinkat", 1, 2, none},
		unix.SYS_UNLINKAT:        {Unlink, "unlinkat", 0, 1, none},
		unix.SYS_CLOSE:           {Close, "close", none, none, 0},
		unix.SYS_FALLOCATE:       {Allocate, "fallocate", none, none, 0},
		unix.SYS_FTRUNCATE:       {Allocate, "ftruncate", none, none, 0},
		unix.SYS_TRUNCATE:        {Allocate, "truncate", none, 0, none},
		unix.SYS_MKDIRAT:         {Make, "mkdirat", 0, 1, none},
		unix.SYS_IO_URING_SETUP:  {Unseen, "io_uring", none, none, none},
		unix.SYS_IO_SUBMIT:       {Unseen, "io_submit", none, none, none},
	}
	maps.Copy(all, olderCalls())
	return all
}
