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
	Delay          time.Duration
}

// Fail does nothing here.
func (*Call) Fail(syscall.Errno) {}

// Shorten does nothing here.
func (*Call) Shorten() bool { return false }

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
