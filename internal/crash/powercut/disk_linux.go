package powercut

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/volume"
)

// A disk is an image that is served.
type disk struct {
	point string
	file  *os.File // for the loop device
	log   string
	notes *crash.SharedNotes
	ended chan error
	kill  func()
}

// A disk's process also counts notes or the bytes that a program has printed, or refuses writes.
const (
	countsNotes   = "notes"
	countsPrinted = "printed"
	refusesWrites = "refuses"
	onlyServes    = "serves"
)

// serveDisk is the disk's process. Its descriptors come from serve; it counts the bytes of 6. It refuses a write of a record: the
// first is 1, and 0 is none.
func serveDisk(how, refuses string) (err error) {
	d := diskServer{server: server{device: 3, file: 5}, image: 4}
	nth, err := strconv.Atoi(refuses)
	switch {
	case err != nil:
		return err
	case how == refusesWrites:
		d.refuse = refusesOnce()
	case nth > 0:
		d.refuse = refusesRecord(nth)
	}
	if d.notes, err = counter(how, 6); err != nil {
		return err
	}
	return d.serve()
}

// counter returns what counts acknowledgements, in the file of a descriptor.
func counter(how string, fd int) (func() uint64, error) {
	switch how {
	case countsNotes:
		notes, err := crash.NotesIn(os.NewFile(uintptr(fd), "notes"))
		if err != nil {
			return nil, err
		}
		return notes.Begun, nil
	case countsPrinted:
		return func() uint64 {
			var stat unix.Stat_t
			if err := unix.Fstat(fd, &stat); err != nil {
				return 0
			}
			return uint64(stat.Size)
		}, nil
	case refusesWrites, onlyServes:
		return func() uint64 { return 0 }, nil
	}
	return nil, fmt.Errorf("%q is nothing that a disk does", how)
}

// makeImage makes the file system of a cell in a new file of its directory.
func (r *room) makeImage(ctx context.Context, c *cell, size int64) (*os.File, error) {
	c.step("mkfs")
	image := c.in("image")
	err := c.kind.MakeImage(ctx, image, size)
	// mkfs.btrfs looks at every loop device, and fails if another cell gives one up meanwhile.
	for try := 0; err != nil && strings.Contains(err.Error(), "cannot check mount status") && try < 20; try++ {
		err = c.kind.MakeImage(ctx, image, size)
	}
	if err != nil {
		return nil, err
	}
	return os.OpenFile(image, os.O_RDWR, 0)
}

func options(c *cell) string {
	more := map[string]string{"ext4": ",barrier=0", "ext3": ",barrier=0", "btrfs": "nobarrier"}
	if c.liar == noBarrier {
		return c.kind.Options + more[c.kind.Type]
	}
	return c.kind.Options
}

// served calls fn with the file system of an image mounted from a disk that is served.
func (r *room) served(ctx context.Context, c *cell, image *os.File, how string, fn func(top string, d *disk) error) (err error) {
	c.step("start of the disk's process")
	d, err := r.serve(ctx, c, image, how)
	if err != nil {
		return err
	}
	defer func() {
		c.step("end of the disk's process")
		err = errors.Join(err, d.close())
	}()
	top := c.in("mount")
	if err := os.Mkdir(top, 0o700); err != nil {
		return err
	}
	c.step("mount")
	unmount, err := mount(d.file, top, c.kind, options(c))
	if err != nil {
		return err
	}
	defer func() {
		c.step("unmount")
		err = errors.Join(err, unmount())
	}()
	return fn(top, d)
}

