package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/mountinfo"
	"github.com/holdfast-go/holdfast/internal/workdir"
)

// unmountAll unmounts what is mounted in a volume's directory, if all of it is the
// volume's, and removes the directory that it was mounted on. Because of the removal, the
// kernel unmounts the copies in other mount namespaces too, since Linux 3.18
// (detach_mounts of fs/namespace.c).
func unmountAll(dir *workdir.Dir, patience time.Duration) error {
	for {
		m, ok, err := mountedIn(dir)
		if err != nil {
			return err
		}
		if !ok {
			if err := dir.Root().Remove(mountName); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		}
		if !isOf(m, dir) {
			return fmt.Errorf("%s has a mount of %s from %s, which does not belong to a volume; unmount it first", m.Point, m.Kind, m.Source)
		}
		err = patiently(func() error { return unix.Unmount(mountIn(dir.Path()), unix.UMOUNT_NOFOLLOW) }, unix.EBUSY, patience)
		if errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("umount %s: %w: %s; stop it, then run: holdfast volumes --clean %s", m.Point, err, users(m.Point), filepath.Dir(dir.Name()))
		}
		if err != nil {
			return fmt.Errorf("umount %s: %w", m.Point, err)
		}
	}
}

// isOf reports whether a mount is the file system of the volume in the directory.
func isOf(m mountinfo.Mount, dir *workdir.Dir) bool {
	if m.Kind == "tmpfs" {
		return m.Source == filepath.Base(dir.Name())
	}
	return slices.Contains(loopsOf(imageOf(dir)), m.Source)
}

// mountedIn returns the last mount in a volume's directory. It does not search by name:
// another user may have renamed a part of the path.
func mountedIn(dir *workdir.Dir) (found mountinfo.Mount, ok bool, err error) {
	below, err := mountID(dir, ".")
	if err != nil {
		return found, false, err
	}
	id, err := mountID(dir, mountName)
	if errors.Is(err, unix.ENOENT) || err == nil && id == below {
		return found, false, nil
	}
	if err != nil {
		return found, false, err
	}
	all, err := mountinfo.Read()
	at := slices.IndexFunc(all, func(m mountinfo.Mount) bool { return m.ID == id })
	if at < 0 {
		return found, false, err
	}
	return all[at], true, err
}

// mountID returns the number of the mount that a name in a directory is on, or of the
// directory's own for ".". It is the mnt_id of an O_PATH descriptor (proc_pid_fdinfo(5),
// Linux 3.15): statx(2) answers EIO on an xfs that has stopped.
func mountID(dir *workdir.Dir, name string) (int, error) {
	fd, err := unix.Openat(int(dir.File().Fd()), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("the mounts in %s are not known: open %s: %w", dir.Name(), name, err)
	}
	defer unix.Close(fd) // an O_PATH descriptor: nothing to lose
	info, err := os.ReadFile(fmt.Sprint("/proc/self/fdinfo/", fd))
	if err != nil {
		return 0, fmt.Errorf("the mounts in %s are not known: %w", dir.Name(), err)
	}
	for line := range strings.Lines(string(info)) {
		if id, ok := strings.CutPrefix(line, "mnt_id:"); ok {
			return strconv.Atoi(strings.TrimSpace(id))
		}
	}
	return 0, fmt.Errorf("the mounts in %s are not known: the kernel does not report the mount of a descriptor", dir.Name())
}

// where returns the present path of a directory, as other programs see it.
func where(dir *workdir.Dir) string {
	path, err := os.Readlink(fmt.Sprint("/proc/self/fd/", dir.File().Fd()))
	if err != nil {
		return dir.Name()
	}
	return path
}

// users names the programs that have something open below a directory.
func users(dir string) string {
	var all []string
	mounts, _ := mountinfo.Read()
	for _, m := range mounts {
		if strings.HasPrefix(m.Point, dir+"/") {
			all = append(all, "the mount "+m.Point)
		}
	}
	for _, process := range processesIn(dir) {
		name, _ := os.ReadFile(filepath.Join(process, "comm"))
		all = append(all, fmt.Sprintf("%s (process %s)", strings.TrimSpace(string(name)), filepath.Base(process)))
	}
	if all == nil {
		return "some program uses it"
	}
	return "it is used by " + strings.Join(all, ", ")
}

// processesIn returns the directories in /proc of the processes that have something open
// below dir.
func processesIn(dir string) (all []string) {
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range processes {
		links, _ := filepath.Glob(filepath.Join(process, "fd", "*"))
		for _, link := range append(links, filepath.Join(process, "cwd"), filepath.Join(process, "root"), filepath.Join(process, "exe")) {
			if target, err := os.Readlink(link); err == nil && (target == dir || strings.HasPrefix(target, dir+"/")) {
				all = append(all, process)
				break
			}
		}
	}
	return all
}
