//go:build go1.25

package readahead_test

import (
	"io"
	"os"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/readahead"
)

// evict takes a file out of the page cache, or skips the test where none leaves it.
func evict(t *testing.T, f *os.File) {
	t.Helper()
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := sys.Evict(f); err != nil {
		t.Skip(err)
	}
	if r, err := sys.PageCache(f); err != nil || r.Resident > 0 {
		t.Skipf("no page of a file leaves the page cache here: %d stayed, %v", r.Resident, err)
	}
}

func TestDropBehindLeavesThePageCacheEmpty(t *testing.T) {
	const size = 20<<20 + 123
	f := fileOf(t, make([]byte, size))
	evict(t, f)
	for _, o := range []readahead.Options{
		{},
		{DropBehind: true},
		{DropBehind: true, ReadAhead: readahead.Always},
		{DropBehind: true, Buffer: 4 * holdfast.KiB},
	} {
		r, err := readahead.Open(f.Name(), o)
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
		// Pages that the kernel reads around the last page may come after the last drop.
		if few := cached.Resident < cached.Pages/10; few != o.DropBehind {
			t.Errorf("%+v: %d of %d pages are cached", o, cached.Resident, cached.Pages)
		}
	}
}

// TestDropBehindDropsASmallFile at its end, where less waits than is dropped at once.
func TestDropBehindDropsASmallFile(t *testing.T) {
	f := fileOf(t, make([]byte, 600<<10))
	evict(t, f)
	r, err := readahead.Open(f.Name(), readahead.Options{DropBehind: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if cached, err := sys.PageCache(f); err != nil || cached.Resident > cached.Pages/2 {
		t.Errorf("%d of %d pages are cached, %v", cached.Resident, cached.Pages, err)
	}
}

// TestDropBehindBeginsWhereTheReaderDid reads the second half of a file.
func TestDropBehindBeginsWhereTheReaderDid(t *testing.T) {
	const size = 40 << 20
	f := fileOf(t, make([]byte, size))
	evict(t, f)
	if _, err := f.Seek(size/2, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	r := readahead.NewReader(f, readahead.Options{DropBehind: true})
	if n, err := r.Discard(size); n != size/2 {
		t.Errorf("Discard = %d, %v; want %d", n, err, size/2)
	}
	cached, err := sys.PageCache(f)
	if err != nil {
		t.Fatal(err)
	}
	if cached.Resident > cached.Pages/10 {
		t.Errorf("%d of %d pages are cached", cached.Resident, cached.Pages)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
