package rotate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/acltest"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// A lookedAt is the kernel's disk, with a check of the permissions that each call has left.
type lookedAt struct {
	sys.Disk
	look func()
}

func (d lookedAt) OpenFile(dir int, name sys.Name, flag int, perm uint32) (int, error) {
	defer d.look()
	return d.Disk.OpenFile(dir, name, flag, perm)
}

func (d lookedAt) Chown(fd int, uid, gid uint32) error {
	defer d.look()
	return d.Disk.Chown(fd, uid, gid)
}

func (d lookedAt) Chmod(fd int, perm uint32) error {
	defer d.look()
	return d.Disk.Chmod(fd, perm)
}

func (d lookedAt) SetAttribute(fd int, name string, value []byte) error {
	defer d.look()
	return d.Disk.SetAttribute(fd, name, value)
}

// readers are other users, each with a group.
var readers = [][2]int{{1001, 1001}, {1002, 2000}, {1003, 0}, {1004, 3000}}

// may says which of them may read a file.
func may(t *testing.T, path string) (all [4]bool) {
	t.Helper()
	for i, who := range readers {
		all[i] = acltest.MayRead(t, path, who[0], who[1])
	}
	return all
}

// accessText is all that decides who may use a file.
func accessText(t *testing.T, path string) string {
	t.Helper()
	var is unix.Stat_t
	acltest.Must(t, unix.Stat(path, &is))
	return fmt.Sprintf("%#o %d:%d %q", is.Mode, is.Uid, is.Gid, acltest.Attribute(path, acltest.Access))
}

func TestARotationLetsNobodyInAndNobodyOut(t *testing.T) {
	one := []acltest.Entry{{acltest.Owner, 6, 0}, {acltest.User, 4, 1001}, {acltest.Group, 0, 0}, {acltest.Mask, 4, 0}, {acltest.Other, 0, 0}}
	for _, old := range []struct {
		name     string
		mode     uint32
		uid, gid int
		list     []acltest.Entry // of the file
		always   []acltest.Entry // of the directory, for new files
	}{
		{name: "private", mode: 0o600},
		{name: "no umask leaves it", mode: 0o626},
		{name: "for a group", mode: 0o640, gid: 2000},
		{name: "of another user", mode: 0o640, uid: 1002, gid: 3000},
		{name: "not for its group", mode: 0o604, gid: 2000},
		{name: "for a user by a list", mode: 0o600, list: one},
		{name: "for a user by a list, with a group", mode: 0o600, gid: 2000, list: one},
		{name: "where new files have a list", mode: 0o640, always: one},
		{name: "with a list where new files have another", mode: 0o600, always: one,
			list: []acltest.Entry{{acltest.Owner, 6, 0}, {acltest.User, 4, 1004}, {acltest.Group, 4, 0}, {acltest.Mask, 4, 0}, {acltest.Other, 0, 0}}},
	} {
		for _, way := range []string{"Rotate", "Reopen"} {
			t.Run(old.name+" "+way, func(t *testing.T) {
				dir := acltest.Directory(t)
				path := filepath.Join(dir, "app.log")
				acltest.OldFile(t, path, old.uid, old.gid, old.mode)
				acltest.Must(t, os.WriteFile(path, []byte("x\n"), 0o600))
				if old.list != nil {
					acltest.Set(t, path, acltest.Access, old.list...)
				}
				if old.always != nil {
					acltest.Set(t, dir, acltest.Default, old.always...)
				}
				allowed, want := may(t, path), accessText(t, path)
				looks := 0
				d := lookedAt{look: func() {
					looks++
					for name := range logsIn(t, dir) {
						for i, may := range may(t, filepath.Join(dir, name)) {
							if may && !allowed[i] {
								t.Errorf("for a moment user %d of group %d may read %s", readers[i][0], readers[i][1], name)
							}
						}
					}
				}}
				f, err := open(d, path, Options{Compress: true, OnError: func(e *Error) { t.Error(e) }}, false)
				acltest.Must(t, err)
				if way == "Rotate" {
					acltest.Must(t, f.Rotate())
					tended(f)
				} else {
					acltest.Must(t, os.Rename(path, filepath.Join(dir, "app.log.1")))
					acltest.Must(t, f.Reopen())
				}
				acltest.Must(t, f.Close())
				files := logsIn(t, dir)
				for name := range files {
					if got := accessText(t, filepath.Join(dir, name)); got != want {
						t.Errorf("%s is %s, and the file before was %s", name, got, want)
					}
				}
				if len(files) != 2 || looks < 2 {
					t.Errorf("%d looks at %v", looks, names(files))
				}
			})
		}
	}
}

