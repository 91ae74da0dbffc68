package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/filecopy"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/rotate"
	"github.com/holdfast-go/holdfast/wal"
)

// isLost is the answer that nobody may get.
const isLost = "**LOST**"

// A column asks one thing of a directory of its own, which is not there yet. The error says why something
// does not hold, for -v.
type column struct {
	name, title string
	ask         func(dir string) (answer string, err error)
}

func columns() []column {
	return []column{
		{"batch", "batch of 100 durable", batchHolds},
		{"replace", "replace keeps the mode", replaceHolds},
		{"fold", "`A` and `a`", namesFold},
		{"removed", "removed file noticed", removalNoticed},
		{"directory", "directory synced", directorySynced},
		{"archive", "`copy -a` keeps", archiveKeeps},
		{"wal", "`wal`", walHolds},
		{"rotate", "`rotate`", rotateHolds},
	}
}

// refused names an error as a cell does.
func refused(err error) (string, error) {
	var number syscall.Errno
	if errors.As(err, &number) {
		return unix.ErrnoName(number), err
	}
	return "no", err
}

// batchHolds writes files one by one and makes them durable together.
func batchHolds(dir string) (string, error) {
	answer := "yes"
	for _, effort := range []holdfast.Effort{holdfast.Strict, holdfast.Best} {
		set, err := files.New(files.Options{Policy: holdfast.Durable(), MkdirAll: true, Effort: effort})
		if err != nil {
			return refused(err)
		}
		defer set.Close() // nothing is appended
		b := set.Begin()
		defer b.Discard()
		data := bytes.Repeat([]byte("0123456789abcdef"), 500)
		for i := range 100 {
			if err = b.Write(filepath.Join(dir, fmt.Sprint(i)), data); err != nil {
				break
			}
		}
		var totals files.Totals
		if err == nil {
			totals, err = b.Commit(context.Background())
		}
		for i := 0; err == nil && i < 100; i++ {
			if got, failed := os.ReadFile(filepath.Join(dir, fmt.Sprint(i))); !bytes.Equal(got, data) {
				return isLost, failed
			}
		}
		switch {
		case err == nil && totals.Durable == 100 && totals.NoJournal > 0:
			return answer + ", until later work there", nil
		case err == nil && totals.Durable == 100:
			return answer, nil
		case err == nil:
			return answer + ", the names not", nil
		case effort == holdfast.Best:
			return refused(err)
		}
		answer, _ = refused(err)
		answer += "; with `Best` yes"
	}
	return answer, nil
}

// replaceHolds replaces a file by a stream, and looks at its permissions.
func replaceHolds(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return refused(err)
	}
	path := filepath.Join(dir, "file")
	if err := errors.Join(os.WriteFile(path, []byte("old"), 0o640), os.Chmod(path, 0o640)); err != nil {
		if _, failed := os.Stat(path); failed != nil {
			return refused(err)
		}
	}
	was, err := os.Stat(path)
	if err == nil {
		err = files.WriteFile(path, []byte("the new one"), 0o600)
	}
	if err != nil {
		return refused(err)
	}
	is, err := os.Stat(path)
	switch got, failed := os.ReadFile(path); {
	case failed != nil || string(got) != "the new one":
		return isLost, failed
	case err != nil:
		return refused(err)
	case was.Mode() != is.Mode():
		return fmt.Sprintf("no: %v", is.Mode()), nil
	case was.Mode().Perm() != 0o640:
		return fmt.Sprintf("the mount's: %v", is.Mode()), nil
	}
	return "yes", nil
}

// namesFold copies two files whose names differ in case alone.
func namesFold(dir string) (string, error) {
	from, err := os.MkdirTemp("", "holdfast-foreign-")
	if err != nil {
		return refused(err)
	}
	defer os.RemoveAll(from)
	for _, name := range []string{"A", "a"} {
		if err := os.WriteFile(filepath.Join(from, name), []byte(name), 0o644); err != nil {
			return refused(err)
		}
	}
	_, err = filecopy.All(context.Background(), func(yield func(string, string) bool) { yield(dir, from) }, filecopy.Options{KeepGoing: true})
	entries, failed := os.ReadDir(dir)
	switch {
	case failed != nil:
		return refused(failed)
	case len(entries) == 2 && err == nil:
		return "two names", nil
	case len(entries) == 1 && err != nil && strings.Contains(err.Error(), "one name"):
		return "one: the second is refused", err
	case len(entries) == 1 && err == nil:
		return isLost, nil
	}
	return refused(err)
}

