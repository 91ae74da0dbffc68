//go:build go1.25

package files_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/acltest"
	"github.com/holdfast-go/holdfast/internal/filetest"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// stuckReplacer makes a test be a process that replaces files and stops before it
// renames them: a directory.
const stuckReplacer = "HOLDFAST_TEST_STUCK_REPLACER"

const stuckFiles = 30

// replaceUntilStuck writes some temporaries, says so and waits until it is killed. Other goroutines write
// them, so it waits for these: for a minute, as another process may remove the files by a bug.
func replaceUntilStuck(dir string) {
	before, end := len(filetest.LeftIn(dir)), time.Now().Add(time.Minute)
	f, err := files.New(files.Options{Policy: holdfast.Durable(), Workers: 1})
	if err != nil {
		panic(err)
	}
	f.WriteAll(context.Background(), func(yield func(files.Write) bool) {
		for i := 0; len(filetest.LeftIn(dir)) < before+stuckFiles && time.Now().Before(end); i++ {
			if i >= 2*stuckFiles {
				time.Sleep(time.Millisecond)
			} else if !yield(files.Write{Path: filepath.Join(dir, strconv.Itoa(i)), Data: []byte("new"), Mode: files.Replace}) {
				return
			}
		}
		fmt.Println("stuck")
		io.Copy(io.Discard, os.Stdin)
	})
}

// startStuck starts such a process, and returns what kills it with SIGKILL.
func startStuck(t *testing.T, dir string) (kill func()) {
	t.Helper()
	test, _, _ := strings.Cut(t.Name(), "/")
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$")
	cmd.Env = append(os.Environ(), stuckReplacer+"="+dir)
	out, err := cmd.StdoutPipe()
	acltest.Must(t, err)
	in, err := cmd.StdinPipe()
	acltest.Must(t, err)
	acltest.Must(t, cmd.Start())
	kill = func() {
		cmd.Process.Kill()
		cmd.Wait() // it was killed
		in.Close()
	}
	t.Cleanup(kill)
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal("it wrote nothing: ", err)
	}
	if n := len(filetest.LeftIn(dir)); n < stuckFiles {
		t.Fatalf("it left %d temporaries, want %d", n, stuckFiles)
	}
	return kill
}

func replaceOne(t *testing.T, path string) {
	t.Helper()
	f, err := files.New(files.Options{})
	acltest.Must(t, err)
	defer f.Close()
	if _, err := f.WriteFile(context.Background(), path, []byte("new"), files.Replace); err != nil {
		t.Error(err)
	}
}

func TestNextFilesRemovesWhatKilledOnesLeft(t *testing.T) {
	if dir := os.Getenv(stuckReplacer); dir != "" {
		replaceUntilStuck(dir)
		return
	}
	dir := t.TempDir()
	var kills []func()
	for range 5 { // all at once: each would remove what the one before has left
		kills = append(kills, startStuck(t, dir))
	}
	all := filetest.LeftIn(dir)
	if len(all) < 5*stuckFiles {
		t.Fatalf("%d temporaries, want %d", len(all), 5*stuckFiles)
	}
	for _, kill := range kills {
		replaceOne(t, dir+"/file")
		for _, path := range all { // a process may make one more
			if _, err := os.Lstat(path); err != nil {
				t.Fatalf("beside a process that lives: %v", err)
			}
		}
		kill()
	}
	replaceOne(t, dir+"/file")
	if now := filetest.LeftIn(dir); len(now) != 0 {
		t.Errorf("of %d temporaries %d are left", len(all), len(now))
	}
}

// TestWhatIsNoTemporaryStays puts other things where killed processes have left theirs.
func TestWhatIsNoTemporaryStays(t *testing.T) {
	if dir := os.Getenv(stuckReplacer); dir != "" {
		replaceUntilStuck(dir)
		return
	}
	dir := t.TempDir()
	startStuck(t, dir)()
	left := filetest.LeftIn(dir)
	acltest.Must(t, os.WriteFile(dir+"/another", []byte("another's"), 0o600))
	var mine []string
	for i, plant := range []func(path string) error{
		func(path string) error { return os.Symlink("another", path) },
		func(path string) error { return unix.Mkfifo(path, 0o600) },
		func(path string) error { return os.Link(dir+"/another", path) },
		func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		acltest.Must(t, os.Remove(left[i]))
		acltest.Must(t, plant(left[i]))
		mine = append(mine, left[i])
	}
	for _, name := range []string{".holdfast-other", filepath.Base(left[9]) + "0", ".holdfast-copy-" + strings.Repeat("0", 25), ".holdfast-gen-a-0"} {
		filetest.MustWrite(t, dir+"/"+name, "another's")
		mine = append(mine, dir+"/"+name)
	}
	for i := range len(left[9]) - len(dir+"/.holdfast-") { // one digit is another
		name := []byte(left[9])
		c := &name[len(dir+"/.holdfast-")+i]
		if *c++; *c > 'z' || *c > '9' && *c < 'a' {
			*c = '0'
		}
		filetest.MustWrite(t, string(name), "another's")
		mine = append(mine, string(name))
	}
	slices.Sort(mine)
	replaceOne(t, dir+"/file")
	if now := filetest.LeftIn(dir); !slices.Equal(now, mine) {
		t.Errorf("%q are there, want %q", now, mine)
	}
}

// TestTemporariesOfOtherUsersStay lets another user replace a file in a directory where root
// was killed.
func TestTemporariesOfOtherUsersStay(t *testing.T) {
	if dir := os.Getenv(stuckReplacer); dir != "" {
		replaceUntilStuck(dir)
		return
	}
	dir := acltest.Directory(t)
	acltest.Must(t, os.Chmod(dir, 0o777))
	startStuck(t, dir)()
	left := filetest.LeftIn(dir)
	acltest.As(t, 1001, 1001, nil, func() { replaceOne(t, dir+"/file") })
	if now := filetest.LeftIn(dir); !slices.Equal(now, left) {
		t.Errorf("of %d temporaries of root %d are there", len(left), len(now))
	}
	replaceOne(t, dir+"/file")
	if now := filetest.LeftIn(dir); len(now) != 0 {
		t.Errorf("%d are left", len(now))
	}
}

// TestALargeDirectoryIsSweptBitByBit has more names than are read before one file is written.
func TestALargeDirectoryIsSweptBitByBit(t *testing.T) {
	if dir := os.Getenv(stuckReplacer); dir != "" {
		replaceUntilStuck(dir)
		return
	}
	isolate.Once(t, isolate.Race) // one goroutine calls
	dir := filetest.MemoryDir(t)
	startStuck(t, dir)()
	for i := range 40_000 { // a sweep reads 32,768 names
		acltest.Must(t, os.Symlink("x", fmt.Sprintf("%s/other%d", dir, i)))
	}
	f, err := files.New(files.Options{})
	acltest.Must(t, err)
	defer f.Close()
	left := len(filetest.LeftIn(dir))
	for range 4 {
		if _, err := f.WriteFile(context.Background(), dir+"/file", []byte("new"), files.Replace); err != nil {
			t.Error(err)
		}
	}
	if now := filetest.LeftIn(dir); left == 0 || len(now) != 0 {
		t.Errorf("of %d temporaries %d are left", left, len(now))
	}
}
