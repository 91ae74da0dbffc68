package holdfast_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// openDirectories returns the directories that this process has open below another.
func openDirectories(t *testing.T, below string) (all []string) {
	t.Helper()
	numbers, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	for _, n := range numbers {
		path, err := os.Readlink("/proc/self/fd/" + n.Name())
		if err != nil {
			continue
		}
		if within, err := filepath.Rel(below, path); err != nil || within[0] == '.' {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			all = append(all, path)
		}
	}
	return all
}

// TestKernelIsAskedToSyncTheDirectoryOfANewName has the kernel refuse fsync(2), which a
// Writer calls for directories alone, and checks that the directory it has open is the name's.
func TestKernelIsAskedToSyncTheDirectoryOfANewName(t *testing.T) {
	isolate.Process(t, func(t *testing.T) {
		top := t.TempDir()
		for _, dir := range []string{"links", "files"} {
			if err := os.Mkdir(filepath.Join(top, dir), 0o777); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(top, "files/old"), nil, 0o666); err != nil {
			t.Fatal(err)
		}
		for link, target := range map[string]string{"toOld": "../files/old", "toNew": filepath.Join(top, "files/new")} {
			if err := os.Symlink(target, filepath.Join(top, "links", link)); err != nil {
				t.Fatal(err)
			}
		}
		// Behind this link .. is not the directory that the path names before it.
		if err := errors.Join(os.Mkdir(filepath.Join(top, "deep"), 0o777), os.Symlink("../links", filepath.Join(top, "deep/way"))); err != nil {
			t.Fatal(err)
		}
		create := func(path string) (*holdfast.Writer, error) { return holdfast.Create(path, holdfast.Durable()) }
		add := func(path string) (*holdfast.Writer, error) { return holdfast.Append(path, holdfast.Durable()) }
		var asked []*holdfast.Writer
		for _, path := range []string{"files/created", "files/appended", "links/toNew", "links/toOld", "deep/way/toOld"} {
			for _, open := range []func(string) (*holdfast.Writer, error){create, add} {
				w, err := open(filepath.Join(top, path))
				if err != nil {
					t.Fatal(err)
				}
				if dirs := openDirectories(t, top); len(dirs) != 1 || dirs[0] != filepath.Join(top, "files") {
					t.Errorf("%s: %q are open to be synced", path, dirs)
				}
				if _, err := w.Write([]byte("once")); err != nil {
					t.Error(err)
				}
				if dirs := openDirectories(t, top); len(dirs) != 0 {
					t.Errorf("%s: %q are open after the first sync", path, dirs)
				}
				asked = append(asked, w)
			}
		}
		var later []*holdfast.Writer
		for _, open := range []func(string) (*holdfast.Writer, error){create, add} {
			w, err := open(filepath.Join(top, "files/later"))
			if err != nil {
				t.Fatal(err)
			}
			later = append(later, w)
		}
		// SECCOMP_FILTER_FLAG_TSYNC: all threads.
		if err := isolate.Forbid(unix.SYS_FSYNC, unix.EDQUOT, 1); err != nil {
			t.Skip(err)
		}
		for _, w := range asked {
			if _, err := w.Write([]byte("twice")); err != nil {
				t.Errorf("the name is durable, and its directory is synced again: %v", err)
			}
			w.Close()
		}
		for _, w := range later {
			if _, err := w.Write([]byte("once")); !errors.Is(err, unix.EDQUOT) {
				t.Errorf("the directory of a new name was not synced: %v", err)
			}
			w.Close()
		}
	})
}

