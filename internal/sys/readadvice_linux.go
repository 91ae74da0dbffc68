package sys

import "golang.org/x/sys/unix"

// readAdviceState holds the call as a value made once, so that no call allocates, with its
// arguments and result.
type readAdviceState struct {
	advise         func(fd uintptr)
	offset, length int64
	advice         int
	adviseErr      error
}

func (a *ReadAdvice) init() {
	a.advise = func(fd uintptr) {
		a.adviseErr = unix.Fadvise(int(fd), a.offset, a.length, a.advice)
	}
}

func (a *ReadAdvice) call(offset, length int64, advice int) error {
	a.offset, a.length, a.advice = offset, length, advice
	if err := a.raw.Control(a.advise); err != nil {
		return err
	}
	return a.adviseErr
}

// DontNeed asks the kernel to drop the pages wholly within the range. Mapped, locked and dirty
// pages stay.
func (a *ReadAdvice) DontNeed(offset, length int64) error {
	return a.call(offset, length, unix.FADV_DONTNEED)
}
