package volume

import (
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// TestJournalIsRecognised asks real file systems: statfs(2) has one number for all of
// ext. An ext4 that has a journal may be mounted so that it does not use it.
func TestJournalIsRecognised(t *testing.T) {
	check := func(name, options string, lacks bool) {
		t.Run(name+options, func(t *testing.T) {
			kinds, err := Parse(name)
			if err != nil {
				t.Fatal(err)
			}
			kind := kinds[0]
			if options != "" {
				kind.Options = options
			}
			if err := kind.Can(); err != nil {
				t.Skip(err)
			}
			isolate.Mounts(t, func(t *testing.T) {
				v, err := Make(t.Context(), t.TempDir(), kind, max(kind.Least, 16<<20))
				if missing := (*MissingError)(nil); errors.As(err, &missing) {
					t.Skip(err)
				}
				if err != nil {
					t.Fatal(err)
				}
				if got := sys.LacksJournal(v.Dir()); got != lacks {
					t.Errorf("LacksJournal is %v", got)
				}
				if err := v.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
	check("ext2", "", true)
	check("ext4-nojournal", "", true)
	check("ext4", "noload", true)
	check("ext3", "", false)
	check("ext4", "", false)
	check("ext4-journal", "", false)
	check("xfs", "", false)
	check("tmpfs", "", false)
}
