package powercut

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/lab/fuselog"
	"github.com/holdfast-go/holdfast/internal/lab/prove"
	"github.com/holdfast-go/holdfast/internal/lab/volume"
)

const (
	pageSize  = 4096
	leastSize = 64 << 20 // bytes of a disk, so that the files of each workload have room
	// A recording has at least so many notes, and ends after so much: more of the same shows
	// nothing new.
	leastNotes = 90
	mostNotes  = 12_000
	mostBytes  = 24 << 20
	// patience bounds what nothing should take long: beyond it the disk is aborted.
	patience = 30 * time.Second
)

// record runs the workload of a cell on a new file system, and returns the log of its disk.
func (r *room) record(c *cell, long time.Duration) (l *prove.Log, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience+long)
	defer cancel()
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(c.dir)) }()
	in := func(name string) string { return filepath.Join(c.dir, name) }
	l = &prove.Log{Workload: c.Workload.Name, Policy: c.Policy.String(), Seed: c.seed, Sector: 512, FS: c.kind.Name, Size: max(c.kind.Least, leastSize)}
	if c.kind.Type == "btrfs" {
		l.Sector = 4096               // its superblock is one block of the device: no disk tears it
		l.Size = max(l.Size, 512<<20) // it gives room away in large pieces, and keeps what no commit has freed
	}
	// mkfs.btrfs looks at every loop device, and fails if another cell gives one up meanwhile.
	err = c.kind.MakeImage(ctx, in("image"), l.Size)
	for try := 0; err != nil && strings.Contains(err.Error(), "cannot check mount status") && try < 20; try++ {
		err = c.kind.MakeImage(ctx, in("image"), l.Size)
	}
	if err != nil {
		return nil, err
	}
	image, err := os.OpenFile(in("image"), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer image.Close()
	if err := addImage(l, image); err != nil {
		return nil, err
	}
	disk, err := r.serve(ctx, c, image, in)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, disk.close()) }()
	if err := os.Mkdir(in("mount"), 0o700); err != nil {
		return nil, err
	}
	unmount, err := mount(disk.file, in("mount"), c.kind, options(c))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unmount()) }()
	dir := filepath.Join(in("mount"), workName)
	if err := os.Mkdir(dir, 0o777); err != nil {
		return nil, err
	}
	if err := syncAll(in("mount")); err != nil {
		return nil, err
	}
	start, err := disk.entries()
	if err != nil {
		return nil, err
	}
	if err := r.work(ctx, c, dir, disk, long); err != nil {
		return nil, err
	}
	all, err := disk.entries()
	if err != nil {
		return nil, err
	}
	notes := disk.notes.All()
	noted := 0
	note := func(upTo int) {
		for ; noted < upTo; noted++ {
			if n := notes[noted]; n.Kind != 0 {
				l.Entries = append(l.Entries, prove.Entry{Op: prove.Noted, At: n.At, Note: &n})
			}
		}
	}
	flushes := 0
	for i, e := range all {
		if i == len(start) {
			l.Start = len(l.Entries)
		}
		note(min(int(e.Notes), len(notes)))
		switch {
		case e.Op == fuselog.Write:
			l.Entries = append(l.Entries, prove.Entry{Op: prove.Write, File: device, Offset: e.Offset, Data: e.Data, At: e.At})
		case c.liar == noFlush && i >= len(start) && flushes%keepsFlush != 0:
			flushes++
		default:
			flushes++
			l.Entries = append(l.Entries, prove.Entry{Op: prove.Flush, UpTo: len(l.Entries), At: e.At})
		}
	}
	if len(all) == len(start) {
		l.Start = len(l.Entries)
	}
	note(len(notes))
	return l, nil
}

// device is the number of the disk in a log, and workName the directory on it.
const (
	device   = 1
	workName = "d"
)

func options(c *cell) string {
	more := map[string]string{"ext4": ",barrier=0", "ext3": ",barrier=0", "btrfs": "nobarrier"}
	if c.liar == noBarrier {
		return c.kind.Options + more[c.kind.Type]
	}
	return c.kind.Options
}

