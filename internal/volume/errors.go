package volume

import (
	"errors"
	"fmt"
)

// A MissingError says why a file system can't be made here.
type MissingError struct {
	Kind    string
	Why     string // clauses, such as "this kernel has no jfs"
	Package string // of Debian, which would help; or empty
	Root    bool   // only root can
	Kernel  bool   // the kernel has no driver: User-Mode Linux may have one
}

func (e *MissingError) Error() string { return e.Kind + ": " + e.Why }

// Hint returns one clause: what would help.
func (e *MissingError) Hint() string {
	switch {
	case e.Kernel:
		return "run it in User-Mode Linux with --kernel uml, which needs no root"
	case e.Root:
		return "run as root, or in User-Mode Linux with --kernel uml, or name a directory on a mounted file system with --dir"
	case e.Package != "":
		return "install it with: apt-get install " + e.Package
	}
	return "name a directory on a mounted file system with --dir"
}

// A DamageError reports what the check of a file system found when it was closed.
type DamageError struct {
	Kind, Found string
}

func (e *DamageError) Error() string { return "the " + e.Kind + " is damaged: " + e.Found }

// A RoomError reports that there is less free room than an image may grow to, or
// less memory than a tmpfs may take. Need and Free are bytes.
type RoomError struct {
	Kind, Dir  string
	Need, Free int64
}

func (e *RoomError) Error() string {
	where := e.Dir + " has"
	if e.Kind == "tmpfs" {
		where = "the memory has"
	}
	return fmt.Sprintf("there is no room for %s of %d bytes: %s %d bytes free", e.Kind, e.Need, where, e.Free)
}

// ErrAlive says that the process which made a volume still has it.
var ErrAlive = errors.New("the run that made it is still going on")
