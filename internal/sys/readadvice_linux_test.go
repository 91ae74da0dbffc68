package sys

import (
	"os"
	"path/filepath"
	"testing"
)

func TestDontNeedDropsJustItsPages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	const size = 8 << 20
	if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := Evict(f); err != nil {
		t.Skip(err)
	}
	if r, err := PageCache(f); err != nil || r.Resident > 0 {
		t.Skipf("no page leaves the page cache here: %d stayed, %v", r.Resident, err)
	}
	if _, err := os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	advice, err := NewReadAdvice(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := advice.DontNeed(0, size/2); err != nil {
		t.Fatal(err)
	}
	// A large folio on the border may stay.
	r, err := PageCache(f)
	if err != nil || r.Resident < r.Pages/2 || r.Resident > r.Pages*3/4+1 {
		t.Errorf("%d of %d pages are left, %v; want about half", r.Resident, r.Pages, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := advice.DontNeed(0, size); err == nil {
		t.Error("DontNeed after Close succeeds")
	}
}
