package uml

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// wide reports whether the registers of this processor are more than the kernel can keep. It gives
// the state of a process back by ptrace(2), which takes all or nothing: 2,696 bytes in Linux 6.1,
// and the tiles of AMX alone have 8 KiB. Its first process ends by SIGSEGV then.
//
// Note: golang.org/x/sys/cpu knows it too. But it asks the processor some 20 times before main, and
// a virtual machine answers each by its host: 0.05 ms of each command's start.
func wide() bool {
	text, _ := os.ReadFile("/proc/cpuinfo")
	return slices.Contains(strings.Fields(string(text)), "amx_tile")
}

// narrow are arguments of a kernel that keeps 512 bytes, in which AVX has no place. Threads of one
// process would spoil each other's, so programs in Go and the C library's copies do without.
var narrow = []string{"GODEBUG=cpu.all=off", "GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-AVX512F,-AVX512VL,-AVX_Fast_Unaligned_Load"}

// oldRegisters makes ptrace(2) refuse NT_X86_XSTATE to the processes that this thread starts, as processors without
// XSAVE do. The kernel keeps the older 512 bytes then. It holds as long as the thread lives, so the caller
// must have locked it for ever.
func oldRegisters() error {
	const number, request, kind = 0, 16, 32 // in struct seccomp_data: nr, args[0], args[2]
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	other := func(want uint32, skip uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: skip, K: want}
	}
	filter := []unix.SockFilter{
		load(number), other(unix.SYS_PTRACE, 5),
		load(request), other(unix.PTRACE_GETREGSET, 3),
		load(kind), other(unix.NT_X86_XSTATE, 1),
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EINVAL)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	if err == nil {
		err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
	}
	if err != nil {
		return fmt.Errorf("a kernel for this processor can't be started: %w", err)
	}
	return nil
}
