package diy

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/drill"
)

// needsCompiler skips where nothing can be compiled.
func needsCompiler(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the exercise needs POSIX")
	}
	if _, err := compiler(); err != nil {
		t.Skip(err)
	}
}

// student writes the right solution with one change, and returns its path.
func student(t *testing.T, was, is string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/student.c")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(text), was) != 1 && was != "" {
		t.Fatalf("%q is %d times in the solution", was, strings.Count(string(text), was))
	}
	path := filepath.Join(t.TempDir(), "mine.c")
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), was, is, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestARightSolutionIsRight(t *testing.T) {
	t.Parallel()
	needsCompiler(t)
	found, err := Check(t.Context(), student(t, "", ""))
	if err != nil || len(found.Faults) > 0 || found.Cases != 16 || !strings.Contains(found.String(), "right: all 16 cases") {
		t.Errorf("%v, %v", found, err)
	}
}

func TestWhatIsNotWrittenYetIsNamed(t *testing.T) {
	t.Parallel()
	needsCompiler(t)
	text, err := drill.Sources.ReadFile("c/diy_buffering.c")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "diy_buffering.c")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := Check(t.Context(), path)
	if err != nil || len(found.Faults) != 1 || !strings.Contains(found.Faults[0].Says, "is it not written yet?") {
		t.Errorf("%v, %v", found, err)
	}
}

func TestEachMistakeIsFoundAndNamed(t *testing.T) {
	needsCompiler(t)
	for i, wrong := range []struct{ name, was, is, inCase, says string }{
		{"the buffer is not flushed by close", "f->writing ? diy_fflush(f) : 0", "0", "flush at close", "are lost"},
		{"what was read is written back", "f->writing ? diy_fflush(f) : 0", "diy_fflush(f)", "written at all", "a stream that reads"},
		{"the end of the file has no end", "if (got <= 0)", "if (got < 0)", "end of file", "never ends"},
		{"one buffer for all files", "unsigned char buffer[DIY_BUFFER];\n};", "unsigned char *buffer;\n};\nstatic unsigned char shared[DIY_BUFFER];\n#define calloc(n, size) memset(malloc(size), 0, size); f->buffer = shared", "two streams", "a buffer each"},
		{"a buffer that is too small", "buffer[DIY_BUFFER];", "buffer[DIY_BUFFER - 16];", "bytes in order", "mine.c:"},
		{"a full disk takes bytes in silence", "f->error = 1;\n\t\t\treturn -1;", "break;", "full disk", "reported"},
		{"a short read is taken for the end", "f->start += n;\n", "f->start += n;\n\t\tif (f->end < DIY_BUFFER)\n\t\t\ttotal = done + n;\n", "short reads", "only 0 is the end"},
		{"a short write is taken for all", "f->start += (size_t)took;", "f->start = f->end;", "short writes", "write the rest too"},
		{"a signal ends a read", "got < 0 && errno == EINTR", "got < -1", "EINTR", "read(2)"},
		{"a signal ends a write", "took < 0 && errno == EINTR", "took < -1", "EINTR", "write(2)"},
		{"bytes that a full disk refused are dropped", "f->error = 1;\n\t\t\treturn -1;", "f->error = 1;\n\t\t\tf->start = f->end = 0;\n\t\t\treturn -1;", "bytes after a full disk", "of the file"},
		{"nothing is gathered", "f->end == DIY_BUFFER && ", "f->end > 0 && ", "gathering", "calls of write(2)"},
		{"a failed read is the end of the file", "if (got < 0)\n\t\t\t\tf->error = 1;", "if (got < 0)\n\t\t\t\tf->eof = 1;", "read errors", "diy_ferror"},
		{"bytes are counted, not elements", "done / size;\n}\n\nint diy_fclose", "done;\n}\n\nint diy_fclose", "elements", "not bytes"},
	} {
		t.Run(wrong.name, func(t *testing.T) {
			if testing.Short() && i >= 4 {
				t.Skip("each takes half a second")
			}
			t.Parallel()
			found, err := Check(t.Context(), student(t, wrong.was, wrong.is))
			if err != nil {
				t.Fatal(err)
			}
			named := func(f Fault) bool { return f.Case == wrong.inCase && strings.Contains(f.Says, wrong.says) }
			if slices.ContainsFunc(found.Notes, func(n string) bool { return strings.Contains(n, "sanitizers") }) && strings.HasSuffix(wrong.says, ".c:") {
				t.Skip(found.Notes[0])
			}
			if !slices.ContainsFunc(found.Faults, named) {
				t.Errorf("no fault in %q says %q:\n%v", wrong.inCase, wrong.says, found)
			}
		})
	}
}

func TestWhatDoesNotCompileIsShownAsTheCompilerSaysIt(t *testing.T) {
	t.Parallel()
	needsCompiler(t)
	path := student(t, "f->start = 0;", "f->start = 0")
	_, err := Check(t.Context(), path)
	var refused *CompileError
	if !errors.As(err, &refused) || refused.Path != path || !strings.Contains(err.Error(), "mine.c:") {
		t.Errorf("%v", err)
	}
	if err := Build(t.Context(), path, filepath.Join(t.TempDir(), "program")); !errors.As(err, &refused) {
		t.Errorf("%v", err)
	}
	if _, err := Check(t.Context(), filepath.Join(t.TempDir(), "none.c")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestWithoutACompilerItSaysWhatToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("CC", "")
	if _, err := Check(t.Context(), "testdata/student.c"); !errors.Is(err, ErrNoCompiler) || !strings.Contains(err.Error(), "install gcc") {
		t.Errorf("%v", err)
	}
}

// TestSanitizersThatAreMissingAreSaid compiles by a command that refuses them.
func TestSanitizersThatAreMissingAreSaid(t *testing.T) {
	needsCompiler(t)
	cc, err := compiler()
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "cc")
	text := "#!/bin/sh\ncase \"$*\" in *-fsanitize*) exit 1;; esac\nexec '" + cc + "' \"$@\"\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CC", script)
	found, err := Check(t.Context(), student(t, "f->writing ? diy_fflush(f) : 0", "0"))
	if err != nil || len(found.Notes) != 1 || !strings.Contains(found.Notes[0], "sanitizers") || len(found.Faults) == 0 {
		t.Errorf("%v, %v", found, err)
	}
}

func TestTimingReadsAndWritesThePattern(t *testing.T) {
	t.Parallel()
	needsCompiler(t)
	dir := t.TempDir()
	program, path := filepath.Join(dir, "program"), filepath.Join(dir, "file")
	if err := Build(t.Context(), student(t, "", ""), program); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, make([]byte, 6000), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := Time(t.Context(), program, "write", path, 5000); err != nil || got.Made != 5000 || got.Calls <= 0 {
		t.Errorf("%+v, %v", got, err)
	}
	text, err := os.ReadFile(path)
	if err != nil || len(text) != 6000 || text[250] != 250 || text[251] != 0 || text[4999] != 4999%251 {
		t.Errorf("%d bytes, %v", len(text), err) // it writes over the file
	}
	if got, err := Time(t.Context(), program, "read", path, 500); err != nil || got.Made != 500 || got.Ones != 250*251/2+248*249/2 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := Time(t.Context(), program, "read", filepath.Join(dir, "none"), 500); err == nil || !strings.Contains(err.Error(), "diy_fopen") {
		t.Errorf("%v", err)
	}
}
