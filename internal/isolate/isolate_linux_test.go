package isolate

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/mountinfo"
)

func mountsAt(t *testing.T, point string) (n int) {
	t.Helper()
	mounts, err := mountinfo.Read()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mounts {
		if m.Point == point {
			n++
		}
	}
	return n
}

// TestMountsOfATestAreItsOwn mounts in the parent what the child is not to keep, and in
// the child what the parent is not to see.
func TestMountsOfATestAreItsOwn(t *testing.T) {
	const name = "HOLDFAST_TEST_ISOLATE_DIRECTORY"
	if os.Getenv(name) == "" {
		t.Setenv(name, t.TempDir())
	}
	dir := os.Getenv(name)
	if os.Geteuid() == 0 && !isChild(t) {
		if err := unix.Mount("holdfast-test", dir, "tmpfs", 0, ""); err != nil {
			t.Skip(err)
		}
		defer unix.Unmount(dir, unix.MNT_DETACH)
	}
	Mounts(t, func(t *testing.T) {
		if n := mountsAt(t, dir); n != 0 {
			t.Errorf("%d of the parent's mounts are there", n)
		}
		for range 3 {
			if err := unix.Mount("holdfast-test", dir, "tmpfs", 0, ""); err != nil {
				t.Fatal(err)
			}
		}
	})
	if n := mountsAt(t, dir); !isChild(t) && n != 1 {
		t.Errorf("the parent sees %d mounts, want its own", n)
	}
}

func TestProcessApartHasLimitsOfItsOwn(t *testing.T) {
	var before, after unix.Rlimit
	unix.Getrlimit(unix.RLIMIT_CORE, &before)
	Process(t, func(t *testing.T) {
		unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	})
	if unix.Getrlimit(unix.RLIMIT_CORE, &after); !isChild(t) && before != after {
		t.Errorf("the limit is %+v, was %+v", after, before)
	}
}
