package filecopy_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/filecopy"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// treeOptions are the options of a well-known Copy(src, dest string, options) error, in
// github.com/otiai10/copy, as a program gives them.
type treeOptions struct {
	Skip          func(info fs.FileInfo, src, dest string) (bool, error)
	OnError       func(src, dest string, err error) error // nil from it: go on
	Specials      bool                                    // devices, pipes and sockets too
	Sync          bool
	PreserveTimes bool
	PreserveOwner bool
	NumOfWorkers  int
}

// copyTree is that Copy over All.
func copyTree(src, dest string, o treeOptions) error {
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	options := filecopy.Options{Archive: o.PreserveOwner, FreshTimes: !o.PreserveTimes, Workers: o.NumOfWorkers, Special: filecopy.SkipSpecial}
	if o.Specials {
		options.Special = filecopy.KeepSpecial
	}
	if o.Sync {
		options.Policy.Sync.Mode = holdfast.SyncClose
	}
	if o.Skip != nil {
		options.Filter = func(source, destination string, _ fs.FileMode) bool {
			info, err := os.Lstat(source)
			skip := false
			if err == nil {
				skip, err = o.Skip(info, source, destination)
			}
			if err != nil {
				stop(err)
			}
			return !skip && err == nil
		}
	}
	if o.OnError != nil {
		options.KeepGoing = true
		options.Each = func(r filecopy.Result) {
			if r.Err == nil {
				return
			}
			if err := o.OnError(r.Source, r.Destination, r.Err); err != nil {
				stop(err)
			}
		}
	}
	if err := os.MkdirAll(filepath.Dir(dest), 0o777); err != nil {
		return err
	}
	_, err := filecopy.All(ctx, func(yield func(destination, source string) bool) { yield(dest, src) }, options)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if o.OnError != nil {
		return nil // it has heard of each
	}
	return err
}

func TestCopyOfATreeCanBePutOverAll(t *testing.T) {
	dir := t.TempDir()
	if err := copyTree(filepath.Join(dir, "none"), filepath.Join(dir, "to"), treeOptions{}); !os.IsNotExist(err) {
		t.Errorf("a missing source: %T %v", err, err)
	}
	from, names := specials(t)
	to := filepath.Join(dir, "made", "to")
	if err := copyTree(from, to, treeOptions{Sync: true, Skip: func(info fs.FileInfo, src, dest string) (bool, error) {
		return info.Name() == "pipe", nil
	}}); err != nil {
		t.Fatal(err)
	}
	is, err := os.Stat(filepath.Join(to, "file"))
	if err != nil || time.Since(is.ModTime()) > time.Hour {
		t.Errorf("%v, %v", is, err)
	}
	if entries, err := os.ReadDir(to); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
	to = filepath.Join(dir, "all")
	if err := copyTree(from, to, treeOptions{Specials: true, PreserveTimes: true, PreserveOwner: true, NumOfWorkers: 2}); err != nil {
		t.Fatal(err)
	}
	if is, err := os.Lstat(filepath.Join(to, "pipe")); err != nil || is.Mode().Type() != fs.ModeNamedPipe || is.ModTime().Unix() != 1e9 {
		t.Errorf("%v, %v", is, err)
	}
	if entries, err := os.ReadDir(to); err != nil || len(entries) != len(names)+1 {
		t.Errorf("%v, %v", entries, err)
	}
	refused := errors.New("not this one")
	err = copyTree(from, filepath.Join(dir, "stopped"), treeOptions{Skip: func(fs.FileInfo, string, string) (bool, error) { return false, refused }})
	if !errors.Is(err, refused) {
		t.Errorf("Skip fails: %v", err)
	}
	// A directory is where a file must be: the others are copied, and OnError hears of it.
	to = filepath.Join(dir, "failing")
	if err := os.MkdirAll(filepath.Join(to, "file"), 0o777); err != nil {
		t.Fatal(err)
	}
	heard := 0
	o := treeOptions{Specials: true, OnError: func(src, dest string, err error) error {
		heard++
		if filepath.Base(src) != "file" || filepath.Base(dest) != "file" || err == nil {
			t.Errorf("%s, %s: %v", src, dest, err)
		}
		return nil
	}}
	if err := copyTree(from, to, o); err != nil || heard != 1 {
		t.Errorf("%v, %d calls", err, heard)
	}
	o.OnError = func(string, string, error) error { return refused }
	if err := copyTree(from, to, o); !errors.Is(err, refused) {
		t.Error(err)
	}
}

