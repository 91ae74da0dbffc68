package probe

import (
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/internal/sys"
	"golang.org/x/sys/unix"
)

// A Bell wakes a thread that waits for it: a pipe(2) with blocking ends. Go's poller
// does not watch it, so the kernel itself puts one thread to sleep and wakes another.
// One byte is one ring. Any two threads may use it at once.
type Bell struct{ ends [2]int }

// NewBell returns a Bell; Close closes its two descriptors.
func NewBell() (*Bell, error) {
	var b Bell
	if err := unix.Pipe2(b.ends[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("pipe2: %w", err)
	}
	return &b, nil
}

// Ring wakes the thread that waits, or the next one to wait.
func (b *Bell) Ring() error {
	var one [1]byte
	return sys.Uninterrupted(func() error { _, err := unix.Write(b.ends[1], one[:]); return err })
}

// Wait blocks the thread until the Bell has been rung more often than it was waited for.
func (b *Bell) Wait() error {
	var one [1]byte
	return sys.Uninterrupted(func() error { _, err := unix.Read(b.ends[0], one[:]); return err })
}

// Close closes the pipe. It must not be called while a thread waits.
func (b *Bell) Close() error { return errors.Join(unix.Close(b.ends[0]), unix.Close(b.ends[1])) }
