package syscallfault

import "golang.org/x/sys/unix"

// olderCalls are the calls that newer architectures don't have.
func olderCalls() map[int32]operand {
	return map[int32]operand{
		unix.SYS_OPEN:    {Open, "open", none, 0, none},
		unix.SYS_CREAT:   {Open, "creat", none, 0, none},
		unix.SYS_RENAME:  {Rename, "rename", none, 1, none},
		unix.SYS_LINK:    {Link, "link", none, 1, none},
		unix.SYS_SYMLINK: {Link, "symlink", none, 1, none},
		unix.SYS_UNLINK:  {Unlink, "unlink", none, 0, none},
		unix.SYS_RMDIR:   {Unlink, "rmdir", none, 0, none},
		unix.SYS_MKDIR:   {Make, "mkdir", none, 0, none},
	}
}
