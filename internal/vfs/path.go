package vfs

import (
	"os"
	"path/filepath"
	"strings"
)

// SplitPath splits a path into its directory, "." if it names none, and its last element. That is
// empty if the path ends in a slash.
func SplitPath(path string) (dir, base string) {
	volume := len(filepath.VolumeName(path)) // 0 except on Windows
	i := strings.LastIndexByte(path, '/')
	if os.PathSeparator != '/' {
		i = max(i, strings.LastIndexByte(path, os.PathSeparator))
	}
	switch {
	case i < volume && volume > 0: // the working directory of that volume
		return path[:volume], path[volume:]
	case i < 0:
		return ".", path
	case i == volume:
		return path[:i+1], path[i+1:]
	}
	return path[:i], path[i+1:]
}
