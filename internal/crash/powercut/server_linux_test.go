package powercut

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/crash"
)

// served are the modes of a process that serves or uses a mount. Each needs mounts of its own.
var served = map[string]func() error{"serve": serveThere, "disk": diskThere, "hang": hangThere,
	"abort": abortThere, "appended": appendedThere, "tree": treeThere, "served": servedThere, "real": realThere}

func child(mode string, args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), asChild+"="+mode)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

func needsRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 || unix.Access("/dev/fuse", unix.R_OK|unix.W_OK) != nil {
		t.Skip("only root mounts a disk, by /dev/fuse")
	}
}

// privately runs a mode in a process with mounts of its own.
func privately(mode string, args ...string) *exec.Cmd {
	cmd := child(mode, args...)
	cmd.SysProcAttr.Unshareflags = syscall.CLONE_NEWNS
	return cmd
}

// TestDiskLogsWritesAndSyncsInOrder reads and writes a disk that another process serves.
func TestDiskLogsWritesAndSyncsInOrder(t *testing.T) {
	t.Parallel()
	needsRoot(t)
	dir := t.TempDir()
	if out, err := privately("serve", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := parseLog(text)
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if all[i].At == 0 {
			t.Error("an entry has no time")
		}
		all[i].At = 0
	}
	want := []logged{{crash.Entry{Op: crash.Write, Offset: 512, Data: bytes.Repeat([]byte("a"), 700)}, 7}, {crash.Entry{Op: crash.Flush, Data: []byte{}}, 7},
		{crash.Entry{Op: crash.Write, Offset: 1000, Data: []byte("b")}, 7}, {crash.Entry{Op: crash.Lose, Offset: 100, Data: []byte{}}, 7}}
	if !reflect.DeepEqual(all, want) {
		t.Errorf("the log is %+v", all)
	}
	image, err := os.ReadFile(filepath.Join(dir, "image"))
	if err != nil || string(image[510:514]) != "\x00\x00aa" || string(image[999:1002]) != "aba" {
		t.Errorf("the image is %q, %v", image[500:1100], err)
	}
	for cut := range text {
		if part, err := parseLog(text[:cut]); err != nil || len(part) >= len(want) {
			t.Errorf("%d bytes of the log are %d entries, %v", cut, len(part), err)
		}
	}
	if _, err := parseLog(bytes.Repeat([]byte{9}, 100)); err == nil {
		t.Error("anything is a log")
	}
}

