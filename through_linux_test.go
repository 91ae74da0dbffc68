package holdfast_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/syscallfault"
	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/rotate"
)

// TestWriteThroughContinuesAtTheExactByte lets the kernel take a part of an unbuffered Write: no file of this process may
// have more than 1000 bytes for a while. The part counts, the rest is refused, and may be written again when there is room.
func TestWriteThroughContinuesAtTheExactByte(t *testing.T) {
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var had syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &had); err != nil {
		t.Fatal(err)
	}
	limit := func(n uint64) {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: n, Max: had.Max}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(name string, open func(path string) (*holdfast.Writer, error)) {
		path := filepath.Join(t.TempDir(), name)
		w, err := open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		a, b := bytes.Repeat([]byte("a"), 600), bytes.Repeat([]byte("b"), 600)
		limit(1000)
		first, err1 := w.Write(a)
		part, err2 := w.Write(b)
		limit(had.Cur)
		var failed *holdfast.WriteError
		if first != 600 || err1 != nil || part != 400 || !errors.As(err2, &failed) || !errors.Is(err2, syscall.EFBIG) || failed.Flushed != 1000 {
			t.Errorf("%s: %d, %v, then %d, %v", name, first, err1, part, err2)
		}
		if n, err := w.Write(b[part:]); n != 200 || err != nil {
			t.Errorf("%s: with room again: %d, %v", name, n, err)
		}
		if s := w.Stats(); s.Writes != 3 || s.Errors != 1 || w.Flushed() != 1200 || w.Written() != 1200 || w.Err() != nil {
			t.Errorf("%s: %+v, flushed %d, %v", name, s, w.Flushed(), w.Err())
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, append(a, b...)) {
			t.Errorf("%s has %d bytes: %v", name, len(got), err)
		}
	}
	check("opened", func(path string) (*holdfast.Writer, error) { return holdfast.Create(path, holdfast.Unbuffered()) })
	check("given", func(path string) (*holdfast.Writer, error) {
		f, err := os.Create(path)
		if err != nil {
			return nil, err
		}
		return holdfast.New(f, holdfast.Unbuffered())
	})
}

// TestWriteThroughGoesOnBehindAShortWrite has the kernel take half of an unbuffered Write, and then the rest. The Writer, and that
// of a log, is in a process of its own, whose calls are supervised.
func TestWriteThroughGoesOnBehindAShortWrite(t *testing.T) {
	const child = "HOLDFAST_TEST_SHORT_WRITES"
	record := []byte(strings.Repeat("0123456789", 20))
	if dir := os.Getenv(child); dir != "" {
		opened, err := holdfast.Create(filepath.Join(dir, "opened"), holdfast.Unbuffered())
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(filepath.Join(dir, "given"))
		if err != nil {
			t.Fatal(err)
		}
		given, err := holdfast.New(f, holdfast.Unbuffered())
		if err != nil {
			t.Fatal(err)
		}
		log, err := rotate.Open(filepath.Join(dir, "log"), rotate.Options{Records: true})
		if err != nil {
			t.Fatal(err)
		}
		for i, w := range []io.WriteCloser{opened, given, log} {
			for range 3 {
				if n, err := w.Write(record); n != len(record) || err != nil {
					t.Errorf("Writer %d: %d, %v", i, n, err)
				}
			}
			if err := w.Close(); err != nil {
				t.Errorf("Writer %d: %v", i, err)
			}
		}
		if opened.Flushed() != int64(3*len(record)) || given.Flushed() != opened.Flushed() {
			t.Errorf("flushed %d and %d", opened.Flushed(), given.Flushed())
		}
		return
	}
	short := 0
	dir := supervised(t, child, func(c *syscallfault.Call) {
		if c.Number%2 == 1 && c.Shorten() {
			short++
		}
	})
	if short != 3*3 {
		t.Errorf("%d writes were short, want those of each Write", short)
	}
	for _, name := range []string{"opened", "given", "log"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, bytes.Repeat(record, 3)) {
			t.Errorf("%s has %q, %v", name, got, err)
		}
	}
}

