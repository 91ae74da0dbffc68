//go:build unix

package gen

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/internal/filetest"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// namedGen makes a test be a gen on a file system that has no files without a name: its
// path. It is killed with the file in its hands.
const namedGen = "HOLDFAST_TEST_NAMED_GEN"

// killNamedGen kills a gen that has a named temporary, and returns its name.
func killNamedGen(t *testing.T, path string) (temporary string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestNextGenRemovesWhatAKilledOneLeft$")
	cmd.Env = append(os.Environ(), namedGen+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdin, err := cmd.StdinPipe() // for it to wait at
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if !bufio.NewScanner(out).Scan() {
		t.Error("it made nothing")
	}
	if left := filetest.LeftIn(filepath.Dir(path)); len(left) == 1 {
		temporary = left[0]
	}
	// While it lives nothing is taken from it.
	gen(t, filepath.Join(filepath.Dir(path), "x"), "--force")
	if left := filetest.LeftIn(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("%v are there while it lives", left)
	}
	cmd.Process.Kill()
	cmd.Wait() // it was killed
	return temporary
}

func gen(t *testing.T, args ...string) {
	t.Helper()
	args = append([]string{"gen", "--quiet", args[0], "64KiB"}, args[1:]...)
	if err := genRun(t.Context(), args, nil, io.Discard, io.Discard); err != nil {
		t.Error(err)
	}
}

func TestNextGenRemovesWhatAKilledOneLeft(t *testing.T) {
	if path := os.Getenv(namedGen); path != "" {
		f, err := createNamed(path)
		if err == nil {
			_, err = f.WriteString("half of it")
		}
		fmt.Println(err)
		io.Copy(io.Discard, os.Stdin)
		return
	}
	file := filepath.Join(t.TempDir(), "x")
	temporary := killNamedGen(t, file)
	if _, err := os.Lstat(temporary); err != nil {
		t.Fatalf("the killed gen has left nothing: %v", err)
	}
	gen(t, filepath.Join(filepath.Dir(file), "y")) // of another name
	if left := filetest.LeftIn(filepath.Dir(file)); len(left) != 1 {
		t.Errorf("%v are there after the gen of another name", left)
	}
	gen(t, file, "--force")
	if left := filetest.LeftIn(filepath.Dir(file)); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	if info, err := os.Stat(file); err != nil || info.Size() != 64<<10 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestGenRemovesNothingThatMayBeAnothers puts other things where a leftover would be.
func TestGenRemovesNothingThatMayBeAnothers(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "x")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(file, nil, 0o666))
	must(os.Mkdir(slot(file, 0), 0o777))
	must(os.Symlink(file, slot(file, 1)))
	must(os.WriteFile(slot(file, 2), nil, 0o666)) // has another name
	must(os.Link(slot(file, 2), filepath.Join(dir, "kept")))
	locked, err := os.Create(slot(file, 3)) // by one that lives
	must(err)
	defer locked.Close()
	if ok, err := sys.TryLock(locked); !ok || err != nil {
		t.Skipf("the file system has no locks: %v", err)
	}
	must(syscall.Mkfifo(slot(file, 4), 0o666)) // to open it would wait
	kept := 5
	if os.Geteuid() == 0 { // another user's
		must(os.WriteFile(slot(file, 5), nil, 0o666))
		must(os.Chown(slot(file, 5), 1234, 1234))
		kept++
	}
	gen(t, file, "--force")
	for i := range kept {
		if _, err := os.Lstat(slot(file, i)); err != nil {
			t.Error(err)
		}
	}
	if left := filetest.LeftIn(dir); len(left) != kept {
		t.Errorf("%v are there", left)
	}
}

// TestNoGenTakesTheFileOfAnother has gens of one path make it and clear up after each
// other. So it is on a file system without nameless files.
func TestNoGenTakesTheFileOfAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 200 {
				removeLeftover(slot(path, 0))
				g, err := createNamed(path)
				if err != nil {
					t.Error(err)
					return
				}
				if err := errors.Join(g.Close(), publishError(g.publish(true, false))); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// TestGenReplacesBesideNamesThatAreTaken has all names that tell the path be others'.
func TestGenReplacesBesideNamesThatAreTaken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x")
	gen(t, file)
	for i := range genSlots {
		if err := os.Mkdir(slot(file, i), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	gen(t, file, "--force")
}

func TestGenMakesAFileAsAnyProgramDoes(t *testing.T) {
	dir := t.TempDir()
	gen(t, filepath.Join(dir, "x"))
	if err := os.WriteFile(filepath.Join(dir, "y"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	x, err := os.Stat(filepath.Join(dir, "x"))
	if err != nil {
		t.Fatal(err)
	}
	if y, err := os.Stat(filepath.Join(dir, "y")); err != nil || x.Mode() != y.Mode() {
		t.Errorf("%v, %v; want %v", x.Mode(), err, y.Mode())
	}
}

func publishError(_ bool, _ string, err error) error { return err }
