//go:build go1.25

package rotate

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// TestHooksAreCalledInOrderAndStopNoWrite, also slow ones, and one that logs. Close waits for them, and an error of one goes to
// OnError.
func TestHooksAreCalledInOrderAndStopNoWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemory(t)
		var f *File
		var calls, failures []string
		hook := func(what string) func(from, to string) error {
			return func(from, to string) error {
				time.Sleep(time.Minute)
				calls = append(calls, what+" "+from+" "+to)
				_, err := f.Write([]byte("a hook may log\n"))
				if errors.Is(err, holdfast.ErrClosed) {
					err = nil
				}
				if len(calls) == 1 {
					err = errors.New("no upload")
				}
				return err
			}
		}
		f = opened(t, d, Options{Compress: true, Rotated: hook("rotated"), Compressed: hook("compressed"),
			OnError: func(e *Error) { failures = append(failures, e.Op+" "+e.Err.Error()) }})
		start := time.Now()
		for i := range 2 {
			if _, err := f.Write(record(0, i)); err != nil {
				t.Fatal(err)
			}
			if err := f.Rotate(); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("Writes and rotations waited %v for a hook", took)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		var want []string
		for i := range 2 {
			backup := fmt.Sprintf("/log/app-2000-01-01T00-00-00.%03d.log", i)
			want = append(want, filepath.FromSlash("rotated /log/app.log "+backup), filepath.FromSlash("compressed "+backup+" "+backup+".gz"))
		}
		if !slices.Equal(calls, want) {
			t.Errorf("calls:\n%s\nwant:\n%s", strings.Join(calls, "\n"), strings.Join(want, "\n"))
		}
		if !slices.Equal(failures, []string{"hook no upload"}) {
			t.Errorf("OnError heard of %q", failures)
		}
	})
}

// TestABackupMayBeKept by a veto, until it is withdrawn.
func TestABackupMayBeKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemory(t)
		uploaded := false
		var asked []string
		f := opened(t, d, Options{MaxBackups: 1, OnError: func(e *Error) { t.Error(e) }, Keep: func(backup string) bool {
			asked = append(asked, backup)
			return !uploaded
		}})
		for i := range 4 {
			if uploaded = i == 3; uploaded && len(backupsOf(d)) != 3 {
				t.Errorf("%q are left, want 3", names(backupsOf(d)))
			}
			if _, err := f.Write(record(0, i)); err != nil {
				t.Fatal(err)
			}
			if err := f.Rotate(); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if err := f.Close(); err != nil || len(backupsOf(d)) != 1 || f.Stats().Removed != 3 {
			t.Errorf("%v, %q are left, %d removed", err, names(backupsOf(d)), f.Stats().Removed)
		}
		if !slices.Contains(asked, filepath.FromSlash("/log/app-2000-01-01T00-00-00.000.log")) {
			t.Errorf("asked for %q", asked)
		}
	})
}

// TestEachNewFileBeginsWithTheHeader, and a file that has no record is empty, is not rotated, and has none twice.
func TestEachNewFileBeginsWithTheHeader(t *testing.T) {
	for _, p := range []holdfast.Policy{holdfast.Unbuffered(), holdfast.Buffered(holdfast.KiB), holdfast.Durable()} {
		synctest.Test(t, func(t *testing.T) {
			d := newMemory(t)
			const header = "#Fields: time record\n"
			for life := range 3 {
				f := opened(t, d, Options{Policy: p, Header: []byte(header), OnError: func(e *Error) { t.Error(e) }})
				for range life {
					for range 2 {
						if err := f.Rotate(); err != nil {
							t.Fatal(err)
						}
					}
					if _, err := f.Write([]byte("record\n")); err != nil {
						t.Fatal(err)
					}
				}
				if err := errors.Join(f.Sync(), f.Close()); err != nil {
					t.Error(err)
				}
			}
			files := logs(d.ProcessCrash())
			if len(files) != 3 {
				t.Errorf("%q", files)
			}
			for name, data := range files {
				if string(data) != header+"record\n" {
					t.Errorf("%v: %s has %q", p, name, data)
				}
			}
		})
	}
}

// An openDisk removes no file that is open for reading, as Windows does.
type openDisk struct {
	*memory
	open map[int]string
}

func (d *openDisk) OpenSource(dir int, name sys.Name) (int, error) {
	fd, err := d.memory.OpenSource(dir, name)
	if err == nil {
		d.open[fd] = name.String()
	}
	return fd, err
}

func (d *openDisk) Close(fd int) error {
	delete(d.open, fd)
	return d.memory.Close(fd)
}

func (d *openDisk) Remove(dir int, name sys.Name) error {
	for _, open := range d.open {
		if open == name.String() {
			return syscall.EBUSY
		}
	}
	return d.memory.Remove(dir, name)
}

// TestACompressedBackupIsRemovedClosed: Windows removes no open file.
func TestACompressedBackupIsRemovedClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &openDisk{newMemory(t), map[int]string{}}
		f, err := open(d, "/log/app.log", Options{Compress: true, OnError: func(e *Error) { t.Error(e) }}, true)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(record(0, 0)); err != nil {
			t.Fatal(err)
		}
		if err := f.Rotate(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		for name := range backupsOf(d.memory) {
			if !strings.HasSuffix(name, packed) {
				t.Errorf("%s is left", name)
			}
		}
	})
}
