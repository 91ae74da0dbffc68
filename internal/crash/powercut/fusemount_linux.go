package powercut

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// source begins what is "mounted" as the kernel lists it. The owner's process and the time of its
// start follow.
const source = "holdfast-disk"

// ownerHere is this process in the source of a mount.
func ownerHere() string { return fmt.Sprintf("%s:%d:%s", source, os.Getpid(), startOf(os.Getpid())) }

// startOf is when a process was started, in clock ticks after the boot: field 22 of
// /proc/PID/stat. It is empty if there is no such process.
func startOf(process int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 20 {
		return ""
	}
	return fields[19]
}

// mountDisk mounts a disk on an existing file, and returns the descriptor of /dev/fuse for a diskServer.
// The descriptor blocks, and is for a process that knows nothing of the mount. When it is
// closed everywhere, the kernel aborts the connection: nothing waits for it any more.
func mountDisk(point, owner string) (device int, err error) {
	device, err = openFuse()
	if err != nil {
		return -1, err
	}
	options := fmt.Sprintf("fd=%d,rootmode=%o,user_id=0,group_id=0", device, unix.S_IFREG)
	if err := unix.Mount(owner, point, "fuse", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		_ = unix.Close(device)
		return -1, fmt.Errorf("mount -t fuse: %w", err)
	}
	return device, nil
}

// openFuse opens /dev/fuse. The descriptor blocks.
func openFuse() (int, error) {
	device, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open /dev/fuse: %w", err)
	}
	return device, nil
}

// mountTree mounts a tree on an existing directory, by a device that a process has which knows nothing
// of the mount. It needs only the root of a user namespace, in which the device was opened (Linux 4.18).
func mountTree(device int, point, source string) error {
	options := fmt.Sprintf("fd=%d,rootmode=%o,user_id=%d,group_id=%d,default_permissions", device, unix.S_IFDIR, os.Geteuid(), os.Getegid())
	if err := unix.Mount(source, point, "fuse", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("mount -t fuse: %w", err)
	}
	return nil
}

// abortStale aborts the disks whose owners were killed. A process that waits for such a disk may
// be one that no signal ends, and it keeps the mount. It returns this process as the owner for
// mountDisk, also where another process mounts for it.
func abortStale() (owner string, err error) {
	return ownerHere(), abort(func(of string) bool {
		fields := strings.Split(of, ":")
		if len(fields) < 3 || fields[0] != source {
			return false
		}
		process, err := strconv.Atoi(fields[1])
		return err == nil && startOf(process) != fields[2]
	})
}

// abortOwner aborts the disks of an owner, and of those whose names begin with it and a colon. All that
// waits for them gets an error.
func abortOwner(owner string) error {
	return abort(func(of string) bool { return of == owner || strings.HasPrefix(of, owner+":") })
}

// abort aborts the disks that are mounted anywhere with such a source.
func abort(which func(source string) bool) error {
	connections := map[string]bool{} // by the minor number of their device
	namespaces := map[string]bool{}
	// All threads, since others of a process may wait for a disk where its first one has ended, or has
	// other mounts.
	threads, _ := filepath.Glob("/proc/[0-9]*/task/[0-9]*")
	for _, thread := range threads {
		ns, err := os.Readlink(filepath.Join(thread, "ns/mnt"))
		if err != nil || namespaces[ns] {
			continue
		}
		text, err := os.ReadFile(filepath.Join(thread, "mountinfo"))
		if err != nil {
			continue // it has just ended
		}
		namespaces[ns] = true
		for line := range strings.Lines(string(text)) {
			before, after, _ := strings.Cut(line, " - ")
			fields, what := strings.Fields(before), strings.Fields(after)
			if len(fields) < 3 || len(what) < 2 || what[0] != "fuse" || !which(what[1]) {
				continue
			}
			if _, minor, ok := strings.Cut(fields[2], ":"); ok {
				connections[minor] = true
			}
		}
	}
	if len(connections) == 0 {
		return nil
	}
	// Of its own, so that it does not matter where it is mounted, if it is.
	control, err := fusectl()
	if err != nil {
		return err
	}
	defer unix.Close(control)
	for minor := range connections {
		fd, err := unix.Openat(control, minor+"/abort", unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue // it has just ended
		}
		_, err = unix.Write(fd, []byte("1"))
		if err := errors.Join(err, unix.Close(fd)); err != nil {
			return fmt.Errorf("abort of a disk: %w", err)
		}
	}
	return nil
}

// fusectl returns a directory of all connections, which no path leads to.
func fusectl() (int, error) {
	fd, err := unix.Fsopen("fusectl", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("fsopen of fusectl: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.FsconfigCreate(fd); err != nil {
		return -1, fmt.Errorf("fsconfig of fusectl: %w", err)
	}
	dir, err := unix.Fsmount(fd, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("fsmount of fusectl: %w", err)
	}
	return dir, nil
}
