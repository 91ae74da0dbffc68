package filecopy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

func openDescriptors(t *testing.T) int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(fds)
}

// TestPanicOfACallbackIsTheCallers has Each, Progress and Filter panic, which happens in goroutines of the
// call. The call ends, cleans up, and panics with the same.
func TestPanicOfACallbackIsTheCallers(t *testing.T) {
	boom := errors.New("boom")
	for name, o := range map[string]Options{
		"each":                {Each: func(Result) { panic(boom) }},
		"each, atomic":        {Atomic: true, Each: func(Result) { panic(boom) }},
		"each, one worker":    {Workers: 1, KeepGoing: true, Each: func(Result) { panic(boom) }},
		"filter":              {Filter: func(string, string, fs.FileMode) bool { panic(boom) }},
		"progress":            {Progress: func(Progress) { panic(boom) }},
		"progress and atomic": {Atomic: true, Progress: func(Progress) { panic(boom) }},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "to")
			if err := os.Mkdir(from, 0o777); err != nil {
				t.Fatal(err)
			}
			for i := range 20 {
				if err := os.WriteFile(filepath.Join(from, fmt.Sprint(i)), []byte(strings.Repeat("x", 100_000)), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			open := openDescriptors(t)
			cause, _, err := isolate.Caught(func() error {
				_, err := All(context.Background(), func(yield func(string, string) bool) { yield(to, from) }, o)
				return err
			})
			if cause != boom {
				t.Errorf("All: %v, and it panicked with %v", err, cause)
			}
			one := filepath.Join(filepath.Dir(from), "one")
			cause, _, err = isolate.Caught(func() error {
				_, err := File(context.Background(), one, filepath.Join(from, "0"), o)
				return err
			})
			if cause != boom && o.Filter == nil {
				t.Errorf("File: %v, and it panicked with %v", err, cause)
			}
			if now := openDescriptors(t); now != open {
				t.Errorf("%d descriptors are open, and %d were before", now, open)
			}
			for _, dir := range []string{to, filepath.Dir(from)} {
				names, err := os.ReadDir(dir)
				if err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
				for _, e := range names {
					is, err := e.Info()
					if err != nil || !e.IsDir() && (strings.Contains(e.Name(), "holdfast") || is.Size() != 100_000) {
						t.Errorf("%s was left, %v", e.Name(), err)
					}
				}
			}
		})
	}
}

// TestCallbackMayEndItsGoroutine as FailNow of a test does, where that is the caller's.
func TestCallbackMayEndItsGoroutine(t *testing.T) {
	from := filepath.Join(t.TempDir(), "from")
	if err := os.WriteFile(from, []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, o := range []Options{{Each: func(Result) { runtime.Goexit() }}, {Progress: func(Progress) { runtime.Goexit() }}} {
		if cause, exited, err := isolate.Caught(func() error {
			_, err := File(context.Background(), from+".copy", from, o)
			return err
		}); !exited {
			t.Errorf("%v, %v", cause, err)
		}
	}
}

// TestPanicOfThePairsLeavesNoDescriptor has the iterator panic after the directories of a pair were
// opened.
func TestPanicOfThePairsLeavesNoDescriptor(t *testing.T) {
	from := filepath.Join(t.TempDir(), "from")
	if err := os.WriteFile(from, []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	open := openDescriptors(t)
	cause, _, err := isolate.Caught(func() error {
		_, err := All(context.Background(), func(yield func(string, string) bool) {
			yield(from+".copy", from)
			panic("boom")
		}, Options{})
		return err
	})
	if cause != "boom" {
		t.Errorf("%v, and it panicked with %v", err, cause)
	}
	if now := openDescriptors(t); now != open {
		t.Errorf("%d descriptors are open, and %d were before", now, open)
	}
}
