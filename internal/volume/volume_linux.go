package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// Make makes a file system of size bytes in an image in a new folder of parent, and
// mounts it. The image is sparse, but parent has to have room for all of it: else the
// error is a [*RoomError]. An error of what is missing is a [*MissingError]. Nothing
// is left of a Make that failed or whose ctx was cancelled, unless the error says so.
//
// It first removes what killed processes have left in parent; see Removed. Several
// may run at a time, also in different processes. It waits for mkfs.
func Make(ctx context.Context, parent string, k Kind, size int64) (*Volume, error) {
	if err := k.Can(); err != nil {
		return nil, err
	}
	parent, err := resolved(parent)
	if err != nil {
		return nil, err
	}
	removed := removeLeftovers(parent)
	if err := k.fits(parent, size); err != nil {
		return nil, err
	}
	folder, lock, err := claim(parent, k)
	if err != nil {
		return nil, err
	}
	v := &Volume{kind: k, size: size, folder: folder, lock: lock, removed: removed}
	err = v.make(ctx)
	switch {
	case err == nil:
		return v, nil
	case errors.Is(err, unix.EPERM):
		err = &MissingError{Kind: k.Name, Why: fmt.Sprintf("this process may not: %v (is it in a container?)", err), Root: true}
	default:
		err = fmt.Errorf("%s can't be made in %s: %w", k.Name, parent, err)
	}
	return nil, errors.Join(err, v.remove())
}

// fits checks the size against the kind's least and the free room.
func (k Kind) fits(parent string, size int64) error {
	if err := k.enough(size); err != nil {
		return err
	}
	room := sys.FreeSpace
	if k.Type == "tmpfs" {
		room = func(string) (int64, error) { return freeMemory() }
	}
	free, err := room(parent)
	if err != nil {
		return err
	}
	if size > free {
		return &RoomError{Kind: k.Name, Dir: parent, Need: size, Free: free}
	}
	return nil
}

// enough refuses a size that is less than Least.
func (k Kind) enough(size int64) error {
	if size < k.Least {
		return fmt.Errorf("%s can't have %d bytes; the least is %d MiB", k.Name, size, k.Least/mebibyte)
	}
	return nil
}

// freeMemory is what programs can have without swapping: proc_meminfo(5).
func freeMemory() (int64, error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		var kibibytes int64
		if n, _ := fmt.Sscanf(line, "MemAvailable: %d kB", &kibibytes); n == 1 {
			return kibibytes << 10, nil
		}
	}
	return 0, errors.New("/proc/meminfo has no MemAvailable")
}

func (v *Volume) make(ctx context.Context) error {
	if err := os.Mkdir(mountIn(v.folder), 0o755); err != nil {
		return err
	}
	if v.kind.Type == "tmpfs" {
		return v.mountMemory()
	}
	if err := v.kind.makeImage(ctx, imageIn(v.folder), v.size); err != nil {
		return err
	}
	loop, err := attach(imageIn(v.folder), v.kind.sectors(imageIn(v.folder)))
	if err != nil {
		return err
	}
	defer loop.file.Close()
	v.device, v.direct = loop.file.Name(), loop.direct
	if err := ctx.Err(); err != nil {
		return err
	}
	return v.mount()
}

// sectors is how large the sectors of the loop device are to be, so that it can read
// and write the image past the page cache; 0 if it can't.
func (k Kind) sectors(image string) uint32 {
	align := directAlignment(image)
	if (k.Type == "bfs" || k.Type == "minix") && align > 512 { // whose blocks are smaller than such sectors
		return 0
	}
	return align
}

// sectorFlags is what mkfs has to be told if the loop device will have larger sectors
// than it finds by itself in a file.
func (k Kind) sectorFlags(image string) []string {
	if size := k.sectors(image); k.Type == "xfs" && size > 512 {
		return []string{"-s", fmt.Sprint("size=", size)}
	}
	return nil
}

// mountFlags keep what is on a volume from gaining rights.
const mountFlags = unix.MS_NOSUID | unix.MS_NODEV

func (v *Volume) mount() error {
	err := patiently(func() error {
		return unix.Mount(v.device, v.Dir(), v.kind.Type, mountFlags, v.kind.Options)
	}, unix.EBUSY, patience)
	if err != nil {
		return fmt.Errorf("mount -t %s -o %q %s: %w", v.kind.Type, v.kind.Options, v.device, err)
	}
	return nil
}

// mountMemory mounts a tmpfs. Its source is the folder's name, by which it is known
// again.
func (v *Volume) mountMemory() error {
	err := unix.Mount(filepath.Base(v.folder), v.Dir(), "tmpfs", mountFlags, fmt.Sprintf("size=%d,mode=755", v.size))
	if err != nil {
		return fmt.Errorf("mount -t tmpfs: %w", err)
	}
	return nil
}

