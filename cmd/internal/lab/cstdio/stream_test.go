//go:build cgo && (linux || darwin)

package cstdio

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestElementsOfEverySize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, m := range []Method{Raw, Fread, DFread} {
		for _, of := range [][2]int{{1, 7}, {2, 1}, {3, 100}, {251, 1}, {4095, 1}, {4096, 2}, {4097, 1}, {10000, 1}} {
			s := Setup{Method: m, Size: of[0], Count: of[1]}
			if m == Raw {
				s.Mode = None
			}
			n := int64(s.perCall()) * 13
			if err := writeFile(path, s, n); err != nil {
				t.Errorf("%v: %v", s, err)
			}
			if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, pattern(n)) {
				t.Errorf("%v: %d bytes are not the pattern's %d, %v", s, len(got), n, err)
			}
			f, err := Open(path, s)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := f.Read(n); got != n || err != nil || f.Sum() != PatternSum(n) {
				t.Errorf("%v: read %d of %d bytes, %v", s, got, n, err)
			}
			if err := f.Close(); err != nil {
				t.Errorf("%v: %v", s, err)
			}
		}
	}
}

func TestWriteAndReadGoOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, m := range methods {
		s := usual(m)
		f, err := Create(path, s)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if n, err := f.Write(1000); n != 1000 || err != nil {
				t.Errorf("%s: %d, %v", m, n, err)
			}
			if err := f.Flush(); err != nil {
				t.Errorf("%s: %v", m, err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, pattern(3000)) {
			t.Errorf("%s: %d bytes after three flushes, %v", m, len(got), err)
		}
		if err := f.Close(); err != nil {
			t.Errorf("%s: %v", m, err)
		}
		in, err := Open(path, s)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []int64{2000, 1000, 0} {
			if n, err := in.Read(2000); n != want || err != nil {
				t.Errorf("%s: read %d, want %d, %v", m, n, want, err)
			}
		}
		if in.Sum() != PatternSum(3000) {
			t.Errorf("%s: sum %v", m, in.Sum())
		}
		if err := in.Close(); err != nil {
			t.Errorf("%s: %v", m, err)
		}
	}
}

// callsOf returns how many calls of a kind this thread has made: syscr or syscw of
// its io file in /proc.
func callsOf(t *testing.T, kind string) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/thread-self/io")
	if err != nil {
		t.Skipf("the kernel doesn't count this thread's calls: %v", err)
	}
	_, rest, _ := strings.Cut(string(text), kind+": ")
	line, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.ParseInt(line, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// lineWrites is how many writes line buffering takes with a large buffer: one for
// each newline, and one for the rest.
func lineWrites(n int64) int64 {
	lines := (n - '\n' - 1 + Period) / Period
	if (n-'\n'-1)%Period == 0 {
		return lines
	}
	return lines + 1
}

// predictedWrites is how many writes of a byte a call become, -1 where no rule says.
func predictedWrites(s Setup, n int64) int64 {
	buffer := int64(s.Buffer)
	if buffer == 0 {
		buffer = 4096 // DF_BUFFER
	}
	switch {
	case s.Mode == Full && s.Buffer == 0 && !s.Method.df():
		return -1 // the C library's own choice
	case s.Mode == None:
		return n
	case s.Mode == Line && buffer < Period:
		return -1 // both the lines and the buffer bound it
	case s.Mode == Line:
		return lineWrites(n)
	case s.Method == Fread && buffer > 1 && buffer < 128:
		return -1 // glibc's fwrite writes a byte that does not fit by itself then
	}
	return (n + buffer - 1) / buffer
}

// TestWritesAreAsManyAsPredicted holds for all methods what the setup says: a
// write for each full buffer and one for the rest.
func TestWritesAreAsManyAsPredicted(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const n = 10007
	for _, s := range everySetup() {
		want := predictedWrites(s, n)
		if want < 0 {
			continue
		}
		// Go's runtime writes now and then, to wake its own threads: the least counts.
		least := countWrites(t, s, n)
		for try := 0; try < 20 && least > want; try++ {
			least = min(least, countWrites(t, s, n))
		}
		if least != want {
			t.Errorf("%v: %d writes, want %d", s, least, want)
		}
	}
}

func countWrites(t *testing.T, s Setup, n int64) int64 {
	f, err := Create(filepath.Join(t.TempDir(), "file"), s)
	if err != nil {
		t.Fatal(err)
	}
	before := callsOf(t, "syscw")
	if _, err := f.Write(n); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	return callsOf(t, "syscw") - before
}

func TestErrorsOfTheSystemAreReported(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full on this system")
	}
	for _, m := range methods {
		s := usual(m)
		f, err := Create("/dev/full", s)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := f.Write(100_000); !errors.Is(err, syscall.ENOSPC) || n == 100_000 {
			t.Errorf("%s: %d bytes written to a full device, %v", m, n, err)
		}
		if err := f.Close(); m.df() && !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s: closed with bytes that could not be written: %v", m, err)
		}
		f, err = Create("/dev/full", s)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Write(1)
		if err := errors.Join(err, f.Flush(), f.Close()); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s: a byte on a full device: %v", m, err)
		}
		if _, err := Open(filepath.Join(t.TempDir(), "none"), s); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: opened a file that is not there: %v", m, err)
		}
	}
}

