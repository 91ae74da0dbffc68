package copy

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// A copyPlan has the destination of each source.
type copyPlan []struct{ destination, source string }

// planCopy finds the destination of each source. It refuses visible mistakes before anything is
// changed. With keepGoing a missing source is reported later, among the other failures.
func planCopy(sources []string, destination string, keepGoing bool) (plan copyPlan, err error) {
	into, err := goesInto(sources, destination)
	if err != nil {
		return nil, err
	}
	taken := map[string]string{}
	for _, source := range sources {
		target := destination
		if into {
			if target, err = nameIn(destination, source); err != nil {
				return nil, err
			}
		}
		key := filepath.Clean(target)
		if other, ok := taken[key]; ok {
			return nil, cli.Misuse("copy them to different directories", "%s and %s would both be copied to %s", shownPath(other), shownPath(source), shownPath(target))
		}
		taken[key] = source
		info, err := os.Stat(source)
		switch {
		case err != nil && len(sources) == 1:
			return nil, cli.Misuse("nothing was copied; give a file or directory that exists", "copy %s: %w", shownPath(source), cli.Cause(err))
		case err != nil && !keepGoing:
			return nil, cli.Misuse("nothing was copied; leave it out, or add --keep-going to copy the others", "copy %s: %w", shownPath(source), cli.Cause(err))
		case err == nil:
			if err := checkPair(target, source, info); err != nil {
				return nil, err
			}
		}
		plan = append(plan, struct{ destination, source string }{target, source})
	}
	return plan, nil
}

// goesInto reports whether sources go into the destination directory, under their names.
func goesInto(sources []string, destination string) (bool, error) {
	info, err := os.Stat(destination)
	isSlashed := os.IsPathSeparator(destination[len(destination)-1])
	switch {
	case err == nil && info.IsDir():
		return true, nil
	case errors.Is(err, syscall.ENOTDIR) && !errors.Is(err, fs.ErrNotExist): // one number of Windows is both
		return false, cli.Misuse("give another destination", "copy to %s: a part of this path is a file, not a directory", shownPath(destination))
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return false, cli.Misuse("give another destination", "copy to %s: %w", shownPath(destination), cli.Cause(err))
	case len(sources) > 1 && err == nil:
		return false, cli.Misuse("give an existing directory as the last argument", "%d sources can't be copied to the file %s", len(sources), shownPath(destination))
	case len(sources) > 1:
		return false, cli.Misuse("make it first, with mkdir -p", "%d sources need a directory, and %s does not exist", len(sources), shownPath(destination))
	case isSlashed && err == nil:
		return false, cli.Misuse("leave the slash out", "%s is a file", shownPath(destination))
	case isSlashed && !isDir(sources[0]):
		return false, cli.Misuse("make it first, with mkdir -p, or leave the slash out", "there is no directory %s", shownPath(destination))
	}
	dir := filepath.Dir(trimSlashes(destination))
	if !isDir(dir) {
		return false, cli.Misuse("make it first, with mkdir -p", "copy to %s: there is no directory %s", shownPath(destination), shownPath(dir))
	}
	return false, nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// trimSlashes removes the end of a path that marks it as a directory.
func trimSlashes(path string) string {
	for path != "" && os.IsPathSeparator(path[len(path)-1]) {
		path = path[:len(path)-1]
	}
	return path
}

// nameIn returns the path of a source in a directory. A source given as .. or a/.. has the name of
// the directory itself. A source that ends in /. means only its contents.
func nameIn(dir, source string) (string, error) {
	trimmed := trimSlashes(source)
	name := filepath.Base(trimmed)
	switch {
	case trimmed == "":
		return "", cli.Misuse("give a destination that does not exist yet", "%s has no name under which to copy it into %s", shownPath(source), shownPath(dir))
	case name == ".":
		return dir, nil
	case name != "..":
		return filepath.Join(dir, name), nil
	}
	real, err := filepath.EvalSymlinks(source)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return "", cli.Misuse("name it without ..", "copy %s: %w", shownPath(source), cli.Cause(err))
	}
	return nameIn(dir, real)
}

// checkPair refuses a source that is its own destination, a directory that would be copied into
// itself, a file in place of a directory, and the reverse.
func checkPair(target, source string, info fs.FileInfo) error {
	to, err := os.Stat(target)
	switch {
	case err == nil && os.SameFile(to, info):
		return cli.Misuse("give another destination", "%s and %s are the same %s", shownPath(source), shownPath(target), kindText(info))
	case err == nil && to.IsDir() != info.IsDir():
		return cli.Misuse("move it away first, or give another destination", "%s is a %s, and %s is a %s", shownPath(source), kindText(info), shownPath(target), kindText(to))
	case err == nil && !to.IsDir() && !to.Mode().IsRegular():
		return cli.Misuse("give another destination", "%s is a %s, and copy replaces only files", shownPath(target), kindText(to))
	case info.Mode().IsRegular():
		return nil
	case !info.IsDir():
		return cli.Misuse("copy takes files, links and directories", "%s is a %s", shownPath(source), kindText(info))
	}
	inside, err := isInside(target, info)
	if err != nil {
		return cli.Misuse("give another destination", "copy to %s: %w", shownPath(target), cli.Cause(err))
	}
	if inside {
		return cli.Misuse("give a destination outside of it", "%s is inside %s, which would be copied into itself", shownPath(target), shownPath(source))
	}
	return nil
}

func kindText(info fs.FileInfo) string {
	switch mode := info.Mode(); {
	case mode.IsDir():
		return "directory"
	case mode.IsRegular():
		return "file"
	case mode&fs.ModeNamedPipe != 0:
		return "pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	}
	return "device"
}

// isInside reports whether a path lies in a directory, through any links and names.
func isInside(path string, dir fs.FileInfo) (bool, error) {
	at, err := sys.Disk{}.Resolve(path)
	if err != nil {
		return false, err
	}
	if at, err = filepath.Abs(at); err != nil {
		return false, err
	}
	// Resolve the links of its existing part: then its parents are the ones that its path names.
	real, err := filepath.EvalSymlinks(at)
	for errors.Is(err, fs.ErrNotExist) && filepath.Dir(at) != at {
		at = filepath.Dir(at)
		real, err = filepath.EvalSymlinks(at)
	}
	if err != nil {
		return false, err
	}
	for {
		info, err := os.Stat(real)
		if err != nil {
			return false, err
		}
		if os.SameFile(info, dir) {
			return true, nil
		}
		above := filepath.Dir(real)
		if above == real {
			return false, nil
		}
		real = above
	}
}
