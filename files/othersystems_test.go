//go:build go1.25

package files_test

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// isPath reports whether an error's path is the one that a test gave. On Windows a path without a volume
// gets the working directory's.
func isPath(got, given string) bool {
	whole, err := filepath.Abs(given)
	return got == given || err == nil && got == whole
}

// shown is the mode that a file has after it was given this one. Windows keeps only whether it may be
// written to.
func shown(mode fs.FileMode) fs.FileMode {
	switch {
	case runtime.GOOS != "windows":
		return mode
	case mode&0o200 == 0:
		return 0o444
	}
	return 0o666
}

// linked makes a link. wine says that it made one, and did not.
func linked(target, path string) error {
	err := os.Symlink(target, path)
	if is, look := os.Lstat(path); err == nil && (look != nil || is.Mode()&fs.ModeSymlink == 0) {
		err = fmt.Errorf("no link was made: %w", cmp.Or(look, errors.ErrUnsupported))
	}
	return err
}

// symlink makes a link, and skips the test where Windows or wine does not.
func symlink(t *testing.T, target, path string) {
	t.Helper()
	err := linked(target, path)
	if err != nil && runtime.GOOS == "windows" {
		t.Skipf("no symbolic link can be made here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// rename renames what is open, and skips the test where that is refused.
func rename(t *testing.T, from, to string) {
	t.Helper()
	err := os.Rename(from, to)
	if err != nil && runtime.GOOS == "windows" {
		t.Skipf("Windows renames no file that os.Create has open, and no directory in which a file is: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}
