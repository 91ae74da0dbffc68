package uml

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/holdfast-go/holdfast/internal/volume"
)

// A Machine is the guest, seen from inside.
type Machine struct {
	Share string // where the directory that is shared is seen inside
	Task  []byte
	Line  *os.File // the line to the program outside, which changes no byte; nil without one

	boot *os.Root // also where the root is another one
}

// Enter makes a machine of the bare kernel that has started this program as its only process. It
// mounts what programs expect and loads the modules. Outside of a guest it returns an error. After
// it, only [Machine.Leave] may end the program.
func Enter() (*Machine, error) {
	text, err := os.ReadFile(orderPath)
	if os.Getpid() != 1 || err != nil {
		return nil, errors.New("this does not run inside User-Mode Linux")
	}
	m := &Machine{Share: "/share"}
	var o order
	if err := json.Unmarshal(text, &o); err != nil {
		return m, m.Leave(err)
	}
	m.Task = o.Task
	if o.Beat > 0 {
		go func() {
			for range time.Tick(o.Beat) { // until the machine ends
				fmt.Println(beat)
			}
		}()
	}
	// The boot directory comes first: Leave reports an error there.
	const boot = "/boot"
	err = mount("none", boot, "hostfs", o.Boot)
	if err == nil {
		m.boot, err = os.OpenRoot(boot)
	}
	if err != nil {
		return m, m.Leave(err)
	}
	if err := m.furnish(o); err != nil {
		return m, m.Leave(err)
	}
	return m, nil
}

// hostRoot is where the root outside is mounted before it is the guest's.
const hostRoot = "/host"

func (m *Machine) furnish(o order) error {
	root := "/"
	if o.Tools != "" {
		m.Share, root = "", hostRoot
		if err := errors.Join(os.Mkdir(root, 0o755), unix.Mount("none", root, "hostfs", unix.MS_RDONLY, "/")); err != nil {
			return fmt.Errorf("mounting hostfs: %w", err)
		}
	}
	for _, at := range []struct{ kind, dir, options string }{
		{"proc", "/proc", ""}, {"sysfs", "/sys", ""}, {"devtmpfs", "/dev", ""},
		{"tmpfs", "/tmp", ""}, {"tmpfs", "/dev/shm", ""}, {"hostfs", m.Share, o.Share},
	} {
		if at.dir == "" {
			continue
		}
		if err := mount("none", filepath.Join(root, at.dir), at.kind, at.options); err != nil {
			return err
		}
	}
	for _, file := range o.Modules {
		if err := load(file); err != nil {
			return err
		}
	}
	if root == hostRoot {
		// The root that processes find is the mount that covers "/" last: setns(2) looks for it too.
		if err := errors.Join(os.Chdir(root), unix.Mount(".", "/", "", unix.MS_MOVE, ""), unix.Chroot("."), os.Chdir("/"),
			os.Setenv("PATH", o.Tools), os.Unsetenv("LD_LIBRARY_PATH")); err != nil {
			return fmt.Errorf("the root outside as the guest's: %w", err)
		}
	}
	if o.Line {
		var err error
		if m.Line, err = openLine(); err != nil {
			return fmt.Errorf("the line outside: %w", err)
		}
	}
	return errors.Join(loopbackUp(), os.Setenv("TMPDIR", "/tmp"), os.Setenv("TERM", "dumb"))
}

// linePath is the line inside: the first serial line.
const linePath = "/dev/ttyS0"

// openLine opens the guest's end, which is a terminal there. It sets raw mode
// (termios(3)), in which the terminal changes no byte.
func openLine() (*os.File, error) {
	line, err := os.OpenFile(linePath, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	if _, err := term.MakeRaw(int(line.Fd())); err != nil {
		return nil, errors.Join(err, line.Close())
	}
	return line, nil
}

// loopbackUp brings the loopback interface up; the kernel gives it its address
// (netdevice(7)).
func loopbackUp() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	up, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	up.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, up)
}

// Leave reports to the program outside how this one has ended, and ends the machine.
// It returns only if it can't.
func (m *Machine) Leave(cause error) error {
	var o outcome
	if cause != nil {
		o.Err = cause.Error()
	}
	text, err := json.Marshal(o)
	if err == nil && m.boot != nil {
		err = m.boot.WriteFile(outcomeName, text, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "can't report how it ended:", err, cause)
	}
	unix.Sync()
	return errors.Join(cause, err, unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF))
}

func mount(source, dir, kind, options string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(source, dir, kind, 0, options); err != nil {
		return fmt.Errorf("mounting %s: %w", kind, err)
	}
	return nil
}

func load(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	err = unix.FinitModule(int(f.Fd()), "", 0)
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("loading %s: %w", filepath.Base(file), err)
	}
	return nil
}

// A Mount is a file system in an image, mounted inside.
type Mount struct {
	Dir string

	loop *os.File
}

// Mount mounts an image with a file system of this kind. The image is a path inside. The
// device is a loop device, which passes the file system's flushes on to the image's
// file. hostfs passes them on to the file outside. The block devices of User-Mode Linux
// itself drop them.
func (m *Machine) Mount(image, dir, kind, options string) (*Mount, error) {
	loop, err := attach(image)
	if err != nil {
		return nil, fmt.Errorf("a loop device for %s: %w", filepath.Base(image), err)
	}
	// Some options are flags of mount(2); the others are its data.
	known := map[string]uintptr{"noatime": unix.MS_NOATIME, "relatime": unix.MS_RELATIME, "nodev": unix.MS_NODEV, "nosuid": unix.MS_NOSUID, "noexec": unix.MS_NOEXEC, "ro": unix.MS_RDONLY, "loop": 0, "defaults": 0}
	var flags uintptr
	var data []string
	for o := range strings.SplitSeq(options, ",") {
		if flag, ok := known[o]; ok {
			flags |= flag
		} else if o != "" {
			data = append(data, o)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, errors.Join(err, detach(loop))
	}
	if err := unix.Mount(loop.Name(), dir, kind, flags, strings.Join(data, ",")); err != nil {
		return nil, errors.Join(fmt.Errorf("mounting %s: %w", kind, err), detach(loop))
	}
	return &Mount{dir, loop}, nil
}

// Close unmounts the file system and waits until the image has all its data.
func (m *Mount) Close() error {
	return errors.Join(unix.Unmount(m.Dir, 0), detach(m.loop))
}

// attach attaches an image to a free loop device.
func attach(image string) (*os.File, error) {
	file, err := os.OpenFile(image, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return volume.Loop(file)
}

// detach writes the device's data to its image. The kernel frees the device when it is closed.
func detach(loop *os.File) error {
	return errors.Join(loop.Sync(), loop.Close())
}
