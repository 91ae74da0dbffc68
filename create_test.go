//go:build go1.25

package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// openers are Create and Append, for their common contract.
var openers = map[string]func(string, holdfast.Policy) (*holdfast.Writer, error){
	"Create": holdfast.Create,
	"Append": holdfast.Append,
}

func mustParse(t *testing.T, text string) holdfast.Policy {
	t.Helper()
	p, err := holdfast.ParsePolicy(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func holdsFile(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s holds %q, %v; want %q", filepath.Base(path), got, err, want)
	}
}

func TestCreateTruncatesAndAppendKeeps(t *testing.T) {
	for _, text := range contractPolicies {
		t.Run(text, func(t *testing.T) {
			path, p := filepath.Join(t.TempDir(), "file"), mustParse(t, text)
			write := func(open string, record string) {
				t.Helper()
				w, err := openers[open](path, p)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := w.WriteString(record); err != nil {
					t.Fatal(err)
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				if w.Written() != int64(len(record)) || w.Flushed() != int64(len(record)) {
					t.Errorf("%s: offsets %d and %d count more than the Writer's %d bytes", open, w.Written(), w.Flushed(), len(record))
				}
			}
			write("Append", "new ")
			write("Append", "kept")
			holdsFile(t, path, "new kept")
			write("Create", "gone")
			holdsFile(t, path, "gone")
		})
	}
}

func TestNewGoesOnAtTheFilesPosition(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("0123456789"), 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Seek(4, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	w, err := holdfast.New(f, holdfast.Periodic(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	put(t, w, 0)
	if _, err := w.WriteString("abc"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	holdsFile(t, path, "0123abc789")
}

func TestOpeningNamesWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	for name, open := range openers {
		check := func(path string, want error) {
			t.Helper()
			w, err := open(path, holdfast.Durable())
			var pathErr *fs.PathError
			if w != nil || !errors.Is(err, want) || !errors.As(err, &pathErr) || !strings.HasPrefix(path, pathErr.Path) {
				t.Errorf("%s(%q) = %v, %v; want %v", name, path, w, err, want)
			}
		}
		check(filepath.Join(dir, "no", "such", "file"), fs.ErrNotExist)
		for _, p := range []holdfast.Policy{{}, holdfast.Durable()} {
			if _, err := open(filepath.Join(dir, "no", "file"), p); !os.IsNotExist(err) {
				t.Errorf("%s: %T is not os.IsNotExist: %v", name, err, err)
			}
		}
		check("", fs.ErrNotExist)
		if w, err := open(dir, holdfast.Durable()); w != nil || err == nil || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s of a directory = %v, %v", name, w, err)
		}
	}
}

func TestWriterGivesItsFilesStat(t *testing.T) {
	w, err := holdfast.Create(filepath.Join(t.TempDir(), "file"), holdfast.Unbuffered())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	w.WriteString("12345")
	if is, err := w.Stat(); err != nil || is.Size() != 5 || is.Name() != "file" {
		t.Error(is, err)
	}
	other, err := holdfast.New(struct{ holdfast.File }{}, holdfast.Unbuffered())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Stat(); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
}

func TestOpeningInAReadOnlyDirectorySaysSo(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	if f, err := os.Create(filepath.Join(dir, "probe")); err == nil {
		f.Close()
		t.Skip("this user may write to a read-only directory (root, or no such permissions here)")
	}
	for name, open := range openers {
		if w, err := open(filepath.Join(dir, "file"), holdfast.Durable()); w != nil || !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s = %v, %v", name, w, err)
		}
	}
}

// TestPolicyThatIsNotValidTouchesNoFile opens under a policy that is refused: an
// existing file keeps its bytes, a new one is not made.
func TestPolicyThatIsNotValidTouchesNoFile(t *testing.T) {
	dir := t.TempDir()
	old, none := filepath.Join(dir, "old"), filepath.Join(dir, "none")
	if err := os.WriteFile(old, []byte("kept"), 0o666); err != nil {
		t.Fatal(err)
	}
	for name, open := range openers {
		for _, path := range []string{old, none} {
			if w, err := open(path, holdfast.Policy{Buffer: -1}); w != nil || err == nil || !strings.Contains(err.Error(), "buffer=-1") {
				t.Errorf("%s = %v, %v", name, w, err)
			}
		}
	}
	holdsFile(t, old, "kept")
	if _, err := os.Stat(none); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was made: %v", err)
	}
}

// TestUnlinkedFileIsNoticedWhereAPromiseIsMade removes the file while it is written.
func TestUnlinkedFileIsNoticedWhereAPromiseIsMade(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("windows does not remove a file that is open")
	}
	for _, text := range contractPolicies {
		t.Run(text, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			w, err := holdfast.Create(path, mustParse(t, text))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Enqueue([]byte("abc")); err != nil {
				t.Fatal(err)
			}
			if err := w.Sync(); err != nil {
				t.Fatalf("Sync of a file that has its name = %v", err)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Enqueue([]byte("def")); err != nil {
				t.Fatal(err)
			}
			err = w.Sync()
			var failed *holdfast.SyncError
			if !errors.Is(err, holdfast.ErrUnlinked) || !errors.As(err, &failed) || failed.Durable != 3 || failed.Path != path {
				t.Errorf("Sync of a file without a name = %v", err)
			}
			if w.Durable() != 3 {
				t.Errorf("Durable is %d, want 3", w.Durable())
			}
			if err := w.Close(); !errors.Is(err, holdfast.ErrUnlinked) {
				t.Errorf("Close = %v", err)
			}
		})
	}
}

// TestRenamedFileIsStillAFile moves it: its bytes can be found.
func TestRenamedFileIsStillAFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("windows does not rename a file that is open")
	}
	dir := t.TempDir()
	w, err := holdfast.Create(filepath.Join(dir, "a"), holdfast.Durable())
	if err != nil {
		t.Fatal(err)
	}
	put(t, w, 1)
	if err := os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	put(t, w, 1)
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	holdsFile(t, filepath.Join(dir, "b"), "\x00\x00")
}

