package holdfast_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/panictest"
)

// faultingBytes returns memory that faults behind its first bytes: a mapped file that has
// been truncated.
func faultingBytes(t *testing.T, readable, size int) []byte {
	t.Helper()
	page := os.Getpagesize()
	f, err := os.Create(filepath.Join(t.TempDir(), "mapped"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(int64(2 * page)); err != nil {
		t.Fatal(err)
	}
	p, err := unix.Mmap(int(f.Fd()), 0, 2*page, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(p) })
	if err := f.Truncate(int64(page)); err != nil {
		t.Fatal(err)
	}
	return p[page-readable:][:size]
}

// TestFaultInACopyPoisonsTheWriter writes memory that can't be read, or not to its end. It
// uses every way that copies under the lock, with an empty buffer and with one that has
// some bytes.
func TestFaultInACopyPoisonsTheWriter(t *testing.T) {
	var p []byte
	ways := map[string]func(w *holdfast.Writer) error{
		"Write":       func(w *holdfast.Writer) error { _, err := w.Write(p); return err },
		"WriteString": func(w *holdfast.Writer) error { _, err := w.WriteString(unsafe.String(&p[0], len(p))); return err },
		"Enqueue":     func(w *holdfast.Writer) error { _, err := w.Enqueue(p); return err },
	}
	for _, policy := range []holdfast.Policy{holdfast.Buffered(4 * holdfast.KiB), holdfast.Buffered(128), holdfast.Durable()} {
		for name, way := range ways {
			for _, c := range []struct{ before, readable int }{{0, 0}, {10, 0}, {120, 0}, {0, 99}, {220, 60}} {
				p = faultingBytes(t, c.readable, 100)
				file := &memory{}
				w, err := holdfast.New(file, policy)
				if err != nil {
					t.Fatal(err)
				}
				for range c.before / 10 {
					if _, err := w.Enqueue(bytes.Repeat([]byte{'x'}, 10)); err != nil {
						t.Fatal(err)
					}
				}
				cause, _, err := panictest.Caught(func() error {
					debug.SetPanicOnFault(true)
					defer func() {
						if !debug.SetPanicOnFault(false) {
							t.Error("the Writer changed SetPanicOnFault")
						}
					}()
					return way(w)
				})
				if cause == nil {
					t.Fatalf("%v, %s: %v, no panic", policy, name, err)
				}
				checkPoisoned(t, w, "invalid memory address")
				if got := file.String(); got != strings.Repeat("x", c.before) {
					t.Errorf("%v, %s: the file holds %q", policy, name, got)
				}
			}
		}
	}
}