// serve starts the process that serves an image.
func (r *room) serve(ctx context.Context, c *cell, image *os.File, how string) (d *disk, err error) {
	d = &disk{point: c.in("disk"), log: c.in("log"), ended: make(chan error, 1)}
	log, err := os.OpenFile(d.log, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	if err := os.WriteFile(d.point, nil, 0o600); err != nil {
		return nil, err
	}
	if d.notes, err = crash.NewNotes(); err != nil {
		return nil, err
	}
	counted := d.notes.File()
	if how == countsPrinted {
		if counted, err = os.OpenFile(c.in("printed"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
			return nil, errors.Join(err, d.notes.Close())
		}
		defer counted.Close()
	}
	number, err := mountDisk(d.point, c.owner)
	if err != nil {
		return nil, errors.Join(err, d.notes.Close())
	}
	device := os.NewFile(uintptr(number), "/dev/fuse")
	var said tail
	cmd := r.child(ctx, diskArgument, how, strconv.Itoa(c.refuses))
	cmd.Stderr = &said
	cmd.ExtraFiles = []*os.File{device, image, log, counted}
	err = outside(cmd.Start)
	_ = device.Close() // from now on the connection ends with the process
	if err != nil {
		return nil, errors.Join(err, unix.Unmount(d.point, unix.MNT_DETACH), d.notes.Close())
	}
	d.kill = func() { _ = cmd.Process.Kill() }
	c.disk.Store(d)
	go func() {
		err := cmd.Wait()
		if err != nil {
			err = fmt.Errorf("the disk's process: %w: %s", err, &said)
		}
		d.ended <- err
	}()
	// Not by os.Open: the runtime's poller would ask the server for POLL.
	fd, err := unix.Open(d.point, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open of the disk: %w", err), d.close())
	}
	d.file = os.NewFile(uintptr(fd), d.point)
	// On Linux 6.1 a loop device gets the size that the kernel knows of its file: 0 until somebody asks.
	// ext4 takes such a device, jfs and nilfs2 return EINVAL.
	if _, err := d.file.Stat(); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

// outside calls start on a thread that has the mounts of the program, and not the room's. Its
// children have them too.
//
// A disk's process may not have the room's: when all are killed, the last process that has
// them unmounts them in its end. That waits for flushes of the disk, which would wait
// for the end of the process, until somebody aborts the connection. Each sync(2) of the
// machine waits too.
//
// Nor may memory that the process asks for be won by writing to file systems, one of which may
// be on its disk. PR_SET_IO_FLUSHER(2const), Linux 5.6, is for such servers, and the thread's
// children inherit it. Older kernels lack it.
func outside(start func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for ever: the thread ends with this goroutine
		_ = unix.Prctl(unix.PR_SET_IO_FLUSHER, 1, 0, 0, 0)
		err := unix.Unshare(unix.CLONE_FS)
		if err == nil {
			err = unix.Setns(mountsFD, unix.CLONE_NEWNS)
		}
		if err == nil {
			err = start()
		}
		done <- err
	}()
	return <-done
}

// entries are the entries that reached the disk so far.
func (d *disk) entries() ([]logged, error) {
	text, err := os.ReadFile(d.log)
	if err != nil {
		return nil, err
	}
	return parseLog(text)
}

// close ends the process. If it hangs, its connection is aborted.
func (d *disk) close() (err error) {
	if d.file != nil {
		err = d.file.Close()
	}
	err = errors.Join(err, busy(func() error { return unix.Unmount(d.point, 0) }), d.notes.Close())
	select {
	case ended := <-d.ended:
		return errors.Join(err, ended)
	case <-time.After(patience):
	}
	d.kill() // it alone has /dev/fuse open: that aborts the connection
	select {
	case ended := <-d.ended:
		return errors.Join(err, errors.New("the disk's process did not end"), ended)
	case <-time.After(patience):
		return errors.Join(err, errors.New("the disk's process can't be killed"))
	}
}

// busy tries again what other users of a device may keep from ending for a moment.
func busy(try func() error) error {
	err := try()
	for end := time.Now().Add(patience / 3); errors.Is(err, unix.EBUSY) && time.Now().Before(end); err = try() {
		time.Sleep(time.Millisecond)
	}
	return err
}

// errMachine is an error that no file system is to blame for.
var errMachine = errors.New("this machine")

// mount mounts a file by a loop device.
func mount(file *os.File, point string, k volume.Kind, options string) (unmount func() error, err error) {
	loop, err := volume.Loop(file)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errMachine, err)
	}
	defer loop.Close()
	err = busy(func() error {
		return unix.Mount(loop.Name(), point, k.Type, unix.MS_NOSUID|unix.MS_NODEV, options)
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("mount -t %s: %w", k.Type, err), forget(k, loop))
	}
	return func() error {
		device, openErr := os.Open(loop.Name())
		if openErr != nil {
			return errors.Join(openErr, unix.Unmount(point, 0))
		}
		defer device.Close()
		err := busy(func() error { return unix.Unmount(point, 0) })
		return errors.Join(err, forget(k, device))
	}, nil
}

// forget lets btrfs forget a device: it takes each with the same identity for a part of one
// file system. Others know nothing of devices that are not mounted.
func forget(k volume.Kind, loop *os.File) error {
	if k.Type != "btrfs" {
		return nil
	}
	control, err := os.OpenFile("/dev/btrfs-control", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer control.Close()
	const forget = 0x50009405 // BTRFS_IOC_FORGET_DEV, Linux 5.4: _IOW(0x94, 5, struct btrfs_ioctl_vol_args)
	var args struct {
		fd   int64
		name [4088]byte
	}
	copy(args.name[:], loop.Name())
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, control.Fd(), forget, uintptr(unsafe.Pointer(&args)))
	if errno != 0 && errno != unix.ENOENT { // it may not know the device
		return fmt.Errorf("BTRFS_IOC_FORGET_DEV of %s: %w", loop.Name(), errno)
	}
	return nil
}

func syncAll(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(f.Fd())), f.Close())
}
