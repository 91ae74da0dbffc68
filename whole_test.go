package holdfast

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"testing"
)

// filesOn returns a Files that the test closes.
func filesOn(t *testing.T, d disk, o FilesOptions) *Files {
	t.Helper()
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	f := newFiles(d, o)
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return f
}

// realFiles returns a Files on the real disk.
func realFiles(t *testing.T, o FilesOptions) *Files {
	t.Helper()
	f, err := NewFiles(o)
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
var wholePolicies = []Policy{{}, {Sync: SyncEach}, {Sync: SyncGroup}}

func holdsOnDisk(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s holds %q, %v; want %q", path, got, err, want)
	}
}

func TestEachModeDoesWhatItSays(t *testing.T) {
	for _, p := range wholePolicies {
		f := realFiles(t, FilesOptions{Policy: p})
		want := OutcomeDurable
		if p.Sync == SyncNever {
			want = OutcomeWritten
		}
		check := func(mode Mode, old, now string, wantErr error, batch bool) {
			t.Helper()
			path := filepath.Join(t.TempDir(), "a")
			if old != "" {
				os.WriteFile(path, []byte(old), 0o640)
			}
			var r FileResult
			var err error
			if batch {
				var all *Results
				all, err = f.WriteAll(context.Background(), one(FileWrite{Path: path, Data: []byte("new"), Mode: mode}))
				for _, r = range all.All() {
				}
			} else {
				r, err = f.Write(context.Background(), path, []byte("new"), mode)
			}
			if !errors.Is(err, wantErr) || wantErr == nil && (r.Outcome != want || r.Bytes != 3) || wantErr != nil && r.Outcome != OutcomeUntouched {
				t.Errorf("%v of %q under %v: %+v, %v", mode, old, p, r, err)
			}
			holdsOnDisk(t, path, now)
			if names, _ := os.ReadDir(filepath.Dir(path)); len(names) != 1 {
				t.Errorf("%v left %v", mode, names)
			}
		}
		for _, batch := range []bool{false, true} {
			check(ModeCreate, "", "new", nil, batch)
			check(ModeCreate, "old file", "old file", fs.ErrExist, batch)
			check(ModeTruncate, "", "new", nil, batch)
			check(ModeTruncate, "old file", "new", nil, batch)
			check(ModeAppend, "", "new", nil, batch)
			check(ModeAppend, "old file", "old filenew", nil, batch)
			check(ModeReplace, "", "new", nil, batch)
			check(ModeReplace, "old file", "new", nil, batch)
		}
	}
}

func one(w ...FileWrite) iter.Seq[FileWrite] {
	return func(yield func(FileWrite) bool) {
		for _, w := range w {
			if !yield(w) {
				return
			}
		}
	}
}

func TestManyFilesAreAllWritten(t *testing.T) {
	for _, p := range wholePolicies {
		for _, mode := range []Mode{ModeCreate, ModeTruncate, ModeAppend, ModeReplace} {
			f := realFiles(t, FilesOptions{Policy: p, Handles: 16})
			dir := t.TempDir()
			var files []FileWrite
			for i := range 300 {
				name, _ := NewName(fmt.Sprintf("%s/%d", dir, i))
				files = append(files, FileWrite{Name: name, Data: []byte(fmt.Sprint("file ", i)), Mode: mode})
			}
			results, err := f.WriteAll(context.Background(), one(files...))
			if err != nil || results.Len() != 300 {
				t.Fatal(results.Len(), err)
			}
			for i, r := range results.All() {
				if r.Path != files[i].Name.String() || (p.Sync != SyncNever) != (r.Outcome == OutcomeDurable) {
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
