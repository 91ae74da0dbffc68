package filecopy

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// A plainDisk is this machine's without the calls that only some systems have.
type plainDisk struct{ vfs.CopyDisk }

// TestCopyNeedsNoOptionalCall: a system without them copies by read and write.
func TestCopyNeedsNoOptionalCall(t *testing.T) {
	disk := plainDisk{sys.Disk{}}
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<17)
	for _, o := range []Options{{}, {Archive: true}, {Atomic: true}, {Resume: true}, {Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncEach}}}, {Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncClose}}}} {
		dir := t.TempDir()
		for _, err := range []error{
			os.Mkdir(dir+"/from", 0o755), os.WriteFile(dir+"/from/large", content, 0o640), os.WriteFile(dir+"/from/small", content[:9], 0o600),
			os.Truncate(dir+"/from/large", int64(len(content))+1<<20), os.Symlink("small", dir+"/from/link"),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		totals, err := copyTrees(t.Context(), disk, onePair(dir+"/to", dir+"/from"), o)
		if err != nil || totals.Files != 2 || totals.Methods[ReadWrite] != 2 {
			t.Fatalf("%+v: %+v, %v", o, totals, err)
		}
		for name, want := range map[string][]byte{"large": append(bytes.Clone(content), make([]byte, 1<<20)...), "link": content[:9]} {
			if got, err := os.ReadFile(dir + "/to/" + name); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%+v: %s has %d bytes, %v", o, name, len(got), err)
			}
		}
		r, err := copyOne(t.Context(), disk, dir+"/one", dir+"/from/large", o)
		if err != nil || r.Method != ReadWrite || r.Durable != (o.Atomic || o.Policy.Sync.Mode != holdfast.SyncNever) {
			t.Errorf("%+v: %+v, %v", o, r, err)
		}
	}
}

// TestCopySaysThatAMethodIsUnsupported: the methods and the options that need them name it.
func TestCopySaysThatAMethodIsUnsupported(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/from", make([]byte, 1<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, o := range []Options{{Method: Reflink}, {Method: CopyRange}, {Method: Splice}, {Verify: true}} {
		_, err := copyOne(t.Context(), plainDisk{sys.Disk{}}, dir+"/to", dir+"/from", o)
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%v: %v", o.Method, err)
		}
		if _, err := os.Stat(dir + "/to"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v: a copy is left: %v", o.Method, err)
		}
	}
}
