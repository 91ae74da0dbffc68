package uml

import (
	"errors"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// On a processor whose registers are more than the kernel can keep, it is started without them. Other
// tests boot it, on the processor that is there.
func TestOldRegistersRefusesTheNewOnesAlone(t *testing.T) {
	asked := make(chan [3]error)
	go func() {
		runtime.LockOSThread()
		get := func(kind uintptr) error { // of this process, which nobody traces
			var into [4096]byte
			v := unix.Iovec{Base: &into[0], Len: uint64(len(into))}
			_, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_GETREGSET, uintptr(unix.Getpid()), kind, uintptr(unsafe.Pointer(&v)), 0, 0)
			return errno
		}
		asked <- [3]error{oldRegisters(), get(unix.NT_X86_XSTATE), get(unix.NT_PRSTATUS)}
	}()
	if got := <-asked; got[0] != nil || !errors.Is(got[1], unix.EINVAL) || !errors.Is(got[2], unix.ESRCH) {
		t.Errorf("the filter %v; NT_X86_XSTATE %v, want EINVAL; NT_PRSTATUS %v, want ESRCH", got[0], got[1], got[2])
	}
}
