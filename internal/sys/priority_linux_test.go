package sys

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func TestLowestPriorityIsOfOneThread(t *testing.T) {
	runtime.LockOSThread() // so that the other goroutine has another thread
	defer runtime.UnlockOSThread()
	before, err := unix.Getpriority(unix.PRIO_PROCESS, unix.Gettid())
	if err != nil {
		t.Fatal(err)
	}
	low := make(chan int)
	go func() {
		runtime.LockOSThread() // and the thread ends with the goroutine
		if err := LowestPriority(); err != nil {
			t.Error(err)
		}
		is, _ := unix.Getpriority(unix.PRIO_PROCESS, unix.Gettid())
		low <- is
	}()
	if is := <-low; is != 1 { // the system call answers 20 less the nice value
		t.Errorf("the thread's priority is %d", is)
	}
	if after, err := unix.Getpriority(unix.PRIO_PROCESS, unix.Gettid()); after != before || err != nil {
		t.Errorf("this thread had %d and has %d: %v", before, after, err)
	}
}