// Remount unmounts it and mounts it again: nothing of it is in the page cache then,
// neither of its files nor of its device and image. Nothing on it may be open. A
// tmpfs, which would lose all, is an error that wraps [errors.ErrUnsupported]. After
// another error it may be unmounted; Close removes it then too. A mount namespace that
// was made meanwhile has a copy of the mount, which keeps the cache: it waits some
// seconds for that to end, and then says whose it is. It may not be called
// at the same time as anything else of the volume.
func (v *Volume) Remount(ctx context.Context) error {
	if v.device == "" {
		return fmt.Errorf("%s can't be remounted, for a tmpfs is only in memory: %w", v.Dir(), errors.ErrUnsupported)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	device, err := os.Open(v.device) // which would go with its last user
	if err != nil {
		return err
	}
	defer device.Close()
	if err := v.unmount(); err != nil {
		return err
	}
	err = v.gone(patience)
	if err == nil {
		err = v.evict(device)
	}
	return errors.Join(err, v.mount())
}

// gone waits until the file system has left the memory: only then is its device free
// for an exclusive user. See ended for who may keep it.
func (v *Volume) gone(patience time.Duration) error {
	err := patiently(func() error {
		fd, err := unix.Open(v.device, unix.O_RDONLY|unix.O_EXCL|unix.O_CLOEXEC, 0)
		if err == nil {
			err = unix.Close(fd)
		}
		return err
	}, unix.EBUSY, patience)
	if err != nil {
		return fmt.Errorf("the cache of %s stays: %s: %w: %s", v.Dir(), v.device, err, holders(v.Dir()))
	}
	return nil
}

// evict drops what is in the page cache of the device and of the image.
func (v *Volume) evict(device *os.File) error {
	if err := unix.IoctlSetInt(int(device.Fd()), unix.BLKFLSBUF, 0); err != nil {
		return fmt.Errorf("the cache of %s stays: BLKFLSBUF: %w", v.device, err)
	}
	image, err := os.Open(imageIn(v.folder))
	if err != nil {
		return err
	}
	defer image.Close()
	return sys.Evict(image)
}

func (v *Volume) close() error { return v.closeWithin(patience) }

func (v *Volume) closeWithin(patience time.Duration) error {
	if err := v.unmountWithin(patience); err != nil {
		return err
	}
	if err := v.ended(patience); err != nil {
		return err
	}
	return errors.Join(v.check(), v.remove())
}

// ended waits until nobody else has the file system mounted. A mount namespace that
// was made meanwhile has a copy of the mount, in which the file system goes on: its
// check would find a journal in the middle, and call that damage. The loop device
// goes with the last of them.
func (v *Volume) ended(patience time.Duration) error {
	image := imageIn(v.folder)
	err := patiently(func() error {
		if left := loopsOf(image); left != nil {
			return fmt.Errorf("%s is still in use: %w", left[0], unix.EBUSY)
		}
		return nil
	}, unix.EBUSY, patience)
	if err != nil {
		return fmt.Errorf("the %s in %s is not checked and not removed: %w: %s; end that and run: holdfast volumes --clean %s",
			v.kind.Name, v.folder, err, holders(v.Dir()), filepath.Dir(v.folder))
	}
	return nil
}

// unmount does nothing if it is not mounted.
func (v *Volume) unmount() error { return v.unmountWithin(patience) }

func (v *Volume) unmountWithin(patience time.Duration) error { return unmountAll(v.folder, patience) }

func (v *Volume) check() error {
	return v.kind.CheckImage(context.Background(), imageIn(v.folder))
}

// remove removes all of it, mounted or not.
func (v *Volume) remove() error {
	if err := removeAll(v.folder); err != nil {
		return fmt.Errorf("%s is left: %w", v.folder, err)
	}
	err := v.lock.Close()
	v.lock = nil
	return err
}

// run runs a program that ends with this process, but not by the Ctrl-C that ends
// this one in order, and returns what it printed.
func (h host) run(ctx context.Context, name string, args ...string) (string, error) {
	path, err := h.find(name)
	if err != nil {
		return "", err
	}
	// The kernel kills it when the thread ends that started it: PR_SET_PDEATHSIG(2const).
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	text := strings.TrimSpace(string(out))
	if ctx.Err() != nil {
		return text, ctx.Err()
	}
	if err != nil {
		return text, fmt.Errorf("%s: %w: %s", name, err, lastLines(text))
	}
	return text, nil
}

// lastLines is what is worth telling of a program's output.
func lastLines(text string) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-3):], "; ")
}
