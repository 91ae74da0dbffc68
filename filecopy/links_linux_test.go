package filecopy_test

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/filecopy"
	"github.com/holdfast-go/holdfast/internal/filetest"
)

// linkOf makes a symbolic link that was read before it was changed, so that a second
// read would show. The link has an attribute of root's if it can have one.
func linkOf(t *testing.T, path string) (attribute bool) {
	t.Helper()
	if err := os.Symlink("nowhere", path); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Lchown(path, 1234, 5678); err != nil {
			t.Fatal(err)
		}
	}
	err := unix.Lsetxattr(path, "trusted.holdfast", []byte("of the link"), 0)
	if err != nil && !errors.Is(err, unix.ENOTSUP) && !errors.Is(err, unix.EPERM) {
		t.Fatal(err)
	}
	times := []unix.Timespec{{Sec: 1_000_000_000, Nsec: 123_456_789}, {Sec: 1_100_000_000, Nsec: 987_654_321}}
	if e := unix.UtimesNanoAt(unix.AT_FDCWD, path, times, unix.AT_SYMLINK_NOFOLLOW); e != nil {
		t.Fatal(e)
	}
	return err == nil
}

// TestLinksKeepTheirTimes wants also the time of the last access from before the copying.
func TestLinksKeepTheirTimes(t *testing.T) {
	for _, archive := range []bool{false, true} {
		dir := t.TempDir()
		filetest.MustWrite(t, dir+"/from/file", "text")
		linkOf(t, dir+"/from/link")
		var is, copied unix.Stat_t
		if err := unix.Lstat(dir+"/from/link", &is); err != nil {
			t.Fatal(err)
		}
		copyAll(t, filecopy.Options{Archive: archive && os.Geteuid() == 0}, dir+"/to", dir+"/from")
		if err := unix.Lstat(dir+"/to/link", &copied); err != nil {
			t.Fatal(err)
		}
		if copied.Atim != is.Atim || copied.Mtim != is.Mtim {
			t.Errorf("archive %v: read at %v and changed at %v, want %v and %v", archive, copied.Atim, copied.Mtim, is.Atim, is.Mtim)
		}
	}
}

func TestArchiveKeepsWhatLinksHave(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may give links away, and set their attributes")
	}
	dir := t.TempDir()
	filetest.MustWrite(t, dir+"/from/file", "text")
	attribute := linkOf(t, dir+"/from/link")
	// An existing one is replaced, with all its contents.
	filetest.MustWrite(t, dir+"/to/file", "text")
	linkOf(t, dir+"/to/link")
	if err := os.Lchown(dir+"/to/link", 9, 9); err != nil {
		t.Fatal(err)
	}
	for _, dst := range []string{"/new", "/to"} {
		copyAll(t, filecopy.Options{Archive: true}, dir+dst, dir+"/from")
		var is unix.Stat_t
		if err := unix.Lstat(dir+dst+"/link", &is); err != nil || is.Uid != 1234 || is.Gid != 5678 {
			t.Errorf("%s: of %d:%d, %v", dst, is.Uid, is.Gid, err)
		}
		value := make([]byte, 100)
		n, err := unix.Lgetxattr(dir+dst+"/link", "trusted.holdfast", value)
		if attribute && (err != nil || string(value[:n]) != "of the link") {
			t.Errorf("%s: the attribute is %q: %v", dst, value[:max(n, 0)], err)
		}
	}
	copyAll(t, filecopy.Options{}, dir+"/plain", dir+"/from")
	if n, err := unix.Lgetxattr(dir+"/plain/link", "trusted.holdfast", nil); err == nil {
		t.Errorf("without Archive it has an attribute of %d bytes", n)
	}
	if !attribute {
		t.Skip("the file system lets links have no attributes; their owners were kept")
	}
}
