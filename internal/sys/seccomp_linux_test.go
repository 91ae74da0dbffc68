package sys

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// forbidden tells a test's own child process to forbid itself system calls.
const forbidden = "HOLDFAST_TEST_FORBIDDEN"

// withoutCall runs a test in a child process in which a seccomp filter answers
// one system call by an error, as a container's does.
func withoutCall(t *testing.T, nr uint32, answer unix.Errno, test func(t *testing.T)) {
	t.Helper()
	if os.Getenv(forbidden) != "" {
		forbid(t, nr, answer)
		test(t)
		return
	}
	child := exec.Command(os.Args[0], onlyThis(t), "-test.v")
	child.Env = append(os.Environ(), forbidden+"=1")
	out, err := child.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if strings.Contains(string(out), "--- SKIP") {
		t.Skipf("with a filter:\n%s", out)
	}
}

// forbid puts the filter on all threads: seccomp(2). The number of a call is the
// first word of struct seccomp_data.
func forbid(t *testing.T, nr uint32, answer unix.Errno) {
	t.Helper()
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: nr, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(answer)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Skipf("no filter: %v", err)
	}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		t.Skipf("no filter: %v", errno)
	}
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