func TestFailedReadIsReported(t *testing.T) {
	for _, m := range methods {
		f, err := Open(t.TempDir(), usual(m)) // a directory opens for reading
		if err != nil {
			t.Fatal(err)
		}
		if n, err := f.Read(10); n != 0 || !errors.Is(err, syscall.EISDIR) {
			t.Errorf("%s: read %d bytes of a directory, %v", m, n, err)
		}
		if err := f.Close(); err != nil {
			t.Errorf("%s: %v", m, err)
		}
	}
}

func TestMisuseIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f, err := Create(path, Setup{Method: Fread, Size: 3})
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	if _, err := f.Write(4); err == nil || !strings.Contains(err.Error(), "4 bytes") {
		t.Errorf("4 bytes in elements of 3: %v", err)
	}
	_, err = f.Read(3)
	check("reading what is open for writing", err, syscall.EBADF)
	if f.Fd() == ^uintptr(0) {
		t.Error("an open stream has no descriptor")
	}
	check("close", f.Close(), nil)
	_, err = f.Write(3)
	check("write after close", err, os.ErrClosed)
	check("flush after close", f.Flush(), os.ErrClosed)
	check("close after close", f.Close(), os.ErrClosed)
	if f.Fd() != ^uintptr(0) || f.Sum() != (Sum{}) {
		t.Error("a closed stream has a descriptor or a sum")
	}
	_, err = Create("a\x00b", Setup{})
	if err == nil {
		t.Error("a name with a zero byte was taken")
	}
}

func TestCopyInCIsWhole(t *testing.T) {
	t.Parallel()
	needsC(t)
	dir := t.TempDir()
	for _, n := range []int64{0, 1, 4095, 4096, 10_001} {
		source := filepath.Join(dir, "source")
		if err := os.WriteFile(source, pattern(n), 0o666); err != nil {
			t.Fatal(err)
		}
		for _, buffer := range []int{1, 7, 4096} {
			from, err := os.Open(source)
			if err != nil {
				t.Fatal(err)
			}
			to, err := os.OpenFile(filepath.Join(dir, "copy"), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
			if err != nil {
				t.Fatal(err)
			}
			// First a part, in whole buffers, then the rest.
			first, err := Copy(to, from, make([]byte, buffer), n/2)
			if whole := min(n, (n/2+int64(buffer)-1)/int64(buffer)*int64(buffer)); err != nil || first != whole {
				t.Errorf("%d bytes by %d: copied %d first, want %d, %v", n, buffer, first, whole, err)
			}
			rest, err := Copy(to, from, make([]byte, buffer), 1<<60)
			if err != nil || first+rest != n {
				t.Errorf("%d bytes by %d: copied %d and %d, %v", n, buffer, first, rest, err)
			}
			// Streams that can't be read, and streams that can't be written.
			if got, err := Copy(from, to, make([]byte, buffer), 1); got != 0 || !errors.Is(err, syscall.EBADF) {
				t.Errorf("read from a file for writing: %d, %v", got, err)
			}
			if _, err := from.Seek(0, 0); err != nil {
				t.Fatal(err)
			}
			if got, err := Copy(from, from, make([]byte, buffer), 1); n > 0 && (got != 0 || !errors.Is(err, syscall.EBADF)) {
				t.Errorf("write to a file for reading: %d, %v", got, err)
			}
			if err := errors.Join(from.Close(), to.Close()); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(to.Name()); err != nil || !bytes.Equal(got, pattern(n)) {
				t.Errorf("%d bytes by %d: %d bytes are not the source's, %v", n, buffer, len(got), err)
			}
		}
	}
	if _, err := Copy(os.Stdout, os.Stdin, nil, 1); err == nil {
		t.Error("a copy without a buffer")
	}
}
