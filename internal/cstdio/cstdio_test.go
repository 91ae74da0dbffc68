package cstdio

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// sizes are around the buffers' sizes, and primes.
var sizes = []int64{0, 1, 99, 100, 101, 4095, 4096, 4097, 8191, 65537}

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
	needsC(t)
	path := filepath.Join(t.TempDir(), "file")
	for _, s := range everySetup() {
		for _, n := range sizes {
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
	needsC(t)
	path := filepath.Join(t.TempDir(), "file")
	for _, n := range sizes {
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
