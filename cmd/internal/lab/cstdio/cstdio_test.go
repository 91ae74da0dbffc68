package cstdio

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// everySetup returns setups of all methods, modes and some buffers.
func everySetup() (all []Setup) {
	for _, m := range methods {
		for mode := Full; mode <= None; mode++ {
			for _, buffer := range []int{0, 1, 100, 4096, 65536} {
				if s := (Setup{Method: m, Mode: mode, Buffer: buffer}); s.Check() == nil {
					all = append(all, s)
				}
			}
		}
	}
	return all
}

// usual is a method with its usual buffer, a byte a call.
func usual(m Method) Setup {
	if m == Raw {
		return Setup{Method: m, Mode: None}
	}
	return Setup{Method: m}
}

func needsC(t testing.TB) {
	if why := Missing(); why != "" {
		t.Skip(why)
	}
}

func pattern(n int64) []byte {
	p := make([]byte, n)
	Fill(p, 0)
	return p
}

// sizes are around the buffers' sizes, and primes. A system call a byte makes the
// largest slow.
func sizes() []int64 {
	all := []int64{0, 1, 99, 100, 101, 4095, 4096, 4097, 8191, 65537}
	if testing.Short() {
		return all[:len(all)-1]
	}
	return all
}

func writeFile(path string, s Setup, n int64) error {
	f, err := Create(path, s)
	if err != nil {
		return err
	}
	took, err := f.Write(n)
	if err == nil && took != n {
		err = fmt.Errorf("%d of %d bytes were taken", took, n)
	}
	return errors.Join(err, f.Flush(), f.Close())
}

func TestAllMethodsWriteTheSame(t *testing.T) {
	t.Parallel()
	needsC(t)
	path := filepath.Join(t.TempDir(), "file")
	for _, s := range everySetup() {
		for _, n := range sizes() {
			if err := writeFile(path, s, n); err != nil {
				t.Errorf("%v, %d bytes: %v", s, n, err)
			}
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, pattern(n)) {
				t.Errorf("%v: %d bytes are not the pattern's %d", s, len(got), n)
			}
		}
	}
}

func TestAllMethodsReadTheSame(t *testing.T) {
	t.Parallel()
	needsC(t)
	path := filepath.Join(t.TempDir(), "file")
	for _, n := range sizes() {
		if err := os.WriteFile(path, pattern(n), 0o666); err != nil {
			t.Fatal(err)
		}
		for _, s := range everySetup() {
			f, err := Open(path, s)
			if err != nil {
				t.Fatal(err)
			}
			// More than there is: the end of the file is no error.
			if got, err := f.Read(n + 10); got != n || err != nil {
				t.Errorf("%v: read %d of %d bytes, %v", s, got, n, err)
			}
			if f.Sum() != PatternSum(n) {
				t.Errorf("%v, %d bytes: sum %v, want %v", s, n, f.Sum(), PatternSum(n))
			}
			if err := f.Close(); err != nil {
				t.Errorf("%v: %v", s, err)
			}
		}
	}
}

func TestKeepWritesOver(t *testing.T) {
	t.Parallel()
	needsC(t)
	path := filepath.Join(t.TempDir(), "file")
	for _, s := range everySetup() {
		if err := os.WriteFile(path, bytes.Repeat([]byte{0xff}, 5000), 0o666); err != nil {
			t.Fatal(err)
		}
		s.Keep = true
		if err := writeFile(path, s, 4097); err != nil {
			t.Errorf("%v: %v", s, err)
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if want := append(pattern(4097), bytes.Repeat([]byte{0xff}, 903)...); !bytes.Equal(got, want) {
			t.Errorf("%v: the %d bytes are not the pattern over what was there", s, len(got))
		}
	}
}

func TestPatternAndItsSum(t *testing.T) {
	var s Sum
	for n := range int64(1000) {
		if got := PatternSum(n); got != s {
			t.Fatalf("the sum of %d bytes is %v, want %v", n, got, s)
		}
		var p [1]byte
		Fill(p[:], n)
		if want := byte(n % Period); p[0] != want {
			t.Fatalf("byte %d is %d, want %d", n, p[0], want)
		}
		s.Add(p[0])
	}
	// Two bytes that changed places have the same Ones.
	a, b := Sum{}, Sum{}
	a.Add(1)
	a.Add(2)
	b.Add(2)
	b.Add(1)
	if a == b {
		t.Error("1 2 and 2 1 have the same sum")
	}
}

func TestSetupsAreChecked(t *testing.T) {
	check := func(s Setup, want string) {
		t.Helper()
		err := s.Check()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", s, err, want)
		}
	}
	for _, m := range Methods() {
		check(usual(m), "")
		if m.Reads() == "" || m.Writes() == "" {
			t.Errorf("%s has no names of its calls", m)
		}
	}
	check(Setup{}, `unknown method ""`)
	check(Setup{Method: "gets"}, `unknown method "gets"`)
	check(Setup{Method: Fread, Mode: 3}, "unknown mode 3")
	check(Setup{Method: Raw}, "_IOFBF with raw system calls")
	check(Setup{Method: DFread, Mode: Line}, "_IOLBF with dfread")
	check(Setup{Method: Fread, Buffer: -1}, "buffer of -1 bytes")
	check(Setup{Method: Fread, Buffer: Most + 1}, "buffer of 1073741825 bytes")
	check(Setup{Method: Fread, Buffer: Most}, "")
	check(Setup{Method: Fread, Mode: None, Buffer: 1}, "with mode _IONBF")
	check(Setup{Method: Fgetc, Size: 2}, "2 bytes a call with fgetc")
	check(Setup{Method: Getc, Count: 2}, "2 bytes a call with getc")
	check(Setup{Method: Fread, Size: -1}, "elements of -1 bytes")
	check(Setup{Method: Fread, Size: 1 << 20, Count: 1 << 20}, "1048576 elements of 1048576 bytes a call")
}

func TestWithoutCEverythingElseIsRefused(t *testing.T) {
	if Missing() == "" {
		t.Skip("the C side is there: run with CGO_ENABLED=0")
	}
	var none Stream
	_, create := Create("file", usual(Raw))
	_, open := Open("file", usual(Raw))
	_, write := none.Write(1)
	_, read := none.Read(1)
	for _, err := range []error{create, open, write, read, none.Flush(), none.Close()} {
		if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), Missing()) {
			t.Errorf("%v, want what is missing", err)
		}
	}
}
