//go:build go1.25

package wal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// TestALogThatIsRemovedAcknowledgesNothing, whatever call syncs it.
func TestALogThatIsRemovedAcknowledgesNothing(t *testing.T) {
	for _, noDsync := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "log")
		l, _ := mustOpen(t, dir, small)
		l.noDsync = noDsync
		if _, err := l.Append([]byte("kept")); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, segmentName(1))); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := l.Append([]byte("gone")); !errors.Is(err, holdfast.ErrUnlinked) || l.Durable() != 1 {
				t.Errorf("Append without a name: %v; %d records are durable", err, l.Durable())
			}
		}
		if err := l.Close(); !errors.Is(err, holdfast.ErrUnlinked) {
			t.Errorf("Close = %v", err)
		}
	}
}

// TestALogOnAReadOnlyMountIsReadAndNotOpened, and the error has its directory.
func TestALogOnAReadOnlyMountIsReadAndNotOpened(t *testing.T) {
	isolate.Mounts(t, func(t *testing.T) {
		at := t.TempDir()
		if err := unix.Mount("none", at, "tmpfs", 0, ""); err != nil {
			t.Fatal(err)
		}
		defer unix.Unmount(at, unix.MNT_DETACH)
		dir := filepath.Join(at, "log")
		l, _ := mustOpen(t, dir, small)
		if _, err := l.Append([]byte("kept")); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount("none", at, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Open(dir, small); err == nil || err.Error() != "wal: open the lock of "+dir+": read-only file system" {
			t.Error(err)
		}
		other := filepath.Join(at, "other")
		if _, _, err := Open(other, small); err == nil || err.Error() != "wal: make directory "+other+": read-only file system" {
			t.Error(err)
		}
		if found, err := Scan(dir, func(Record, *DamageError) bool { return true }); err != nil || found.Records != 1 {
			t.Errorf("%+v, %v", found, err)
		}
	})
}

// TestAStrangerLearnsWhichDirectoryItMayNotUse has a log of another user.
func TestAStrangerLearnsWhichDirectoryItMayNotUse(t *testing.T) {
	umask(t, 0o022)
	top, err := os.MkdirTemp("", "holdfast-wal-") // t.TempDir may be in one that nobody else may enter
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(top)
	if err := os.Chmod(top, 0o755); err != nil {
		t.Fatal(err)
	}
	for perm, want := range map[fs.FileMode]string{
		0o600: "wal: open directory DIR: permission denied",
		0o644: "wal: open the lock of DIR: permission denied",
	} {
		dir := filepath.Join(top, perm.String())
		l, _ := mustOpen(t, dir, Options{Policy: holdfast.Durable(), Perm: perm})
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		want = strings.ReplaceAll(want, "DIR", dir)
		isolate.AsStranger(t, func() error {
			if _, _, err := Open(dir, small); err == nil || err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
			_, err := Scan(dir, func(Record, *DamageError) bool { return true })
			if perm == 0o644 { // who may read may scan
				return err
			}
			if !errors.Is(err, fs.ErrPermission) {
				t.Error(err)
			}
			return nil
		})
	}
}

// TestClosedLogIsUnlockedForAllDescriptors: a process that is forked meanwhile has them too, until it runs its program.
func TestClosedLogIsUnlockedForAllDescriptors(t *testing.T) {
	dir := t.TempDir()
	l, _, err := Open(dir, small)
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range []int{l.dir.fd, l.dir.lock} {
		forked, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(forked)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l, _, err = Open(dir, small)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
