package cstdio

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

// strict are the flags under which the C side has nothing to warn of.
var strict = []string{"-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Werror"}

// sanitized are the flags of the builds that watch themselves.
var sanitized = []string{"-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"}

// compiler returns the C compiler's name, or skips.
func compiler(t testing.TB) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("df.c needs POSIX")
	}
	for _, name := range []string{os.Getenv("CC"), "cc", "gcc", "clang"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no C compiler here (Debian: apt-get install gcc libc6-dev)")
	return ""
}

// compile compiles C files with flags into a program and returns its path.
func compile(t testing.TB, flags []string, files ...string) (string, error) {
	t.Helper()
	readSources(t)
	program := filepath.Join(t.TempDir(), "program")
	args := append(append(append([]string{}, strict...), flags...), "-I.", "-o", program)
	out, err := exec.Command(compiler(t), append(args, files...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return program, nil
}

// readSources reads all C files, so that go test knows that a result depends on them. It keeps
// results of tests whose files have not changed, and does not see what a compiler reads.
func readSources(t testing.TB) {
	t.Helper()
	for _, pattern := range []string{"*.[ch]", "testdata/*.[ch]", "../../../drill/df/*.[ch]"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if _, err := os.ReadFile(path); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// needsSanitizers skips where programs can't be built with them.
func needsSanitizers(t testing.TB) {
	t.Helper()
	isolate.Once(t)
	empty := filepath.Join(t.TempDir(), "empty.c")
	if err := os.WriteFile(empty, []byte("int main(void)\n{\n\treturn 0;\n}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	program, err := compile(t, sanitized, empty)
	if err != nil {
		t.Skipf("no address and undefined-behaviour sanitizers here (libasan and libubsan; Debian has them in libgcc-*-dev): %v", err)
	}
	if out, err := exec.Command(program).CombinedOutput(); err != nil {
		t.Skipf("programs with sanitizers don't run here: %v\n%s", err, out)
	}
}

func TestCompilesWithoutWarnings(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{{"-O0"}, {"-O3", "-Wpedantic", "-Wshadow", "-Wstrict-prototypes"}} {
		for _, file := range []string{"df.c", "loop.c"} {
			if _, err := compile(t, append(flags, "-c"), file); err != nil {
				t.Errorf("%s %v: %v", file, flags, err)
			}
		}
	}
}

func TestLibraryKeepsItsContract(t *testing.T) {
	t.Parallel()
	passes(t, []string{"-O2"}, "df.c", "testdata/disk.c", "testdata/contract.c")
}

func TestLibraryKeepsItsContractUnderSanitizers(t *testing.T) {
	t.Parallel()
	needsSanitizers(t)
	passes(t, sanitized, "df.c", "testdata/disk.c", "testdata/contract.c")
}

func TestLoopsUnderSanitizers(t *testing.T) {
	t.Parallel()
	needsSanitizers(t)
	passes(t, sanitized, "df.c", "loop.c", "testdata/loops.c")
}

// passes compiles a program and runs it in an empty directory; it must exit with 0.
func passes(t *testing.T, flags []string, files ...string) {
	t.Helper()
	program, err := compile(t, flags, files...)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(program, t.TempDir()).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// An interpreter is testdata/script.c: it runs scripts by df and by stdio.
type interpreter struct {
	program, dir string
	cmd          *exec.Cmd // nil before the first script and after a crash
	in           io.WriteCloser
	out          *bufio.Reader
	said         bytes.Buffer
}

// newInterpreter compiles one, with sanitizers where there are any.
func newInterpreter(t testing.TB) *interpreter {
	files := []string{"df.c", "testdata/disk.c", "testdata/script.c"}
	program, err := compile(t, sanitized, files...)
	if err != nil {
		program, err = compile(t, []string{"-O1"}, files...)
	}
	if err != nil {
		t.Fatal(err)
	}
	p := &interpreter{program: program, dir: memoryDir(t)}
	t.Cleanup(func() { p.stop() })
	return p
}

// memoryDir is a directory in memory if there is one. On ext4, the close of a file that was cut to
// nothing writes it out (auto_da_alloc). Each script does that.
func memoryDir(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "holdfast")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func (p *interpreter) start() error {
	p.said.Reset()
	p.cmd = exec.Command(p.program, p.dir)
	p.cmd.Stderr = &p.said
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	p.in, p.out = in, bufio.NewReader(out)
	return p.cmd.Start()
}

// stop ends the program, which looks for leaks then.
func (p *interpreter) stop() error {
	if p.cmd == nil {
		return nil
	}
	p.in.Close()
	err := p.cmd.Wait()
	p.cmd = nil
	if err != nil {
		return fmt.Errorf("%w\n%s", err, p.said.String())
	}
	return nil
}

// run runs a script and returns what df and stdio did.
func (p *interpreter) run(script []byte) (df, stdio []byte, err error) {
	if p.cmd == nil {
		if err := p.start(); err != nil {
			return nil, nil, err
		}
	}
	frame := binary.LittleEndian.AppendUint32(nil, uint32(len(script)))
	if _, err := p.in.Write(append(frame, script...)); err != nil {
		return nil, nil, fmt.Errorf("%w, %w", err, p.stop())
	}
	for _, trace := range []*[]byte{&df, &stdio} {
		var n uint32
		if err := binary.Read(p.out, binary.LittleEndian, &n); err != nil {
			return nil, nil, fmt.Errorf("%w, %w", err, p.stop())
		}
		*trace = make([]byte, n)
		if _, err := io.ReadFull(p.out, *trace); err != nil {
			return nil, nil, fmt.Errorf("%w, %w", err, p.stop())
		}
	}
	return df, stdio, nil
}

// same fails if df and stdio did not do the same, byte for byte.
func (p *interpreter) same(t *testing.T, script []byte) {
	t.Helper()
	df, stdio, err := p.run(script)
	if err != nil {
		t.Fatalf("script %q: %v", script, err)
	}
	if !bytes.Equal(df, stdio) {
		at := 0
		for at < min(len(df), len(stdio)) && df[at] == stdio[at] {
			at++
		}
		near := func(b []byte) []byte { return b[max(0, min(at, len(b))-40):min(len(b), at+40)] }
		t.Errorf("script %q: from byte %d on\ndf:    %q\nstdio: %q", script, at, near(df), near(stdio))
	}
}

// script writes one: the head, and calls.
func script(mode byte, seed byte, buffer, length uint16, calls ...string) []byte {
	s := binary.LittleEndian.AppendUint16([]byte{mode, seed}, buffer)
	s = binary.LittleEndian.AppendUint16(s, length)
	return append(s, strings.Join(calls, "")...)
}

// elements is the call for n elements.
func elements(size uint16, n byte) string {
	return "e" + string(binary.LittleEndian.AppendUint16(nil, size)) + string([]byte{n})
}

// scripts are where a fuzzer had better begin.
func scripts() (all [][]byte) {
	for _, mode := range []byte("rwa") {
		for _, buffer := range []uint16{0, 1, 100, 4096} {
			for seed := range byte(3) {
				all = append(all,
					script(mode, seed, buffer, 0, "cxckf", elements(0, 3), elements(3, 0), elements(1, 1)),
					script(mode, seed, buffer, 4097, elements(4095, 1), "ccc", elements(1, 1), "f", elements(10000, 2), "cc"),
					script(mode, seed, buffer, 20011, elements(997, 9), "xckc", elements(4096, 2), elements(1, 200), "fcx", elements(7, 200)))
			}
		}
	}
	return all
}

func TestDoesWhatStdioDoes(t *testing.T) {
	t.Parallel()
	p := newInterpreter(t)
	for _, s := range scripts() {
		p.same(t, s)
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
}

func FuzzAgainstStdio(f *testing.F) {
	p := newInterpreter(f)
	for _, s := range scripts() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		script = script[:min(len(script), 200)]
		p.same(t, script)
	})
}

// TestTheLibraryStandsAlone builds it as a student would, and uses its header from C++.
func TestTheLibraryStandsAlone(t *testing.T) {
	t.Parallel()
	cc, dir := compiler(t), t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../../drill/df")); err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s %v: %v\n%s", name, args, err, out)
		}
	}
	if _, err := exec.LookPath("make"); err != nil {
		t.Logf("not by its Makefile: %v", err)
		run(cc, "-std=c99", "-o", "example", "example.c", "df.c")
	} else {
		run("make", "clean", "install", "example", "CC="+cc, "CFLAGS=-O1 -Werror -pedantic", "PREFIX="+filepath.Join(dir, "there"))
		for _, name := range []string{"lib/libdf.a", "include/df.h"} {
			if _, err := os.Stat(filepath.Join(dir, "there", name)); err != nil {
				t.Error(err)
			}
		}
	}
	run(filepath.Join(dir, "example"), "df.c", "copy")
	is, err := os.ReadFile(filepath.Join(dir, "copy"))
	if want, _ := os.ReadFile(filepath.Join(dir, "df.c")); err != nil || !bytes.Equal(is, want) {
		t.Errorf("the copy has %d bytes, not %d: %v", len(is), len(want), err)
	}
	if cxx, err := exec.LookPath("c++"); err != nil {
		t.Logf("not from C++: %v", err)
	} else {
		run(cc, "-c", "-o", "df.o", "df.c")
		run(cxx, "-x", "c++", "-Wall", "-Wextra", "-Werror", "-o", "example", "example.c", "-x", "none", "df.o")
	}
}
