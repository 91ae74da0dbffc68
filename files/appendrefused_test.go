//go:build go1.25

package files_test

import (
	"fmt"
	"io/fs"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
)

// TestAnAppendToAFileThatCantBeOpenedIsNotAccepted under a policy that has the call wait: who gives its
// bytes again does not write them twice.
func TestAnAppendToAFileThatCantBeOpenedIsNotAccepted(t *testing.T) {
	for _, p := range []holdfast.Policy{holdfast.Durable(), holdfast.EachDurable(), {Sync: holdfast.Sync{Mode: holdfast.SyncGroup}}} {
		t.Run(p.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := fault.NewDisk()
				f := onDisk(t, disk, files.Options{Policy: p, Retry: once})
				appends := func(cause error) {
					var all sync.WaitGroup
					for i := range 8 {
						all.Go(func() {
							err := f.Append(noContext, "/tenant/log", fmt.Appendf(nil, "%d\n", i))
							if cause == nil && err != nil {
								t.Error(err)
							}
							if cause == nil {
								return
							}
							failed := failureOf(t, err, "/tenant/log", cause)
							if failed.Offset != 0 || failed.Outcome != holdfast.OutcomeUntouched {
								t.Errorf("Offset %d, %v: %v", failed.Offset, failed.Outcome, err)
							}
						})
					}
					all.Wait()
				}
				appends(fs.ErrNotExist)
				if s := f.Stats(); s.NotFlushed != 0 || s.Memory != 0 || s.Streams != 0 {
					t.Errorf("%d bytes wait in %d bytes of memory, of %d paths", s.NotFlushed, s.Memory, s.Streams)
				}
				disk.MkdirAll("/tenant")
				appends(nil)
				if got, _ := disk.ReadFile("/tenant/log"); len(got) != 16 {
					t.Errorf("the file holds %q", got)
				}
				// The directory goes with the file, and the Set has closed it before.
				if err := f.Release(noContext, "/tenant/log"); err != nil {
					t.Fatal(err)
				}
				disk.RemoveAll("/tenant")
				appends(fs.ErrNotExist)
				disk.MkdirAll("/tenant")
				time.Sleep(time.Hour)
				if err := f.Sync(noContext); err != nil {
					t.Error(err)
				}
				if _, err := disk.ReadFile("/tenant/log"); err == nil {
					t.Error("what was not accepted is in the file")
				}
			})
		})
	}
}
