package filecopy_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/filecopy"
	"github.com/holdfast-go/holdfast/internal/filetest"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// TestADirectoryThatIsMountedIntoItsSourceIsRefused mounts destinations, and their parents, inside
// their sources. Without an end the copy would be copied again.
func TestADirectoryThatIsMountedIntoItsSourceIsRefused(t *testing.T) {
	isolate.Mounts(t, func(t *testing.T) {
		for _, c := range []struct{ what, to, at string }{
			{"the destination", "out/in/to", "from/m"},
			{"a directory above it", "out", "from/m"},
			{"a directory of the destination, one level further down", "out/in/to/a", "from/a/m"},
		} {
			dir := t.TempDir()
			filetest.MustWrite(t, dir+"/from/a/file", "text")
			filetest.MustWrite(t, dir+"/out/other", "text")
			for _, name := range []string{"out/in/to/a", c.at} {
				if err := os.MkdirAll(dir+"/"+name, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := unix.Mount(dir+"/"+c.to, dir+"/"+c.at, "", unix.MS_BIND, ""); err != nil {
				t.Fatal(err)
			}
			totals, err := filecopy.All(context.Background(), pairs(dir+"/out/in/to", dir+"/from"), filecopy.Options{KeepGoing: true})
			if err == nil || !strings.Contains(err.Error(), "copied into itself") || totals.Failed != 1 || totals.Files != 1 {
				t.Errorf("%s: %+v, %v", c.what, totals, err)
			}
			if err := unix.Unmount(dir+"/"+c.at, 0); err != nil {
				t.Error(err)
			}
			if n := namesIn(dir + "/out"); n > 7 {
				t.Errorf("%s: %d names are there", c.what, n)
			}
		}
	})
}

// TestMountsThatLeadIntoEachOtherAreNotCopiedWithoutEnd mounts the destination of each of
// two branches below the other. With workers in both, each would make what the other copies
// next.
func TestMountsThatLeadIntoEachOtherAreNotCopiedWithoutEnd(t *testing.T) {
	isolate.Mounts(t, func(t *testing.T) {
		dir := filetest.MemoryDir(t)
		for _, name := range []string{"from/a/m", "from/b/m", "to/a/m", "to/b/m"} {
			filetest.MustWrite(t, dir+"/"+name+"/file", "text")
		}
		mounted := mountAt(t, dir, "to/b", "from/a/m", "to/a", "from/b/m")
		defer mounted()
		for _, workers := range []int{1, 2, 8} {
			totals, err := filecopy.All(context.Background(), pairs(dir+"/to", dir+"/from"),
				filecopy.Options{KeepGoing: true, Workers: workers})
			// Two workers may meet them at once.
			if err == nil || !strings.Contains(err.Error(), "copied into itself") || totals.Failed < 1 || totals.Failed > 2 {
				t.Errorf("%d workers: %+v, %v", workers, totals, err)
			}
		}
		if n := namesIn(dir + "/to"); n > 20 {
			t.Errorf("%d names are there", n)
		}
	})
}

// TestAMountInTheDestinationThatIsASourceIsRefused is the reverse: the destination has a
// directory of the source mounted in it.
func TestAMountInTheDestinationThatIsASourceIsRefused(t *testing.T) {
	isolate.Mounts(t, func(t *testing.T) {
		dir := filetest.MemoryDir(t)
		filetest.MustWrite(t, dir+"/from/a/b/c/file", "text")
		filetest.MustWrite(t, dir+"/to/a/b/old", "text")
		mounted := mountAt(t, dir, "from/a", "to/a/b")
		defer mounted()
		totals, err := filecopy.All(context.Background(), pairs(dir+"/to", dir+"/from"), filecopy.Options{KeepGoing: true})
		if err == nil || !strings.Contains(err.Error(), "copied into itself") || totals.Failed != 1 {
			t.Errorf("%+v, %v", totals, err)
		}
	})
}

// TestADirectoryThatIsMountedInItselfIsRefused, and a mount from elsewhere is copied.
func TestADirectoryThatIsMountedInItselfIsRefused(t *testing.T) {
	isolate.Mounts(t, func(t *testing.T) {
		dir := filetest.MemoryDir(t)
		filetest.MustWrite(t, dir+"/from/a/m/file", "text")
		filetest.MustWrite(t, dir+"/from/a/other/file", "text")
		filetest.MustWrite(t, dir+"/elsewhere/file", "text")
		mounted := mountAt(t, dir, "from/a", "from/a/m", "elsewhere", "from/a/other")
		defer mounted()
		totals, err := filecopy.All(context.Background(), pairs(dir+"/to", dir+"/from"), filecopy.Options{KeepGoing: true})
		if err == nil || !strings.Contains(err.Error(), "mounted in itself") || totals.Failed != 1 || totals.Files != 1 {
			t.Errorf("%+v, %v", totals, err)
		}
	})
}

// mountAt mounts directories of a directory at others, in pairs, until what it returns is called.
func mountAt(t *testing.T, dir string, pairs ...string) (unmount func()) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if err := unix.Mount(dir+"/"+pairs[i], dir+"/"+pairs[i+1], "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		for i := 1; i < len(pairs); i += 2 {
			if err := unix.Unmount(dir+"/"+pairs[i], 0); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestTwoDirectoriesThatAreCopiedIntoEachOtherEnd(t *testing.T) {
	dir := filetest.MemoryDir(t)
	filetest.MustWrite(t, dir+"/a/file", "text")
	filetest.MustWrite(t, dir+"/b/file", "text")
	totals, err := filecopy.All(context.Background(), pairs(dir+"/b/x", dir+"/a", dir+"/a/x", dir+"/b"),
		filecopy.Options{KeepGoing: true, Workers: 1})
	if err == nil || !strings.Contains(err.Error(), "copied into itself") || totals.Failed != 1 || totals.Files != 2 {
		t.Errorf("%+v, %v", totals, err)
	}
}

func TestAPairThatIsRefusedKeepsTheOthersFromBeingWritten(t *testing.T) {
	dir := filetest.MemoryDir(t)
	filetest.MustWrite(t, dir+"/from/sub/file", "text")
	filetest.MustWrite(t, dir+"/good", "text")
	before := namesIn(dir)
	if _, err := filecopy.All(context.Background(), pairs(dir+"/new", dir+"/good", dir+"/from/sub/new", dir+"/from"),
		filecopy.Options{}); err == nil || namesIn(dir) != before {
		t.Errorf("%d names, want %d: %v", namesIn(dir), before, err)
	}
}

func TestTreesAreCopiedWithFewDescriptors(t *testing.T) {
	if testing.Short() {
		t.Skip("it makes thousands of directories")
	}
	isolate.Process(t, func(t *testing.T) {
		const limit = 64
		dir := filetest.MemoryDir(t)
		for i := range 200 {
			filetest.MustWrite(t, fmt.Sprintf("%s/from/%d/%s/file", dir, i, strings.Repeat("d/", i%15)), "text")
		}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			t.Fatal(err)
		}
		for name, o := range copyPolicies {
			most := 0
			o.Workers = 8
			o.Each = func(filecopy.Result) {
				fds, err := os.ReadDir("/proc/self/fd")
				if err != nil {
					t.Errorf("no descriptor is left: %v", err)
				}
				most = max(most, len(fds))
			}
			if totals := copyAll(t, o, dir+"/to"+name, dir+"/from"); totals.Files != 200 {
				t.Errorf("%s: %+v", name, totals)
			}
			if most > limit*3/4 {
				t.Errorf("%s: %d of %d descriptors were open", name, most, limit)
			}
		}
	})
}

func TestRoomIsAskedForDataAndNotForHoles(t *testing.T) {
	dir := t.TempDir()
	filetest.MustWrite(t, dir+"/from", "text")
	if err := os.Truncate(dir+"/from", 1<<42); err != nil {
		t.Skipf("the file system has no such large files: %v", err)
	}
	copyAll(t, filecopy.Options{Method: filecopy.ReadWrite}, dir+"/to", dir+"/from")
	if is, err := os.Stat(dir + "/to"); err != nil || is.Size() != 1<<42 {
		t.Errorf("%v, %v", is, err)
	}
}

// permission.AccessList is a POSIX access control list as setxattr takes it, which lets user 1234 in.
const accessList = "\x02\x00\x00\x00" +
	"\x01\x00\x07\x00\xff\xff\xff\xff" + "\x02\x00\x05\x00\xd2\x04\x00\x00" +
	"\x04\x00\x05\x00\xff\xff\xff\xff" + "\x10\x00\x05\x00\xff\xff\xff\xff" + "\x20\x00\x00\x00\xff\xff\xff\xff"

func TestArchiveKeepsWhatDirectoriesHave(t *testing.T) {
	dir := t.TempDir()
	filetest.MustWrite(t, dir+"/from/sub/file", "text")
	for name, mode := range map[string]uint32{"from": 0o1777, "from/sub": 0o2750} {
		if err := unix.Chmod(dir+"/"+name, mode); err != nil {
			t.Fatal(err)
		}
	}
	lists := []string{"system.posix_acl_default", "system.posix_acl_access"}
	for _, list := range lists {
		if err := unix.Setxattr(dir+"/from/sub", list, []byte(accessList), 0); err != nil {
			t.Skipf("the file system has no access control lists: %v", err)
		}
	}
	copyAll(t, filecopy.Options{Archive: true}, dir+"/to", dir+"/from")
	sameTrees(t, dir+"/to", dir+"/from", true)
	for _, list := range lists {
		value := make([]byte, 100)
		if n, err := unix.Getxattr(dir+"/to/sub", list, value); err != nil || string(value[:n]) != accessList {
			t.Errorf("%s is %q: %v", list, value[:max(n, 0)], err)
		}
	}
	if n, err := unix.Getxattr(dir+"/to/sub/file", lists[1], nil); err == nil {
		t.Errorf("the file has got a list of %d bytes, its source has none", n)
	}
	// Without Archive only the permissions are kept, and no user gets the list's permissions.
	copyAll(t, filecopy.Options{}, dir+"/plain", dir+"/from")
	if is, err := os.Stat(dir + "/plain/sub"); err != nil || is.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", is.Mode(), err)
	}
}
