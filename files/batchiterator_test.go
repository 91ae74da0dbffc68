//go:build go1.25

package files_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
)

// TestIteratorMayWriteAPathThatItHasGiven has an iterator write a path that it has given, by itself
// and by another goroutine that it waits for. The batch renames its own file after that.
func TestIteratorMayWriteAPathThatItHasGiven(t *testing.T) {
	calls := map[string]func(ctx context.Context, f *files.Set, mode files.Mode) error{
		"WriteFile": func(ctx context.Context, f *files.Set, mode files.Mode) error {
			_, err := f.WriteFile(ctx, "/a", []byte("between"), mode)
			return err
		},
		"WriteAll": func(ctx context.Context, f *files.Set, mode files.Mode) error {
			_, err := f.WriteAll(ctx, one(files.Write{Path: "/a", Data: []byte("between"), Mode: mode}, files.Write{Path: "/c"}))
			return err
		},
	}
	check := func(t *testing.T, p holdfast.Policy, mode files.Mode, beside bool, call func(ctx context.Context, f *files.Set, mode files.Mode) error) {
		disk := fault.NewDisk()
		f := onDisk(t, disk, files.Options{Policy: p})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		results, err := f.WriteAll(noContext, func(yield func(files.Write) bool) {
			for _, path := range []string{"/a", "/b"} {
				if !yield(files.Write{Path: path, Data: []byte("given"), Mode: files.Replace}) {
					return
				}
			}
			done := make(chan error, 1)
			if beside {
				go func() { done <- call(ctx, f, mode) }()
			} else {
				done <- call(ctx, f, mode)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
			wantOnDisk(t, disk, "/a", "between")
		})
		if err != nil || results.Totals().Durable != 2 {
			t.Error(results, err)
		}
		wantKept(t, disk, "/a", "given")
	}
	for _, p := range []holdfast.Policy{holdfast.Durable(), holdfast.Periodic(time.Hour), {Sync: holdfast.Sync{Mode: holdfast.SyncClose}}} {
		for name, call := range calls {
			for _, mode := range wholeModes {
				for _, beside := range []bool{false, true} {
					t.Run(fmt.Sprint(p, "/", name, "/", mode, "/", beside), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) { check(t, p, mode, beside, call) })
					})
				}
			}
		}
	}
}

// TestRenameOfABatchWaitsForAFileThatIsUndone has a Create fail, and remove what it made, while a batch
// is about to give the name to its own file.
func TestRenameOfABatchWaitsForAFileThatIsUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := fault.NewDisk(
			fault.DiskFault{Op: fault.DiskWrite, Path: "a", Err: syscall.EIO},
			fault.DiskFault{Op: fault.DiskRemove, Path: "a", Delay: time.Minute})
		f := onDisk(t, disk, files.Options{Policy: holdfast.Durable()})
		go f.WriteFile(noContext, "/a", []byte("failed"), files.Create)
		synctest.Wait() // it removes the file
		if _, err := f.WriteAll(noContext, one(files.Write{Path: "/a", Data: []byte("given"), Mode: files.Replace}, files.Write{Path: "/b"})); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		wantOnDisk(t, disk, "/a", "given")
	})
}