// TestWorkingDirectoryMayBeDeeperThanAPathIsLong where getcwd(2) can't name it.
func TestWorkingDirectoryMayBeDeeperThanAPathIsLong(t *testing.T) {
	isolate.Process(t, func(t *testing.T) {
		top := t.TempDir()
		t.Chdir(top)
		level := strings.Repeat("d", 200)
		for range 25 {
			if err := errors.Join(os.Mkdir(level, 0o777), os.Chdir(level)); err != nil {
				t.Fatal(err)
			}
		}
		defer os.Chdir(top)
		for _, p := range []holdfast.Policy{holdfast.Durable(), holdfast.Unbuffered()} {
			w, err := holdfast.Create("file", p)
			if err != nil {
				t.Errorf("%v: %v", p, err)
				continue
			}
			_, err = w.Write([]byte("x"))
			if p.Sync.Mode == holdfast.SyncNever { // the directory was not opened when the file was
				// An ordinary user may not even read the directories above, as getcwd(3) then does.
				if err := w.Sync(); !errors.Is(err, unix.ENAMETOOLONG) && !errors.Is(err, unix.ERANGE) && !errors.Is(err, unix.EACCES) {
					t.Errorf("%v: Sync can't find the directory, and returns %v", p, err)
				}
				w.Close()
			} else if err := errors.Join(err, w.Close()); err != nil {
				t.Errorf("%v: %v", p, err)
			}
			if is, err := os.Stat("file"); err != nil || is.Size() != 1 {
				t.Errorf("%v: %v, %v", p, is, err)
			}
		}
	})
}

// TestSyncsOfAWriterReachTheKernel has a filter answer one system call: whoever needs
// it sees the answer. The Writer's own counts can't know whether a call was made.
func TestSyncsOfAWriterReachTheKernel(t *testing.T) {
	check := func(name string, number uint32, use func(path string) error) {
		t.Run(name, func(t *testing.T) {
			isolate.Process(t, func(t *testing.T) {
				dir := t.TempDir()
				if err := use(filepath.Join(dir, "before")); err != nil {
					t.Fatalf("without the filter: %v", err)
				}
				const answer = unix.EDOM // no file system's
				if err := isolate.Forbid(number, answer, unix.SECCOMP_FILTER_FLAG_TSYNC); err != nil {
					t.Skipf("no filter: %v", err)
				}
				if err := use(filepath.Join(dir, "after")); !errors.Is(err, answer) {
					t.Errorf("the kernel's answer was %v, and it returned %v", answer, err)
				}
			})
		})
	}
	written := func(p holdfast.Policy, end func(*holdfast.Writer) error) func(path string) error {
		return func(path string) error {
			w, err := holdfast.Create(path, p)
			if err != nil {
				return err
			}
			if _, err := w.Write([]byte("a record\n")); err != nil {
				return errors.Join(err, w.Close())
			}
			return end(w)
		}
	}
	empty := func(p holdfast.Policy) func(path string) error {
		return func(path string) error {
			w, err := holdfast.Create(path, p)
			if err != nil {
				return err
			}
			return w.Close()
		}
	}
	atClose := holdfast.Policy{Buffer: 4096, Sync: holdfast.Sync{Mode: holdfast.SyncClose}}
	check("bytes, group", unix.SYS_FDATASYNC, written(holdfast.Durable(), (*holdfast.Writer).Close))
	check("bytes, each", unix.SYS_FDATASYNC, written(holdfast.EachDurable(), (*holdfast.Writer).Close))
	check("bytes, close", unix.SYS_FDATASYNC, written(atClose, (*holdfast.Writer).Close))
	check("bytes, Sync", unix.SYS_FDATASYNC, written(holdfast.Buffered(4096), func(w *holdfast.Writer) error {
		return errors.Join(w.Sync(), w.Close())
	}))
	check("name of an empty file, group", unix.SYS_FSYNC, empty(holdfast.Durable()))
	check("name of an empty file, close", unix.SYS_FSYNC, empty(atClose))
	var open *holdfast.Writer // from before the filter: a file without names then is never looked at again
	check("look at the number of names", unix.SYS_STATX, func(path string) (err error) {
		if open == nil {
			open, err = holdfast.Create(path, holdfast.Durable())
			return err
		}
		_, err = open.Write([]byte("a record\n"))
		return errors.Join(err, open.Close())
	})
}

