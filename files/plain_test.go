//go:build go1.25

package files_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// A plainDisk is this machine's without the calls that only some systems have.
type plainDisk struct{ vfs.Disk }

// TestFilesNeedsNoOptionalCall: a system without them syncs files one by one.
func TestFilesNeedsNoOptionalCall(t *testing.T) {
	for _, p := range wholePolicies {
		f := filesOn(t, plainDisk{sys.Disk{}}, files.Options{Policy: p})
		dir := t.TempDir()
		for _, mode := range []files.Mode{files.Create, files.Replace} {
			var writes []files.Write
			for i := range 20 {
				writes = append(writes, files.Write{Path: fmt.Sprint(dir, "/", i), Data: []byte(fmt.Sprint(mode, i)), Mode: mode})
			}
			results, err := f.WriteAll(context.Background(), one(writes...))
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range results.All() {
				if (p.Sync.Mode != holdfast.SyncNever) != (r.Outcome == holdfast.OutcomeDurable) {
					t.Errorf("%v under %v: %+v", mode, p, r)
				}
				holdsOnDisk(t, r.Path, fmt.Sprint(mode, i))
			}
		}
		for i := range 20 {
			path := fmt.Sprint(dir, "/appended", i)
			if err := f.Append(context.Background(), path, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
