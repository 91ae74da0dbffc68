package volume

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
)

// unmountAll unmounts what is mounted in a volume's folder, if all of it is the
// volume's.
func unmountAll(folder string, patience time.Duration) error {
	point := mountIn(folder)
	for {
		m, ok, err := mountedOn(point)
		if err != nil || !ok {
			return err
		}
		if !isOf(m, folder) {
			return fmt.Errorf("on %s is %s from %s, which no volume has mounted there; unmount it first", point, m.Kind, m.Source)
		}
		err = patiently(func() error { return unix.Unmount(point, unix.UMOUNT_NOFOLLOW) }, unix.EBUSY, patience)
		if errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("umount %s: %w: %s; end that and run: holdfast volumes --clean %s", point, err, users(point), filepath.Dir(folder))
		}
		if err != nil {
			return fmt.Errorf("umount %s: %w", point, err)
		}
	}
}

// isOf tells whether a mount is the file system of the volume in the folder.
func isOf(m mountinfo.Mount, folder string) bool {
	if m.Kind == "tmpfs" {
		return m.Source == filepath.Base(folder)
	}
	return loops()[m.Source] == imageIn(folder)
}

// mountedOn returns what is mounted on a folder, the last if there are several.
func mountedOn(point string) (found mountinfo.Mount, ok bool, err error) {
	all, err := mountinfo.Read()
	for _, m := range all {
		if m.Point == point {
			found, ok = m, true
		}
	}
	return found, ok, err
}

// users says which programs have something open below a folder.
func users(dir string) string {
	var all []string
	mounts, _ := mountinfo.Read()
	for _, m := range mounts {
		if strings.HasPrefix(m.Point, dir+"/") {
			all = append(all, "the mount "+m.Point)
		}
	}
	for _, process := range processesIn(dir) {
		all = append(all, program(process))
	}
	if all == nil {
		return "some program uses it"
	}
	return "it is used by " + strings.Join(all, ", ")
}

// isUsed tells whether a program has something open below a folder.
func isUsed(dir string) bool { return len(processesIn(dir)) > 0 }

// processesIn returns the folders in /proc of those that have something open below dir.
func processesIn(dir string) (all []string) {
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range processes {
		if uses(process, dir) {
			all = append(all, process)
		}
	}
	return all
}

// holders says which programs have a mount in a mount namespace of their own, where
// it may lie deeper.
func holders(point string) string {
	var all []string
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range processes {
		text, _ := os.ReadFile(filepath.Join(process, "mountinfo"))
		mounts, _ := mountinfo.ParseAll(string(text))
		if slices.ContainsFunc(mounts, func(m mountinfo.Mount) bool { return strings.HasSuffix(m.Point, point) }) {
			all = append(all, program(process))
		}
	}
	if all == nil {
		return "some program uses it"
	}
	return "it is mounted in the mount namespace of " + strings.Join(all, ", ")
}

// program names a process by its folder in /proc.
func program(process string) string {
	name, _ := os.ReadFile(filepath.Join(process, "comm"))
	return fmt.Sprintf("%s (process %s)", strings.TrimSpace(string(name)), filepath.Base(process))
}

func uses(process, dir string) bool {
	links, _ := filepath.Glob(filepath.Join(process, "fd", "*"))
	for _, link := range append(links, filepath.Join(process, "cwd"), filepath.Join(process, "root"), filepath.Join(process, "exe")) {
		if target, err := os.Readlink(link); err == nil && (target == dir || strings.HasPrefix(target, dir+"/")) {
			return true
		}
	}
	return false
}