// TestErrorsNameTheFile closes the file under the Writer.
func TestErrorsNameTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := holdfast.New(f, holdfast.Buffered(holdfast.KiB))
	if err != nil {
		t.Fatal(err)
	}
	put(t, w, 3)
	f.Close()
	var failed *holdfast.WriteError
	if err := w.Flush(); !errors.As(err, &failed) || failed.Path != path || !strings.Contains(err.Error(), path) {
		t.Errorf("Flush = %v", err)
	}
	if err := w.Close(); err == nil {
		t.Error("Close of a file that someone else closed = nil")
	}
}

// TestNewStartsNoTimer makes Writers with the shortest of periods: nothing runs
// before there is a byte.
func TestNewStartsNoTimer(t *testing.T) {
	for _, policy := range []string{"buffer=1KiB,flush=1ns,sync=never", "buffer=1KiB,sync=1ns", "buffer=0,sync=1ns"} {
		for range 2000 {
			w, err := holdfast.New(fault.New(), mustParse(t, policy))
			if err != nil {
				t.Fatal(err)
			}
			w.Close()
		}
	}
}

// TestWriteAllocatesNothing counts allocations of each Write in steady state.
func TestWriteAllocatesNothing(t *testing.T) {
	isolate.Once(t, isolate.Ordinary)
	if isolate.RaceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, text := range contractPolicies {
		t.Run(text, func(t *testing.T) {
			w, err := holdfast.Create(filepath.Join(t.TempDir(), "file"), mustParse(t, text))
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			record, line := make([]byte, 40), strings.Repeat("x", 40)
			check := func(name string, write func()) {
				t.Helper()
				runs := 1000
				if w, _ := holdfast.ParsePolicy(text); w.Loss().Power.None() {
					runs = 50
				}
				if n := isolate.Least(0, func() float64 { return testing.AllocsPerRun(runs, write) }); n != 0 {
					t.Errorf("%s allocates %v times", name, n)
				}
			}
			check("Write", func() { w.Write(record) })
			check("WriteString", func() { w.WriteString(line) })
			check("Enqueue", func() { w.Enqueue(record) })
			check("Flush", func() { w.Write(record); w.Flush() })
			check("Fprintf", func() { fmt.Fprintf(w, "x\n") })
			if end, err := w.Enqueue(record); err == nil {
				w.WaitDurable(context.Background(), end)
				check("WaitDurable", func() { w.WaitDurable(context.Background(), end) })
			}
		})
	}
}

