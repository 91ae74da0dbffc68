package holdfast_test

import (
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
