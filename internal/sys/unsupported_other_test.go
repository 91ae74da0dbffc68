//go:build !linux

package sys

import (
	"errors"
	"os"
	"testing"
)

func TestWhatOnlyLinuxHasIsUnsupported(t *testing.T) {
	check := func(name string, err error) {
		t.Helper()
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: err = %v, want ErrUnsupported", name, err)
		}
	}
	_, err := PageCache(os.Stdin)
	check("PageCache", err)
	check("Evict", Evict(os.Stdin))
	advice, err := NewReadAdvice(os.Stdin)
	if err != nil {
		t.Fatal(err)
	}
	check("ReadAdvice.DontNeed", advice.DontNeed(0, 1))
}
