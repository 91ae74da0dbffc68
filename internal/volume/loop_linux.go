package volume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/workdir"
)

// A loop is an open loop device. The kernel frees it when it is neither open nor
// mounted any more: LO_FLAGS_AUTOCLEAR, loop(4).
type loop struct {
	file   *os.File
	direct bool // whether the image is read and written past the page cache
}

// attach makes a loop device of the image. With a size of sectors it bypasses the
// image's page cache; with 0 its sectors are small, and it goes through the cache.
func attach(image string, sectors uint32) (*loop, error) {
	backing, err := os.OpenFile(image, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer backing.Close()
	return attachFile(backing, sectors)
}

// Loop makes a loop device of an open file, with small sectors and through the page cache. The
// kernel frees the device when it is neither open nor mounted any more.
func Loop(backing *os.File) (*os.File, error) {
	l, err := attachFile(backing, 0)
	if err != nil {
		return nil, err
	}
	return l.file, nil
}

func attachFile(backing *os.File, sectors uint32) (*loop, error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer control.Close()
	const most = 64 // devices that others take at the same time
	for tried, busy := -1, 0; ; busy++ {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("there is no loop device: LOOP_CTL_GET_FREE: %w", err)
		}
		young := false
		if n <= tried {
			// Another process is taking it, and may wait in LOOP_CONFIGURE for a file system that does not
			// answer. All that time the kernel calls the device free.
			n = tried + 1
			err := unix.IoctlSetInt(int(control.Fd()), unix.LOOP_CTL_ADD, n)
			if young = errors.Is(err, unix.EEXIST); err != nil && !young {
				return nil, fmt.Errorf("there is no loop device: LOOP_CTL_ADD of %d: %w", n, err)
			}
		}
		tried = n
		l, err := attachTo(fmt.Sprint("/dev/loop", n), backing, sectors)
		if err == nil {
			return l, nil
		}
		// Another process may be adding it at this moment: then it can't be opened yet.
		young = young && (errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENXIO))
		if !errors.Is(err, unix.EBUSY) && !young || busy == most {
			return nil, fmt.Errorf("there is no loop device: %w", err)
		}
	}
}

// attachTo attaches a device, or returns EBUSY if it is another's.
func attachTo(name string, backing *os.File, sectors uint32) (*loop, error) {
	// With O_EXCL it is this process's from now on, so that others get EBUSY at once. Else each of them would
	// wait where one is in LOOP_CONFIGURE.
	mine, err := os.OpenFile(name, os.O_RDWR|unix.O_EXCL, 0)
	if err != nil {
		return nil, err
	}
	defer mine.Close()
	l, err := configure(mine, backing, sectors)
	if err != nil {
		return nil, err
	}
	l.file, err = os.OpenFile(name, os.O_RDWR, 0) // for a mount, which O_EXCL would refuse
	return l, err
}

// configure attaches a free device to the image: LOOP_CONFIGURE, Linux 5.8.
func configure(device, backing *os.File, sectors uint32) (*loop, error) {
	config := unix.LoopConfig{Fd: uint32(backing.Fd())}
	config.Info.Flags = unix.LO_FLAGS_AUTOCLEAR
	if sectors > 0 {
		config.Info.Flags |= unix.LO_FLAGS_DIRECT_IO
		config.Size = sectors
	}
	copy(config.Info.File_name[:unix.LO_NAME_SIZE-1], backing.Name())
	err := unix.IoctlLoopConfigure(int(device.Fd()), &config)
	if errors.Is(err, unix.EINVAL) && sectors > 0 {
		config.Info.Flags, config.Size = unix.LO_FLAGS_AUTOCLEAR, 0
		err = unix.IoctlLoopConfigure(int(device.Fd()), &config)
	}
	if err != nil {
		return nil, fmt.Errorf("LOOP_CONFIGURE of %s: %w", device.Name(), err)
	}
	status, err := unix.IoctlLoopGetStatus64(int(device.Fd()))
	if err != nil {
		return nil, fmt.Errorf("LOOP_GET_STATUS64 of %s: %w", device.Name(), err)
	}
	return &loop{device, status.Flags&unix.LO_FLAGS_DIRECT_IO != 0}, nil
}

// An inode identifies a file under any name. The zero one is none.
type inode struct{ device, number uint64 }

// imageOf returns the image in a volume's directory.
func imageOf(dir *workdir.Dir) inode {
	info, err := dir.Root().Lstat(imageName)
	if err != nil {
		return inode{}
	}
	is, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return inode{}
	}
	return inode{is.Dev, is.Ino}
}

// loopsOf returns the loop devices that have the image.
func loopsOf(image inode) []string {
	var devices []string
	for device, backing := range loops() {
		if image == (inode{}) || filepath.Base(backing) != imageName {
			continue
		}
		d, err := os.Open(device)
		if err != nil {
			continue
		}
		if has(d, image) {
			devices = append(devices, device)
		}
		d.Close()
	}
	return devices
}

// has reports whether an open loop device has the image.
func has(device *os.File, image inode) bool {
	status, err := unix.IoctlLoopGetStatus64(int(device.Fd()))
	return err == nil && inode{status.Device, status.Inode} == image
}

// loops returns the images of all loop devices, by device.
func loops() map[string]string {
	all := map[string]string{}
	names, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it was freed meanwhile
		}
		device := filepath.Join("/dev", filepath.Base(filepath.Dir(filepath.Dir(name))))
		all[device] = strings.TrimSuffix(string(text), "\n")
	}
	return all
}

// clearLoop frees a device if it has the image, which it may have lost meanwhile.
func clearLoop(device string, image inode) error {
	d, err := os.Open(device)
	if err != nil {
		return err
	}
	defer d.Close()
	if !has(d, image) { // while we have it open, it keeps its image
		return nil
	}
	err = unix.IoctlSetInt(int(d.Fd()), unix.LOOP_CLR_FD, 0)
	if err != nil && !errors.Is(err, unix.ENXIO) {
		return fmt.Errorf("LOOP_CLR_FD of %s: %w", device, err)
	}
	return nil
}

// patience bounds the wait for programs that look at every new device or mount.
const patience = 8 * time.Second

// patiently tries again while the error is `what`. The pauses double; in sum they last about `long`.
func patiently(try func() error, what error, long time.Duration) error {
	err := try()
	for pause := time.Millisecond; errors.Is(err, what) && pause < long/2; pause *= 2 {
		time.Sleep(pause)
		err = try()
	}
	return err
}
