//go:build !linux

package probe

import (
	"errors"
	"os"
	"os/exec"
	"testing"
)

func TestWhatOnlyLinuxHasIsUnsupported(t *testing.T) {
	check := func(name string, err error) {
		t.Helper()
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: err = %v, want ErrUnsupported", name, err)
		}
	}
	_, err := StartSyscallCounter()
	check("StartSyscallCounter", err)
	_, err = TraceSyscalls(exec.Command("none"))
	check("TraceSyscalls", err)
	check("MarkSyscalls", MarkSyscalls(true))
	_, err = ReadProcessIO()
	check("ReadProcessIO", err)
	check("DropCaches", DropCaches())
	check("MayDropCaches", MayDropCaches())
	check("AdviseAccess", AdviseAccess(os.Stdin, Random))
	check("Remount", Remount(t.TempDir()))
	check("EmptyCalls", EmptyCalls(1))
	check("EmptyScheduledCalls", EmptyScheduledCalls(1))
	check("PinThread", PinThread())
	_, err = MapFresh(1)
	check("MapFresh", err)
	check("Unmap", Unmap(nil))
	bell, err := NewBell()
	check("NewBell", err)
	check("Ring", bell.Ring())
	check("Wait", bell.Wait())
	check("Close", bell.Close())
}
