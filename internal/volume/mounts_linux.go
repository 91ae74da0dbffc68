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

// unmountAll unmounts what is mounted in a volume's folder, if all of it is the
// volume's.
func unmountAll(folder string, patience time.Duration) error {
	point := mountIn(folder)
	for {
		m, ok, err := mountedOn(point)
		if err != nil || !ok {
			return err
		}
		if !m.of(folder) {
			return fmt.Errorf("on %s is %s from %s, which no volume has mounted there; unmount it first", point, m.kind, m.source)
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

// A mounted is a line of /proc/self/mountinfo.
type mounted struct{ point, kind, source string }

// of tells whether it is the file system of the volume in the folder.
func (m mounted) of(folder string) bool {
	if m.kind == "tmpfs" {
		return m.source == filepath.Base(folder)
	}
	return loops()[m.source] == imageIn(folder)
}

// mountedOn returns what is mounted on a folder, the last if there are several.
func mountedOn(point string) (found mounted, ok bool, err error) {
	all, err := mounts()
	for _, m := range all {
		if m.point == point {
			found, ok = m, true
		}
	}
	return found, ok, err
}

func mounts() ([]mounted, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var all []mounted
	for line := range strings.Lines(string(text)) {
		before, after, _ := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if len(left) >= 5 && len(right) >= 2 {
			all = append(all, mounted{unescaped(left[4]), right[0], unescaped(right[1])})
		}
	}
	return all, nil
}

// unescaped undoes what proc_pid_mountinfo(5) does to white space and backslashes.
func unescaped(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\043`, "#", `\134`, `\`).Replace(s)
}

// users says which programs have something open below a folder.
func users(dir string) string {
	var all []string
	mounted, _ := mounts()
	for _, m := range mounted {
		if strings.HasPrefix(m.point, dir+"/") {
			all = append(all, "the mount "+m.point)
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

// holders says which programs have a mount in a mount namespace of their own.
func holders(point string) string {
	var all []string
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range processes {
		text, _ := os.ReadFile(filepath.Join(process, "mountinfo"))
		if strings.Contains(string(text), point+" ") {
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
