package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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

// Make makes a file system of size bytes in an image in a new directory of parent, and
// mounts it. The image is sparse, but parent must have room for all of it; otherwise the
// error is a [*RoomError]. If a program or a right is missing, the error is a
// [*MissingError]. Nothing is left after an error or a cancelled ctx, unless the error
// says so.
//
// It first removes what killed processes have left in parent; see [Volume.Removed]. Several
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
	dir, lock, err := claim(parent, k)
	if err != nil {
		return nil, err
	}
	v := &Volume{kind: k, size: size, dir: dir, lock: lock, Removed: removed}
	err = v.make(ctx)
	switch {
	case err == nil:
		return v, nil
	case errors.Is(err, unix.EPERM):
		err = &MissingError{Kind: k.Name, Why: fmt.Sprintf("this process is not permitted: %v (is it in a container?)", err), Root: true}
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

// freeMemory returns what programs can have without swapping: proc_meminfo(5).
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
	if v.kind.Type == "tmpfs" {
		if err := v.makePoint(); err != nil {
			return err
		}
		// By its source, the directory's name, unmountAll recognizes the mount.
		err := unix.Mount(filepath.Base(v.dir.Name()), v.Dir(), "tmpfs", mountFlags, fmt.Sprintf("size=%d,mode=755", v.size))
		if err != nil {
			return fmt.Errorf("mount -t tmpfs: %w", err)
		}
		return nil
	}
	if err := v.kind.makeImage(ctx, v.image(), v.size); err != nil {
		return err
	}
	loop, err := attach(v.image(), v.kind.sectors(v.image()))
	if err != nil {
		return err
	}
	defer loop.file.Close()
	v.Device, v.DirectIO = loop.file.Name(), loop.direct
	if err := ctx.Err(); err != nil {
		return err
	}
	return v.mount()
}

func (v *Volume) image() string { return imageIn(v.dir.Path()) }

// sectors returns the size of sectors with which a loop device can bypass the image's
// page cache, 512 or more; or 0 if it can't. Before Linux 6.1, where statx(2) doesn't
// report the alignment, it is 512, which most disks take.
func (k Kind) sectors(image string) uint32 {
	var stat unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, image, 0, unix.STATX_DIOALIGN, &stat)
	align := stat.Dio_offset_align
	switch {
	case err != nil || stat.Mask&unix.STATX_DIOALIGN == 0:
		return 512
	case align == 0 || align > 4096:
		return 0
	case align > 512 && (k.Type == "bfs" || k.Type == "minix"): // their blocks are smaller
		return 0
	}
	return max(512, align)
}

// mountFlags: no program or device on a volume gives rights.
const mountFlags = unix.MS_NOSUID | unix.MS_NODEV

func (v *Volume) mount() error {
	if err := v.makePoint(); err != nil {
		return err
	}
	err := patiently(func() error {
		return unix.Mount(v.Device, v.Dir(), v.kind.Type, mountFlags, v.kind.Options)
	}, unix.EBUSY, patience)
	if err != nil {
		return fmt.Errorf("mount -t %s -o %q %s: %w", v.kind.Type, v.kind.Options, v.Device, err)
	}
	return nil
}

