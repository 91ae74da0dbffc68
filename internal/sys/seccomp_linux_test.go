package sys

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/apart"
)

// withoutCall runs a test in a child process in which a seccomp filter answers
// one system call by an error, as a container's does.
func withoutCall(t *testing.T, nr uint32, answer unix.Errno, test func(t *testing.T)) {
	t.Helper()
	apart.Process(t, func(t *testing.T) {
		if err := apart.Forbid(nr, answer, unix.SECCOMP_FILTER_FLAG_TSYNC); err != nil {
			t.Skipf("no filter: %v", err)
		}
		test(t)
	})
}

func TestTraceNamesTheFilterThatForbidsIt(t *testing.T) {
	withoutCall(t, unix.SYS_PTRACE, unix.EPERM, func(t *testing.T) {
		counts, err := TraceSyscalls(exec.Command("true"))
		if err == nil || !strings.Contains(err.Error(), "seccomp") || !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%v, %v; want an error that names seccomp", counts, err)
		}
	})
}

func TestTraceWithoutPtraceIsUnsupported(t *testing.T) {
	withoutCall(t, unix.SYS_PTRACE, unix.ENOSYS, func(t *testing.T) {
		if counts, err := TraceSyscalls(exec.Command("true")); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%v, %v; want ErrUnsupported", counts, err)
		}
	})
}

func TestPageCacheWithoutCachestat(t *testing.T) {
	for _, answer := range []unix.Errno{unix.ENOSYS, unix.EPERM} {
		t.Run(unix.ErrnoName(answer), func(t *testing.T) {
			withoutCall(t, unix.SYS_CACHESTAT, answer, func(t *testing.T) {
				f := newFile(t, filepath.Join(t.TempDir(), "file"), 3*os.Getpagesize()+1)
				want := Residency{Pages: 4, Resident: 4, Source: fromMincore}
				if r, err := PageCache(f); err != nil || r != want {
					t.Errorf("%+v, %v; want %+v", r, err, want)
				}
			})
		})
	}
}
