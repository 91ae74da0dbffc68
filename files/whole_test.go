//go:build go1.25

package files_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// filesOn returns a Set that the test closes.
func filesOn(t *testing.T, d vfs.Disk, o files.Options) *files.Set {
	t.Helper()
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	f := newSet(d, o)
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return f
}

// realFiles returns a Set on the real disk.
func realFiles(t *testing.T, o files.Options) *files.Set {
	t.Helper()
	t.TempDir() // the test's directory is removed after the Set is closed: Windows removes none that is open
	f, err := files.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return f
}

// wholePolicies are one for each way to make whole files durable.
var wholePolicies = []holdfast.Policy{{}, {Sync: holdfast.Sync{Mode: holdfast.SyncEach}}, {Sync: holdfast.Sync{Mode: holdfast.SyncGroup}}}

func holdsOnDisk(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s holds %q, %v; want %q", path, got, err, want)
	}
}

func TestEachModeDoesWhatItSays(t *testing.T) {
	for _, p := range wholePolicies {
		f := realFiles(t, files.Options{Policy: p})
		want := holdfast.OutcomeDurable
		if p.Sync.Mode == holdfast.SyncNever {
			want = holdfast.OutcomeWritten
		}
		check := func(mode files.Mode, old, now string, wantErr error, batch bool) {
			t.Helper()
			path := filepath.Join(t.TempDir(), "a")
			if old != "" {
				os.WriteFile(path, []byte(old), 0o640)
			}
			var r files.Result
			var err error
			if batch {
				var all *files.Results
				all, err = f.WriteAll(context.Background(), one(files.Write{Path: path, Data: []byte("new"), Mode: mode}))
				for _, r = range all.All() {
				}
			} else {
				r, err = f.WriteFile(context.Background(), path, []byte("new"), mode)
			}
			if !errors.Is(err, wantErr) || wantErr == nil && (r.Outcome != want || r.Bytes != 3) || wantErr != nil && r.Outcome != holdfast.OutcomeUntouched {
				t.Errorf("%v of %q under %v: %+v, %v", mode, old, p, r, err)
			}
			holdsOnDisk(t, path, now)
			if names, _ := os.ReadDir(filepath.Dir(path)); len(names) != 1 {
				t.Errorf("%v left %v", mode, names)
			}
		}
		for _, batch := range []bool{false, true} {
			check(files.Create, "", "new", nil, batch)
			check(files.Create, "old file", "old file", fs.ErrExist, batch)
			check(files.Truncate, "", "new", nil, batch)
			check(files.Truncate, "old file", "new", nil, batch)
			check(files.Append, "", "new", nil, batch)
			check(files.Append, "old file", "old filenew", nil, batch)
			check(files.Replace, "", "new", nil, batch)
			check(files.Replace, "old file", "new", nil, batch)
		}
	}
}

func one(w ...files.Write) iter.Seq[files.Write] {
	return func(yield func(files.Write) bool) {
		for _, w := range w {
			if !yield(w) {
				return
			}
		}
	}
}

func TestManyFilesAreAllWritten(t *testing.T) {
	isolate.Once(t, isolate.Ordinary)
	for _, p := range wholePolicies {
		for _, mode := range []files.Mode{files.Create, files.Truncate, files.Append, files.Replace} {
			f := realFiles(t, files.Options{Policy: p, Handles: 16})
			dir := t.TempDir()
			var writes []files.Write
			for i := range 300 {
				writes = append(writes, files.Write{Path: fmt.Sprintf("%s/%d", dir, i), Data: []byte(fmt.Sprint("file ", i)), Mode: mode})
			}
			results, err := f.WriteAll(context.Background(), one(writes...))
			if err != nil || results.Len() != 300 {
				t.Fatal(results.Len(), err)
			}
			for i, r := range results.All() {
				if r.Path != writes[i].Path || (p.Sync.Mode != holdfast.SyncNever) != (r.Outcome == holdfast.OutcomeDurable) {
					t.Fatalf("%v under %v: %+v", mode, p, r)
				}
				holdsOnDisk(t, r.Path, fmt.Sprint("file ", i))
			}
			if names, _ := os.ReadDir(dir); len(names) != 300 {
				t.Errorf("%d names", len(names))
			}
		}
	}
}