// TestWhereThereIsNoFdatasyncFsyncIsAsked has the kernel know no fdatasync, and then fail
// the fsync that is made in its place.
func TestWhereThereIsNoFdatasyncFsyncIsAsked(t *testing.T) {
	isolate.Process(t, func(t *testing.T) {
		file, err := os.Create(filepath.Join(t.TempDir(), "file"))
		if err != nil {
			t.Fatal(err)
		}
		w, err := holdfast.New(file, holdfast.Buffered(4096))
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		forbid := func(number uint32, answer unix.Errno) {
			if err := isolate.Forbid(number, answer, unix.SECCOMP_FILTER_FLAG_TSYNC); err != nil {
				t.Skipf("no filter: %v", err)
			}
		}
		forbid(unix.SYS_FDATASYNC, unix.EOPNOTSUPP)
		forbid(unix.SYS_FSYNC, unix.EDOM)
		if _, err := w.Write([]byte("a record\n")); err != nil {
			t.Fatal(err)
		}
		if err := w.Sync(); !errors.Is(err, unix.EDOM) {
			t.Errorf("Sync = %v, want what fsync answered", err)
		}
	})
}

// TestCloseClosesTheDirectoryThatNoSyncReached has the file's own sync fail first.
func TestCloseClosesTheDirectoryThatNoSyncReached(t *testing.T) {
	isolate.Process(t, func(t *testing.T) {
		if err := isolate.Forbid(unix.SYS_FDATASYNC, unix.EIO, unix.SECCOMP_FILTER_FLAG_TSYNC); err != nil {
			t.Skipf("no filter: %v", err)
		}
		descriptors := func() int {
			open, err := os.ReadDir("/proc/self/fd")
			if err != nil {
				t.Fatal(err)
			}
			return len(open)
		}
		life := func() {
			w, err := holdfast.Create(filepath.Join(t.TempDir(), "file"), holdfast.Durable())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write([]byte("a record\n")); !errors.Is(err, unix.EIO) {
				t.Errorf("Write = %v, want what fdatasync answered", err)
			}
			w.Close()
		}
		life() // opens what the runtime keeps
		before := descriptors()
		life()
		if after := descriptors(); after != before {
			t.Errorf("%d descriptors are open after Close, %d before", after, before)
		}
	})
}

// A failingVolume is a file system on a loop device on a loop device on an image. Where
// the lower one is shortened every write fails, and nothing of it reaches the image.
type failingVolume struct {
	t            *testing.T
	kind         string
	image, dir   string
	lower, upper string
}

// failingKinds is the file systems whose reports are known: mkfs, and how to mount.
var failingKinds = map[string][]string{
	"ext2":  {"mkfs.ext2", "-q", "-F"},
	"ext4":  {"mkfs.ext4", "-q", "-F"},
	"xfs":   {"mkfs.xfs", "-q", "-f"},
	"btrfs": {"mkfs.btrfs", "-q", "-f"},
}

