//go:build !linux

package sys

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
	_, err = PageCache(os.Stdin)
	check("PageCache", err)
	check("Evict", Evict(os.Stdin))
	check("DropCaches", DropCaches())
	check("Remount", Remount(t.TempDir()))
}
