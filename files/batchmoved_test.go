//go:build go1.25

package files_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/handles"
	"github.com/holdfast-go/holdfast/internal/temporary"
)

// TestReplacementInAMovedDirectorySaysWhereItStays has a batch write a replacement, close its
// directory to make room, and then find another directory at that path.
func TestReplacementInAMovedDirectorySaysWhereItStays(t *testing.T) {
	for _, anew := range []bool{true, false} {
		disk := fault.NewDisk()
		for i := range 10 {
			disk.MkdirAll(fmt.Sprint("/other", i))
		}
		disk.MkdirAll("/p")
		disk.WriteFile("/p/a", []byte("old"), 0o644)
		f := onDisk(t, disk, files.Options{Policy: holdfast.Durable(), Handles: handles.LeastHandles, Workers: 1, Retry: once})
		results, err := f.WriteAll(noContext, func(yield func(files.Write) bool) {
			yield(files.Write{Path: "/p/a", Data: []byte("new"), Mode: files.Replace})
			for i := range 10 {
				yield(files.Write{Path: fmt.Sprint("/other", i, "/x"), Data: []byte("x"), Mode: files.Create})
			}
			if err := disk.Move("/p", "/moved"); err != nil {
				t.Fatal(err)
			}
			if anew {
				disk.MkdirAll("/p")
				disk.WriteFile("/p/a", []byte("another"), 0o644)
			}
		})
		r := results.At(0)
		if r.Outcome != holdfast.OutcomeUntouched || r.Err == nil {
			t.Fatalf("%v, %v", r.Outcome, err)
		}
		image := disk.ProcessCrash()
		left := ""
		for path := range image.Files {
			if strings.HasPrefix(path, "/moved/"+temporary.Prefix) {
				left = strings.TrimPrefix(path, "/moved/")
			}
		}
		if left == "" {
			t.Fatal("the directory was not closed before: the test proves nothing")
		}
		if !strings.Contains(r.Err.Error(), left) {
			t.Errorf("%v does not name %s, which is left", r.Err, left)
		}
		if anew != (r.Err != nil && strings.Contains(r.Err.Error(), "the directory was moved away meanwhile")) {
			t.Errorf("the error is %v", r.Err)
		}
		want := map[string]string{"/moved/a": "old"}
		if anew {
			want["/p/a"] = "another"
		}
		for path, data := range want {
			if got, ok := image.File(path); !ok || string(got) != data {
				t.Errorf("%s holds %q, %v", path, got, ok)
			}
		}
	}
}
