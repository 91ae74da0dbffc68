package holdfast_test

import (
	"os"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/sys"
)

func TestDropBehindLeavesThePageCacheEmpty(t *testing.T) {
	const size = 20<<20 + 123
	f := fileOf(t, make([]byte, size))
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := sys.Evict(f); err != nil {
		t.Skip(err)
	}
	if r, err := sys.PageCache(f); err != nil || r.Resident > 0 {
		t.Skipf("no page of a file leaves the page cache here: %d stayed, %v", r.Resident, err)
	}
	for _, o := range []holdfast.ReadOptions{
		{},
		{DropBehind: true},
		{DropBehind: true, ReadAhead: holdfast.ReadAheadAlways},
		{DropBehind: true, Buffer: 4 * holdfast.KiB},
	} {
		r, err := holdfast.Open(f.Name(), o)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := r.Discard(size + 1); n != size {
			t.Errorf("Discard = %d, %v; want %d", n, err, size)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		cached, err := sys.PageCache(f)
		if err != nil {
			t.Fatal(err)
		}
		// What the kernel reads around the last page may come after the last drop.
		if few := cached.Resident < cached.Pages/10; few != o.DropBehind {
			t.Errorf("%+v: %d of %d pages are cached", o, cached.Resident, cached.Pages)
		}
	}
}

func TestCloseLeavesNoDescriptor(t *testing.T) {
	f := fileOf(t, text(100000))
	before := descriptors(t)
	for _, o := range readAheads {
		for _, consumed := range []int{0, 1, 3 * testBlock, 100001} {
			r, err := holdfast.Open(f.Name(), o)
			if err != nil {
				t.Fatal(err)
			}
			r.Discard(consumed)
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors are open, and were %d before", after, before)
	}
}

// descriptors counts those that are open.
func descriptors(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
