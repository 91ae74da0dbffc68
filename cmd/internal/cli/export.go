package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/report"
	"github.com/holdfast-go/holdfast/internal/workdir"
)

// ExportFlag adds --export, with the same formats in every command.
func ExportFlag(f *pflag.FlagSet, format *report.Format, usage string) {
	var names []string
	for _, one := range report.Formats() {
		names = append(names, string(one))
	}
	f.Var(Once("format", format, report.ParseFormat), "export", usage+": "+strings.Join(names, ", "))
}

// WriteOut writes to the new file of -o, or with an empty path to stdout.
func WriteOut(stdout io.Writer, path string, write func(io.Writer) error) error {
	if path == "" {
		return write(stdout)
	}
	return writeNew("-o", path, write)
}

// writeNew writes to the new file that a flag names. On a failure it leaves no file.
func writeNew(flag, path string, write func(io.Writer) error) error {
	dir, name := filepath.Split(path)
	if name == "" { // the slash means a directory
		return IsFree(flag, path)
	}
	directory, err := os.OpenRoot(cmp.Or(dir, "."))
	if err != nil {
		return cannotWriteNew(flag, path, err)
	}
	defer directory.Close()
	return WriteIn(directory, name, flag, path, write)
}

// WriteIn is writeNew in an open directory. On a failure it removes the file that it made, even if
// the path leads elsewhere by then.
func WriteIn(dir *os.Root, name, flag, path string, write func(io.Writer) error) error {
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return IsFree(flag, path)
	}
	if err != nil {
		return cannotWriteNew(flag, path, err)
	}
	out := &output{Writer: f}
	err = write(out)
	if ended := out.End(); ended != nil { // the same failure, with the name of the file
		cause := out.failed.Err
		err = &Refusal{ExitCannot, fmt.Errorf("%s %s: %w", flag, path, cause), DiskHint(cause)}
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, dir.Remove(name))
	}
	return nil
}

func cannotWriteNew(flag, path string, err error) error {
	return Misuse("choose a file in an existing directory that you may write to", "%s %s: %w", flag, path, Cause(err))
}

// A HeldDir is an open directory. All files made and removed in it are in one place, even if a part
// of its path is replaced meanwhile.
type HeldDir struct {
	*os.Root
	name string
	In   *HeldDir // its parent, if it was made; nil: it existed
}

// HoldDir opens a directory, and makes it if it does not exist. Its parent must exist: a mistyped path makes no tree.
func HoldDir(path string, perm fs.FileMode) (*HeldDir, error) { return hold(path, perm, 1) }

// HoldDirAll is HoldDir for a directory that no user has named: it makes the parents too.
func HoldDirAll(path string, perm fs.FileMode) (*HeldDir, error) {
	return hold(path, perm, math.MaxInt)
}

// noParent is the missing directory in which another one was to be made. It is an fs.ErrNotExist.
type noParent string

func (p noParent) Error() string      { return "there is no directory " + string(p) }
func (noParent) Is(target error) bool { return target == fs.ErrNotExist }

// hold makes up to so many levels of a path.
func hold(path string, perm fs.FileMode, levels int) (*HeldDir, error) {
	path = filepath.Clean(path)
	if info, err := os.Stat(path); err == nil && !info.IsDir() { // to open a pipe would wait
		return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR}
	}
	root, err := os.OpenRoot(path)
	above := filepath.Dir(path)
	if err == nil {
		return &HeldDir{Root: root}, nil
	}
	if !errors.Is(err, fs.ErrNotExist) || above == path {
		return nil, err
	}
	if levels == 0 {
		return nil, noParent(path)
	}
	in, err := hold(above, perm, levels-1)
	if err != nil {
		return nil, err
	}
	h := &HeldDir{name: filepath.Base(path), In: in}
	err = in.Mkdir(h.name, perm)
	mine := err == nil
	if mine || errors.Is(err, fs.ErrExist) { // another process made it meanwhile
		h.Root, err = in.OpenRoot(h.name)
	}
	if err == nil && mine {
		return h, nil
	}
	if err = errors.Join(workdir.Named(err, path), in.Close()); err != nil {
		return nil, err
	}
	return &HeldDir{Root: h.Root}, nil
}

