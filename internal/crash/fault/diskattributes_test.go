package fault_test

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/crash/fault"
)

// TestDiskLocksAsFlockDoes locks a directory by three descriptors.
func TestDiskLocksAsFlockDoes(t *testing.T) {
	d := fault.NewDisk()
	a, b, c := openDir(t, d, "/"), openDir(t, d, "/"), openDir(t, d, "/")
	check := func(what string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	check("the first alone", d.Lock(a), nil)
	check("the second alone", d.Lock(b), syscall.EAGAIN)
	check("the second with others", d.LockShared(b), syscall.EAGAIN)
	check("the first with others", d.LockShared(a), nil)
	check("the second with others", d.LockShared(b), nil)
	check("the first alone again", d.Lock(a), syscall.EAGAIN) // and it has no lock now
	check("the second unlocked", d.Unlock(b), nil)
	check("the third alone", d.Lock(c), nil)
	must(t, d.Close(c))
	check("the first when the third is closed", d.Lock(a), nil)
	waited := make(chan error)
	for _, fd := range []int{b, openDir(t, d, "/")} {
		go func() {
			err := d.LockWait(fd)
			waited <- errors.Join(err, d.Unlock(fd))
		}()
	}
	select {
	case err := <-waited:
		t.Error("it did not wait for the first:", err)
	case <-time.After(10 * time.Millisecond):
	}
	check("the first unlocked", d.Unlock(a), nil)
	check("one that waits", <-waited, nil)
	check("the other that waits", <-waited, nil)
}
