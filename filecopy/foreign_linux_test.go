package filecopy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/folding"
	"github.com/holdfast-go/holdfast/internal/foreign"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// foreignDisk returns a disk whose directory to is a foreign mount, and the directory beside it.
func foreignDisk(t *testing.T) (d *foreign.Disk, from, to string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	from, to = filepath.Join(root, "from"), filepath.Join(root, "to")
	for _, dir := range []string{from, to} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return &foreign.Disk{Root: to, Refuses: map[string]error{}}, from, to
}

func writeAll(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("of "+name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// contents returns what the files below a directory hold.
func contents(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		all = append(all, string(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

// Each file of the source is in the copy, or its name in the error: also where the directory was
// there before, where files are renamed at the end, and for links and directories.
func TestNamesThatFoldIntoOneLoseNothing(t *testing.T) {
	ways := map[string]Options{
		"plain":   {},
		"atomic":  {Atomic: true},
		"close":   {Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncClose}}},
		"each":    {Policy: holdfast.EachDurable()},
		"archive": {Archive: true},
	}
	for _, name := range slices.Sorted(maps.Keys(ways)) {
		for _, there := range []string{"new", "made before", "filled before"} {
			t.Run(name+" "+there, func(t *testing.T) {
				o := ways[name]
				o.KeepGoing, o.Workers = true, 2
				d, from, to := foreignDisk(t)
				d.Folds = true
				names := []string{"A", "a", "b", "Sub/x", "sub/x", "sub/y"}
				writeAll(t, from, names...)
				copied := filepath.Join(to, "copy")
				switch there {
				case "made before":
					writeAll(t, copied, "other")
				case "filled before":
					writeAll(t, copied, "a", "b", "sub/x")
				}
				refused := map[string]bool{}
				o.Each = func(r Result) {
					var taken *folding.TakenError
					if errors.As(r.Err, &taken) {
						refused[r.Source] = true
					} else if r.Err != nil {
						t.Error(r.Err)
					}
				}
				_, err := copyTrees(context.Background(), d, pairsOf(copied, from), o)
				if err == nil || !strings.Contains(err.Error(), "one name on this file system") {
					t.Error("the error does not name the second:", err)
				}
				has := contents(t, copied)
				for _, name := range names {
					path := filepath.Join(from, name)
					if !slices.Contains(has, "of "+name) && !refused[path] && !refused[filepath.Dir(path)] {
						t.Errorf("%s is lost without a word; the copy has %q", name, has)
					}
				}
				if len(refused) != 2 {
					t.Errorf("refused: %v, want one of A, a and one of Sub, sub", refused)
				}
			})
		}
	}
}

func pairsOf(dst, src string) func(func(string, string) bool) {
	return func(yield func(string, string) bool) { yield(dst, src) }
}

func TestSourcesWhoseNamesFoldIntoOneLoseNothing(t *testing.T) {
	d, from, to := foreignDisk(t)
	d.Folds = true
	writeAll(t, from, "A", "x/a")
	_, err := copyTrees(context.Background(), d, func(yield func(string, string) bool) {
		_ = yield(filepath.Join(to, "A"), filepath.Join(from, "A")) && yield(filepath.Join(to, "a"), filepath.Join(from, "x/a"))
	}, Options{Workers: 1})
	if err == nil || fmt.Sprint(contents(t, to)) != "[of A]" {
		t.Error(err, contents(t, to))
	}
}

func TestALinkThatFoldsIntoAFileDoesNotReplaceIt(t *testing.T) {
	d, from, to := foreignDisk(t)
	d.Folds = true
	writeAll(t, from, "A")
	if err := os.Symlink("nowhere", filepath.Join(from, "a")); err != nil {
		t.Fatal(err)
	}
	_, err := copyTrees(context.Background(), d, pairsOf(filepath.Join(to, "copy"), from), Options{Workers: 1, KeepGoing: true})
	names, _ := os.ReadDir(filepath.Join(to, "copy"))
	if err == nil || len(names) != 1 {
		t.Error(err, names)
	}
}

// A second copy of the same tree replaces the first.
func TestACopyOverACopyIsNotRefused(t *testing.T) {
	d, from, to := foreignDisk(t)
	d.Folds = true
	writeAll(t, from, "A", "b", "Sub/x")
	for range 2 {
		if _, err := copyTrees(context.Background(), d, pairsOf(filepath.Join(to, "copy"), from), Options{}); err != nil {
			t.Error(err)
		}
	}
}

// If a mount refuses an attribute, it is left out and reported. That is an error only if the attribute
// was asked for and the effort is Strict.
func TestAMountThatRefusesWhatHoldsNoBytesGetsThem(t *testing.T) {
	plain, archive, best := Options{}, Options{Archive: true}, Options{Archive: true, Effort: holdfast.Best}
	closed := holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncClose}}
	synced, bestSynced := Options{Policy: closed}, Options{Policy: closed, Effort: holdfast.Best}
	each := Options{Policy: holdfast.EachDurable(), Effort: holdfast.Best}
	atomic, bestAtomic := Options{Atomic: true}, Options{Atomic: true, Effort: holdfast.Best}
	check := func(call string, err error, o Options, notKept string, fails bool) {
		t.Helper()
		for _, whole := range []bool{true, false} {
			if call == "Chmod" && !whole {
				continue // a file is made with its permissions
			}
			d, from, to := foreignDisk(t)
			d.Refuses[call] = err
			if call == "Attributes" {
				d.Root = filepath.Dir(to) // of the source they are asked
			}
			writeAll(t, from, "sub/f", "g")
			if err := os.Chmod(filepath.Join(from, "g"), 0o640); err != nil {
				t.Fatal(err)
			}
			if o.Archive && os.Geteuid() == 0 {
				if err := os.Chown(filepath.Join(from, "g"), 1, 1); err != nil {
					t.Fatal(err)
				}
			}
			// over an old one of other permissions, so that each call is needed
			old := filepath.Join(to, "g")
			writeAll(t, to, "g")
			if err := os.Chmod(old, 0o600); err != nil {
				t.Fatal(err)
			}
			kept, durable := "", true
			o.Each = func(r Result) {
				if r.NotKept != nil && r.Err == nil {
					kept += r.NotKept.Error() + "\n"
				}
				durable = durable && r.Durable
			}
			var failed error
			if whole {
				_, failed = copyTrees(context.Background(), d, func(yield func(string, string) bool) {
					_ = yield(filepath.Join(to, "copy"), from)
				}, o)
			} else {
				_, failed = copyOne(context.Background(), d, old, filepath.Join(from, "g"), o)
			}
			if (failed != nil) != fails || !fails && !strings.Contains(kept, notKept) || notKept == "" && kept != "" {
				t.Errorf("%s answers %v, %+v, tree=%v: %v; not kept: %q, want %q", call, err, o, whole, failed, kept, notKept)
			}
			if !fails {
				want := filepath.Join(to, "g")
				if whole {
					want = filepath.Join(to, "copy", "g")
				}
				if data, err := os.ReadFile(want); err != nil || string(data) != "of g" {
					t.Errorf("%s: %q, %v", call, data, err)
				}
			}
			if call == "SyncDir" && !fails && durable {
				t.Errorf("%s: durable, with a directory that can't be synced", call)
			}
			if d.Refused(call) == 0 {
				t.Errorf("%s was not called by %+v", call, o)
			}
		}
	}
	for _, err := range []error{syscall.EPERM, syscall.ENOSYS, syscall.EOPNOTSUPP, syscall.EACCES} {
		check("Chmod", err, plain, "permissions: "+err.Error(), false)
		check("SetTimes", err, plain, "times: "+err.Error(), false)
		check("SetTimes", err, atomic, "times: "+err.Error(), false)
		check("SetTimes", err, archive, "", true)
		check("SetTimes", err, best, "times: "+err.Error(), false)
		if os.Geteuid() == 0 {
			check("Chown", err, archive, "", true)
			check("Chown", err, best, "owner: "+err.Error(), false)
		}
	}
	for _, err := range []error{syscall.EIO, syscall.EACCES, syscall.EPERM} {
		check("Attributes", err, plain, "", false)
	}
	for _, err := range []error{syscall.EINVAL, syscall.ENOTSUP, syscall.ENOSYS} {
		check("SyncDir", err, synced, "", true)
		check("SyncDir", err, atomic, "", true)
		check("SyncDir", err, bestSynced, "durable name", false)
		check("SyncDir", err, bestAtomic, "durable name", false)
		check("SyncDir", err, each, "durable name", false)
	}
	// The disk itself has failed: no effort goes on.
	check("SyncDir", syscall.EIO, bestSynced, "", true)
	check("SetTimes", syscall.EIO, plain, "", true)
	check("Chmod", syscall.EIO, plain, "", true)
}

// TestWhatAMountIgnoresIsNoticed: its call succeeds, and the copy lacks it all the same.
func TestWhatAMountIgnoresIsNoticed(t *testing.T) {
	check := func(ignores func(d *foreign.Disk), o Options, notKept, fails string, want ...string) {
		t.Helper()
		d, from, to := foreignDisk(t)
		ignores(d)
		writeAll(t, from, "f")
		err := errors.Join(os.Chmod(filepath.Join(from, "f"), 0o440), os.Link(filepath.Join(from, "f"), filepath.Join(from, "second")), os.Symlink("none", filepath.Join(from, "link")))
		if err != nil {
			t.Fatal(err)
		}
		o.KeepGoing, o.Workers = true, 1
		kept := ""
		o.Each = func(r Result) {
			if r.NotKept != nil {
				kept += r.NotKept.Error() + "\n"
			}
		}
		_, err = copyTrees(context.Background(), d, pairsOf(filepath.Join(to, "copy"), from), o)
		if fails == "" && err != nil || fails != "" && (err == nil || !strings.Contains(err.Error(), fails)) {
			t.Errorf("%+v: %v, want %q", o, err, fails)
		}
		if !strings.Contains(kept, notKept) || notKept == "" && kept != "" {
			t.Errorf("%+v: not kept: %q, want %q", o, kept, notKept)
		}
		if has := contents(t, filepath.Join(to, "copy")); !slices.Equal(has, want) {
			t.Errorf("%+v: the copy has %q, want %q", o, has, want)
		}
	}
	archive, best := Options{Archive: true}, Options{Archive: true, Effort: holdfast.Best}
	modes := func(d *foreign.Disk) { d.KeepsModes = true }
	check(modes, archive, "", "the file system took 0440 and has 0600")
	check(modes, best, "permissions: the file system took 0440 and has 0600", "", "of f", "of f")
	links := func(d *foreign.Disk) { d.FollowsLinks = true }
	check(links, Options{}, "times: the file system follows the link", "", "of f", "of f")
	check(links, archive, "", "the file system follows the link", "of f", "of f")
	check(links, best, "times: the file system follows the link", "", "of f", "of f")
	one := func(d *foreign.Disk) { d.Refuses["Link"] = syscall.EPERM }
	check(one, archive, "", "link: operation not permitted", "of f")
	check(one, best, "hard link: link: operation not permitted", "", "of f", "of f")
}

func TestAServerThatCannotCopyGetsTheBytesAllTheSame(t *testing.T) {
	for _, err := range []error{syscall.EIO, syscall.EACCES, syscall.EPERM, syscall.EINVAL, syscall.EOPNOTSUPP} {
		d, from, to := foreignDisk(t)
		d.Refuses["CopyRange"], d.Refuses["Clone"] = err, syscall.EOPNOTSUPP
		data := []byte(strings.Repeat("0123456789abcdef", smallCopy/8))
		if err := os.WriteFile(filepath.Join(from, "f"), data, 0o644); err != nil {
			t.Fatal(err)
		}
		r, failed := copyOne(context.Background(), d, filepath.Join(to, "f"), filepath.Join(from, "f"), Options{})
		has, _ := os.ReadFile(filepath.Join(to, "f"))
		if failed != nil || string(has) != string(data) || r.Method != ReadWrite || d.Refused("CopyRange") == 0 {
			t.Errorf("%v: %v, method %v", err, failed, r.Method)
		}
		_, failed = copyOne(context.Background(), d, filepath.Join(to, "f"), filepath.Join(from, "f"), Options{Method: CopyRange})
		if failed == nil {
			t.Errorf("%v: the only method failed, and nothing is said", err)
		}
	}
}

// A copy that is killed leaves a beginning of its source under the name, and no zeros behind it.
func TestAFileHasNoMoreBytesThanWereCopied(t *testing.T) {
	dir := t.TempDir()
	src, dst := filepath.Join(dir, "src"), filepath.Join(dir, "dst")
	if err := os.WriteFile(src, []byte(strings.Repeat("x", 4<<20)), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, m := range []Method{Auto, Splice, ReadWrite} {
		d := &growthDisk{dst: dst, t: t}
		if _, err := copyOne(context.Background(), d, dst, src, Options{Method: m}); err != nil {
			t.Fatal(err)
		}
		if d.looked == 0 {
			t.Errorf("%v: nothing was allocated", m)
		}
		if err := os.Remove(dst); err != nil {
			t.Fatal(err)
		}
	}
}

// A growthDisk can't share bytes, writes faster to allocated room, and looks at the copy after that.
type growthDisk struct {
	sys.Disk
	dst    string
	t      *testing.T
	looked int
}

func (d *growthDisk) Clone(int, int) error     { return syscall.EOPNOTSUPP }
func (d *growthDisk) AllocatesFaster(int) bool { return true }

func (d *growthDisk) Allocate(fd int, at, n int64, grow bool) error {
	err := d.Disk.Allocate(fd, at, n, grow)
	d.looked++
	if is, failed := os.Stat(d.dst); failed != nil || is.Size() > at {
		d.t.Errorf("%v, %d bytes before the first was copied", failed, is.Size())
	}
	return err
}
