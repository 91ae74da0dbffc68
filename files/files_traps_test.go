//go:build go1.25

package files_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
)

// The tests of this file are the traps of a published package that writes many files,
// one each: see docs/studies.md, files.

func openFiles(t *testing.T, o files.Options) *files.Set {
	t.Helper()
	f, err := files.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func holdsText(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s holds %.60q (%d bytes), %v; want %.60q (%d bytes)", filepath.Base(path), got, len(got), err, want, len(want))
	}
}

// TestHandleInUseIsNeverClosed: its full pool closes the handle that was used longest
// ago, though another goroutine may write through it. Here more goroutines write to more
// files than there are handles.
func TestHandleInUseIsNeverClosed(t *testing.T) {
	const goroutines, lines, paths = 16, 40, 12
	dir := t.TempDir()
	path := func(i int) string { return filepath.Join(dir, fmt.Sprint(i)) }
	f := openFiles(t, files.Options{Handles: 4})
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for line := range lines * paths {
				if err := f.Append(context.Background(), path(line%paths), []byte("one line\n")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for i := range paths {
		holdsText(t, path(i), strings.Repeat("one line\n", goroutines*lines))
	}
	if s := f.Stats(); s.Evictions == 0 {
		t.Errorf("no handle was closed for another: %+v", s)
	}
}

// TestCallersOwnHandleStaysOpen: the handles that its pool closes are the caller's.
func TestCallersOwnHandleStaysOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	own, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	f, err := files.New(files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Append(t.Context(), path, []byte("theirs, ")); err != nil {
		t.Error(err)
	}
	if _, err := f.WriteFile(t.Context(), path, []byte("theirs again, "), files.Append); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if _, err := own.WriteString("ours"); err != nil {
		t.Error(err)
	}
	holdsText(t, path, "theirs, theirs again, ours")
}

// openIn counts the descriptors of this process on files in the directory, and on the
// directory. Where the system does not list them, ok is false. It looks at them in
// the order of their numbers. A file that is opened meanwhile gets the lowest that is
// free. So none is counted in the place of one that was closed after its count.
func openIn(dir string) (n int, ok bool) {
	const list = "/proc/self/fd"
	all, err := os.ReadDir(list)
	if err != nil || runtime.GOOS != "linux" {
		return 0, false
	}
	for number := range 10 * len(all) {
		if target, err := os.Readlink(filepath.Join(list, strconv.Itoa(number))); err == nil && strings.HasPrefix(target, dir) {
			n++
		}
	}
	return n, true
}

// TestCapOnOpenFilesIsKept: its cap is looked at before a file joins the pool, by many
// at once and without a lock. Here the open files are counted amid the writing.
func TestCapOnOpenFilesIsKept(t *testing.T) {
	const handles, many = 8, 200
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := openFiles(t, files.Options{Handles: handles, Workers: 32})
	check := func() {
		if n, ok := openIn(dir); ok && n > handles {
			t.Errorf("%d descriptors are open, and %d are allowed", n, handles)
		}
		if s := f.Stats(); s.Open > handles {
			t.Errorf("it says itself that %d are open", s.Open)
		}
	}
	all := func(yield func(files.Write) bool) {
		for i := range many {
			check()
			if !yield(files.Write{Path: filepath.Join(dir, fmt.Sprint("whole", i)), Data: []byte("x")}) {
				return
			}
		}
	}
	var appends sync.WaitGroup
	for range 4 {
		appends.Go(func() {
			for i := range many {
				if err := f.Append(context.Background(), filepath.Join(dir, fmt.Sprint("line", i)), []byte("x")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	if _, err := f.WriteAll(t.Context(), all); err != nil {
		t.Error(err)
	}
	appends.Wait()
	check()
}

// InTurn are whole files to be made at these paths.
func inTurn(data string, paths ...string) iter.Seq[files.Write] {
	return func(yield func(files.Write) bool) {
		for _, path := range paths {
			if !yield(files.Write{Path: path, Data: []byte(data)}) {
				return
			}
		}
	}
}

// TestNoWriteIsLostWithRetriesOff: without retries its write to a handle that the pool
// has closed is given up. Here each is made, or its failure returned, also with fewer handles than
// files.
func TestNoWriteIsLostWithRetriesOff(t *testing.T) {
	dir := t.TempDir()
	f := openFiles(t, files.Options{Handles: 4, Retry: files.Retry{Attempts: 1}})
	for i := range 100 {
		line := filepath.Join(dir, fmt.Sprint("line", i%10))
		if err := f.Append(t.Context(), line, []byte("x")); err != nil {
			t.Error(err)
		}
	}
	for i := range 10 {
		holdsText(t, filepath.Join(dir, fmt.Sprint("line", i)), strings.Repeat("x", 10))
	}
	good, bad, last := filepath.Join(dir, "good"), filepath.Join(dir, "missing", "bad"), filepath.Join(dir, "last")
	results, err := f.WriteAll(t.Context(), inTurn("text", good, bad, last))
	if !errors.Is(err, fs.ErrNotExist) || results.Len() != 3 {
		t.Errorf("%d results, %v", results.Len(), err)
	}
	if r := results.At(1); r.Outcome != holdfast.OutcomeUntouched || r.Err == nil || r.Path != bad {
		t.Errorf("the one that can't be made: %+v", r)
	}
	holdsText(t, good, "text")
	holdsText(t, last, "text")
	if err := f.Append(t.Context(), good, []byte(", and a line")); err != nil {
		t.Error(err)
	}
	if err := f.Append(t.Context(), bad, []byte("x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a line for a file that can't be made: %v", err)
	}
	holdsText(t, good, "text, and a line")
}

// TestCancelledContextEndsOneCallOnly: a timeout of one of its calls stays with the
// writer, and every later call ends at once. Here a context is the call's.
func TestCancelledContextEndsOneCallOnly(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	f := openFiles(t, files.Options{})
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.WriteAll(cancelled, inTurn("text", one, two)); !errors.Is(err, context.Canceled) {
		t.Errorf("WriteAll with a context that is cancelled: %v", err)
	}
	if _, err := f.WriteFile(cancelled, one, []byte("text"), files.Create); !errors.Is(err, context.Canceled) {
		t.Errorf("Write: %v", err)
	}
	if _, err := f.WriteAll(t.Context(), inTurn("text", one, two)); err != nil {
		t.Errorf("the next WriteAll: %v", err)
	}
	if err := f.Append(t.Context(), one, []byte(", and a line")); err != nil {
		t.Errorf("the next Append: %v", err)
	}
	holdsText(t, one, "text, and a line")
	holdsText(t, two, "text")
}

// TestTruncateEmptiesAFileWhoseHandleIsOpen: its truncating is a flag of the opening,
// which a handle that is open already never sees.
func TestTruncateEmptiesAFileWhoseHandleIsOpen(t *testing.T) {
	for _, policy := range []holdfast.Policy{holdfast.Unbuffered(), holdfast.Buffered(4096)} {
		path := filepath.Join(t.TempDir(), "file")
		f := openFiles(t, files.Options{Policy: policy})
		if err := f.Append(t.Context(), path, []byte("something long that stood here before")); err != nil {
			t.Fatal(err)
		}
		if r, err := f.WriteFile(t.Context(), path, []byte("short"), files.Truncate); err != nil || r.Outcome != holdfast.OutcomeWritten {
			t.Errorf("%+v, %v", r, err)
		}
		holdsText(t, path, "short")
		if err := errors.Join(f.Append(t.Context(), path, []byte(" and on")), f.Flush(t.Context())); err != nil {
			t.Error(err)
		}
		holdsText(t, path, "short and on")
	}
}

// TestWrongConfigurationIsAnErrorNeverAPanic: a map that lacks one of its keys ends its
// caller's program.
func TestWrongConfigurationIsAnErrorNeverAPanic(t *testing.T) {
	for _, o := range []files.Options{
		{Workers: -1}, {Handles: -1}, {Handles: 1}, {Memory: -1}, {Perm: 1 << 31},
		{Retry: files.Retry{Attempts: -1}}, {Retry: files.Retry{Base: -1}}, {Retry: files.Retry{Base: time.Hour, Cap: time.Second}},
		{Policy: holdfast.Policy{Buffer: -1}},
	} {
		if f, err := files.New(o); err == nil {
			t.Errorf("%+v is taken", o)
			f.Close()
		}
	}
	for _, text := range []string{"", "null", "[]", "1", "{", `{"workers":"x"}`, `{"retry":[]}`, `{"retry":{"attempts":{}}}`} {
		var o files.Options
		if err := o.UnmarshalJSON([]byte(text)); err == nil && text != "null" {
			t.Errorf("%q is taken as %+v", text, o)
		}
	}
}
