//go:build go1.25

package files_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// inUnreadable runs a test as a user other than root, in a directory of that user that may be
// written and searched, but not read.
func inUnreadable(t *testing.T, test func(t *testing.T, dir string)) {
	const name = "HOLDFAST_TEST_UNREADABLE"
	const nobody = 65534
	dir := os.Getenv(name)
	if dir == "" {
		above := t.TempDir()
		for _, d := range []string{above, filepath.Dir(above)} { // so that user 65534 may enter them
			if err := os.Chmod(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		dir = filepath.Join(above, "dropbox")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(dir, 0o700) })
		t.Setenv(name, dir)
		if err := errors.Join(os.Chmod(dir, 0o311), ignoreNotRoot(os.Chown(dir, nobody, nobody))); err != nil {
			t.Fatal(err)
		}
	}
	isolate.Process(t, func(t *testing.T) {
		if os.Geteuid() == 0 {
			if err := errors.Join(syscall.Setgroups(nil), syscall.Setresgid(nobody, nobody, nobody), syscall.Setresuid(nobody, nobody, nobody)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := os.ReadDir(dir); !errors.Is(err, fs.ErrPermission) {
			t.Fatalf("the directory may be read: %v", err)
		}
		test(t, dir)
	})
}

func ignoreNotRoot(err error) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return err
}

// unreadableError checks that err says that the directory may not be read.
func unreadableError(t *testing.T, err error, dir string) {
	t.Helper()
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "the names in "+dir+" can't be synced without permission to read it") {
		t.Errorf("the error is %v", err)
	}
}

// TestFilesAreWrittenWhereTheDirectoryMayNotBeRead writes under sync=never, in each mode and
// as a stream. A Sync that is asked for can't make the names durable, says so, and can be
// made again.
func TestFilesAreWrittenWhereTheDirectoryMayNotBeRead(t *testing.T) {
	inUnreadable(t, func(t *testing.T, dir string) {
		f, err := files.New(files.Options{Policy: holdfast.Buffered(holdfast.KiB), Handles: 8})
		if err != nil {
			t.Fatal(err)
		}
		for _, mode := range []files.Mode{files.Create, files.Truncate, files.Append, files.Replace} {
			if r, err := f.WriteFile(noContext, filepath.Join(dir, "file"), []byte("x"), mode); err != nil || r.Outcome != holdfast.OutcomeWritten {
				t.Errorf("%v: %v, %v", mode, r.Outcome, err)
			}
		}
		results, err := f.WriteAll(noContext, func(yield func(files.Write) bool) {
			for i := range 20 {
				if !yield(files.Write{Path: filepath.Join(dir, fmt.Sprint(i)), Data: []byte("x"), Mode: files.Replace}) {
					return
				}
			}
		})
		if err != nil || results.Totals().Written != 20 {
			t.Errorf("%+v, %v", results.Totals(), err)
		}
		mustAppend(t, f, filepath.Join(dir, "log"), "line\n")
		unreadableError(t, f.Sync(noContext), dir)
		for i := range 20 { // which closes the log to make room
			mustAppend(t, f, filepath.Join(dir, fmt.Sprint("log", i)), "line\n")
		}
		if err := f.Flush(noContext); err != nil {
			t.Error(err)
		}
		unreadableError(t, f.Sync(noContext), dir)
		if err := os.Chmod(dir, 0o711); err != nil {
			t.Fatal(err)
		}
		if err := f.Sync(noContext); err != nil && !strings.Contains(err.Error(), "closed to make room before they were synced") { // a file system that can't be synced as a whole
			t.Errorf("where it may be read by now: %v", err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		wantFile(t, filepath.Join(dir, "file"), "x")
		wantFile(t, filepath.Join(dir, "log"), "line\n")
	})
}

// TestPolicyThatSyncsIsRefusedWhereTheDirectoryMayNotBeRead makes nothing there.
func TestPolicyThatSyncsIsRefusedWhereTheDirectoryMayNotBeRead(t *testing.T) {
	inUnreadable(t, func(t *testing.T, dir string) {
		path := filepath.Join(dir, "file")
		for _, p := range []holdfast.Policy{holdfast.Durable(), holdfast.EachDurable(), {Buffer: holdfast.KiB, Sync: holdfast.Sync{Mode: holdfast.SyncClose}}} {
			f, err := files.New(files.Options{Policy: p})
			if err != nil {
				t.Fatal(err)
			}
			r, err := f.WriteFile(noContext, path, []byte("x"), files.Create)
			unreadableError(t, err, dir)
			if r.Outcome != holdfast.OutcomeUntouched {
				t.Errorf("%v: %v", p, r.Outcome)
			}
			results, err := f.WriteAll(noContext, func(yield func(files.Write) bool) {
				_ = yield(files.Write{Path: path, Mode: files.Replace}) && yield(files.Write{Path: path + "2"})
			})
			unreadableError(t, err, dir)
			if n := results.Totals().Untouched; n != 2 {
				t.Errorf("%v: %d files are untouched", p, n)
			}
			err = f.Append(noContext, path, []byte("x"))
			if err == nil {
				err = f.Flush(noContext)
			}
			unreadableError(t, err, dir)
			f.Close()
		}
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the file was made: %v", err)
		}
	})
}

// TestNamesInAnUnreadableDirectoryAreSyncedLater has the permission come back: nothing was
// lost, and the next Sync makes all durable.
func TestNamesInAnUnreadableDirectoryAreSyncedLater(t *testing.T) {
	disk := fault.NewDisk()
	disk.MkdirAll("/d")
	disk.Add(fault.DiskFault{Op: fault.DiskOpenDir, Path: "/d", Err: syscall.EACCES})
	f := onDisk(t, disk, files.Options{Policy: holdfast.Buffered(64), Retry: once})
	mustAppend(t, f, "/d/log", "x")
	unreadableError(t, f.Sync(noContext), "/d")
	disk.Mend()
	if err := f.Sync(noContext); err != nil {
		t.Fatal(err)
	}
	wantKept(t, disk, "/d/log", "x")
}
