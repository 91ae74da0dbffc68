package volume

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/workdir"
)

// killedMaker makes TestNextStartRemovesWhatAKilledProcessLeft be the process that
// is killed: a step, a kind and a directory, a line each.
const killedMaker = "HOLDFAST_TEST_KILLED_MAKER"

// steps are how far a process comes before it is killed.
var steps = []string{"directory", "marker", "mkfs", "loop", "mount"}

// TestNextStartRemovesWhatAKilledProcessLeft kills a process with SIGKILL after each
// step of making a volume, and checks the directory after the next start.
func TestNextStartRemovesWhatAKilledProcessLeft(t *testing.T) {
	if what, ok := os.LookupEnv(killedMaker); ok {
		fmt.Fprintln(os.Stderr, makeUntilKilled(what))
		os.Exit(1)
	}
	for _, name := range []string{"ext4", "xfs", "btrfs", "tmpfs"} {
		for _, step := range steps {
			if name != "ext4" && step != "mount" {
				continue // which are the same for all
			}
			t.Run(name+"/"+step, func(t *testing.T) {
				if err := kind(t, name).Can(); err != nil {
					t.Skip(err)
				}
				parent := ground(t)
				killAt(t, step, name, parent)
				isLeft(t, parent, step == "mount")
				next := mustMake(t, parent, "tmpfs")
				if len(next.Removed) != 1 {
					t.Errorf("the next start removed %v", next.Removed)
				}
				if err := next.Close(); err != nil {
					t.Error(err)
				}
				nothingLeft(t, parent)
			})
		}
	}
}

// isLeft checks that the leftover is found, also without the name of its directory if
// it is mounted.
func isLeft(t *testing.T, parent string, isMounted bool) {
	t.Helper()
	left, err := Leftovers(parent)
	if err != nil || count(left, parent) != 1 {
		t.Errorf("found beside it: %+v, %v", left, err)
	}
	left, err = Leftovers()
	if got := count(left, parent); err != nil || isMounted && got != 1 {
		t.Errorf("found by its mount: %d of %+v, %v", got, left, err)
	}
}

func count(left []Leftover, parent string) (n int) {
	for _, l := range left {
		if filepath.Dir(l.Dir) == parent {
			n++
		}
	}
	return n
}

func maker(ctx context.Context, step, name, parent string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestNextStartRemovesWhatAKilledProcessLeft$")
	cmd.Env = append(os.Environ(), killedMaker+"="+step+"\n"+name+"\n"+parent)
	cmd.Stderr = os.Stderr
	return cmd
}

