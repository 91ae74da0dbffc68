package workdir

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// safePath returns a path of an open directory that other users can't change: its name, if they
// can't change the directories above it, or a path through /proc: proc_pid_fd(5).
func safePath(dir *os.File, name, below string) string {
	if os.Geteuid() != 0 || isFixed(below) && isNow(dir, name) {
		return name
	}
	held := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), dir.Fd())
	if !isNow(dir, held) {
		return name // proc is not mounted
	}
	return held
}

// isNow reports whether a path leads to an open directory now.
func isNow(dir *os.File, path string) bool {
	is, err := dir.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(path)
	return err == nil && os.SameFile(now, is)
}

// byDescriptor matches the beginning of a path through /proc, in this process or in its parent. It
// leads to that very directory, even if others may rename it: see [At].
func byDescriptor() *regexp.Regexp { return regexp.MustCompile(`^/proc/\d+/fd/\d+/`) }

// mostLinks is the most symbolic links followed for one path, as on Linux.
const mostLinks = 40

// isFixed reports whether only root and this user can change the target of a directory's path. Each
// directory on the way, and each link, must belong to one of them. Others may write to a directory
// only if it is sticky (rename(2), EPERM). It checks from the root down, so that the checked part
// can't change any more.
func isFixed(dir string) bool {
	if held := byDescriptor().FindString(dir + "/"); held != "" {
		return isKept(held + ".")
	}
	dir, err := filepath.Abs(dir)
	if err != nil || !isKept("/") {
		return false
	}
	at, rest := "/", strings.Split(dir, "/")
	for links := 0; len(rest) > 0 && links < mostLinks; {
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		target, isLink := linkOfOurs(next)
		switch {
		case isLink:
			links++
			if filepath.IsAbs(target) {
				at = "/"
			}
			rest = append(strings.Split(target, "/"), rest...)
		case !isKept(next):
			return false
		default:
			at = next
		}
	}
	return len(rest) == 0
}

// linkOfOurs returns the target of a link that belongs to root or this user.
func linkOfOurs(path string) (target string, ok bool) {
	var is syscall.Stat_t
	if err := syscall.Lstat(path, &is); err != nil || is.Mode&syscall.S_IFMT != syscall.S_IFLNK || !isOurs(is) {
		return "", false
	}
	target, err := os.Readlink(path)
	return target, err == nil
}

func isOurs(is syscall.Stat_t) bool { return is.Uid == 0 || int(is.Uid) == os.Geteuid() }

// isKept reports whether dir is a directory in which no other user may rename names of root and
// this user.
func isKept(dir string) bool {
	var is syscall.Stat_t
	if err := syscall.Lstat(dir, &is); err != nil || is.Mode&syscall.S_IFMT != syscall.S_IFDIR {
		return false
	}
	return isOurs(is) && (is.Mode&0o022 == 0 || is.Mode&syscall.S_ISVTX != 0)
}