// copyDir is the CopyDir(dst, src string, options) error of github.com/containerd/continuity/fs over All. It
// copies all that a container's layer has. onAttribute is called for each extended attribute that
// can't be kept; nil makes that an error.
func copyDir(dst, src string, onAttribute func(dst, src, attribute string, err error) error) error {
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	o := filecopy.Options{Archive: true, Special: filecopy.KeepSpecial, Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncClose}}}
	if onAttribute != nil {
		o.Effort = holdfast.Best
		o.Each = func(r filecopy.Result) {
			for _, lost := range joined(r.NotKept) {
				var what *filecopy.KeepError
				if !errors.As(lost, &what) {
					continue
				}
				err := lost
				if what.What == "attributes" || strings.Contains(what.What, ".") {
					err = onAttribute(r.Destination, r.Source, what.What, what.Err)
				}
				if err != nil {
					stop(fmt.Errorf("%s: %w", r.Destination, err))
				}
			}
		}
	}
	_, err := filecopy.All(ctx, func(yield func(destination, source string) bool) { yield(dst, src) }, o)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// joined returns the errors that errors.Join has joined.
func joined(err error) (all []error) {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range several.Unwrap() {
			all = append(all, joined(one)...)
		}
		return all
	}
	return []error{err}
}

func TestCopyOfALayerCanBePutOverAll(t *testing.T) {
	from, _ := specials(t)
	file := filepath.Join(from, "file")
	if err := errors.Join(os.Link(file, filepath.Join(from, "second")), os.Symlink("file", filepath.Join(from, "link"))); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setxattr(file, "user.layer", []byte("x"), 0); err != nil {
		t.Skip(err)
	}
	to := filepath.Join(t.TempDir(), "to")
	if err := copyDir(to, from, nil); err != nil {
		t.Fatal(err)
	}
	list := func(dir string) (names []string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			is, err := e.Info()
			if err != nil {
				t.Fatal(err)
			}
			raw := is.Sys().(*syscall.Stat_t)
			names = append(names, fmt.Sprintf("%s %v %d:%d %d %d", e.Name(), is.Mode(), raw.Uid, raw.Gid, raw.Rdev, raw.Nlink))
		}
		return names
	}
	if got, want := list(to), list(from); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	var value [8]byte
	if n, err := unix.Getxattr(filepath.Join(to, "file"), "user.layer", value[:]); err != nil || string(value[:n]) != "x" {
		t.Errorf("%q, %v", value[:n], err)
	}
	if err := copyDir(filepath.Join(t.TempDir(), "to"), filepath.Join(from, "none"), nil); !os.IsNotExist(err) {
		t.Errorf("%T %v", err, err)
	}
}

// TestLostAttributesAreTheCallers, where the file system has none.
func TestLostAttributesAreTheCallers(t *testing.T) {
	isolate.Mounts(t, func(t *testing.T) {
		from, at := filepath.Join(t.TempDir(), "from"), t.TempDir()
		if err := unix.Mount("holdfast-test", at, "ramfs", 0, ""); err != nil {
			t.Skip(err)
		}
		defer unix.Unmount(at, unix.MNT_DETACH)
		file := filepath.Join(from, "file")
		if err := errors.Join(os.Mkdir(from, 0o755), os.WriteFile(file, []byte("x"), 0o644)); err != nil {
			t.Fatal(err)
		}
		if err := unix.Setxattr(file, "user.layer", []byte("x"), 0); err != nil {
			t.Skip(err)
		}
		if err := copyDir(filepath.Join(at, "strict"), from, nil); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("strict: %v", err)
		}
		refused := errors.New("it is needed")
		for _, answer := range []error{nil, refused} {
			var heard []string
			to := filepath.Join(at, fmt.Sprint("to", answer == nil))
			err := copyDir(to, from, func(dst, src, attribute string, err error) error {
				heard = append(heard, filepath.Base(dst)+" "+filepath.Base(src)+" "+attribute+" "+err.Error())
				return answer
			})
			if !errors.Is(err, answer) || len(heard) != 1 || heard[0] != "file file user.layer operation not supported" {
				t.Errorf("%v, %q", err, heard)
			}
		}
	})
}