// TestAWriteOfALogThatFailsOnceIsCounted fails two writes of a log without a buffer, one of them when the kernel has a part: that is
// cut off. Each is made again, and counted. The log is in a process of its own, whose calls are supervised.
func TestAWriteOfALogThatFailsOnceIsCounted(t *testing.T) {
	const child = "HOLDFAST_TEST_FAILED_WRITE"
	record := []byte(strings.Repeat("0123456789", 20))
	if dir := os.Getenv(child); dir != "" {
		f, err := rotate.Open(filepath.Join(dir, "app.log"), rotate.Options{Records: true})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := f.Write(record); err != nil {
				t.Error(err)
			}
		}
		if s := f.Stats(); s.Errors != 2 {
			t.Errorf("%d errors of two writes that failed", s.Errors)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		return
	}
	short := false
	dir := supervised(t, child, func(c *syscallfault.Call) {
		switch c.Number {
		case 2:
			short = c.Shorten()
		case 3, 5:
			c.Fail(syscall.EIO)
		}
	})
	if got, err := os.ReadFile(filepath.Join(dir, "app.log")); err != nil || !short || !bytes.Equal(got, bytes.Repeat(record, 3)) {
		t.Errorf("the log has %q, %v; one write was short: %v", got, err, short)
	}
}

// TestARefusedWriteIsToldThoughAnotherIsTaken: the failure may be of bytes before, which NFS tells once. So an unbuffered Write that
// was refused asks the kernel no second time.
func TestARefusedWriteIsToldThoughAnotherIsTaken(t *testing.T) {
	const child = "HOLDFAST_TEST_REFUSED_WRITE"
	if dir := os.Getenv(child); dir != "" {
		opened, err := holdfast.Create(filepath.Join(dir, "opened"), holdfast.Unbuffered())
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(filepath.Join(dir, "given"))
		if err != nil {
			t.Fatal(err)
		}
		given, err := holdfast.New(f, holdfast.Unbuffered())
		if err != nil {
			t.Fatal(err)
		}
		for i, w := range []*holdfast.Writer{opened, given} {
			var failed *holdfast.WriteError
			var path *fs.PathError
			if n, err := w.Write([]byte("refused")); n != 0 || !errors.Is(err, syscall.EIO) || !errors.As(err, &failed) || !errors.As(err, &path) || path.Op != "write" {
				t.Errorf("Writer %d: %d, %v", i, n, err)
			}
			if n, err := w.Write([]byte("taken")); n != 5 || err != nil {
				t.Errorf("Writer %d, then: %d, %v", i, n, err)
			}
			if s, err := w.Stats(), w.Close(); s.Errors != 1 || err != nil {
				t.Errorf("Writer %d: %d errors; %v", i, s.Errors, err)
			}
		}
		return
	}
	dir := supervised(t, child, func(c *syscallfault.Call) {
		if c.Number%2 == 1 {
			c.Fail(syscall.EIO)
		}
	})
	for _, name := range []string{"opened", "given"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != "taken" {
			t.Errorf("%s has %q, %v", name, got, err)
		}
	}
}

// supervised runs this test in a process of its own, for which a variable names the directory that is returned. Its writes
// there are as decide says.
func supervised(t *testing.T, child string, decide func(*syscallfault.Call)) (dir string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, isolate.OnlyThis(t))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Env = append(os.Environ(), child+"="+dir)
	s, err := syscallfault.Start(cmd, dir, []syscallfault.Kind{syscallfault.Write}, decide)
	if err != nil {
		t.Skip(err)
	}
	failed := cmd.Wait()
	if _, err := s.Stop(); failed != nil || err != nil {
		t.Fatalf("%v, %v:\n%s", failed, err, out.String())
	}
	return dir
}
