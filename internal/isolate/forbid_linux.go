package isolate

import (
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Forbid makes one system call return an error for the life of the calling thread, as a container's
// filter does: seccomp(2). With SECCOMP_FILTER_FLAG_TSYNC it does so for all threads of the
// process.
func Forbid(number uint32, answer unix.Errno, flags uintptr) error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the first word of struct seccomp_data: the call's number
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: number, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(answer)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	// No_new_privs belongs to one thread, and seccomp refuses a thread without it (seccomp(2)).
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return errno
	}
	return nil
}

// Without runs a test in a child process in which a seccomp filter answers one system call with an
// error, as in a container.
func Without(t *testing.T, number uint32, answer unix.Errno, test func(t *testing.T)) {
	t.Helper()
	Process(t, func(t *testing.T) {
		if err := Forbid(number, answer, unix.SECCOMP_FILTER_FLAG_TSYNC); err != nil {
			t.Skipf("no filter: %v", err)
		}
		test(t)
	})
}
