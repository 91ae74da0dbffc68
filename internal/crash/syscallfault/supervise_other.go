//go:build !linux || !(amd64 || arm64)

package syscallfault

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// A Call is a system call that waits for its supervisor.
type Call struct {
	Kind           Kind
	Name, Path     string
	Number, Serial int
	Mapped         []Part
	Delay          time.Duration
}

// Fail does nothing here.
func (*Call) Fail(syscall.Errno) {}

// Shorten does nothing here.
func (*Call) Shorten() bool { return false }

// A Part is some bytes of a file.
type Part struct {
	Inode    uint64
	From, To int64
}

// Thread is no thread here.
func (*Call) Thread() int { return 0 }

// Link is no path here.
func (*Call) Link() string { return "" }

// Arg is no argument here.
func (*Call) Arg(int) uint64 { return 0 }

// Descriptor knows none here.
func (*Call) Descriptor() (int64, int, error) { return 0, 0, errors.ErrUnsupported }

// Durable is false here.
func (*Call) Durable(int) bool { return false }

// Range knows none here.
func (*Call) Range(int64, int, int64) (int64, int64, bool) { return 0, 0, false }

// Opens has no flags here.
func (*Call) Opens() int { return 0 }

// Old is no path here.
func (*Call) Old() string { return "" }

// File opens nothing here.
func (*Call) File(int) (*os.File, error) { return nil, errors.ErrUnsupported }

// A Supervisor can't be had here.
type Supervisor struct{}

// Launch does nothing here.
func Launch() {}

// Start reports that this system has none.
func Start(*exec.Cmd, string, []Kind, func(*Call)) (*Supervisor, error) {
	return nil, errors.New("no supervisor for system calls: it needs Linux on amd64 or arm64")
}

// Stop does nothing here.
func (*Supervisor) Stop() (map[Kind]int, error) { return nil, nil }

// A Keeper is none here.
type Keeper struct{}

// Keep keeps nothing here.
func Keep(*exec.Cmd) (*Keeper, error) { return nil, nil }

// Start starts the command.
func (*Keeper) Start(cmd *exec.Cmd) error { return cmd.Start() }

// End does nothing here.
func (*Keeper) End() error { return nil }
