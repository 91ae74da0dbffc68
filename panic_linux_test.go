package holdfast

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

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
	ways := map[string]func(w *Writer) error{
		"Write":       func(w *Writer) error { _, err := w.Write(p); return err },
		"WriteString": func(w *Writer) error { _, err := w.WriteString(unsafe.String(&p[0], len(p))); return err },
		"Enqueue":     func(w *Writer) error { _, err := w.Enqueue(p); return err },
	}
	for _, policy := range []Policy{Buffered(4 * KiB), Buffered(128), Durable()} {
		for name, way := range ways {
			for _, c := range []struct{ before, readable int }{{0, 0}, {10, 0}, {120, 0}, {0, 99}, {220, 60}} {
				p = faultingBytes(t, c.readable, 100)
				file := &memory{}
				w, err := New(file, policy)
				if err != nil {
					t.Fatal(err)
				}
				l := w.Lane()
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
				checkPoisoned(t, w, l, "invalid memory address")
				if got := file.String(); got != strings.Repeat("x", c.before) {
					t.Errorf("%v, %s: the file holds %q", policy, name, got)
				}
			}
		}
	}
}

// TestFaultInACopyIntoALaneAcceptsNothing goes on after that: no lock was held, and
// nothing of the record is in the Lane. Nor is anything in the file twice where the record
// would have been the first of a buffer that was merged.
func TestFaultInACopyIntoALaneAcceptsNothing(t *testing.T) {
	p := faultingBytes(t, 60, 100)
	file := &memory{}
	w, err := New(file, Buffered(64*KiB))
	if err != nil {
		t.Fatal(err)
	}
	l := w.Lane()
	full := strings.Repeat("x", l.size)
	for _, part := range []string{"one ", "two ", "three", full, full, " four"} {
		if _, err := l.WriteString(part); err != nil {
			t.Fatal(err)
		}
		if cause, _, _ := panictest.Caught(func() error { debug.SetPanicOnFault(true); _, err := l.Write(p); return err }); cause == nil {
			t.Fatal("no panic")
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got := file.String(); got != "one two three"+full+full+" four" {
		t.Errorf("the file holds %d bytes: %.20q … %q", len(got), got, got[max(0, len(got)-20):])
	}
}
