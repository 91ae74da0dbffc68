//go:build go1.25

package files_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/permission"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/temporary"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// eachWay calls do with each way to write one file, and the function that makes it.
func eachWay(t *testing.T, do func(t *testing.T, p holdfast.Policy, write func(f *files.Set, w files.Write) (files.Result, error))) {
	for _, p := range wholePolicies {
		t.Run("Write "+p.String(), func(t *testing.T) {
			do(t, p, func(f *files.Set, w files.Write) (files.Result, error) {
				return f.WriteFile(context.Background(), w.Path, w.Data, w.Mode)
			})
		})
		t.Run("WriteAll "+p.String(), func(t *testing.T) {
			do(t, p, func(f *files.Set, w files.Write) (files.Result, error) {
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
	eachWay(t, func(t *testing.T, p holdfast.Policy, write func(f *files.Set, w files.Write) (files.Result, error)) {
		d := fault.NewDisk()
		for _, perm := range []uint32{0o600, 0o666, 0o644, 0o4755, 0o4600, 0o777} {
			path := "file" + string(rune('a'+perm%26))
			d.WriteFile(path, []byte("old"), perm)
			was := statOn(t, d, path)
			f := newSet(d, files.Options{Policy: p})
			for range 2 { // the second time it is known how files are made there
				if _, err := write(f, files.Write{Path: path, Data: []byte("new"), Mode: files.Replace}); err != nil {
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
	eachWay(t, func(t *testing.T, p holdfast.Policy, write func(f *files.Set, w files.Write) (files.Result, error)) {
		d := fault.NewDisk()
		d.WriteFile("a", []byte("old"), 0o4750)
		dir, _ := d.OpenDir("/\x00")
		fd, _ := d.OpenFile(dir, "a\x00", os.O_WRONLY, 0)
		d.Chown(fd, 7, 8)
		d.Chmod(fd, 0o4750)
		d.Close(fd)
		d.Close(dir)
		f := newSet(d, files.Options{Policy: p})
		defer f.Close()
		if _, err := write(f, files.Write{Path: "a", Data: []byte("new"), Mode: files.Replace}); err != nil {
			t.Error(err)
		}
		if is := statOn(t, d, "a"); is.UID != 7 || is.GID != 8 || is.Mode&vfs.PermMask != 0o4750 {
			t.Errorf("%+v", is)
		}
		d.Add(fault.DiskFault{Op: fault.DiskChown, Err: syscall.EPERM})
		if _, err := write(f, files.Write{Path: "a", Data: []byte("newer"), Mode: files.Replace}); err != nil {
			t.Errorf("owner that may not be kept: %v", err)
		}
		if is := statOn(t, d, "a"); is.UID == 7 || is.Mode&permission.SetUser != 0 {
			t.Errorf("under another owner it is %+v", is)
		}
		if data, _ := d.ReadFile("a"); string(data) != "newer" {
			t.Errorf("%q", data)
		}
	})
}

func TestReplaceFollowsSymbolicLinks(t *testing.T) {
	eachWay(t, func(t *testing.T, p holdfast.Policy, write func(f *files.Set, w files.Write) (files.Result, error)) {
		f := realFiles(t, files.Options{Policy: p})
		dir := t.TempDir()
		at := func(name string) string { return filepath.Join(dir, name) }
		os.Mkdir(at("there"), 0o755)
		os.WriteFile(at("there/file"), []byte("old"), 0o600)
		symlink(t, "there/file", at("link"))
		symlink(t, "link", at("linklink"))
		symlink(t, "there/missing", at("dangling"))
		symlink(t, "loop", at("loop"))
		check := func(path, target string) {
			t.Helper()
			r, err := write(f, files.Write{Path: at(path), Data: []byte("by " + path), Mode: files.Replace})
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
		r, err := write(f, files.Write{Path: at("loop"), Data: []byte("x"), Mode: files.Replace})
		if !errors.Is(err, syscall.ELOOP) || r.Outcome != holdfast.OutcomeUntouched {
			t.Errorf("a loop: %+v, %v", r, err)
		}
		if names, _ := os.ReadDir(at("there")); len(names) != 2 {
			t.Errorf("left %v", names)
		}
	})
}

func TestReplaceTakesTheLongestName(t *testing.T) {
	eachWay(t, func(t *testing.T, p holdfast.Policy, write func(f *files.Set, w files.Write) (files.Result, error)) {
		path := filepath.Join(t.TempDir(), strings.Repeat("n", 255))
		f := realFiles(t, files.Options{Policy: p})
		if _, err := write(f, files.Write{Path: path, Data: []byte("new"), Mode: files.Replace}); err != nil {
			t.Error(err)
		}
		holdsOnDisk(t, path, "new")
	})
}

func TestReplacedFileIsOldOrNewAtEveryMoment(t *testing.T) {
	eachWay(t, func(t *testing.T, p holdfast.Policy, write func(f *files.Set, w files.Write) (files.Result, error)) {
		if p.Sync.Mode == holdfast.SyncNever {
			return // promises nothing after a power cut
		}
		for _, all := range []bool{true, false} {
			d := fault.NewDisk()
			d.SetSyncsAll("/", all)
			d.WriteFile("a", []byte("the old one"), 0o644)
			f := newSet(d, files.Options{Policy: p})
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
			if _, err := write(f, files.Write{Path: "a", Data: []byte("the new one"), Mode: files.Replace}); err != nil {
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

// TestReplaceTakesThirteenSystemCalls replaces a file of the same owner, without a list.
func TestReplaceTakesThirteenSystemCalls(t *testing.T) {
	const want = "[statpath stat lock attribute open attribute write chmod sync close rename sync lock]"
	d := fault.NewDisk()
	f := newSet(d, files.Options{Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncEach}}})
	defer f.Close()
	d.WriteFile("a", []byte("old"), 0o644)
	for i := range 3 {
		before := len(d.Calls())
		if _, err := f.WriteFile(context.Background(), "a", []byte("new"), files.Replace); err != nil {
			t.Fatal(err)
		}
		var made []fault.DiskOp
		for _, c := range d.Calls()[before:] {
			made = append(made, c.Op)
		}
		if i > 0 && fmt.Sprint(made) != want {
			t.Errorf("%v, want %s", made, want)
		}
	}
}

// TestATemporaryIsPrivateUntilAllIsRight looks at the permissions of a temporary whenever
// a call is made. No other user may open it before it has its owner and all its bytes.
func TestATemporaryIsPrivateUntilAllIsRight(t *testing.T) {
	eachWay(t, func(t *testing.T, p holdfast.Policy, write func(f *files.Set, w files.Write) (files.Result, error)) {
		d := fault.NewDisk()
		d.WriteFile("a", []byte("old"), 0o640)
		dir, _ := d.OpenDir("/\x00")
		fd, _ := d.OpenFile(dir, "a\x00", os.O_WRONLY, 0)
		d.Chown(fd, 7, 8)
		d.Close(fd)
		d.Close(dir)
		f := newSet(d, files.Options{Policy: p})
		defer f.Close()
		looks, looking := 0, false
		d.Watch(func(c fault.DiskCall) {
			if looking || c.End.IsZero() {
				return
			}
			looking = true
			defer func() { looking = false }()
			for name, data := range d.ProcessCrash().Files {
				if is := statOn(t, d, name); strings.Contains(name, temporary.Prefix) {
					looks++
					right := is.UID == 7 && is.GID == 8 && string(data) == "new secret"
					if is.Mode&0o077 != 0 && !right {
						t.Errorf("after %v: %#o of %d:%d with %q", c.Op, is.Mode&vfs.PermMask, is.UID, is.GID, data)
					}
				}
			}
		})
		if _, err := write(f, files.Write{Path: "a", Data: []byte("new secret"), Mode: files.Replace}); err != nil {
			t.Error(err)
		}
		d.Watch(nil)
		if is := statOn(t, d, "a"); looks < 4 || is.Mode&vfs.PermMask != 0o640 {
			t.Errorf("%d looks; %#o", looks, is.Mode)
		}
	})
}