// addImage adds what mkfs has made, as writes that are on the disk.
func addImage(l *prove.Log, image *os.File) error {
	zero := make([]byte, pageSize)
	for at := int64(0); ; {
		from, err := unix.Seek(int(image.Fd()), at, unix.SEEK_DATA)
		if err == unix.ENXIO {
			break
		}
		to, holeErr := unix.Seek(int(image.Fd()), from, unix.SEEK_HOLE)
		if err := errors.Join(err, holeErr); err != nil {
			return err
		}
		data := make([]byte, to-from)
		if _, err := image.ReadAt(data, from); err != nil && err != io.EOF {
			return err
		}
		for ; len(data) > 0; from += pageSize {
			page := data[:min(pageSize, len(data))]
			if data = data[len(page):]; !bytes.Equal(page, zero[:len(page)]) {
				l.Entries = append(l.Entries, prove.Entry{Op: prove.Write, File: device, Offset: from, Data: bytes.Clone(page)})
			}
		}
		at = to
	}
	l.Entries = append(l.Entries, prove.Entry{Op: prove.Flush, UpTo: len(l.Entries)})
	return nil
}

// A disk is an image that is served.
type disk struct {
	point string
	file  *os.File // for the loop device
	log   string
	notes *prove.SharedNotes
	ended chan error
	kill  func()
}

// serve starts the process that serves an image.
func (r *room) serve(ctx context.Context, c *cell, image *os.File, in func(string) string) (*disk, error) {
	d := &disk{point: in("disk"), log: in("log"), ended: make(chan error, 1)}
	log, err := os.OpenFile(d.log, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	if err := os.WriteFile(d.point, nil, 0o600); err != nil {
		return nil, err
	}
	if d.notes, err = prove.ShareNotes(in("notes")); err != nil {
		return nil, err
	}
	number, err := fuselog.Mount(d.point, r.order.Owner)
	if err != nil {
		return nil, errors.Join(err, d.notes.Close())
	}
	device := os.NewFile(uintptr(number), "/dev/fuse")
	var said tail
	notes, err := os.OpenFile(in("notes"), os.O_RDWR, 0)
	if err != nil {
		return nil, errors.Join(err, device.Close(), unix.Unmount(d.point, unix.MNT_DETACH), d.notes.Close())
	}
	cmd := r.child(ctx, diskArgument, "/proc/self/fd/6") // the path of notes is one of the room's
	cmd.Stderr = &said
	cmd.ExtraFiles = []*os.File{device, image, log, notes}
	err = outside(cmd.Start)
	_ = notes.Close()
	_ = device.Close() // from now on the connection ends with the process
	if err != nil {
		return nil, errors.Join(err, unix.Unmount(d.point, unix.MNT_DETACH), d.notes.Close())
	}
	d.kill = func() { _ = cmd.Process.Kill() }
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
	return d, nil
}

// outside calls start on a thread that has the mounts of the program, and not the room's. What
// it starts has them too.
//
// A disk's process may not have the room's: when all are killed, the last process that has
// them unmounts them in its end. That waits for flushes of the disk, which would wait
// for the end of the process, until somebody aborts the connection. Each sync(2) of the
// machine waits too.
func outside(start func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for ever: the thread ends with this goroutine
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

// entries are those that reached the disk so far.
func (d *disk) entries() ([]fuselog.Entry, error) {
	text, err := os.ReadFile(d.log)
	if err != nil {
		return nil, err
	}
	return fuselog.Parse(text)
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
		d.kill() // it alone has /dev/fuse open: that aborts the connection
		return errors.Join(err, errors.New("the disk's process did not end"), <-d.ended)
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

// mount mounts a file by a loop device.
func mount(file *os.File, point string, k volume.Kind, options string) (unmount func() error, err error) {
	loop, err := volume.Loop(file)
	if err != nil {
		return nil, err
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

// work runs the workload in a process of its own, until the log has enough of it.
func (r *room) work(ctx context.Context, c *cell, dir string, d *disk, long time.Duration) error {
	var said tail
	cmd := r.child(ctx, c.Workload.Name, c.Policy.String(), dir, filepath.Join(c.dir, "notes"), strconv.FormatUint(c.seed, 10), "0")
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	began := time.Time{}
	for tick := time.Tick(time.Millisecond); ; {
		select {
		case err := <-ended:
			if err != nil {
				err = fmt.Errorf("the workload's process: %w: %s", err, &said)
			}
			return err
		case err := <-d.ended:
			d.ended <- err
			return errors.Join(err, errors.New("the disk's process ended too early"))
		case <-tick:
		}
		info, err := os.Stat(d.log)
		switch {
		case err != nil:
			return err
		case began.IsZero() && d.notes.Begun() > 0:
			began = time.Now()
		case !began.IsZero() && (time.Since(began) > long && d.notes.Begun() >= leastNotes || d.notes.Begun() > mostNotes || info.Size() > mostBytes):
			d.notes.End(0)
		}
	}
}
