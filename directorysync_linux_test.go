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

// after returns the directory in which there is what a power cut leaves now.
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
