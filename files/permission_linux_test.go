//go:build go1.25

package files_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/acltest"
)

// eachReplacing calls do with each way to replace one file.
func eachReplacing(t *testing.T, do func(t *testing.T, dir string, replace func(path string) files.Result)) {
	for _, p := range []holdfast.Policy{holdfast.Unbuffered(), holdfast.Durable(), holdfast.EachDurable()} {
		for _, all := range []bool{false, true} {
			t.Run(map[bool]string{false: "Write ", true: "WriteAll "}[all]+p.String(), func(t *testing.T) {
				dir := acltest.Directory(t)
				f, err := files.New(files.Options{Policy: p})
				acltest.Must(t, err)
				defer f.Close()
				do(t, dir, func(path string) files.Result {
					t.Helper()
					w := files.Write{Path: path, Data: []byte("NEW SECRET"), Mode: files.Replace}
					var r files.Result
					if all {
						other := w // a batch of one file is no batch
						other.Path = dir + "/beside"
						results, _ := f.WriteAll(context.Background(), func(yield func(files.Write) bool) { _ = yield(w) && yield(other) })
						r = results.At(0)
					} else {
						r, _ = f.WriteFile(context.Background(), path, w.Data, w.Mode)
					}
					if got, err := os.ReadFile(path); r.Err != nil || string(got) != "NEW SECRET" {
						t.Fatalf("%q, %v, %+v", got, err, r)
					}
					return r
				})
			})
		}
	}
}

func TestReplaceKeepsTheAccessList(t *testing.T) {
	eachReplacing(t, func(t *testing.T, dir string, replace func(string) files.Result) {
		path := dir + "/file"
		acltest.OldFile(t, path, 0, 2000, 0o600)
		acltest.Set(t, path, acltest.Access, acltest.Entry{acltest.Owner, 6, 0}, acltest.Entry{acltest.User, 6, 1001}, acltest.Entry{acltest.Group, 0, 0}, acltest.Entry{acltest.Mask, 6, 0}, acltest.Entry{acltest.Other, 0, 0})
		before := acltest.Attribute(path, acltest.Access)
		if acltest.MayRead(t, path, 1002, 2000) || !acltest.MayRead(t, path, 1001, 1001) {
			t.Fatal("the old file is not as it should be")
		}
		replace(path)
		if acltest.MayRead(t, path, 1002, 2000) {
			t.Error("the group reads it: the list's mask became the group's permissions")
		}
		if !acltest.MayRead(t, path, 1001, 1001) {
			t.Error("the user of the list can't read it any more")
		}
		if after := acltest.Attribute(path, acltest.Access); after != before {
			t.Errorf("the list is %q, was %q", after, before)
		}
	})
}

// TestReplaceKeepsTheGroupWhereTheDirectorysHasChanged replaces a file twice in a directory
// that gives its group to new files, and gets another one in between.
func TestReplaceKeepsTheGroupWhereTheDirectorysHasChanged(t *testing.T) {
	eachReplacing(t, func(t *testing.T, dir string, replace func(path string) files.Result) {
		path := dir + "/file"
		acltest.OldFile(t, path, 0, 2000, 0o640)
		for _, group := range []int{2000, 3000} {
			acltest.Must(t, os.Chown(dir, 0, group))
			acltest.Must(t, unix.Chmod(dir, 0o2755))
			replace(path)
			info, err := os.Stat(path)
			acltest.Must(t, err)
			if is := info.Sys().(*syscall.Stat_t); is.Gid != 2000 || is.Mode&0o7777 != 0o640 {
				t.Errorf("in a directory of group %d the file is of group %d, %#o", group, is.Gid, is.Mode)
			}
		}
	})
}

