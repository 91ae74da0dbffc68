//go:build !linux

package sys

import (
	"errors"
	"testing"
)

func TestSyscallCounterIsUnsupported(t *testing.T) {
	if _, err := StartSyscallCounter(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("err = %v, want ErrUnsupported", err)
	}
}