func (h *HeldDir) Close() error {
	err := h.Root.Close()
	if h.In != nil {
		err = errors.Join(err, h.In.Close())
	}
	return err
}

// Undo removes the directories that were made, which must be empty, and closes h.
func (h *HeldDir) Undo() error {
	err := h.Root.Close()
	if h.In != nil {
		err = errors.Join(err, h.In.Remove(h.name), h.In.Undo())
	}
	return err
}

// CannotHold is the refusal of a directory that HoldDir can't open. What names it is a flag or a command.
func CannotHold(what, dir string, err error) error {
	if missing := noParent(""); errors.As(err, &missing) {
		return Misuse("make it first, with mkdir -p", "%s %s: %w", what, dir, missing)
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return Misuse("choose a directory, or a new name", "%s %s: it is a file, or below a file", what, dir)
	}
	return Misuse("choose a directory that you may write to", "%s %s: %w", what, dir, Cause(err))
}

// IsPage returns an error if browsers would not open a file of this name as a page. An empty name means no file.
func IsPage(flag, path string) error {
	instead, ok := map[string]string{
		".csv":  "add --export csv, or name it .html",
		".json": "add --export json, or name it .html",
		".md":   "add --export markdown, or name it .html",
		".txt":  "redirect the output for text, or name it .html",
		".pdf":  "name it .html; a browser prints the page as PDF",
		".png":  "name it .html; the page saves its pictures as PNG and SVG",
		".svg":  "name it .html; the page saves its pictures as PNG and SVG",
	}[filepath.Ext(path)]
	if ok {
		return Misuse(instead, "%s %s: %[1]s writes a page of HTML", flag, path)
	}
	return nil
}

// IsFree returns an error if the file that a flag names exists or can't be made. An empty name
// means no file, and - stdout.
func IsFree(flag, path string) error {
	if path == "" || path == "-" && flag != "-o" {
		return nil
	}
	if info, err := os.Lstat(path); err == nil {
		return Misuse("choose another name, or remove it first", "%s %s: the %s exists, and nothing is overwritten", flag, path, placeText(info))
	}
	dir := filepath.Dir(path)
	switch why := NotDir(dir); {
	case errors.Is(why, fs.ErrNotExist):
		return Misuse("make the directory first, or choose another one", "%s %s: there is no directory %s", flag, path, dir)
	case why != nil:
		return Misuse("choose another directory", "%s %s: the directory %s: %w", flag, path, dir, why)
	}
	return nil
}

// NotDir says why a path names no directory that can be used, in words that follow its name. It returns nil for a directory.
func NotDir(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return noDir{}
	case err != nil:
		return Cause(err)
	case !info.IsDir():
		return errors.New("it is a file, not a directory")
	}
	return nil
}

// noDir is an fs.ErrNotExist.
type noDir struct{}

func (noDir) Error() string        { return "there is no such directory" }
func (noDir) Is(target error) bool { return target == fs.ErrNotExist }

// placeText describes an existing file in the place of a new one.
func placeText(info fs.FileInfo) string {
	if info.IsDir() {
		return "directory"
	}
	return "file"
}

// A File is ready to be written.
type File struct {
	Name string
	Data []byte
}

// WriteDir makes the files in the directory that a flag names, and the directory if it does
// not exist; not its parent. If that fails, it removes what it has made.
func WriteDir(flag, dir string, files []File) (err error) {
	held, err := HoldDir(dir, 0o777)
	if err != nil {
		return CannotHold(flag, dir, err)
	}
	written := 0
	defer func() {
		if err == nil {
			err = held.Close()
			return
		}
		for _, f := range files[:written] {
			err = errors.Join(err, held.Remove(f.Name))
		}
		err = errors.Join(err, held.Undo())
	}()
	for _, f := range files { // before any is written: the pictures of a directory belong together
		if _, err := held.Lstat(f.Name); err == nil {
			return Misuse("choose another directory, or remove it first", "%s %s: %s exists in it, and nothing is overwritten", flag, dir, f.Name)
		}
	}
	for _, f := range files {
		err := WriteIn(held.Root, f.Name, flag, filepath.Join(dir, f.Name), func(w io.Writer) error {
			_, err := w.Write(f.Data)
			return err
		})
		if err != nil {
			return err
		}
		written++
	}
	return nil
}