// TestReplaceGivesNothingToAnotherGroup replaces a file by its owner, who is not in the
// file's group and so can't keep it.
func TestReplaceGivesNothingToAnotherGroup(t *testing.T) {
	dir := acltest.Directory(t)
	acltest.Must(t, os.Chmod(dir, 0o777))
	for _, c := range []struct {
		mode, want uint32
		list       bool
	}{
		{0o640, 0o600, false}, {0o664, 0o644, false}, {0o604, 0o600, false}, {0o644, 0o644, false}, {0o6755, 0o4755, false},
		{0o604, 0o640, true},
	} {
		path := dir + "/file"
		acltest.OldFile(t, path, 1001, 2000, c.mode)
		if c.list { // the group may nothing, user 1003 may read, and others too
			acltest.Set(t, path, acltest.Access, acltest.Entry{acltest.Owner, 6, 0}, acltest.Entry{acltest.User, 4, 1003}, acltest.Entry{acltest.Group, 0, 0}, acltest.Entry{acltest.Mask, 4, 0}, acltest.Entry{acltest.Other, 4, 0})
		}
		readers := map[string]func() bool{
			"the new group": func() bool { return acltest.MayRead(t, path, 1002, 1001) },
			"the old group": func() bool { return acltest.MayRead(t, path, 1002, 2000) },
			"user 1003":     func() bool { return acltest.MayRead(t, path, 1003, 3000) },
			"others":        func() bool { return acltest.MayRead(t, path, 1004, 3000) },
		}
		before := map[string]bool{}
		for reader, may := range readers {
			before[reader] = may()
		}
		var r files.Result
		acltest.As(t, 1001, 1001, nil, func() {
			f, err := files.New(files.Options{Policy: holdfast.EachDurable()})
			if err == nil {
				r, err = f.WriteFile(context.Background(), path, []byte("NEW SECRET"), files.Replace)
				err = errors.Join(err, f.Close())
			}
			if err != nil {
				t.Error(err)
			}
		})
		for reader, may := range readers {
			if may() && !before[reader] {
				t.Errorf("%#o, list %v: %s could not read it, and now can", c.mode, c.list, reader)
			}
		}
		var is unix.Stat_t
		acltest.Must(t, unix.Stat(path, &is))
		if is.Gid != 1001 || is.Mode&0o7777 != c.want {
			t.Errorf("%#o, list %v became %#o of group %d, want %#o", c.mode, c.list, is.Mode&0o7777, is.Gid, c.want)
		}
		if !r.Stripped {
			t.Errorf("%#o: the result does not say that the group is another: %+v", c.mode, r)
		}
		acltest.Must(t, os.Remove(path))
	}
}

// TestReplaceKeepsTheGroupWithoutTheOwner replaces a file of root, by a user who is in the file's group: the owner can't be kept,
// and the group can.
func TestReplaceKeepsTheGroupWithoutTheOwner(t *testing.T) {
	dir := acltest.Directory(t)
	acltest.Must(t, os.Chmod(dir, 0o777))
	path := dir + "/file"
	acltest.OldFile(t, path, 0, 2000, 0o4660)
	var r files.Result
	acltest.As(t, 1001, 1001, []uint32{2000}, func() {
		f, err := files.New(files.Options{Policy: holdfast.EachDurable()})
		if err == nil {
			r, err = f.WriteFile(context.Background(), path, []byte("new"), files.Replace)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			t.Error(err)
		}
	})
	var is unix.Stat_t
	acltest.Must(t, unix.Stat(path, &is))
	if is.Uid != 1001 || is.Gid != 2000 || is.Mode&0o7777 != 0o660 || !r.Stripped {
		t.Errorf("it is %#o of %d:%d, and the result %+v", is.Mode&0o7777, is.Uid, is.Gid, r)
	}
}

func TestReplaceTakesNoListOfTheDirectory(t *testing.T) {
	eachReplacing(t, func(t *testing.T, dir string, replace func(string) files.Result) {
		path := dir + "/file"
		acltest.OldFile(t, path, 0, 0, 0o640)
		acltest.Set(t, dir, acltest.Default, acltest.Entry{acltest.Owner, 6, 0}, acltest.Entry{acltest.User, 6, 1001}, acltest.Entry{acltest.Group, 4, 0}, acltest.Entry{acltest.Mask, 6, 0}, acltest.Entry{acltest.Other, 0, 0})
		if acltest.MayRead(t, path, 1001, 1001) {
			t.Fatal("the old file is not as it should be")
		}
		if r := replace(path); r.Stripped {
			t.Errorf("all was kept: %+v", r)
		}
		if acltest.MayRead(t, path, 1001, 1001) {
			t.Error("a user of the directory's list reads it")
		}
		if after := acltest.Attribute(path, acltest.Access); after != unix.ENODATA.Error() {
			t.Errorf("it has the list %q", after)
		}
		if is, err := os.Stat(path); err != nil || is.Mode() != 0o640 {
			t.Errorf("%v, %v", is.Mode(), err)
		}
		fresh := dir + "/fresh" // a new file is like any other there
		replace(fresh)
		if !acltest.MayRead(t, fresh, 1001, 1001) {
			t.Error("a file that replaces none has not the list of its directory")
		}
	})
}

