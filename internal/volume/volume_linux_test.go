package volume

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/mountinfo"
	"github.com/holdfast-go/holdfast/internal/sys"
)

func kind(t testing.TB, name string) Kind {
	t.Helper()
	kinds, err := Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return kinds[0]
}

// small is the smallest size that each takes and that has a journal.
func small(k Kind) int64 { return max(64*mebibyte, k.Least) }

func mustMake(t testing.TB, parent, name string) *Volume {
	t.Helper()
	k := kind(t, name)
	if err := k.Can(); err != nil {
		t.Skip(err)
	}
	v, err := Make(t.Context(), parent, k, small(k))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	return v
}

// ground is a directory below which nothing stays mounted, also if a test fails.
func ground(t testing.TB) string {
	dir := t.TempDir()
	t.Cleanup(func() {
		all, _ := mountinfo.Read()
		for _, m := range all {
			if strings.HasPrefix(m.Point, dir+"/") {
				_ = unix.Unmount(m.Point, unix.MNT_DETACH)
			}
		}
	})
	return dir
}

// nothingLeft checks that below a directory is no image, no mount and no loop device.
func nothingLeft(t testing.TB, parent string) {
	t.Helper()
	entries, err := os.ReadDir(parent)
	if err != nil || len(entries) > 0 {
		t.Errorf("left in %s: %v, %v", parent, entries, err)
	}
	for device, image := range loops() {
		if strings.HasPrefix(image, parent+"/") {
			t.Errorf("%s is left of %s", device, image)
		}
	}
	all, err := mountinfo.Read()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if strings.HasPrefix(m.Point, parent+"/") {
			t.Errorf("%s is still mounted on %s", m.Kind, m.Point)
		}
	}
}

func TestVolumeKeepsAFileOverARemountAndLeavesNothing(t *testing.T) {
	for _, k := range Kinds() {
		t.Run(k.Name, func(t *testing.T) {
			parent := ground(t)
			v := mustMake(t, parent, k.Name)
			if v.Kind().Name != k.Name || v.Size() != small(k) {
				t.Errorf("it is %s with %d bytes", v.Kind().Name, v.Size())
			}
			path, want := filepath.Join(v.Dir(), "file"), strings.Repeat("kept\n", 1000)
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
			isMounted(t, v)
			remount(t, v)
			if got, err := os.ReadFile(path); err != nil || string(got) != want {
				t.Errorf("after the remount, %d bytes are there, want %d: %v", len(got), len(want), err)
			}
			isMounted(t, v)
			for range 2 {
				if err := v.Close(); err != nil {
					t.Error(err)
				}
			}
			nothingLeft(t, parent)
		})
	}
}

