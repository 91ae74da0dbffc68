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
	"github.com/holdfast-go/holdfast/internal/volume"
)

// TestALogThatIsRemovedAcknowledgesNothing, whatever call syncs it.
func TestALogThatIsRemovedAcknowledgesNothing(t *testing.T) {
	remove := []func(name string) error{
		os.Remove,
		func(name string) error { return os.Rename(name, filepath.Join(filepath.Dir(name), ".fuse_hidden1")) }, // as ntfs-3g and NFS do
		func(name string) error { return errors.Join(os.Remove(name), os.WriteFile(name, nil, 0o600)) },
	}
	for i := range 2 * len(remove) {
		noDsync := i%2 == 0
		dir := filepath.Join(t.TempDir(), "log")
		l, _ := mustOpen(t, dir, small)
		l.noDsync = noDsync
		if _, err := l.Append([]byte("kept")); err != nil {
			t.Fatal(err)
		}
		if err := remove[i/2](filepath.Join(dir, segmentName(1))); err != nil {
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

// TestAFullFileSystemIsNeverFinal fills small file systems, with copy on write and without, and then makes room.
func TestAFullFileSystemIsNeverFinal(t *testing.T) {
	isolate.Once(t)
	kinds, err := volume.Parse("ext4,xfs,btrfs")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds {
		t.Run(k.Name, func(t *testing.T) {
			if err := k.Can(); err != nil {
				t.Skip(err)
			}
			v, err := volume.Make(t.Context(), t.TempDir(), k, max(k.Least, 32<<20))
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := v.Close(); err != nil {
					t.Error(err)
				}
			}()
			fillsAndGoesOn(t, v.Dir())
		})
	}
}

func fillsAndGoesOn(t *testing.T, dir string) {
	l, _, err := Open(filepath.Join(dir, "log"), Options{Policy: holdfast.Durable(), SegmentSize: holdfast.MiB})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	add := func() (uint64, error) { return l.Append(make([]byte, 16<<10)) }
	if _, err := add(); err != nil {
		t.Fatal(err)
	}
	ballast := filepath.Join(dir, "ballast")
	f, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	for size := 1 << 20; size >= 1<<10; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
	_ = f.Sync() // the disk is full
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	var e *Error
	for range 200 { // more than a segment
		if _, err = add(); err != nil {
			break
		}
	}
	if !errors.Is(err, unix.ENOSPC) || !errors.As(err, &e) || e.Final {
		t.Fatalf("on the full disk: %v", err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if d, err := os.Open(dir); err != nil || errors.Join(unix.Syncfs(int(d.Fd())), d.Close()) != nil {
		t.Fatal(err)
	}
	for range 100 {
		if _, err := add(); err != nil {
			t.Fatalf("with room again: %v", err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l, found, err := Open(filepath.Join(dir, "log"), Options{})
	if err != nil || found.Records < 102 {
		t.Fatal(found, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
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
		0o600: "open DIR: permission denied",
		0o644: "open DIR/lock: permission denied",
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

// TestAReaderOfTheDirectoryMayRefuseAnOpen: flock asks for no more than an open file, and a directory that others may list can be
// opened. Nothing is lost, and Open succeeds when the lock is gone.
func TestAReaderOfTheDirectoryMayRefuseAnOpen(t *testing.T) {
	dir := t.TempDir()
	reader, err := os.Open(dir)
	if err == nil {
		err = unix.Flock(int(reader.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if _, _, err := Open(dir, small); !errors.Is(err, ErrLocked) {
		t.Errorf("Open of a directory that another program has locked: %v", err)
	}
	reader.Close()
	mustOpen(t, dir, small)
}
