//go:build go1.25

package files_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/handles"
)

// TestMarksTakeFewDescriptors replaces files in more directories than there may be marks of,
// and finds that each directory was swept once.
func TestMarksTakeFewDescriptors(t *testing.T) {
	for _, p := range wholePolicies {
		for _, limit := range []int{handles.LeastHandles, 8, 16, 64} {
			d := fault.NewDisk()
			d.SetCap(limit)
			f := newSet(d, files.Options{Policy: p, Handles: limit})
			var writes []files.Write
			for i := range 40 {
				path := fmt.Sprintf("directory%d/file", i%20)
				d.MkdirAll(fmt.Sprintf("directory%d", i%20))
				writes = append(writes, files.Write{Path: path, Data: []byte("new"), Mode: files.Replace})
			}
			if _, err := f.WriteAll(context.Background(), one(writes...)); err != nil {
				t.Error(err)
			}
			for _, w := range writes {
				if _, err := f.WriteFile(context.Background(), w.Path, w.Data, w.Mode); err != nil {
					t.Error(err)
				}
			}
			marks := handles.FileMarks(limit)
			if n := f.Marks(); n > marks {
				t.Errorf("%d handles: %d marks", limit, n)
			}
			if n := d.Count(fault.DiskReadNames); marks > 0 && (n < 20 || n > 2*20) || marks == 0 && n != 0 {
				// An empty one is read by one call, others by two.
				t.Errorf("%d handles, %v: directories were read %d times", limit, p, n)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			if wrong := d.Violations(); len(wrong) > 0 || d.Open() != 0 {
				t.Errorf("%d handles: %v, %d open", limit, wrong, d.Open())
			}
		}
	}
}