// remount remounts it, unless that would lose all.
func remount(t *testing.T, v *Volume) {
	t.Helper()
	err := v.Remount(t.Context())
	if v.Kind().Type == "tmpfs" {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("remounting a tmpfs: %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(v.Dir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if r, err := sys.PageCache(f); err != nil || r.Resident != 0 {
		t.Errorf("after the remount, the page cache has %+v, %v", r, err)
	}
}

// isMounted checks in the kernel's report that it is mounted as its kind.
func isMounted(t *testing.T, v *Volume) {
	t.Helper()
	k := v.Kind()
	if m, ok, err := mountedIn(v.dir); !ok || err != nil || m.Kind != k.Type {
		t.Errorf("mounted is %+v, %v, want %s", m, err, k.Type)
	}
	name := filepath.Base(v.Device)
	if free, err := os.ReadFile(filepath.Join("/sys/block", name, "loop/autoclear")); v.Device != "" && string(free) != "1\n" {
		t.Errorf("the loop device would outlive the process: autoclear is %q, %v", free, err)
	}
	if !strings.HasPrefix(k.Type, "ext") {
		return
	}
	options, err := os.ReadFile(filepath.Join("/proc/fs/ext4", name, "options"))
	if err != nil && k.Type != "ext2" {
		t.Error(err)
	}
	if k.Options != "" && !strings.Contains(string(options), k.Options+"\n") {
		t.Errorf("the options are %q, want %s", options, k.Options)
	}
	journal, err := filepath.Glob("/proc/fs/jbd2/" + name + "-*")
	if want := k.Options != ""; err != nil || (journal != nil) != want {
		t.Errorf("the journal is %q, %v, want one: %v", journal, err, want)
	}
}

func TestVolumeInADirectoryBehindALink(t *testing.T) {
	parent := ground(t)
	link := filepath.Join(t.TempDir(), "a link")
	if err := os.Symlink(parent, link); err != nil {
		t.Fatal(err)
	}
	v := mustMake(t, link, "ext2")
	if err := v.Remount(t.Context()); err != nil {
		t.Error(err)
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	nothingLeft(t, parent)
}

func TestLoopDeviceGoesPastThePageCacheOfTheImage(t *testing.T) {
	v := mustMake(t, ground(t), "ext4")
	var stat unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, v.image(), 0, unix.STATX_DIOALIGN, &stat)
	if err != nil || stat.Dio_offset_align == 0 {
		t.Skip("the file system of the image has no direct I/O, or the kernel doesn't report it")
	}
	if !v.DirectIO {
		t.Fatal("the loop device has no direct I/O")
	}
	if err := v.Remount(t.Context()); err != nil { // drops what mkfs has left there
		t.Fatal(err)
	}
	image, err := os.Open(v.image())
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	if r, err := sys.PageCache(image); err != nil || r.Resident != 0 {
		t.Errorf("after the remount, the page cache of the image has %+v, %v", r, err)
	}
	f, err := os.Create(filepath.Join(v.Dir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(make([]byte, 8*mebibyte))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
	if r, err := sys.PageCache(image); err != nil || r.Resident > mebibyte {
		t.Errorf("after 8 MiB were written, the page cache of the image has %+v, %v", r, err)
	}
}

func TestMakeRefusesWhatHasNoRoom(t *testing.T) {
	for _, name := range []string{"ext4", "tmpfs"} {
		k, parent := kind(t, name), ground(t)
		if err := k.Can(); err != nil {
			t.Skip(err)
		}
		_, err := Make(t.Context(), parent, k, math.MaxInt64)
		var room *RoomError
		if !errors.As(err, &room) || room.Need != math.MaxInt64 || room.Free <= 0 || room.Kind != name {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Make(t.Context(), parent, k, k.Least-1); err == nil || !strings.Contains(err.Error(), "the least is") {
			t.Errorf("%s of too few bytes: %v", name, err)
		}
		nothingLeft(t, parent)
	}
}

func TestATmpfsHasTheRoomOfTheMemory(t *testing.T) {
	parent := ground(t)
	disk, err := sys.FreeSpace(parent)
	if err != nil {
		t.Fatal(err)
	}
	var room *RoomError
	if err := kind(t, "tmpfs").fits(parent, math.MaxInt64); !errors.As(err, &room) || room.Free == disk {
		t.Errorf("%v; the disk has %d bytes", err, disk)
	}
}

// TestProgramsAreNotEndedByTheTerminal: a Ctrl-C is for this process, which ends them.
func TestProgramsAreNotEndedByTheTerminal(t *testing.T) {
	group, err := hostHere().run(t.Context(), "sh", "-c", "cut -d ' ' -f 5 /proc/self/stat")
	if err != nil || group == strconv.Itoa(syscall.Getpgrp()) {
		t.Errorf("its process group is %s, %v; ours is %d", group, err, syscall.Getpgrp())
	}
}

func TestMakeThatFailsLeavesNothing(t *testing.T) {
	k, parent := kind(t, "ext4"), ground(t)
	if err := k.Can(); err != nil {
		t.Skip(err)
	}
	check := func(k Kind, want string) {
		t.Helper()
		v, err := Make(t.Context(), parent, k, small(k))
		if v != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Make = %v, %v, want %s in the error", v, err, want)
		}
		nothingLeft(t, parent)
	}
	wrong := k
	wrong.Options = "no-such-option"
	check(wrong, "no-such-option")
	wrong = k
	wrong.Make = []string{"-no-such-flag"}
	check(wrong, "mkfs.ext4: exit status 1")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Make(ctx, parent, k, small(k)); !errors.Is(err, context.Canceled) {
		t.Errorf("Make of a cancelled context: %v", err)
	}
	nothingLeft(t, parent)
}

func TestCanNamesAllThatIsMissing(t *testing.T) {
	here := func(string) error { return nil }
	check := func(name string, h host, want MissingError) {
		t.Helper()
		var got *MissingError
		want.Kind = name
		if err := kind(t, name).canOn(h); !errors.As(err, &got) || *got != want {
			t.Errorf("%v, want %+v", err, want)
		}
	}
	check("xfs", host{root: true, loop: "/dev/null", has: here}, MissingError{
		Why: "mkfs.xfs is not installed (Debian: apt-get install xfsprogs)", Package: "xfsprogs"})
	check("tmpfs", host{has: here}, MissingError{Why: "only root can mount it", Root: true})
	check("jfs", host{loop: "/dev/null", has: func(name string) error { return fmt.Errorf("this kernel has no %s", name) }}, MissingError{
		Why:     "this kernel has no jfs, and mkfs.jfs is not installed (Debian: apt-get install jfsutils), and only root can mount it",
		Package: "jfsutils", Root: true, Kernel: true})

	h := hostHere()
	h.root, h.loop, h.has = true, "/no/such/device", here
	if err := kind(t, "tmpfs").canOn(h); err != nil {
		t.Errorf("a tmpfs needs no loop device: %v", err)
	}
	if err := kind(t, "bfs").canOn(h); err == nil || !strings.Contains(err.Error(), "/no/such/device does not exist") {
		t.Errorf("without loop devices: %v", err)
	}
}

func TestKernelThatLacksAFileSystemIsReportedSo(t *testing.T) {
	if err := kernelHas("nosuchfs"); err == nil || err.Error() != "this kernel has no nosuchfs" {
		t.Errorf("nosuchfs: %v", err)
	}
	if err := kernelHas("tmpfs"); err != nil {
		t.Errorf("tmpfs: %v", err)
	}
}

func TestProgramsAreFoundOutsideOfThePath(t *testing.T) {
	t.Setenv("PATH", "")
	h := hostHere()
	dir := t.TempDir()
	h.path += ":" + dir + ":."
	for name, mode := range map[string]os.FileMode{"mkfs.runs": 0o755, "mkfs.text": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	if path, err := h.find("mkfs.runs"); err != nil || path != filepath.Join(dir, "mkfs.runs") {
		t.Errorf("mkfs.runs is %s, %v", path, err)
	}
	for _, name := range []string{"mkfs.text", "mkfs.none"} {
		if path, err := h.find(name); err == nil {
			t.Errorf("%s is %s", name, path)
		}
	}
	if !strings.Contains(h.path, ":/usr/sbin:/sbin") {
		t.Errorf("programs are looked for in %s", h.path)
	}
}

// TestCloseReportsDamage writes zeros over what the check of each looks at.
func TestCloseReportsDamage(t *testing.T) {
	for name, offset := range map[string]int64{
		"ext2":  4096,     // the group descriptors
		"ext4":  4096,     //
		"xfs":   512,      // the header of the free space
		"btrfs": 64 << 10, // the superblock
	} {
		t.Run(name, func(t *testing.T) {
			parent := ground(t)
			v := mustMake(t, parent, name)
			if err := v.unmount(); err != nil {
				t.Fatal(err)
			}
			if err := detach(v.dir); err != nil {
				t.Fatal(err)
			}
			image, err := os.OpenFile(v.image(), os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			_, err = image.WriteAt(make([]byte, 512), offset)
			if err := errors.Join(err, image.Close()); err != nil {
				t.Fatal(err)
			}
			var damage *DamageError
			if err := v.Close(); !errors.As(err, &damage) || damage.Kind != name || len(damage.Found) < 20 || strings.Contains(damage.Found, "\n") {
				t.Errorf("Close of a damaged one: %v", err)
			}
			t.Log(damage)
			nothingLeft(t, parent)
		})
	}
}

// elsewhere starts a process in dir with a mount namespace of its own, which has a copy of
// all mounts. It ends when what it returns is called.
func elsewhere(t *testing.T, dir string) (process int, end func()) {
	t.Helper()
	other := exec.Command("cat")
	other.Dir = dir
	other.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	in, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	return other.Process.Pid, func() {
		if err := errors.Join(in.Close(), other.Wait()); err != nil {
			t.Error(err)
		}
	}
}

// TestACopyOfTheMountElsewhereKeepsNothing has a process with a copy of the mount, which
// lives longer than the volume.
func TestACopyOfTheMountElsewhereKeepsNothing(t *testing.T) {
	for _, kind := range []string{"ext4", "xfs", "tmpfs"} {
		t.Run(kind, func(t *testing.T) {
			parent := ground(t)
			v := mustMake(t, parent, kind)
			path := filepath.Join(v.Dir(), "file")
			if err := os.WriteFile(path, make([]byte, mebibyte), 0o666); err != nil {
				t.Fatal(err)
			}
			_, end := elsewhere(t, "/")
			defer end()
			if kind != "tmpfs" {
				if err := v.Remount(t.Context()); err != nil {
					t.Error(err)
				}
				isNotCached(t, path)
			}
			if err := v.Close(); err != nil {
				t.Error(err)
			}
			nothingLeft(t, parent)
		})
	}
}

func isNotCached(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if r, err := sys.PageCache(f); err != nil || r.Resident != 0 {
		t.Errorf("of the file are resident: %+v, %v", r, err)
	}
}

// TestRemountWaitsForUsersOfACopyOfTheMount has a process work in a copy of the mount, which
// keeps the file system and its cache until it ends.
func TestRemountWaitsForUsersOfACopyOfTheMount(t *testing.T) {
	v := mustMake(t, ground(t), "ext4")
	path := filepath.Join(v.Dir(), "file")
	if err := os.WriteFile(path, make([]byte, mebibyte), 0o666); err != nil {
		t.Fatal(err)
	}
	process, end := elsewhere(t, v.Dir())
	using := v.users()
	if err := v.unmount(); err != nil {
		t.Fatal(err)
	}
	err := v.gone(0, using) // which may name others beside it
	if err == nil || !errors.Is(err, unix.EBUSY) || !strings.Contains(err.Error(), fmt.Sprintf("cat (process %d)", process)) {
		t.Errorf("another mount namespace has it: %v", err)
	}
	if err := v.mount(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	time.AfterFunc(20*time.Millisecond, func() { end(); close(ended) })
	if err := v.Remount(t.Context()); err != nil {
		t.Error(err)
	}
	<-ended
	isNotCached(t, path)
	if err := v.Close(); err != nil {
		t.Error(err)
	}
}

// TestAVolumeUsedElsewhereIsNotCalledDamaged has a process in a mount namespace of its own
// keep the file system going.
func TestAVolumeUsedElsewhereIsNotCalledDamaged(t *testing.T) {
	parent := filepath.Join(ground(t), "a directory\u00a0of ours")
	if err := os.Mkdir(parent, 0o777); err != nil {
		t.Fatal(err)
	}
	v := mustMake(t, parent, "ext4")
	process, end := elsewhere(t, v.Dir())
	err := v.closeWithin(0) // which may name others beside it
	if err == nil || !errors.Is(err, unix.EBUSY) || !strings.Contains(err.Error(), fmt.Sprintf("cat (process %d)", process)) {
		t.Errorf("another mount namespace has it: %v", err)
	}
	end()
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	nothingLeft(t, parent)
}

func TestCloseNamesUsersOfTheVolumeAndMayBeCalledAgain(t *testing.T) {
	parent := ground(t)
	v := mustMake(t, parent, "ext2")
	f, err := os.Create(filepath.Join(v.Dir(), "open"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := v.unmountWithin(0); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("(process %d)", os.Getpid())) || !errors.Is(err, unix.EBUSY) {
		t.Errorf("unmounting a volume with an open file: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	nothingLeft(t, parent)
}

// contained makes TestMakeInAContainerSaysWhatItTakes be root in a user namespace: a directory.
const contained = "HOLDFAST_TEST_CONTAINED"

// TestMakeInAContainerSaysWhatItTakes is root in a user namespace. That root may mount some
// file systems, so that all seems to be there, but none from a device.
func TestMakeInAContainerSaysWhatItTakes(t *testing.T) {
	if parent := os.Getenv(contained); parent != "" {
		v, err := Make(t.Context(), parent, kind(t, "ext4"), small(kind(t, "ext4")))
		if missing := (*MissingError)(nil); !errors.As(err, &missing) || !missing.Root || !strings.Contains(err.Error(), "in a container") {
			t.Errorf("%v, %v", v, err)
		}
		nothingLeft(t, parent)
		return
	}
	if err := kind(t, "ext4").Can(); err != nil {
		t.Skip(err)
	}
	isolate.Mounts(t, func(t *testing.T) { // in a user namespace no copy of a mount can be given up
		cmd := exec.Command(os.Args[0], "-test.run=^TestMakeInAContainerSaysWhatItTakes$")
		cmd.Env = append(os.Environ(), contained+"="+t.TempDir())
		only := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}}
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS, UidMappings: only, GidMappings: only}
		out, err := cmd.CombinedOutput()
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) {
			t.Skip("no user namespaces here: ", err)
		}
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
}
