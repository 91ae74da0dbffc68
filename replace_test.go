package holdfast

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/internal/fault"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// eachWay calls do with a way to write one file, and what it is made by.
func eachWay(t *testing.T, do func(t *testing.T, p Policy, write func(f *Files, w FileWrite) (FileResult, error))) {
	for _, p := range wholePolicies {
		t.Run("Write "+p.String(), func(t *testing.T) {
			do(t, p, func(f *Files, w FileWrite) (FileResult, error) {
				return f.Write(context.Background(), w.Path, w.Data, w.Mode)
			})
		})
		t.Run("WriteAll "+p.String(), func(t *testing.T) {
			do(t, p, func(f *Files, w FileWrite) (FileResult, error) {
				results, err := f.WriteAll(context.Background(), one(w))
				return results.At(0), err
			})
		})
	}
}

func statOn(t *testing.T, d *fault.Disk, path string) sys.Stat {
	t.Helper()
	name, _ := sys.NewName(path)
	is, err := d.StatPath(name)
	if err != nil {
		t.Fatal(err)
	}
	return is
}

func TestReplaceKeepsPermissionsAndOwner(t *testing.T) {
	eachWay(t, func(t *testing.T, p Policy, write func(f *Files, w FileWrite) (FileResult, error)) {
		d := fault.NewDisk()
		for _, perm := range []uint32{0o600, 0o666, 0o644, 0o4755, 0o777} {
			path := "file" + string(rune('a'+perm%26))
			d.WriteFile(path, []byte("old"), perm)
			was := statOn(t, d, path)
			f := newFiles(d, FilesOptions{Policy: p})
			for range 2 { // the second time it is known how files are made there
				if _, err := write(f, FileWrite{Path: path, Data: []byte("new"), Mode: ModeReplace}); err != nil {
					t.Error(err)
				}
				is := statOn(t, d, path)
				if is.Mode != was.Mode || is.UID != was.UID || is.GID != was.GID || is.Inode == was.Inode {
					t.Errorf("%#o became %+v", perm, is)
				}
			}
			f.Close()
		}
	})
}

func TestReplaceKeepsAnotherOwner(t *testing.T) {
	eachWay(t, func(t *testing.T, p Policy, write func(f *Files, w FileWrite) (FileResult, error)) {
		d := fault.NewDisk()
		d.WriteFile("a", []byte("old"), 0o4750)
		folder, _ := d.OpenFolder("/\x00")
		fd, _ := d.OpenFile(folder, "a\x00", os.O_WRONLY, 0)
		d.Chown(fd, 7, 8)
		d.Chmod(fd, 0o4750)
		d.Close(fd)
		d.Close(folder)
		f := newFiles(d, FilesOptions{Policy: p})
		defer f.Close()
		if _, err := write(f, FileWrite{Path: "a", Data: []byte("new"), Mode: ModeReplace}); err != nil {
			t.Error(err)
		}
		if is := statOn(t, d, "a"); is.UID != 7 || is.GID != 8 || is.Mode&permMask != 0o4750 {
			t.Errorf("%+v", is)
		}
		d.Add(fault.DiskFault{Op: fault.DiskChown, Err: syscall.EPERM})
		if _, err := write(f, FileWrite{Path: "a", Data: []byte("newer"), Mode: ModeReplace}); err != nil {
			t.Errorf("owner that may not be kept: %v", err)
		}
		if data, _ := d.ReadFile("a"); string(data) != "newer" {
			t.Errorf("%q", data)
		}
	})
}

