package probe

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/mountinfo"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// Remount unmounts the file system that holds dir and mounts it again as it was,
// so that nothing of it stays in memory. It takes root. No program may have a file
// open on it. A program that looks for a file there meanwhile finds none.
//
// It refuses, before it touches anything, a file system that it could not mount again as it was, and
// one whose cache would stay:
//   - the root file system
//   - one without a block device of its own
//   - a bind mount
//   - one that is mounted twice or has mounts below it
//   - options or a propagation that mount(2) can't repeat
//
// After an error the file system is mounted, unless the error says otherwise; it
// then has the command that brings it back.
//
// The image of a loop device is evicted too, from the file system that it lies
// on; see [sys.Evict]. Services that systemd binds to the mount are stopped by it.
func Remount(dir string) error {
	m, err := remountable(dir)
	if err != nil {
		return fmt.Errorf("%s can't be remounted: %w", dir, err)
	}
	how, err := mountAgain(m)
	if err != nil {
		return fmt.Errorf("%s can't be remounted: %w", m.Point, err)
	}
	if err := how.remount(); err != nil {
		return fmt.Errorf("%s can't be remounted: %w", m.Point, err)
	}
	return nil
}

// remountable finds the mount that holds dir. It checks the refusals of Remount that need only the list
// of mounts.
func remountable(dir string) (mounted, error) {
	id, err := mountID(dir)
	if err != nil {
		return mounted{}, err
	}
	all, err := mounts()
	if err != nil {
		return mounted{}, err
	}
	at := slices.IndexFunc(all, func(m mounted) bool { return m.ID == id })
	if at < 0 {
		return mounted{}, fmt.Errorf("mount %d is not in %s", id, mountinfo.Path)
	}
	m := all[at]
	switch {
	case m.Point == "/":
		return m, errors.New("it is the root file system; use a directory on another one")
	case strings.HasPrefix(m.Device, "0:"): // get_anon_bdev: no device has major number 0
		return m, fmt.Errorf("%s has no block device of its own, so there is nothing to unmount it from: %w", m.Kind, errors.ErrUnsupported)
	case m.Root != "/":
		return m, fmt.Errorf("%s is a bind mount of the directory %s; use the file system's own mount", m.Point, m.Root)
	}
	parentShared := false
	for _, other := range all {
		switch {
		case other.ID == m.ID:
		case other.Device == m.Device:
			return m, fmt.Errorf("%s is mounted on %s too, where its cache would stay: unmount that first", m.Source, other.Point)
		case other.Parent == m.ID:
			return m, fmt.Errorf("%s is mounted below it: unmount that first", other.Point)
		case other.ID == m.Parent:
			parentShared = other.shared()
		}
	}
	// A new mount is shared if the mount below it is, and else private (mount_namespaces(7)).
	for _, p := range m.Optional {
		if !strings.HasPrefix(p, "shared:") {
			return m, fmt.Errorf("its propagation %s can't be repeated; mount --make-private %s first", p, m.Point)
		}
	}
	if m.shared() != parentShared {
		return m, fmt.Errorf("its propagation (shared or private) differs from the mount below it, which can't be repeated; mount --make-shared or --make-private %s first", m.Point)
	}
	return m, nil
}

func (m mounted) shared() bool {
	return slices.ContainsFunc(m.Optional, func(p string) bool { return strings.HasPrefix(p, "shared:") })
}

// mountFlags are the options of a mount and of a file system that mount(2) takes
// as flags: Linux's fs/proc_namespace.c shows them so.
func mountFlags() map[string]uintptr {
	return map[string]uintptr{
		"rw":          0,
		"ro":          unix.MS_RDONLY,
		"nosuid":      unix.MS_NOSUID,
		"nodev":       unix.MS_NODEV,
		"noexec":      unix.MS_NOEXEC,
		"noatime":     unix.MS_NOATIME,
		"nodiratime":  unix.MS_NODIRATIME,
		"relatime":    unix.MS_RELATIME,
		"nosymfollow": unix.MS_NOSYMFOLLOW,
	}
}

