package sys

import (
	"os"
	"path/filepath"
	"strings"
)

// IsDescriptor reports whether a path, or a symbolic link on its way, names an open file of a
// process, as /dev/stdout and /proc/self/fd/1 do: a file that takes its place is none that the
// caller has named.
func IsDescriptor(path string) bool {
	for range 40 { // as many links as the kernel follows
		path = filepath.Clean(path)
		if strings.HasPrefix(path, "/dev/fd/") || path == "/dev/stdin" || path == "/dev/stdout" || path == "/dev/stderr" {
			return true
		}
		if rest, ok := strings.CutPrefix(path, "/proc/"); ok && strings.Contains(filepath.Dir(rest)+"/", "/fd/") {
			return true
		}
		to, err := os.Readlink(path)
		if err != nil {
			return false
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	return false
}