// removalNoticed removes a file under a Writer that has promised its bytes.
func removalNoticed(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return refused(err)
	}
	path := filepath.Join(dir, "log")
	w, err := holdfast.Create(path, holdfast.Durable())
	if err != nil {
		return refused(err)
	}
	defer w.Close() // its failure is the one that is asked for
	if _, err := w.Write([]byte("first\n")); err != nil {
		return refused(err)
	}
	if err := os.Remove(path); err != nil {
		return refused(err)
	}
	_, err = w.Write([]byte("second\n"))
	switch {
	case errors.Is(err, holdfast.ErrUnlinked):
		return "yes", nil
	case err != nil:
		name, _ := refused(err)
		return "yes, by " + name, err
	}
	return isLost, nil
}

// directorySynced syncs a directory as every durable name needs it.
func directorySynced(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return refused(err)
	}
	d, err := os.Open(dir)
	if err != nil {
		return refused(err)
	}
	defer d.Close() // it was only synced
	if err := d.Sync(); err != nil {
		return refused(err)
	}
	return "yes", nil
}

// archiveKeeps copies a tree with all that a file may have beside its bytes.
func archiveKeeps(dir string) (string, error) {
	from, err := os.MkdirTemp("", "holdfast-foreign-")
	if err != nil {
		return refused(err)
	}
	defer os.RemoveAll(from)
	path := filepath.Join(from, "file")
	when := time.Unix(1e9, 0)
	err = errors.Join(os.WriteFile(path, bytes.Repeat([]byte("x"), 100_000), 0o644), os.Link(path, filepath.Join(from, "second")),
		os.Symlink("file", filepath.Join(from, "link")), unix.Setxattr(path, "user.origin", []byte("here"), 0), os.Chown(path, 12, 34),
		os.Chmod(path, 0o4750), os.Chtimes(path, when, when))
	if err != nil {
		return refused(err)
	}
	copyTree := func(to string, o filecopy.Options) (notKept []string, err error) {
		o.Each = func(r filecopy.Result) {
			if failed := (*filecopy.Error)(nil); errors.As(r.Err, &failed) {
				notKept = append(notKept, failed.Op)
			}
			for _, what := range leaves(r.NotKept) {
				if keep := (*filecopy.KeepError)(nil); errors.As(what, &keep) {
					notKept = append(notKept, keep.What)
				}
			}
		}
		_, err = filecopy.All(context.Background(), func(yield func(string, string) bool) { yield(to, from) }, o)
		return notKept, err
	}
	_, strict := copyTree(dir, filecopy.Options{Archive: true, Policy: holdfast.Durable(), KeepGoing: true})
	if strict == nil {
		is, err := os.Stat(filepath.Join(dir, "file"))
		if err != nil || is.Mode().Perm() != 0o750 || !is.ModTime().Equal(when) {
			return isLost, fmt.Errorf("%v, %v", is, err)
		}
		return "all", nil
	}
	notKept, best := copyTree(dir+"-best", filecopy.Options{Archive: true, Effort: holdfast.Best, KeepGoing: true})
	if got, err := os.ReadFile(filepath.Join(dir+"-best", "file")); err != nil || len(got) != 100_000 {
		return isLost, errors.Join(err, best)
	}
	return "an error; with `--best` all but " + strings.Join(unique(notKept), ", "), errors.Join(strict, best)
}

// walHolds appends to a log, and reads it when it is opened again.
func walHolds(dir string) (string, error) {
	for opened := range 2 {
		l, found, err := wal.Open(dir, wal.Options{Policy: holdfast.Durable()})
		if err != nil {
			return refused(err)
		}
		if found.Records != int64(100*opened) {
			l.Close()
			return isLost, fmt.Errorf("%d records were found", found.Records)
		}
		for i := range 100 {
			if _, err := l.Append(fmt.Appendf(nil, "record %d", i)); err != nil {
				l.Close()
				return refused(err)
			}
		}
		if err := l.Close(); err != nil {
			return refused(err)
		}
	}
	return "yes", nil
}

// rotateHolds rotates a log, and counts what its files hold.
func rotateHolds(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return refused(err)
	}
	f, err := rotate.Open(filepath.Join(dir, "app.log"), rotate.Options{Policy: holdfast.Durable(), MaxSize: 2 * holdfast.KiB, Perm: 0o640})
	if err != nil {
		return refused(err)
	}
	for i := range 200 {
		if _, err := fmt.Fprintf(f, "line %040d\n", i); err != nil {
			f.Close()
			return refused(err)
		}
	}
	if err := f.Close(); err != nil {
		return refused(err)
	}
	lines := 0
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		lines += bytes.Count(text, []byte("\n"))
		return err
	})
	if err != nil || lines != 200 {
		return isLost, fmt.Errorf("%d lines are there, %v", lines, err)
	}
	return "yes", nil
}

func leaves(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, one := range joined.Unwrap() {
			all = append(all, leaves(one)...)
		}
		return all
	}
	return []error{err}
}

func unique(names []string) (each []string) {
	seen := map[string]bool{}
	for _, name := range names {
		if !seen[name] {
			seen[name] = true
			each = append(each, name)
		}
	}
	return each
}
