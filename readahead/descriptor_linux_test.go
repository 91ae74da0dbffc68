//go:build go1.25

package readahead_test

import (
	"os"
	"testing"

	"github.com/holdfast-go/holdfast/readahead"
)

func TestCloseLeavesNoDescriptor(t *testing.T) {
	f := fileOf(t, text(100000))
	before := descriptors(t)
	for _, o := range readAheads {
		for _, consumed := range []int{0, 1, 3 * testBlock, 100001} {
			r, err := readahead.Open(f.Name(), o)
			if err != nil {
				t.Fatal(err)
			}
			r.Discard(consumed)
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if after := descriptors(t); after > before { // the collector may close some of earlier tests
		t.Errorf("%d descriptors are open, and were %d before", after, before)
	}
}

// descriptors counts the open descriptors.
func descriptors(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