func run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func newFailingVolume(t *testing.T, kind string) *failingVolume {
	v := &failingVolume{t: t, kind: kind, image: filepath.Join(t.TempDir(), "image"), dir: t.TempDir()}
	if err := os.WriteFile(v.image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(v.image, 320<<20); err != nil {
		t.Fatal(err)
	}
	v.lower = v.attach(v.image)
	v.upper = v.attach("--direct-io=on", v.lower)
	run(t, append(failingKinds[kind], v.upper)...)
	v.mount(v.upper, v.dir)
	return v
}

func (v *failingVolume) attach(args ...string) string {
	device := run(v.t, append([]string{"losetup", "-f", "--show"}, args...)...)
	v.t.Cleanup(func() { exec.Command("losetup", "-d", device).Run() })
	return device
}

func (v *failingVolume) mount(device, dir string) {
	v.t.Helper()
	options := ""
	if v.kind == "xfs" {
		options = "nouuid"
	}
	if err := unix.Mount(device, dir, v.kind, 0, options); err != nil {
		v.t.Skipf("mount %s: %v", v.kind, err)
	}
	v.t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
}

// fail has every write fail, or none from now on.
func (v *failingVolume) fail(yes bool) {
	v.t.Helper()
	device, err := os.OpenFile(v.lower, os.O_RDWR, 0)
	if err != nil {
		v.t.Fatal(err)
	}
	defer device.Close()
	info, err := unix.IoctlLoopGetStatus64(int(device.Fd()))
	if err != nil {
		v.t.Fatal(err)
	}
	if info.Sizelimit = 0; yes {
		info.Sizelimit = 512
	}
	if err := unix.IoctlLoopSetStatus64(int(device.Fd()), info); err != nil {
		v.t.Fatal(err)
	}
}

// after returns a directory with the files that a power cut would leave now.
func (v *failingVolume) after() string {
	v.t.Helper()
	cut, dir := v.image+".cut", v.t.TempDir()
	from, err := os.Open(v.image)
	if err != nil {
		v.t.Fatal(err)
	}
	defer from.Close()
	to, err := os.Create(cut)
	if err != nil {
		v.t.Fatal(err)
	}
	defer to.Close()
	if _, err := io.Copy(to, from); err != nil {
		v.t.Fatal(err)
	}
	if strings.HasPrefix(v.kind, "ext") { // ext2 needs it
		exec.Command("e2fsck", "-fy", cut).Run()
	}
	v.mount(v.attach(cut), dir)
	return dir
}

// TestNoNameIsDurableWhoseDirectorysSyncFailedElsewhere has the sync of a directory fail
// for one descriptor, on a disk that then works again. It then asks a Writer that has
// made a file there before. The kernels report nothing to its descriptor of the
// directory. All four answer a later fsync by OK, and the name is missing after a power
// cut.
func TestNoNameIsDurableWhoseDirectorysSyncFailedElsewhere(t *testing.T) {
	isolate.Once(t, isolate.Race)
	for kind := range failingKinds {
		t.Run(kind, func(t *testing.T) {
			isolate.Mounts(t, func(t *testing.T) {
				for _, other := range []string{"another Writer", "another directory"} {
					loseNames(t, kind, other)
				}
			})
		})
	}
}

func loseNames(t *testing.T, kind, other string) {
	v := newFailingVolume(t, kind)
	for _, dir := range []string{"ours", "others"} {
		if err := os.Mkdir(filepath.Join(v.dir, dir), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	others, err := os.Open(filepath.Join(v.dir, "others"))
	must(err)
	defer others.Close()
	must(unix.Syncfs(int(others.Fd())))
	again, err := os.Open(filepath.Join(v.dir, "ours"))
	must(err)
	defer again.Close()
	one, err := holdfast.Create(filepath.Join(v.dir, "ours/one"), holdfast.Durable())
	must(err)
	two, err := holdfast.Create(filepath.Join(v.dir, "ours/two"), holdfast.Durable())
	must(err)
	must(os.Mkdir(filepath.Join(v.dir, "others/new"), 0o777))
	v.fail(true)
	if other == "another Writer" {
		err = one.Sync()
	} else {
		err = others.Sync()
	}
	if err == nil {
		t.Fatal("the disk does not fail")
	}
	v.fail(false)
	second := again.Sync()
	err = two.Sync()
	said := fmt.Sprintf("%s, %s: a second descriptor of the directory says %v, the Writer %v", kind, other, second, err)
	one.Close()
	two.Close()
	if _, missing := os.Stat(filepath.Join(v.after(), "ours/two")); missing != nil && err == nil {
		t.Error(said, "and the file is not there")
	}
	t.Log(said)
}
