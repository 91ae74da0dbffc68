package probe

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// An Instant is a reading of QueryPerformanceCounter, which moves in steps of 100 ns or less. The clock of package
// time moves when Windows' timer does, every 0.5 to 15.6 ms: longer than a short trial.
type Instant int64

var (
	kernel32  = windows.NewLazySystemDLL("kernel32.dll")
	counter   = kernel32.NewProc("QueryPerformanceCounter").Addr()
	perSecond = max(1, read(kernel32.NewProc("QueryPerformanceFrequency").Addr())) // the same until the machine restarts
)

// read calls a function that fills in a number, and can't fail since Windows XP.
func read(function uintptr) (n int64) {
	syscall.SyscallN(function, uintptr(unsafe.Pointer(&n)))
	return n
}

// Now reads the clock.
func Now() Instant { return Instant(read(counter)) }

// Since returns the time since an Instant.
func Since(i Instant) time.Duration { return Now().Sub(i) }

// Sub returns the time from an earlier Instant to i.
func (i Instant) Sub(earlier Instant) time.Duration {
	n := int64(i - earlier)
	return time.Duration(n/perSecond)*time.Second + time.Duration(n%perSecond)*time.Second/time.Duration(perSecond)
}
