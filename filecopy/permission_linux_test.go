package filecopy_test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/filecopy"
	"github.com/holdfast-go/holdfast/internal/acltest"
	"github.com/holdfast-go/holdfast/internal/filetest"
)

// eachCopying calls do with each way to copy one file without Archive, and a directory that
// has in it what is to be copied.
func eachCopying(t *testing.T, do func(t *testing.T, dir string, copy func())) {
	for _, o := range []filecopy.Options{{}, {Atomic: true}} {
		for _, tree := range []bool{false, true} {
			t.Run(map[bool]string{false: "Copy", true: "All"}[tree]+map[bool]string{true: " atomic"}[o.Atomic], func(t *testing.T) {
				dir := acltest.Directory(t)
				acltest.Must(t, os.Mkdir(dir+"/from", 0o755))
				acltest.Must(t, os.Mkdir(dir+"/to", 0o755))
				do(t, dir, func() {
					t.Helper()
					if tree {
						copyAll(t, o, dir+"/to", dir+"/from")
					} else if _, err := filecopy.File(t.Context(), dir+"/to/file", dir+"/from/file", o); err != nil {
						t.Fatal(err)
					}
				})
			})
		}
	}
}

func TestCopyIsReadableOnlyWhereBothFilesWere(t *testing.T) {
	owner, none := acltest.Entry{acltest.Owner, 6, 0}, acltest.Entry{acltest.Other, 0, 0}
	for _, c := range []struct {
		what            string
		source, old     uint32 // permissions
		group, oldGroup int
		list, oldList   []acltest.Entry
		directory       []acltest.Entry // the permissions of new files
		want            uint32
	}{
		{what: "a private file is replaced", source: 0o644, old: 0o600, want: 0o600},
		{what: "a program replaces a file", source: 0o755, old: 0o644, want: 0o755},
		{what: "a private file replaces another", source: 0o600, old: 0o644, want: 0o600},
		{what: "the group is another", source: 0o640, group: 2000, want: 0o600},
		{what: "the group is another, and others may read", source: 0o664, group: 2000, want: 0o644},
		{what: "the group may not read", source: 0o604, group: 2000, want: 0o600},
		{what: "the replaced file's group is another", source: 0o640, old: 0o640, oldGroup: 2000, want: 0o600},
		{what: "the source has a list", source: 0o600, want: 0o600, list: []acltest.Entry{owner, {acltest.User, 6, 1001}, {acltest.Group, 0, 0}, {acltest.Mask, 6, 0}, none}},
		{what: "the source's list keeps a user out", source: 0o600, want: 0o600, list: []acltest.Entry{owner, {acltest.User, 0, 1001}, {acltest.Group, 4, 0}, {acltest.Mask, 4, 0}, {acltest.Other, 4, 0}}},
		{what: "the replaced file has a list", source: 0o644, old: 0o600, want: 0o600, oldList: []acltest.Entry{owner, {acltest.User, 4, 1002}, {acltest.Group, 0, 0}, {acltest.Mask, 4, 0}, none}},
		{what: "the directory has a list", source: 0o640, old: 0o640, want: 0o640, directory: []acltest.Entry{owner, {acltest.User, 4, 1001}, {acltest.Group, 4, 0}, {acltest.Mask, 4, 0}, none}},
	} {
		eachCopying(t, func(t *testing.T, dir string, copy func()) {
			src, dst := dir+"/from/file", dir+"/to/file"
			acltest.OldFile(t, src, 0, c.group, c.source)
			if c.list != nil {
				acltest.Set(t, src, acltest.Access, c.list...)
			}
			if c.old != 0 {
				acltest.OldFile(t, dst, 0, c.oldGroup, c.old)
			}
			if c.oldList != nil {
				acltest.Set(t, dst, acltest.Access, c.oldList...)
			}
			if c.directory != nil {
				acltest.Set(t, dir+"/to", acltest.Default, c.directory...)
			}
			users := [][2]int{{1001, 1001}, {1002, 2000}, {1003, 0}, {1004, 1004}}
			may := func(i int, path string) bool { return acltest.MayRead(t, path, users[i][0], users[i][1]) }
			var source, old []bool
			for i := range users {
				source = append(source, may(i, src))
				old = append(old, c.old == 0 || may(i, dst))
			}
			copy()
			for i, u := range users {
				if may(i, dst) && !(source[i] && old[i]) {
					t.Errorf("%s: user %d of group %d reads the copy, and could not read both before", c.what, u[0], u[1])
				}
			}
			if is, err := os.Stat(dst); err != nil || uint32(is.Mode().Perm()) != c.want {
				t.Errorf("%s: %v, want %#o: %v", c.what, is.Mode(), c.want, err)
			}
		})
	}
}

// TestDirectoriesAdmitNoMoreUsersThanBefore copies trees without Archive over directories that are
// there, and of another group.
func TestDirectoriesAdmitNoMoreUsersThanBefore(t *testing.T) {
	dir := acltest.Directory(t)
	for name, mode := range map[string]uint32{"from": 0o755, "from/there": 0o755, "from/shared": 0o750, "to": 0o755, "to/there": 0o700} {
		acltest.Must(t, os.MkdirAll(dir+"/"+name, 0o755))
		acltest.Must(t, unix.Chmod(dir+"/"+name, mode))
	}
	acltest.Must(t, os.Chown(dir+"/from/shared", 0, 2000))
	filetest.MustWrite(t, dir+"/to/there/old", "a secret that only its directory keeps")
	copyAll(t, filecopy.Options{}, dir+"/to", dir+"/from")
	for name, want := range map[string]os.FileMode{"to/there": 0o700, "to/shared": 0o700} {
		if is, err := os.Stat(dir + "/" + name); err != nil || is.Mode().Perm() != want {
			t.Errorf("%s: %v, want %v: %v", name, is.Mode(), want, err)
		}
	}
}
