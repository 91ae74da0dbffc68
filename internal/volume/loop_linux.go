package volume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A loop is an open loop device. The kernel frees it when it is neither open nor
// mounted any more: LO_FLAGS_AUTOCLEAR, loop(4).
type loop struct {
	file   *os.File
	direct bool // whether the image is read and written past the page cache
}

// attach makes a loop device of the image, with sectors of that size and past the
// image's page cache; or with small ones and through it, if that is 0.
func attach(image string, sectors uint32) (*loop, error) {
	backing, err := os.OpenFile(image, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer backing.Close()
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer control.Close()
	var l *loop
	err = patiently(func() error {
		l, err = attachFree(control, backing, sectors)
		return err
	}, unix.EBUSY, patience) // another took the free device first
	if err != nil {
		return nil, fmt.Errorf("there is no loop device: %w", err)
	}
	return l, nil
}

// attachFree takes the next free device.
func attachFree(control, backing *os.File, sectors uint32) (*loop, error) {
	n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
	if err != nil {
		return nil, fmt.Errorf("LOOP_CTL_GET_FREE: %w", err)
	}
	device, err := os.OpenFile(fmt.Sprint("/dev/loop", n), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	l, err := configure(device, backing, sectors)
	if err != nil {
		return nil, errors.Join(err, device.Close())
	}
	return l, nil
}

// configure ties a free device to the image: LOOP_CONFIGURE, Linux 5.8.
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

// directAlignment is what direct reads and writes of the file have to be aligned to,
// 512 or more, or 0 where it can't be read past the page cache. Before Linux 6.1,
// where statx(2) doesn't tell, it is 512, which most disks take.
func directAlignment(file string) uint32 {
	var stat unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, file, 0, unix.STATX_DIOALIGN, &stat)
	if err != nil || stat.Mask&unix.STATX_DIOALIGN == 0 {
		return 512
	}
	if stat.Dio_offset_align == 0 || stat.Dio_offset_align > 4096 {
		return 0
	}
	return max(512, stat.Dio_offset_align)
}

// loopsOf returns the loop devices that have the image.
func loopsOf(image string) []string {
	var devices []string
	for device, backing := range loops() {
		if backing == image {
			devices = append(devices, device)
		}
	}
	return devices
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

// detach makes sure that no loop device has the image.
func detach(image string) error {
	return patiently(func() error {
		for _, device := range loopsOf(image) {
			if err := clearLoop(device, image); err != nil {
				return err
			}
		}
		if left := loopsOf(image); left != nil {
			return fmt.Errorf("%s still has %s: %w", left[0], image, unix.EBUSY)
		}
		return nil
	}, unix.EBUSY, patience)
}

// clearLoop frees a device if it has the image, which it may have lost meanwhile.
func clearLoop(device, image string) error {
	d, err := os.Open(device)
	if err != nil {
		return err
	}
	defer d.Close()
	if loops()[device] != image { // while we have it open, it stays what it is
		return nil
	}
	err = unix.IoctlSetInt(int(d.Fd()), unix.LOOP_CLR_FD, 0)
	if err != nil && !errors.Is(err, unix.ENXIO) {
		return fmt.Errorf("LOOP_CLR_FD of %s: %w", device, err)
	}
	return nil
}

// patience is how long programs may take that look at every new device or mount.
const patience = 8 * time.Second

// patiently tries again while the error is what, with pauses that double up to about
// so long in all.
func patiently(try func() error, what error, long time.Duration) error {
	err := try()
	for pause := time.Millisecond; errors.Is(err, what) && pause < long/2; pause *= 2 {
		time.Sleep(pause)
		err = try()
	}
	return err
}
