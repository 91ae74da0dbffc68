package sys

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

// TestAttributesAreListedWithoutListxattrat asks a kernel of before Linux 6.13, and a filter
// that does not know the call.
func TestAttributesAreListedWithoutListxattrat(t *testing.T) {
	defer noListAt.Store(noListAt.Load())
	dir := t.TempDir()
	if err := unix.Mknod(dir+"/file", unix.S_IFREG|0o600, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setxattr(dir+"/file", "user.note", []byte("a note"), 0); err != nil {
		t.Skip(err)
	}
	for _, answer := range []unix.Errno{0, unix.EPERM, unix.ENOSYS} {
		done := make(chan error)
		go func() {
			runtime.LockOSThread() // it ends with the goroutine, and with it the filter
			if answer != 0 {
				if err := isolate.Forbid(unix.SYS_LISTXATTRAT, answer, 0); err != nil {
					done <- err
					return
				}
			}
			directory, err := Disk{}.OpenDir(Name(dir + "\x00"))
			if err == nil {
				defer Disk{}.Close(directory)
				var names []string
				names, err = Disk{}.AttributesIn(directory, "file\x00")
				if len(names) != 1 || names[0] != "user.note" {
					t.Errorf("%v: %q", answer, names)
				}
			}
			done <- err
		}()
		if err := <-done; err != nil {
			t.Errorf("%v: %v", answer, err)
		}
	}
}