// killAt kills a process that has come as far as a step.
func killAt(t *testing.T, step, name, parent string) {
	t.Helper()
	cmd := maker(t.Context(), step, name, parent)
	if step == "mkfs" { // a program that says so, and goes on until it is killed
		script := "#!/bin/sh\nexec >/proc/$PPID/fd/1\necho here\nexec tail -f /dev/null\n"
		programs := t.TempDir()
		if err := os.WriteFile(filepath.Join(programs, "mkfs."+name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		cmd.Env = append(cmd.Env, "PATH="+programs+":"+os.Getenv("PATH"))
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	if err := cmd.Process.Kill(); err != nil || line != "here\n" {
		t.Errorf("it was killed after %q, %v", line, err)
	}
	_, _ = io.Copy(io.Discard, out) // until mkfs, which has it too, has ended
	_ = cmd.Wait()
}

// makeUntilKilled makes a volume as far as a step, says so, and waits.
func makeUntilKilled(what string) error {
	parts := strings.Split(what, "\n")
	step, parent := parts[0], parts[2]
	kinds, err := Parse(parts[1])
	if err != nil {
		return err
	}
	if step == "forever" {
		return makeForever(parent, kinds[0])
	}
	if err := makeUntil(step, parent, kinds[0]); err != nil {
		return err
	}
	fmt.Println("here")
	_, err = os.Stdin.Read(make([]byte, 1))
	return err
}

func makeUntil(step, parent string, k Kind) error {
	switch step {
	case "directory":
		return os.Mkdir(filepath.Join(parent, dirName(rand.Uint32())), 0o700)
	case "mount", "mkfs":
		_, err := Make(context.Background(), parent, k, small(k))
		return err
	}
	dir, lock, err := claim(parent, k)
	if err != nil || step == "marker" {
		return err
	}
	v := &Volume{kind: k, size: small(k), dir: dir, lock: lock}
	if err := errors.Join(os.Mkdir(v.Dir(), 0o755), k.makeImage(context.Background(), v.image(), v.size)); err != nil {
		return err
	}
	_, err = attach(v.image(), k.sectors(v.image()))
	return err
}

func makeForever(parent string, k Kind) error {
	fmt.Println("here")
	for {
		v, err := Make(context.Background(), parent, k, small(k))
		if err != nil {
			return err
		}
		if err := v.Close(); err != nil {
			return err
		}
	}
}

// TestNextStartRemovesWhatAKillAtAnyMomentLeft kills a process that makes and closes
// volumes, after some time, at a step that is not known.
func TestNextStartRemovesWhatAKillAtAnyMomentLeft(t *testing.T) {
	if err := kind(t, "ext4").Can(); err != nil {
		t.Skip(err)
	}
	parent := ground(t)
	left := 0
	for range 30 {
		func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			cmd := maker(ctx, "forever", "ext4", parent)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
				t.Fatalf("%q, %v", line, err)
			}
			time.AfterFunc(time.Duration(rand.Int64N(int64(40*time.Millisecond))), cancel)
			_ = cmd.Wait()
		}()
		found, err := Leftovers(parent)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range found {
			if filepath.Dir(l.Dir) != parent {
				continue
			}
			left++
			if err := RemoveLeftover(l.Dir); err != nil {
				t.Error(err)
			}
		}
		nothingLeft(t, parent)
	}
	t.Log(left, "of 30 kills left something")
}

func TestVolumeOfALivingProcessIsNoLeftover(t *testing.T) {
	parent := ground(t)
	v := mustMake(t, parent, "ext2")
	if err := RemoveLeftover(v.dir.Name()); !errors.Is(err, ErrAlive) {
		t.Errorf("removing a volume in use: %v", err)
	}
	if left, err := Leftovers(parent); err != nil || count(left, parent) != 0 {
		t.Errorf("a volume in use is a leftover: %+v, %v", left, err)
	}
	if removed := removeLeftovers(parent); removed != nil {
		t.Errorf("removed %v", removed)
	}
	isMounted(t, v)
}

// plant makes a directory with files: no leftover.
func plant(t *testing.T, parent, name string, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(parent, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const deadMarker = `{"kind":"ext4","process":1}`

func TestDirectoryThatIsNoLeftoverIsNotTouched(t *testing.T) {
	ours := dirName(7)
	check := func(why, name, sentence string, files map[string]string) {
		t.Helper()
		parent := ground(t)
		dir := plant(t, parent, name, files)
		if err := RemoveLeftover(dir); err == nil || !strings.Contains(err.Error(), sentence) {
			t.Errorf("%s: %v, want %q", why, err, sentence)
		}
		if left, err := Leftovers(parent); err != nil || count(left, parent) != 0 {
			t.Errorf("%s: a leftover: %+v, %v", why, left, err)
		}
		if removed := removeLeftovers(parent); removed != nil {
			t.Errorf("%s: removed %v", why, removed)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != len(files) {
			t.Errorf("%s: %d of %d files are left, %v", why, len(entries), len(files), err)
		}
	}
	check("is not a marker", ours, "no marker", map[string]string{imageName: "an image"})
	check("a marker of others", ours, "is not a marker", map[string]string{markerName: `{"volume":1}`})
	check("no JSON", ours, "is not a marker", map[string]string{markerName: "mine"})
	check("a file too many", ours, "does not belong to a volume", map[string]string{markerName: deadMarker, "notes": "mine"})
	check("another name", "holdfast-volume-0000000000000000", "is not a name of a volume", map[string]string{markerName: deadMarker})
	check("a shorter name", "holdfast-volume-1", "is not a name of a volume", nil)
	check("a user's name", "images", "is not a name of a volume", map[string]string{markerName: deadMarker, imageName: "mine"})
}

// hold takes the lock of a planted marker.
func hold(t *testing.T, dir string) *os.File {
	t.Helper()
	f, err := os.Open(markerIn(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if _, err := takeLock(f); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestMarkerThatIsLockedIsNotTouched has a marker of a process that is not to be seen,
// as one in another container.
func TestMarkerThatIsLockedIsNotTouched(t *testing.T) {
	dir := plant(t, t.TempDir(), dirName(7), map[string]string{markerName: deadMarker, imageName: "an image"})
	hold(t, dir)
	if err := RemoveLeftover(dir); !errors.Is(err, ErrAlive) {
		t.Errorf("removing it: %v", err)
	}
	if _, err := os.Stat(imageIn(dir)); err != nil {
		t.Error(err)
	}
}

func TestLockThatADeadProcessStillSharesIsOutlasted(t *testing.T) {
	parent := t.TempDir()
	dir := plant(t, parent, dirName(7), map[string]string{markerName: deadMarker})
	lock := hold(t, dir)
	time.AfterFunc(20*time.Millisecond, func() { lock.Close() })
	if err := RemoveLeftover(dir); err != nil {
		t.Error(err)
	}
	nothingLeft(t, parent)
}

func TestLinkToALeftoverIsNotFollowed(t *testing.T) {
	parent := ground(t)
	dir := plant(t, t.TempDir(), "mine", map[string]string{markerName: deadMarker, imageName: "mine"})
	if err := os.Symlink(dir, filepath.Join(parent, dirName(7))); err != nil {
		t.Fatal(err)
	}
	if removed := removeLeftovers(parent); removed != nil {
		t.Errorf("removed %v", removed)
	}
	if err := RemoveLeftover(filepath.Join(parent, dirName(7))); err == nil {
		t.Error("a link was followed")
	}
	if _, err := os.Stat(imageIn(dir)); err != nil {
		t.Error(err)
	}
}

func TestForeignMountOnAVolumeIsNotTouched(t *testing.T) {
	v := mustMake(t, ground(t), "tmpfs")
	if err := unix.Mount("mine", v.Dir(), "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(v.Dir(), 0) })
	if err := v.Close(); err == nil || !strings.Contains(err.Error(), "from mine, which does not belong to a volume") {
		t.Errorf("%v", err)
	}
	if err := unix.Unmount(v.Dir(), 0); err != nil {
		t.Fatal(err)
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
}

func TestForeignMountInALeftoverIsNotTouched(t *testing.T) {
	if err := kind(t, "tmpfs").Can(); err != nil {
		t.Skip(err)
	}
	dir := plant(t, t.TempDir(), dirName(7), map[string]string{markerName: deadMarker})
	if err := os.Mkdir(mountIn(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("mine", mountIn(dir), "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(mountIn(dir), 0) })
	if err := RemoveLeftover(dir); err == nil || !strings.Contains(err.Error(), "does not belong to a volume") {
		t.Errorf("%v", err)
	}
	if m, ok, err := mountedIn(opened(t, dir)); !ok || m.Source != "mine" || err != nil {
		t.Errorf("mounted is %+v, %v, %v", m, ok, err)
	}
	if _, err := os.Stat(markerIn(dir)); err != nil {
		t.Error(err)
	}
}

func TestLeftoversOfTheCurrentDirectoryNeedNoName(t *testing.T) {
	parent := t.TempDir()
	if err := os.Mkdir(filepath.Join(parent, "holdfast-volume-000000070155ac0f"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(parent)
	left, err := Leftovers()
	if errors.Is(err, fs.ErrPermission) {
		err = nil // a volume that is another user's and is mounted now: it is not seen
	}
	if err != nil || count(left, parent) != 1 {
		t.Errorf("found in the current directory: %+v, %v", left, err)
	}
}

// TestALeftoverThatCantBeRemovedStaysOne has something in the directory of the mount, which
// was not written through a volume.
func TestALeftoverThatCantBeRemovedStaysOne(t *testing.T) {
	dir := plant(t, t.TempDir(), dirName(7), map[string]string{markerName: `{"kind":"ext4","process":4194304}`, imageName: "an image"})
	mine := plant(t, dir, mountName, map[string]string{"mine": "data"})
	if err := RemoveLeftover(dir); err == nil {
		t.Error("it was removed with what is mine")
	}
	if left, err := Leftovers(filepath.Dir(dir)); err != nil || len(left) != 1 || left[0].Dir != dir {
		t.Errorf("%+v, %v", left, err)
	}
	if err := os.Remove(filepath.Join(mine, "mine")); err != nil {
		t.Fatal(err)
	}
	if err := RemoveLeftover(dir); err != nil {
		t.Error(err)
	}
}

func TestAMarkerOfAnotherProcessOfThatNumberIsOfADeadOne(t *testing.T) {
	self := marker{Process: os.Getpid(), Boot: bootID()}
	self.Started, _ = startOf(self.Process)
	later, rebooted := self, self
	later.Started++
	rebooted.Boot = "another"
	if !self.alive() || later.alive() || rebooted.alive() {
		t.Errorf("this process %v, another of its number %v, before the last start %v", self.alive(), later.alive(), rebooted.alive())
	}
}

func TestALeftoverWithLinksIsNotTouched(t *testing.T) {
	for _, name := range []string{markerName, imageName, mountName} {
		mine := plant(t, t.TempDir(), "mine", map[string]string{"file": deadMarker})
		dir := plant(t, t.TempDir(), dirName(7), map[string]string{markerName: deadMarker})
		_ = os.Remove(filepath.Join(dir, name))
		if err := os.Symlink(filepath.Join(mine, "file"), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if err := RemoveLeftover(dir); err == nil || !strings.Contains(err.Error(), name+`" in `) {
			t.Errorf("%s is a link: %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

func TestOnlyADirectoryIsALeftover(t *testing.T) {
	parent := t.TempDir()
	dir := plant(t, parent, dirName(7), map[string]string{markerName: deadMarker})
	elsewhere := filepath.Join(t.TempDir(), dirName(7))
	file, link := filepath.Join(elsewhere, dirName(8)), filepath.Join(elsewhere, dirName(9))
	if err := errors.Join(os.Mkdir(elsewhere, 0o700), os.WriteFile(file, nil, 0o600), os.Symlink(dir, link)); err != nil {
		t.Fatal(err)
	}
	if found, err := dirsIn(elsewhere); err != nil || found != nil {
		t.Errorf("%v, %v", found, err)
	}
	for _, path := range []string{file, link} {
		if err := RemoveLeftover(path); err == nil || !strings.Contains(err.Error(), "is no directory") {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, name := range []string{mountName, GuestPrefix + "1"} {
		dir := plant(t, t.TempDir(), dirName(7), map[string]string{markerName: deadMarker, name: "mine"})
		if err := RemoveLeftover(dir); err == nil || !strings.Contains(err.Error(), "does not belong to a volume") {
			t.Errorf("%s is a file: %v", name, err)
		}
	}
}

// opened holds a planted directory open.
func opened(t *testing.T, dir string) *workdir.Dir {
	t.Helper()
	d, err := workdir.Open(filepath.Dir(dir), filepath.Base(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// TestAMarkerOrDirectoryThatIsExchangedIsNoLongerLocked is of one that was another when it
// was opened.
func TestAMarkerOrDirectoryThatIsExchangedIsNoLongerLocked(t *testing.T) {
	check := func(what string, exchange func(dir string) error) {
		t.Helper()
		dir := plant(t, t.TempDir(), dirName(7), map[string]string{markerName: deadMarker, "other": deadMarker})
		d, f := opened(t, dir), hold(t, dir)
		if err := stillIn(d, f); err != nil {
			t.Errorf("before: %v", err)
		}
		if err := exchange(dir); err != nil {
			t.Fatal(err)
		}
		if err := stillIn(d, f); err == nil {
			t.Errorf("%s is not noticed", what)
		}
	}
	check("another marker", func(dir string) error { return os.Rename(filepath.Join(dir, "other"), markerIn(dir)) })
	check("a marker that is a link", func(dir string) error {
		return errors.Join(os.Rename(markerIn(dir), filepath.Join(dir, "other")), os.Symlink("other", markerIn(dir)))
	})
	check("another directory", func(dir string) error {
		return errors.Join(os.Rename(dir, dir+"-before"), os.Mkdir(dir, 0o700))
	})
}

// markerOfThis is the text of a marker of this process.
func markerOfThis() string {
	self := marker{Kind: "ext4", Process: os.Getpid(), Boot: bootID()}
	self.Started, _ = startOf(self.Process)
	text, _ := json.Marshal(self)
	return string(text)
}

func TestAVolumeWhoseLockIsFreeHasNoOwner(t *testing.T) {
	parent := t.TempDir()
	dir := plant(t, parent, dirName(7), map[string]string{markerName: markerOfThis()})
	if err := RemoveLeftover(dir); err != nil {
		t.Error(err)
	}
	nothingLeft(t, parent)
}

// TestWithoutLocksTheProcessSaysWhetherAVolumeIsInUse forbids flock(2) to one thread: it
// answers as of a file that has no locks.
func TestWithoutLocksTheProcessSaysWhetherAVolumeIsInUse(t *testing.T) {
	parent := t.TempDir()
	living := plant(t, parent, dirName(7), map[string]string{markerName: markerOfThis()})
	dead := plant(t, parent, dirName(8), map[string]string{markerName: deadMarker})
	why := make(chan string)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its goroutine
		defer close(why)
		if err := isolate.Forbid(unix.SYS_FLOCK, unix.EBADF, 0); err != nil {
			why <- err.Error()
			return
		}
		if err := RemoveLeftover(living); !errors.Is(err, ErrAlive) {
			t.Errorf("of a living process: %v", err)
		}
		if err := RemoveLeftover(dead); err != nil {
			t.Errorf("of a dead process: %v", err)
		}
	}()
	if text, ok := <-why; ok {
		t.Skip("no filter of system calls: ", text)
	}
	if found, err := dirsIn(parent); err != nil || len(found) != 1 || found[0] != living {
		t.Errorf("%v, %v", found, err)
	}
}

// attachForGood gives a planted image a loop device that is not freed with its last user.
func attachForGood(t *testing.T, image string) (device string) {
	t.Helper()
	if err := kind(t, "ext4").Can(); err != nil {
		t.Skip(err)
	}
	if err := os.Truncate(image, mebibyte); err != nil {
		t.Fatal(err)
	}
	l, err := attach(image, 0)
	if err != nil {
		t.Fatal(err)
	}
	device = l.file.Name()
	t.Cleanup(func() {
		if strings.HasPrefix(loops()[device], image) { // also if that was removed
			_ = clearLoop(device, inodeOf(t, device))
		}
	})
	status, err := unix.IoctlLoopGetStatus64(int(l.file.Fd()))
	if err == nil {
		status.Flags &^= unix.LO_FLAGS_AUTOCLEAR
		err = unix.IoctlLoopSetStatus64(int(l.file.Fd()), status)
	}
	if err := errors.Join(err, l.file.Close()); err != nil {
		t.Fatal(err)
	}
	return device
}

// inodeOf returns the inode of the image that backs a loop device.
func inodeOf(t *testing.T, device string) inode {
	t.Helper()
	d, err := os.Open(device)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	status, err := unix.IoctlLoopGetStatus64(int(d.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return inode{status.Device, status.Inode}
}

func TestALoopDeviceThatStaysLeadsToALeftoverAndIsFreed(t *testing.T) {
	parent := ground(t)
	dir := plant(t, parent, dirName(7), map[string]string{markerName: deadMarker, imageName: ""})
	attachForGood(t, imageIn(dir))
	left, err := Leftovers()
	if errors.Is(err, fs.ErrPermission) {
		err = nil // a volume that is another user's and is mounted now: it is not seen
	}
	if err != nil || count(left, parent) != 1 {
		t.Errorf("found by its loop device: %+v, %v", left, err)
	}
	if err := RemoveLeftover(dir); err != nil {
		t.Error(err)
	}
	nothingLeft(t, parent)
}

func TestALoopDeviceThatHasGotAnotherImageIsLeft(t *testing.T) {
	dir := plant(t, ground(t), dirName(7), map[string]string{imageName: ""})
	device := attachForGood(t, imageIn(dir))
	if err := clearLoop(device, imageOf(opened(t, plant(t, t.TempDir(), dirName(8), map[string]string{imageName: ""})))); err != nil {
		t.Error(err)
	}
	if got := loops()[device]; got != imageIn(dir) {
		t.Errorf("%s has %q", device, got)
	}
}
