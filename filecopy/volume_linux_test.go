package filecopy

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-go/holdfast/internal/volume"
)

// TestCopyKeepsAllOnEachFileSystem copies on file systems made for it; the last
// two share blocks.
func TestCopyKeepsAllOnEachFileSystem(t *testing.T) {
	kinds, err := volume.Parse("ext2,ext3,ext4,xfs,btrfs")
	must(t, err)
	for _, k := range kinds {
		t.Run(k.Name, func(t *testing.T) {
			if err := k.Can(); err != nil {
				t.Skip(err)
			}
			v, err := volume.Make(t.Context(), t.TempDir(), k, k.SizeFor(256<<20, 1000))
			must(t, err)
			defer func() { must(t, v.Close()) }()
			reflinks := copiesKeepAll(t, v.Dir(), 30)
			shares := k.Type == "xfs" || k.Type == "btrfs"
			if shares != (reflinks > 0) {
				t.Errorf("%d reflinks", reflinks)
			}
			copiesSmallFiles(t, v.Dir(), k.Type == "btrfs")
			must(t, v.Remount(t.Context())) // all is cold
			cold, err := File(t.Context(), filepath.Join(v.Dir(), "cold copy"), filepath.Join(v.Dir(), "small", "tiny"), Options{})
			if err != nil || shares != (cold.Method == Reflink) {
				t.Errorf("a cold file: %v by %v", err, cold.Method)
			}
		})
	}
}

// copiesSmallFiles copies small files, which are written unless the file system shares
// them faster.
func copiesSmallFiles(t *testing.T, dir string, shares bool) {
	t.Helper()
	from, to := filepath.Join(dir, "small"), filepath.Join(dir, "small copies")
	must(t, os.Mkdir(from, 0o755))
	must(t, os.WriteFile(filepath.Join(from, "tiny"), make([]byte, 1<<10), 0o644))
	must(t, os.WriteFile(filepath.Join(from, "small"), make([]byte, smallCopy), 0o644))
	totals, err := All(t.Context(), onePair(to, from), Options{})
	want := map[bool]Method{false: ReadWrite, true: Reflink}[shares]
	if err != nil || totals.Methods[want] != 2 {
		t.Errorf("the directory: %v, %+v, want %v", err, totals.Methods, want)
	}
	for _, name := range []string{"tiny", "small"} {
		r, err := File(t.Context(), filepath.Join(to, name+" again"), filepath.Join(from, name), Options{})
		if err != nil || r.Method != want {
			t.Errorf("%s: %v by %v, want %v", name, err, r.Method, want)
		}
		sameFile(t, filepath.Join(to, name+" again"), filepath.Join(from, name))
	}
}