// serveThere mounts a disk and uses it.
func serveThere() (err error) {
	dir := os.Args[1]
	point, imageName := filepath.Join(dir, "disk"), filepath.Join(dir, "image")
	err = errors.Join(os.WriteFile(point, nil, 0o600), os.WriteFile(imageName, make([]byte, 1<<20), 0o600))
	image, imageErr := os.OpenFile(imageName, os.O_RDWR, 0)
	log, logErr := os.Create(filepath.Join(dir, "log"))
	number, mountErr := mountDisk(point, ownerHere())
	if err := errors.Join(err, imageErr, logErr, mountErr); err != nil {
		return err
	}
	device := os.NewFile(uintptr(number), "fuse")
	server := child("disk")
	server.ExtraFiles = []*os.File{device, image, log}
	if err := errors.Join(server.Start(), device.Close()); err != nil {
		return err
	}
	fd, err := unix.Open(point, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	_, err = unix.Pwrite(fd, bytes.Repeat([]byte("a"), 700), 512)
	err = errors.Join(err, unix.Fsync(fd))
	_, writeErr := unix.Pwrite(fd, []byte("b"), 1000)
	back := make([]byte, 4)
	_, readErr := unix.Pread(fd, back, 998)
	if string(back) != "aaba" {
		err = errors.Join(err, fmt.Errorf("read back %q", back))
	}
	// A poll is answered at once, by the kernel: the server knows none.
	_, pollErr := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
	// The server refuses this one, once: it is not in the log, and the bytes are the old ones.
	if _, err := unix.Pwrite(fd, []byte("refuse"), 100); err != unix.EIO {
		return fmt.Errorf("a write that the server refuses: %w", err)
	}
	if _, err := unix.Pread(fd, back, 100); err != nil || string(back) != "\x00\x00\x00\x00" {
		return fmt.Errorf("a write that was refused is there: %q, %w", back, err)
	}
	err = errors.Join(err, writeErr, readErr, pollErr, unix.Close(fd), unix.Unmount(point, 0))
	return errors.Join(err, server.Wait())
}

func diskThere() error {
	refuse := func(e crash.Entry) bool { return string(e.Data) == "refuse" }
	return (&diskServer{server: server{device: 3, file: 5, notes: func() uint64 { return 7 }}, image: 4, refuse: refuse}).serve()
}

// TestStaleDiskIsAborted holds that abortStale frees a process that waits for a disk whose owner
// was killed. It leaves the disk of an owner that lives alone.
func TestStaleDiskIsAborted(t *testing.T) {
	t.Parallel()
	needsRoot(t)
	owner := exec.Command("sleep", "1000")
	owner.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	source := strings.Replace(ownerHere(), ":"+strconv.Itoa(os.Getpid())+":"+startOf(os.Getpid()),
		":"+strconv.Itoa(owner.Process.Pid)+":"+startOf(owner.Process.Pid), 1)
	h := hang(t, source)
	if _, err := abortStale(); err != nil {
		t.Fatal(err)
	}
	if h.ended.Load() {
		t.Fatal("a disk was aborted whose owner lives: ", <-h.result)
	}
	_ = owner.Process.Kill()
	_ = owner.Wait()
	h.freedBy(func() error { _, err := abortStale(); return err })
}

// TestDisksOfAnOwnerAreAborted checks that other owners' disks are left alone.
func TestDisksOfAnOwnerAreAborted(t *testing.T) {
	t.Parallel()
	needsRoot(t)
	mine, part, other := hang(t, ownerHere()+":1"), hang(t, ownerHere()+":1:2"), hang(t, ownerHere()+":11")
	mine.freedBy(func() error { return abortOwner(ownerHere() + ":1") })
	part.freedBy(func() error { return abortOwner(ownerHere() + ":1") })
	if other.ended.Load() {
		t.Fatal("the disk of another was aborted: ", <-other.result)
	}
	other.freedBy(func() error { return abortOwner(ownerHere() + ":11") })
}

// TestServerEndsWithAnAbort holds that ECONNABORTED is an end like ENODEV: the kernel says it of an unmount
// that comes while the server takes a request.
func TestServerEndsWithAnAbort(t *testing.T) {
	t.Parallel()
	needsRoot(t)
	if out, err := privately("abort", t.TempDir()).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// abortThere serves a disk that was aborted. It asks the kernel to say so, which otherwise takes a race.
func abortThere() error {
	const abortError = 1 << 21 // FUSE_ABORT_ERROR
	point := filepath.Join(os.Args[1], "disk")
	image, err := os.Open("/proc/self/exe")
	if err := errors.Join(err, os.WriteFile(point, nil, 0o600)); err != nil {
		return err
	}
	device, err := mountDisk(point, ownerHere())
	if err != nil {
		return err
	}
	d := &diskServer{server: server{device: device}, image: int(image.Fd())}
	in := make([]byte, mostWrite+4096)
	n, err := unix.Read(device, in)
	if err != nil {
		return err
	}
	d.out = make([]byte, outHeader)
	d.init(in[inHeader:n])
	binary.LittleEndian.PutUint32(d.out, uint32(len(d.out)))
	copy(d.out[8:outHeader], in[8:]) // the request's number
	binary.LittleEndian.PutUint32(d.out[outHeader+12:], bigWrites|maxPages|initExt|abortError)
	if _, err := unix.Write(device, d.out); err != nil {
		return err
	}
	if err := abortOwner(ownerHere()); err != nil {
		return err
	}
	return errors.Join(d.serve(), unix.Unmount(point, 0))
}

// A hanging process waits for a disk that nobody serves.
type hanging struct {
	t      *testing.T
	ended  atomic.Bool
	result chan error
}

func hang(t *testing.T, source string) *hanging {
	t.Helper()
	dir := t.TempDir()
	cmd := child("hang", dir, source)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h := &hanging{t: t, result: make(chan error, 1)}
	go func() { err := cmd.Wait(); h.ended.Store(true); h.result <- err }()
	for {
		if _, err := os.Stat(filepath.Join(dir, "opening")); err == nil {
			return h
		}
		if h.ended.Load() {
			t.Fatal("the process did not wait for its disk: ", <-h.result)
		}
		time.Sleep(time.Millisecond)
	}
}

// freedBy calls abort until the process has ended: it may not have asked its disk yet.
func (h *hanging) freedBy(abort func() error) {
	h.t.Helper()
	for began := time.Now(); !h.ended.Load(); {
		if time.Since(began) > 20*time.Second {
			h.t.Fatal("it still waits for its disk")
		}
		if err := abort(); err != nil {
			h.t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	if err := <-h.result; err != nil {
		h.t.Error(err)
	}
}

// hangThere opens a disk that nobody serves, in a call that no signal ends. Only one thread of the
// process has the disk mounted, and not the first one.
func hangThere() error {
	runtime.LockOSThread()
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS)
		if err == nil {
			err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
		}
		if err == nil {
			err = openUnserved()
		}
		done <- err
	}()
	return <-done
}

func openUnserved() error {
	dir := os.Args[1]
	point := filepath.Join(dir, "disk")
	if err := os.WriteFile(point, nil, 0o600); err != nil {
		return err
	}
	if _, err := mountDisk(point, os.Args[2]); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "opening"), nil, 0o600); err != nil {
		return err
	}
	_, err := unix.Open(point, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if !errors.Is(err, unix.ECONNABORTED) && !errors.Is(err, unix.ENOTCONN) {
		return fmt.Errorf("the open of a disk that was aborted: %w", err)
	}
	return unix.Unmount(point, 0)
}
