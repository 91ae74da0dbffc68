package vfs

import (
	"os"
	"path/filepath"
	"strings"
)

// SplitPath takes a path apart into its directory, "." if it names none, and its last
// element, which is empty where the path names a directory.
func SplitPath(path string) (dir, base string) {
	volume := len(filepath.VolumeName(path)) // 0 but on Windows
	i := strings.LastIndexByte(path, '/')
	if os.PathSeparator != '/' {
		i = max(i, strings.LastIndexByte(path, os.PathSeparator))
	}
	switch {
	case i < volume && volume > 0: // of the working directory there
		return path[:volume], path[volume:]
	case i < 0:
		return ".", path
	case i == volume:
		return path[:i+1], path[i+1:]
	}
	return path[:i], path[i+1:]
}
