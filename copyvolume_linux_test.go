package holdfast

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/volume"
)

// TestCopyKeepsAllOnEachFileSystem copies on file systems made for it, of which the last
// two share blocks.
func TestCopyKeepsAllOnEachFileSystem(t *testing.T) {
	kinds, err := volume.Parse("ext2,ext3,ext4,xfs,btrfs")
	told(t, err)
	for _, k := range kinds {
		t.Run(k.Name, func(t *testing.T) {
			if err := k.Can(); err != nil {
				t.Skip(err)
			}
			v, err := volume.Make(t.Context(), t.TempDir(), k, k.SizeFor(256<<20, 1000))
			told(t, err)
			defer func() { told(t, v.Close()) }()
			reflinks := copiesKeepAll(t, v.Dir(), 30)
			if shares := k.Type == "xfs" || k.Type == "btrfs"; shares != (reflinks > 0) {
				t.Errorf("%d reflinks", reflinks)
			}
		})
	}
}
