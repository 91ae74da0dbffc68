package holdfast_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/apart"
)

// TestAFolderThatIsMountedIntoItsSourceIsRefused mounts destinations, and what they are
// in, inside their sources. Without an end the copy would be copied again.
func TestAFolderThatIsMountedIntoItsSourceIsRefused(t *testing.T) {
	apart.Mounts(t, func(t *testing.T) {
		for _, c := range []struct{ what, to, at string }{
			{"the destination", "out/in/to", "from/m"},
			{"a folder above it", "out", "from/m"},
			{"a folder of the destination, one level further down", "out/in/to/a", "from/a/m"},
		} {
			folder := t.TempDir()
			mustWrite(t, folder+"/from/a/file", "text")
			mustWrite(t, folder+"/out/other", "text")
			for _, name := range []string{"out/in/to/a", c.at} {
				if err := os.MkdirAll(folder+"/"+name, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := unix.Mount(folder+"/"+c.to, folder+"/"+c.at, "", unix.MS_BIND, ""); err != nil {
				t.Fatal(err)
			}
			totals, err := holdfast.CopyAll(context.Background(), pairs(folder+"/out/in/to", folder+"/from"), holdfast.CopyOptions{KeepGoing: true})
			if err == nil || !strings.Contains(err.Error(), "copied into itself") || totals.Failed != 1 || totals.Files != 1 {
				t.Errorf("%s: %+v, %v", c.what, totals, err)
			}
			if err := unix.Unmount(folder+"/"+c.at, 0); err != nil {
				t.Error(err)
			}
			if n := namesIn(folder + "/out"); n > 7 {
				t.Errorf("%s: %d names are there", c.what, n)
			}
		}
	})
}

// TestMountsThatLeadIntoEachOtherAreNotCopiedWithoutEnd mounts what each of two branches is
// copied to below the other one: with workers in both, each would make what the other
// copies next.
func TestMountsThatLeadIntoEachOtherAreNotCopiedWithoutEnd(t *testing.T) {
	apart.Mounts(t, func(t *testing.T) {
		folder := memoryFolder(t)
		for _, name := range []string{"from/a/m", "from/b/m", "to/a/m", "to/b/m"} {
			mustWrite(t, folder+"/"+name+"/file", "text")
		}
		mounted := mountAt(t, folder, "to/b", "from/a/m", "to/a", "from/b/m")
		defer mounted()
		for _, workers := range []int{1, 2, 8} {
			totals, err := holdfast.CopyAll(context.Background(), pairs(folder+"/to", folder+"/from"),
				holdfast.CopyOptions{KeepGoing: true, Workers: workers})
			// Two workers may meet them at once.
			if err == nil || !strings.Contains(err.Error(), "copied into itself") || totals.Failed < 1 || totals.Failed > 2 {
				t.Errorf("%d workers: %+v, %v", workers, totals, err)
			}
		}
		if n := namesIn(folder + "/to"); n > 20 {
			t.Errorf("%d names are there", n)
		}
	})
}

// TestAMountInTheDestinationThatIsASourceIsRefused is the reverse: the destination has a
// folder of the source mounted in it.
func TestAMountInTheDestinationThatIsASourceIsRefused(t *testing.T) {
	apart.Mounts(t, func(t *testing.T) {
		folder := memoryFolder(t)
		mustWrite(t, folder+"/from/a/b/c/file", "text")
		mustWrite(t, folder+"/to/a/b/old", "text")
		mounted := mountAt(t, folder, "from/a", "to/a/b")
		defer mounted()
		totals, err := holdfast.CopyAll(context.Background(), pairs(folder+"/to", folder+"/from"), holdfast.CopyOptions{KeepGoing: true})
		if err == nil || !strings.Contains(err.Error(), "copied into itself") || totals.Failed != 1 {
			t.Errorf("%+v, %v", totals, err)
		}
	})
}

// TestAFolderThatIsMountedInItselfIsRefused, and what is mounted from elsewhere is copied.
func TestAFolderThatIsMountedInItselfIsRefused(t *testing.T) {
	apart.Mounts(t, func(t *testing.T) {
		folder := memoryFolder(t)
		mustWrite(t, folder+"/from/a/m/file", "text")
		mustWrite(t, folder+"/from/a/other/file", "text")
		mustWrite(t, folder+"/elsewhere/file", "text")
		mounted := mountAt(t, folder, "from/a", "from/a/m", "elsewhere", "from/a/other")
		defer mounted()
		totals, err := holdfast.CopyAll(context.Background(), pairs(folder+"/to", folder+"/from"), holdfast.CopyOptions{KeepGoing: true})
		if err == nil || !strings.Contains(err.Error(), "mounted in itself") || totals.Failed != 1 || totals.Files != 1 {
			t.Errorf("%+v, %v", totals, err)
		}
	})
}

// mountAt mounts folders of a folder at others, in pairs, until what it returns is called.
func mountAt(t *testing.T, folder string, pairs ...string) (unmount func()) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if err := unix.Mount(folder+"/"+pairs[i], folder+"/"+pairs[i+1], "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		for i := 1; i < len(pairs); i += 2 {
			if err := unix.Unmount(folder+"/"+pairs[i], 0); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestTwoFoldersThatAreCopiedIntoEachOtherEnd(t *testing.T) {
	folder := memoryFolder(t)
	mustWrite(t, folder+"/a/file", "text")
	mustWrite(t, folder+"/b/file", "text")
	totals, err := holdfast.CopyAll(context.Background(), pairs(folder+"/b/x", folder+"/a", folder+"/a/x", folder+"/b"),
		holdfast.CopyOptions{KeepGoing: true, Workers: 1})
	if err == nil || !strings.Contains(err.Error(), "copied into itself") || totals.Failed != 1 || totals.Files != 2 {
		t.Errorf("%+v, %v", totals, err)
	}
}

func TestAPairThatIsRefusedKeepsTheOthersFromBeingWritten(t *testing.T) {
	folder := memoryFolder(t)
	mustWrite(t, folder+"/from/sub/file", "text")
	mustWrite(t, folder+"/good", "text")
	before := namesIn(folder)
	if _, err := holdfast.CopyAll(context.Background(), pairs(folder+"/new", folder+"/good", folder+"/from/sub/new", folder+"/from"),
		holdfast.CopyOptions{}); err == nil || namesIn(folder) != before {
		t.Errorf("%d names, want %d: %v", namesIn(folder), before, err)
	}
}

func TestTreesAreCopiedWithFewDescriptors(t *testing.T) {
	if testing.Short() {
		t.Skip("it makes thousands of folders")
	}
	apart.Process(t, func(t *testing.T) {
		const limit = 64
		folder := memoryFolder(t)
		for i := range 200 {
			mustWrite(t, fmt.Sprintf("%s/from/%d/%s/file", folder, i, strings.Repeat("d/", i%15)), "text")
		}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			t.Fatal(err)
		}
		for name, o := range copyPolicies {
			most := 0
			o.Workers = 8
			o.Each = func(holdfast.CopyResult) {
				fds, err := os.ReadDir("/proc/self/fd")
				if err != nil {
					t.Errorf("no descriptor is left: %v", err)
				}
				most = max(most, len(fds))
			}
			if totals := copyAll(t, o, folder+"/to"+name, folder+"/from"); totals.Files != 200 {
				t.Errorf("%s: %+v", name, totals)
			}
			if most > limit*3/4 {
				t.Errorf("%s: %d of %d descriptors were open", name, most, limit)
			}
		}
	})
}

func TestRoomIsAskedForDataAndNotForHoles(t *testing.T) {
	folder := t.TempDir()
	mustWrite(t, folder+"/from", "text")
	if err := os.Truncate(folder+"/from", 1<<42); err != nil {
		t.Skipf("the file system has no such large files: %v", err)
	}
	copyAll(t, holdfast.CopyOptions{Method: holdfast.MethodReadWrite}, folder+"/to", folder+"/from")
	if is, err := os.Stat(folder + "/to"); err != nil || is.Size() != 1<<42 {
		t.Errorf("%v, %v", is, err)
	}
}

// accessList is a POSIX access control list as setxattr takes it, which lets user 1234 in.
const accessList = "\x02\x00\x00\x00" +
	"\x01\x00\x07\x00\xff\xff\xff\xff" + "\x02\x00\x05\x00\xd2\x04\x00\x00" +
	"\x04\x00\x05\x00\xff\xff\xff\xff" + "\x10\x00\x05\x00\xff\xff\xff\xff" + "\x20\x00\x00\x00\xff\xff\xff\xff"

func TestArchiveKeepsWhatFoldersHave(t *testing.T) {
	folder := t.TempDir()
	mustWrite(t, folder+"/from/sub/file", "text")
	for name, mode := range map[string]uint32{"from": 0o1777, "from/sub": 0o2750} {
		if err := unix.Chmod(folder+"/"+name, mode); err != nil {
			t.Fatal(err)
		}
	}
	lists := []string{"system.posix_acl_default", "system.posix_acl_access"}
	for _, list := range lists {
		if err := unix.Setxattr(folder+"/from/sub", list, []byte(accessList), 0); err != nil {
			t.Skipf("the file system has no access control lists: %v", err)
		}
	}
	copyAll(t, holdfast.CopyOptions{Archive: true}, folder+"/to", folder+"/from")
	sameTrees(t, folder+"/to", folder+"/from", true)
	for _, list := range lists {
		value := make([]byte, 100)
		if n, err := unix.Getxattr(folder+"/to/sub", list, value); err != nil || string(value[:n]) != accessList {
			t.Errorf("%s is %q: %v", list, value[:max(n, 0)], err)
		}
	}
	if n, err := unix.Getxattr(folder+"/to/sub/file", lists[1], nil); err == nil {
		t.Errorf("the file has got a list of %d bytes, its source has none", n)
	}
	// Without Archive only the permissions are kept.
	copyAll(t, holdfast.CopyOptions{}, folder+"/plain", folder+"/from")
	sameTrees(t, folder+"/plain", folder+"/from", false)
}