// TestShortLifeTakesLittleMemory: histograms and a large buffer are for files that need them.
func TestShortLifeTakesLittleMemory(t *testing.T) {
	if isolate.RaceEnabled {
		t.Skip("the race detector allocates")
	}
	check := func(what string, most float64, life func(w *holdfast.Writer)) {
		t.Helper()
		for _, text := range []string{"buffer=0,sync=never", "buffer=64MiB,flush=1s,sync=never"} {
			path, p := filepath.Join(t.TempDir(), "file"), mustParse(t, text)
			if n := isolate.Least(most, func() float64 {
				const lives = 50
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				for range lives {
					w, err := holdfast.Create(path, p)
					if err != nil {
						t.Fatal(err)
					}
					life(w)
				}
				runtime.ReadMemStats(&after)
				return float64(after.TotalAlloc-before.TotalAlloc) / lives
			}); n > most {
				t.Errorf("%s, %s: %v bytes, want at most %v", what, text, n, most)
			}
		}
	}
	var idle []*holdfast.Writer
	check("an idle Writer", 2<<10, func(w *holdfast.Writer) { idle = append(idle, w) })
	for _, w := range idle {
		w.Close()
	}
	check("the life of a file of one record", 3<<10, func(w *holdfast.Writer) {
		w.Write(make([]byte, 40))
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
}

// callsOfWrite returns how many system calls one durable Write makes.
func callsOfWrite(t *testing.T, w *holdfast.Writer) int64 {
	t.Helper()
	before := w.Stats().SystemCalls
	if _, err := w.Write([]byte("a record\n")); err != nil {
		t.Fatal(err)
	}
	return w.Stats().SystemCalls - before
}

// TestFirstSyncMakesTheNameDurable counts calls. The first sync of a file that
// Create or Append opened makes one more than the second, for the directory.
// For a file that the caller opened it does not.
func TestFirstSyncMakesTheNameDurable(t *testing.T) {
	check := func(name string, open func(path string) (*holdfast.Writer, error), want int64) {
		w, err := open(filepath.Join(t.TempDir(), "file"))
		if err != nil {
			t.Fatal(err)
		}
		first, second := callsOfWrite(t, w), callsOfWrite(t, w)
		if first-second != want {
			t.Errorf("%s: the first Write made %d calls, the second %d; want %d more", name, first, second, want)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	p := holdfast.Durable()
	check("Create", func(path string) (*holdfast.Writer, error) { return holdfast.Create(path, p) }, 1)
	check("Append", func(path string) (*holdfast.Writer, error) { return holdfast.Append(path, p) }, 1)
	check("New", func(path string) (*holdfast.Writer, error) {
		f, err := os.Create(path)
		if err != nil {
			return nil, err
		}
		return holdfast.New(f, p)
	}, 0)
}

// TestNameOfAnEmptyFileIsDurableToo closes without a byte.
func TestNameOfAnEmptyFileIsDurableToo(t *testing.T) {
	for _, p := range []holdfast.Policy{holdfast.Durable(), {Buffer: 4096, Sync: holdfast.Sync{Mode: holdfast.SyncClose}}} {
		w, err := holdfast.Create(filepath.Join(t.TempDir(), "file"), p)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil || w.Stats().Syncs != 1 {
			t.Errorf("%v: Close = %v after %d syncs, want one", p, err, w.Stats().Syncs)
		}
	}
}

// TestDirectoryMayMoveBeforeTheFirstSync renames the directory of a new file.
func TestDirectoryMayMoveBeforeTheFirstSync(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not rename a directory that holds an open file")
	}
	old := filepath.Join(t.TempDir(), "old")
	if err := os.Mkdir(old, 0o777); err != nil {
		t.Fatal(err)
	}
	w, err := holdfast.Create(filepath.Join(old, "file"), holdfast.Durable())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(old, old+"-moved"); err != nil {
		t.Fatal(err)
	}
	callsOfWrite(t, w)
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}