// makePoint makes the directory that it is mounted on. Each unmount removes it.
func (v *Volume) makePoint() error {
	err := v.dir.Root().Mkdir(mountName, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// Remount unmounts it and mounts it again. Then nothing of its files, its device and its
// image is in the page cache. Nothing on it may be open. A tmpfs would lose all, so the
// error then wraps [errors.ErrUnsupported]. After another error it may be unmounted;
// Close removes it even then. It unmounts copies of the mount in other mount namespaces
// too. It waits some seconds for programs that use them, and then names those. No other
// method of the volume may run at the same time.
func (v *Volume) Remount(ctx context.Context) error {
	if v.Device == "" {
		return fmt.Errorf("%s can't be remounted, because a tmpfs is in memory: %w", v.Dir(), errors.ErrUnsupported)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	device, err := os.Open(v.Device) // the kernel frees it with its last user
	if err != nil {
		return err
	}
	defer device.Close()
	using := v.users()
	if err := v.unmount(); err != nil {
		return err
	}
	err = v.gone(patience, using)
	if err == nil {
		err = v.evict(device)
	}
	return errors.Join(err, v.mount())
}

// gone waits until the file system has left the memory: only then is its device free
// for an exclusive user. See ended for the obstacles.
func (v *Volume) gone(patience time.Duration, using string) error {
	err := patiently(func() error {
		fd, err := unix.Open(v.Device, unix.O_RDONLY|unix.O_EXCL|unix.O_CLOEXEC, 0)
		if err == nil {
			err = unix.Close(fd)
		}
		return err
	}, unix.EBUSY, patience)
	if err != nil {
		return fmt.Errorf("the cache of %s stays: %s: %w: %s", v.Dir(), v.Device, err, using)
	}
	return nil
}

// evict drops what is in the page cache of the device and of the image.
func (v *Volume) evict(device *os.File) error {
	if err := unix.IoctlSetInt(int(device.Fd()), unix.BLKFLSBUF, 0); err != nil {
		return fmt.Errorf("the cache of %s stays: BLKFLSBUF: %w", v.Device, err)
	}
	image, err := os.Open(v.image())
	if err != nil {
		return err
	}
	defer image.Close()
	return sys.Evict(image)
}

// Close unmounts it, lets the file system's own program check it, and removes all of
// it. A finding of the check is a [*DamageError], as is a file system that was
// stopped (FS_IOC_SHUTDOWN) and not remounted since. If it can't be unmounted, or is
// mounted in another mount namespace too, the error names the processes that use it.
// Then the directory stays, and Close may be called again. Once all is removed, Close
// returns nil. It waits for other programs some seconds, and for the check.
func (v *Volume) Close() error {
	if v.lock == nil {
		return nil
	}
	return v.closeWithin(patience)
}

func (v *Volume) closeWithin(patience time.Duration) error {
	using := v.users()
	if err := v.unmountWithin(patience); err != nil {
		return err
	}
	if err := v.ended(patience, using); err != nil {
		return err
	}
	return errors.Join(v.kind.CheckImage(context.Background(), v.image()), v.remove())
}

// ended waits until nothing uses the file system any more. A mount namespace that was
// made meanwhile keeps it in use. The check would then find an open journal, and call
// that damage. The kernel frees the loop device with the last user.
func (v *Volume) ended(patience time.Duration, using string) error {
	image := imageOf(v.dir)
	err := patiently(func() error {
		if left := loopsOf(image); left != nil {
			return fmt.Errorf("%s is still in use: %w", left[0], unix.EBUSY)
		}
		return nil
	}, unix.EBUSY, patience)
	if err != nil {
		return fmt.Errorf("the %s in %s is not checked and not removed: %w: %s; stop it, then run: holdfast volumes --clean %s",
			v.kind.Name, v.dir.Name(), err, using, filepath.Dir(v.dir.Name()))
	}
	return nil
}

// unmount does nothing if it is not mounted.
func (v *Volume) unmount() error { return v.unmountWithin(patience) }

func (v *Volume) unmountWithin(patience time.Duration) error { return unmountAll(v.dir, patience) }

// users names the programs that use it. It must be called before the unmount: they have
// it under that path.
func (v *Volume) users() string { return users(mountIn(where(v.dir))) }

// remove removes all of it, mounted or not.
func (v *Volume) remove() error {
	if err := removeAll(v.dir); err != nil {
		return fmt.Errorf("%s is left: %w", v.dir.Name(), err)
	}
	err := errors.Join(v.lock.Close(), v.dir.Close())
	v.lock = nil
	return err
}

// run runs a program and returns what it printed. The program ends with this process, but
// Ctrl-C does not reach it: this process ends it in order.
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
		lines := strings.Split(text, "\n")
		return text, fmt.Errorf("%s: %w: %s", name, err, strings.Join(lines[max(0, len(lines)-3):], "; "))
	}
	return text, nil
}
