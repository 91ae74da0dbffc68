package files

import (
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// A fileName is a path, and how the system calls take it.
type fileName struct {
	path string
	dir  string
	base sys.Name
}

// newName takes a path apart. It refuses what can't be a file's.
func newName(path string) (fileName, error) {
	var own strings.Builder
	return newNameIn(&own, path, 0)
}

// newNameIn takes the memory of the name as [sys.NameIn] does.
func newNameIn(block *strings.Builder, path string, size int) (fileName, error) {
	dir, base := vfs.SplitPath(path)
	name, err := sys.NameIn(block, base, size)
	return nameOf(path, dir, name, err)
}

// newNameOver takes the memory of the name as [sys.NameOver] does.
func newNameOver(memory []byte, path string) (fileName, []byte, error) {
	dir, base := vfs.SplitPath(path)
	name, memory, err := sys.NameOver(memory, base)
	full, err := nameOf(path, dir, name, err)
	return full, memory, err
}

func nameOf(path, dir string, base sys.Name, err error) (fileName, error) {
	if err != nil {
		return fileName{}, fmt.Errorf("path %q: %w", path, err)
	}
	return fileName{path: path, dir: dir, base: base}, nil
}
