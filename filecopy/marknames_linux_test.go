package filecopy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/temporary"
)

// A notingDisk notes the names of temporary files.
type notingDisk struct {
	*failingDisk
	noLocks bool
	mu      sync.Mutex
	names   []string
}

func (d *notingDisk) Lock(fd int) error {
	if d.noLocks {
		return syscall.EWOULDBLOCK
	}
	return d.failingDisk.Lock(fd)
}

func (d *notingDisk) OpenFile(dir int, name sys.Name, flag int, perm uint32) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if base := filepath.Base(name.String()); strings.HasPrefix(base, temporary.Prefix) {
		d.names = append(d.names, base)
	}
	return d.failingDisk.OpenFile(dir, name, flag, perm)
}

// namesOfCopy returns which temporary names a copy of a tree takes.
func namesOfCopy(t *testing.T, to, from string, noLocks bool) []string {
	t.Helper()
	d := &notingDisk{failingDisk: &failingDisk{calls: map[string]int{}}, noLocks: noLocks}
	_, err := copyTrees(t.Context(), d, onePair(to, from), Options{Atomic: true})
	must(t, err)
	if d.open != 0 {
		t.Errorf("%d descriptors stay open", d.open)
	}
	slices.Sort(d.names)
	return d.names
}

func TestTemporariesAreKnownByTheirDirectoryAndNotByItsPath(t *testing.T) {
	dir := smallTree(t)
	first := namesOfCopy(t, dir+"/to", dir+"/from", false)
	must(t, os.Rename(dir+"/to", dir+"/elsewhere"))
	if again := namesOfCopy(t, dir+"/elsewhere", dir+"/from", false); len(first) == 0 || !slices.Equal(again, first) {
		t.Errorf("%q, want %q", again, first)
	}
	for _, name := range namesOfCopy(t, dir+"/another", dir+"/from", false) {
		if slices.Contains(first, name) {
			t.Errorf("%s is of two directories", name)
		}
	}
}

// TestWithoutTheLockNoTemporaryIsKnown copies beside another call, which has the lock.
func TestWithoutTheLockNoTemporaryIsKnown(t *testing.T) {
	dir := smallTree(t)
	names := namesOfCopy(t, dir+"/to", dir+"/from", true)
	for _, name := range names {
		if strings.HasPrefix(name, temporary.Prefix+"copy-") {
			t.Errorf("%s would be taken for a leftover", name)
		}
	}
	if len(names) == 0 {
		t.Error("there are no temporaries")
	}
}

func TestFewPairsKeepADescriptorForTheirLock(t *testing.T) {
	var c copyTree
	for i := range 3 * mostMarks {
		if got := c.giveMark(&copyNode{}) != nil; got != (i < mostMarks) {
			t.Errorf("pair %d has one: %v", i, got)
		}
	}
}