func superFlags() map[string]uintptr {
	return map[string]uintptr{
		"rw":       0,
		"ro":       unix.MS_RDONLY,
		"sync":     unix.MS_SYNCHRONOUS,
		"dirsync":  unix.MS_DIRSYNC,
		"mand":     unix.MS_MANDLOCK,
		"lazytime": unix.MS_LAZYTIME,
		"seclabel": 0, // SELinux sets it by itself
	}
}

// A mountCall is the arguments of the mount(2) that restores a mount.
type mountCall struct {
	mounted
	flags uintptr
	data  string
	image string // under a loop device: its file
}

// mountAgain finds out how to mount m again, and refuses if that can't be.
func mountAgain(m mounted) (mountCall, error) {
	how := mountCall{mounted: m}
	var stat unix.Stat_t
	if err := unix.Stat(m.Source, &stat); err != nil {
		return how, fmt.Errorf("its device %s can't be found: %w", m.Source, err)
	}
	device := fmt.Sprintf("%d:%d", unix.Major(uint64(stat.Rdev)), unix.Minor(uint64(stat.Rdev)))
	if stat.Mode&unix.S_IFMT != unix.S_IFBLK || device != m.Device {
		return how, fmt.Errorf("its source %s is not the block device %s", m.Source, m.Device)
	}
	if slices.Contains(m.Options, "ro") != slices.Contains(m.Super, "ro") {
		return how, errors.New("its mount and its file system differ in read-only (perhaps after a disk error: see dmesg), which mount(2) can't repeat")
	}
	for _, option := range m.Options {
		flag, ok := mountFlags()[option]
		if !ok {
			return how, fmt.Errorf("its mount option %s can't be repeated by mount(2)", option)
		}
		how.flags |= flag
	}
	if how.flags&(unix.MS_NOATIME|unix.MS_RELATIME) == 0 {
		how.flags |= unix.MS_STRICTATIME // which is not shown; without it, relatime: mount(2), Linux 2.6.30
	}
	data, flags, err := m.dataAndFlags()
	if err != nil {
		return how, err
	}
	how.data, how.flags = strings.Join(data, ","), how.flags|flags
	if name, err := os.ReadFile(filepath.Join("/sys/dev/block", m.Device, "loop/backing_file")); err == nil {
		how.image = strings.TrimSuffix(string(name), "\n")
		if _, err := os.Stat(how.image); err != nil {
			return how, fmt.Errorf("the image under %s can't be found, so its cache would stay: %w", m.Source, err)
		}
	}
	return how, tryOptions(m.Kind, data)
}

// dataAndFlags returns the options of the file system as mount(2) takes them. Some are flags. The
// others are data, with a comma between two of them.
func (m mounted) dataAndFlags() (data []string, flags uintptr, err error) {
	for _, option := range m.Super {
		flag, ok := superFlags()[option]
		switch {
		case ok:
			flags |= flag
		case strings.Contains(option, ","):
			return nil, 0, fmt.Errorf("its mount option %q contains a comma, which mount(2) can't repeat", option)
		default:
			data = append(data, option)
		}
	}
	return data, flags, nil
}

// tryOptions has the file system read the options without mounting anything:
// fsopen(2) and fsconfig(2), Linux 5.2. A file system that still reads them as
// one text takes all; older kernels try nothing.
func tryOptions(kind string, options []string) error {
	context, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	switch {
	case errors.Is(err, unix.ENOSYS):
		return nil
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("%w; run as root", err)
	case err != nil:
		return fmt.Errorf("%s can't be mounted by mount(2) alone: fsopen: %w", kind, err)
	}
	defer unix.Close(context)
	for _, option := range options {
		name, value, ok := strings.Cut(option, "=")
		if ok {
			err = unix.FsconfigSetString(context, name, value)
		} else {
			err = unix.FsconfigSetFlag(context, name)
		}
		if err != nil {
			return fmt.Errorf("its mount option %s can't be repeated: %s says: %w", option, kind, err)
		}
	}
	return nil
}