func TestReplaceKeepsAttributes(t *testing.T) {
	eachReplacing(t, func(t *testing.T, dir string, replace func(string) files.Result) {
		path := dir + "/file"
		acltest.OldFile(t, path, 1001, 2000, 0o4751)
		capability := "\x01\x00\x00\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
		for name, value := range map[string]string{"user.note": "a note", "user.empty": "", "security.label": "a label", "security.capability": capability} {
			if err := unix.Setxattr(path, name, []byte(value), 0); err != nil {
				t.Skip("no such attributes here: ", err)
			}
		}
		acltest.Must(t, unix.Chmod(path, 0o4751))
		if r := replace(path); r.Stripped {
			t.Errorf("all was kept: %+v", r)
		}
		for name, want := range map[string]string{
			"user.note": "a note", "user.empty": "", "security.label": "a label",
			"security.capability": unix.ENODATA.Error(), // of other bytes
		} {
			if got := acltest.Attribute(path, name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		var is unix.Stat_t
		acltest.Must(t, unix.Stat(path, &is))
		if is.Uid != 1001 || is.Gid != 2000 || is.Mode&0o7777 != 0o4751 {
			t.Errorf("%d:%d %#o", is.Uid, is.Gid, is.Mode)
		}
	})
}

// TestReplaceByNothingKeepsNoCapability: where no byte is written, the kernel takes none away.
func TestReplaceByNothingKeepsNoCapability(t *testing.T) {
	path := acltest.Directory(t) + "/file"
	acltest.OldFile(t, path, 0, 0, 0o755)
	capability := "\x01\x00\x00\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	if err := unix.Setxattr(path, "security.capability", []byte(capability), 0); err != nil {
		t.Skip("no such attributes here: ", err)
	}
	f, err := files.New(files.Options{})
	acltest.Must(t, err)
	defer f.Close()
	_, err = f.WriteFile(t.Context(), path, nil, files.Replace)
	acltest.Must(t, err)
	if got := acltest.Attribute(path, "security.capability"); got != unix.ENODATA.Error() {
		t.Errorf("%q", got)
	}
}

// TestReplaceReportsAttributesThatItCannotKeep replaces a file with an attribute that only
// root may set.
func TestReplaceReportsAttributesThatItCannotKeep(t *testing.T) {
	dir := acltest.Directory(t)
	acltest.Must(t, os.Chmod(dir, 0o777))
	path := dir + "/file"
	acltest.OldFile(t, path, 1001, 1001, 0o640)
	if err := unix.Setxattr(path, "security.label", []byte("a label"), 0); err != nil {
		t.Skip(err)
	}
	acltest.Must(t, unix.Setxattr(path, "user.note", []byte("a note"), 0))
	acltest.As(t, 1001, 1001, nil, func() {
		f, err := files.New(files.Options{})
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		r, err := f.WriteFile(context.Background(), path, []byte("new"), files.Replace)
		if err != nil || !r.Stripped || r.Outcome != holdfast.OutcomeDurable && r.Outcome != holdfast.OutcomeWritten {
			t.Errorf("%+v, %v", r, err)
		}
		if text, err := r.MarshalJSON(); err != nil || !bytes.Contains(text, []byte(`"stripped":true`)) {
			t.Errorf("%s, %v", text, err)
		}
		if s := f.Stats().Stripped; s != 1 {
			t.Errorf("%d files are counted", s)
		}
	})
	if got := acltest.Attribute(path, "user.note"); got != "a note" {
		t.Errorf("%q", got)
	}
}