func TestReplaceFollowsSymbolicLinks(t *testing.T) {
	eachWay(t, func(t *testing.T, p Policy, write func(f *Files, w FileWrite) (FileResult, error)) {
		f := realFiles(t, FilesOptions{Policy: p})
		dir := t.TempDir()
		at := func(name string) string { return filepath.Join(dir, name) }
		os.Mkdir(at("there"), 0o755)
		os.WriteFile(at("there/file"), []byte("old"), 0o600)
		os.Symlink("there/file", at("link"))
		os.Symlink("link", at("linklink"))
		os.Symlink("there/missing", at("dangling"))
		os.Symlink("loop", at("loop"))
		check := func(path, target string) {
			t.Helper()
			r, err := write(f, FileWrite{Path: at(path), Data: []byte("by " + path), Mode: ModeReplace})
			if err != nil || r.Path != at(path) {
				t.Errorf("%s: %+v", path, r)
			}
			holdsOnDisk(t, at(target), "by "+path)
			if is, err := os.Lstat(at(path)); err != nil || is.Mode()&fs.ModeSymlink == 0 {
				t.Errorf("%s is no link any more: %v, %v", path, is, err)
			}
		}
		check("link", "there/file")
		check("linklink", "there/file")
		check("dangling", "there/missing")
		r, err := write(f, FileWrite{Path: at("loop"), Data: []byte("x"), Mode: ModeReplace})
		if !errors.Is(err, syscall.ELOOP) || r.Outcome != OutcomeUntouched {
			t.Errorf("a loop: %+v, %v", r, err)
		}
		if names, _ := os.ReadDir(at("there")); len(names) != 2 {
			t.Errorf("left %v", names)
		}
	})
}

func TestReplaceTakesTheLongestName(t *testing.T) {
	eachWay(t, func(t *testing.T, p Policy, write func(f *Files, w FileWrite) (FileResult, error)) {
		f := realFiles(t, FilesOptions{Policy: p})
		path := filepath.Join(t.TempDir(), strings.Repeat("n", 255))
		if _, err := write(f, FileWrite{Path: path, Data: []byte("new"), Mode: ModeReplace}); err != nil {
			t.Error(err)
		}
		holdsOnDisk(t, path, "new")
	})
}

func TestReplacedFileIsOldOrNewAtEveryMoment(t *testing.T) {
	eachWay(t, func(t *testing.T, p Policy, write func(f *Files, w FileWrite) (FileResult, error)) {
		if p.Sync == SyncNever {
			return // promises nothing after a power cut
		}
		for _, all := range []bool{true, false} {
			d := fault.NewDisk()
			d.SetSyncsAll("/", all)
			d.WriteFile("a", []byte("the old one"), 0o644)
			f := newFiles(d, FilesOptions{Policy: p})
			looks := 0
			d.Watch(func(c fault.DiskCall) {
				for seed := range uint64(40) {
					looks++
					left, _ := d.PowerCut(rand.New(rand.NewPCG(seed, 2))).File("a")
					if s := string(left); s != "the old one" && s != "the new one" {
						t.Fatalf("in %v: %q", c, s)
					}
				}
				if left, _ := d.ProcessCrash().File("a"); string(left) != "the old one" && string(left) != "the new one" {
					t.Fatalf("in %v: shown as %q", c, left)
				}
			})
			if _, err := write(f, FileWrite{Path: "a", Data: []byte("the new one"), Mode: ModeReplace}); err != nil {
				t.Error(err)
			}
			if looks < 100 {
				t.Errorf("only %d images", looks)
			}
			d.Watch(nil)
			f.Close()
		}
	})
}

func TestReplaceTakesEightSystemCalls(t *testing.T) {
	d := fault.NewDisk()
	f := newFiles(d, FilesOptions{Policy: Policy{Sync: SyncEach}})
	defer f.Close()
	d.WriteFile("a", []byte("old"), 0o644)
	for i := range 3 {
		before := d.Count(fault.AnyDiskOp)
		if _, err := f.Write(context.Background(), "a", []byte("new"), ModeReplace); err != nil {
			t.Fatal(err)
		}
		if calls := d.Count(fault.AnyDiskOp) - before; i > 0 && calls > 8 {
			t.Errorf("%d calls: %v", calls, d.Calls()[before:])
		}
	}
}