// remount unmounts and mounts again. Meanwhile it holds the device open: a loop
// device would go with its last user.
func (how mountCall) remount() error {
	device, err := os.Open(how.Source)
	if err != nil {
		return err
	}
	defer device.Close()
	if err := unix.Unmount(how.Point, unix.UMOUNT_NOFOLLOW); err != nil {
		switch {
		case errors.Is(err, unix.EBUSY):
			return fmt.Errorf("%w: a program has a file open there, or its working directory; end that program (fuser -vm %s names it)", err, quoted(how.Point))
		case errors.Is(err, unix.EPERM):
			return fmt.Errorf("%w; run as root", err)
		}
		return fmt.Errorf("umount: %w", err)
	}
	emptied := how.emptyDevice(device)
	if err := how.mount(); err != nil {
		return err
	}
	return errors.Join(emptied, how.compare())
}

// emptyDevice drops the cached pages of the device itself, and of a loop device's image. It checks that
// the file system is gone from memory: only then can the device be opened exclusively.
func (how mountCall) emptyDevice(device *os.File) error {
	err := again(func() error {
		free, err := unix.Open(how.Source, unix.O_RDONLY|unix.O_EXCL|unix.O_CLOEXEC, 0)
		if err == nil {
			unix.Close(free)
		}
		return err
	})
	if errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("its cache stayed: %s is still mounted, in another mount namespace (a container's, or a service's), or in use", how.Source)
	}
	if err != nil {
		return err
	}
	err = sys.OnDescriptor(device, func(fd int) error { return unix.IoctlSetInt(fd, unix.BLKFLSBUF, 0) })
	if err != nil {
		return fmt.Errorf("the cache of %s stayed: BLKFLSBUF: %w", how.Source, err)
	}
	if how.image == "" {
		return nil
	}
	image, err := os.Open(how.image)
	if err != nil {
		return fmt.Errorf("the cache of the image stayed: %w", err)
	}
	defer image.Close()
	return sys.Evict(image)
}

// mount mounts it. It tries more than once, because udev may have the device open just now.
func (how mountCall) mount() error {
	err := again(func() error {
		return unix.Mount(how.Source, how.Point, how.Kind, how.flags, how.data)
	})
	if err != nil {
		return fmt.Errorf("it could not be mounted again, and is unmounted now: %w; mount it with: %s", err, how.command())
	}
	return nil
}

// again tries until there is no error, for a quarter of a second.
func again(try func() error) error {
	err := try()
	for pause := time.Millisecond; err != nil && pause < 200*time.Millisecond; pause *= 2 {
		time.Sleep(pause)
		err = try()
	}
	return err
}

// compare returns an error that names what differs from before.
func (how mountCall) compare() error {
	id, err := mountID(how.Point)
	if err != nil {
		return err
	}
	all, err := mounts()
	if err != nil {
		return err
	}
	for _, m := range all {
		if m.ID == id && m.sameAs(how.mounted) {
			return nil
		}
	}
	return fmt.Errorf("it is mounted again, but not as before; to restore it: umount %s && %s", quoted(how.Point), how.command())
}

func (m mounted) sameAs(old mounted) bool {
	return m.Device == old.Device && m.Root == old.Root && m.Kind == old.Kind && m.shared() == old.shared() &&
		slices.Equal(m.Options, old.Options) && slices.Equal(m.Super, old.Super)
}

// command returns the shell command that restores the mount.
func (how mountCall) command() string {
	options := slices.Clone(how.Options)
	if how.flags&unix.MS_STRICTATIME != 0 {
		options = append(options, "strictatime")
	}
	for _, option := range how.Super {
		if option != "seclabel" && !slices.Contains(options, option) {
			options = append(options, option)
		}
	}
	source := how.Source
	if how.image != "" {
		options, source = append(options, "loop"), how.image // mount(8) makes the loop device anew
		for _, name := range []string{"offset", "sizelimit"} {
			value, err := os.ReadFile(filepath.Join("/sys/dev/block", how.Device, "loop", name))
			if v := strings.TrimSpace(string(value)); err == nil && v != "0" {
				options = append(options, name+"="+v)
			}
		}
	}
	return strings.Join([]string{"mount", "-t", how.Kind, "-o", quoted(strings.Join(options, ",")), quoted(source), quoted(how.Point)}, " ")
}

// quoted makes one word of s for a shell.
func quoted(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-,:=+@", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