// TestWhatAUserCannotKeepIsForFewer is of processes that may not give files away.
func TestWhatAUserCannotKeepIsForFewer(t *testing.T) {
	for _, c := range []struct {
		name      string
		uid, gid  int
		mode      uint32
		list      bool
		groups    []uint32 // of the process, which is user 1001
		want      string
		wantGroup int
	}{
		{"a group that is not ours", 1001, 2000, 0o640, false, nil, "0100600", 1001},
		{"a group that is ours", 1001, 2000, 0o640, false, []uint32{2000}, "0100640", 2000},
		{"another owner, and a group that is ours", 0, 2000, 0o660, false, []uint32{2000}, "0100660", 2000},
		{"another owner and group", 0, 2000, 0o646, false, nil, "0100644", 1001},
		{"a list, and a group that is not ours", 1001, 2000, 0o640, true, nil, "0100640", 1001},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := acltest.Directory(t)
			acltest.Must(t, os.Chmod(dir, 0o777))
			path := filepath.Join(dir, "app.log")
			acltest.OldFile(t, path, c.uid, c.gid, c.mode)
			if c.list {
				acltest.Set(t, path, acltest.Access, acltest.Entry{acltest.Owner, 6, 0}, acltest.Entry{acltest.User, 4, 1003},
					acltest.Entry{acltest.Group, 4, 0}, acltest.Entry{acltest.Mask, 4, 0}, acltest.Entry{acltest.Other, 0, 0})
			}
			acltest.As(t, 1001, 1001, c.groups, func() {
				f, err := Open(path, Options{OnError: func(e *Error) { t.Error(e) }})
				if err != nil {
					t.Error(err)
					return
				}
				_, err = f.Write([]byte("x\n"))
				if err := errors.Join(err, f.Rotate(), f.Close()); err != nil {
					t.Error(err)
				}
			})
			var is unix.Stat_t
			acltest.Must(t, unix.Stat(path, &is))
			if got := fmt.Sprintf("%#o", is.Mode); got != c.want || int(is.Gid) != c.wantGroup {
				t.Errorf("%s %d:%d, want %s and the group %d", got, is.Uid, is.Gid, c.want, c.wantGroup)
			}
			if c.list && (acltest.MayRead(t, path, 1002, 1001) || !acltest.MayRead(t, path, 1003, 1003)) {
				t.Error("the list is not that of the old file without its group")
			}
		})
	}
}

// TestAReaderMayHoldUpASharedLog: flock asks for no more than an open file, so who may read the log can lock it. The write waits,
// and loses nothing.
func TestAReaderMayHoldUpASharedLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	f, err := Open(path, Options{Shared: true})
	if err != nil {
		t.Fatal(err)
	}
	reader, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	info, err := reader.Stat()
	if err == nil {
		err = unix.Flock(int(reader.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	// As /proc/locks(5) has them; -> is for one that waits.
	held := regexp.MustCompile(fmt.Sprintf(`(?m)^\d+: FLOCK .*:%d 0 EOF$`, info.Sys().(*syscall.Stat_t).Ino))
	waits := regexp.MustCompile(strings.Replace(held.String(), " FLOCK", " -> FLOCK", 1))
	if locks, err := os.ReadFile("/proc/locks"); err != nil || !held.Match(locks) {
		t.Skipf("the kernel does not say who waits for a lock: %v\n%s", err, locks)
	}
	wrote := make(chan error)
	go func() {
		_, err := f.Write([]byte("a line\n"))
		wrote <- err
	}()
	for waiting := false; !waiting; time.Sleep(time.Millisecond) {
		select {
		case err := <-wrote:
			t.Fatalf("the write waited for nobody: %v", err)
		default:
		}
		locks, err := os.ReadFile("/proc/locks")
		if err != nil {
			t.Fatal(err)
		}
		waiting = waits.Match(locks)
	}
	reader.Close()
	if err := errors.Join(<-wrote, f.Close()); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "a line\n" {
		t.Errorf("%q, %v", text, err)
	}
}
