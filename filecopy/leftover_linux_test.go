package filecopy_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/filecopy"
	"github.com/holdfast-go/holdfast/internal/filetest"
)

// killedTree makes a test be the process that copies a tree and is killed: a directory.
const killedTree = "HOLDFAST_TEST_KILLED_TREE"

// copyUntilStuck copies a tree, and stops at the first name that is reported: the others wait
// for theirs.
func copyUntilStuck(dir string, o filecopy.Options) {
	o.Workers = 1
	o.Each = func(filecopy.Result) {
		fmt.Println("copied")
		io.Copy(io.Discard, os.Stdin) // until it is killed
	}
	filecopy.All(context.Background(), pairs(dir+"/to", dir+"/from"), o)
}

// killTree kills a copy of a tree when it reports the first file, and calls whileItLives before.
func killTree(t *testing.T, dir, how string, whileItLives func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestNextCopyRemovesWhatAKilledOneLeft$")
	cmd.Env = append(os.Environ(), killedTree+"="+how+":"+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Errorf("it copied nothing: %v", err)
	}
	whileItLives()
	cmd.Process.Kill()
	cmd.Wait() // it was killed
}

var killedCopies = map[string]filecopy.Options{
	"atomic": {Atomic: true, KeepGoing: true}, "archive": {Atomic: true, Archive: true, KeepGoing: true},
}

func TestNextCopyRemovesWhatAKilledOneLeft(t *testing.T) {
	if how, dir, ok := strings.Cut(os.Getenv(killedTree), ":"); ok {
		copyUntilStuck(dir, killedCopies[how])
		return
	}
	for how, o := range killedCopies {
		dir := filetest.MemoryDir(t)
		for i := range 20 {
			filetest.MustWrite(t, fmt.Sprintf("%s/from/sub/file%d", dir, i), strings.Repeat("text", i))
		}
		// A refused file is reported at once, while the others wait for their names.
		if err := unix.Mkfifo(dir+"/from/sub/pipe", 0o600); err != nil {
			t.Fatal(err)
		}
		killTree(t, dir, how, func() {
			before := len(filetest.LeftIn(dir))
			if _, err := filecopy.All(t.Context(), pairs(dir+"/to", dir+"/from"), o); err != nil && !strings.Contains(err.Error(), "pipe") {
				t.Errorf("%s: beside one that lives: %v", how, err)
			}
			if after := len(filetest.LeftIn(dir)); after != before {
				t.Errorf("%s: of %d temporaries of one that lives %d are there", how, before, after)
			}
		})
		left := filetest.LeftIn(dir)
		other := dir + "/to/sub/.holdfast-other"
		filetest.MustWrite(t, other, "another's")
		if _, err := filecopy.All(t.Context(), pairs(dir+"/to", dir+"/from"), o); err != nil && !strings.Contains(err.Error(), "pipe") {
			t.Errorf("%s: %v", how, err)
		}
		if now := filetest.LeftIn(dir); len(left) == 0 || len(now) != 1 || now[0] != other {
			t.Errorf("%s: of %d temporaries there are %v", how, len(left), now)
		}
	}
}

// TestWhatIsNoLeftoverStays puts a file that cannot be one where a temporary would be.
func TestWhatIsNoLeftoverStays(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	dir := filetest.MemoryDir(t)
	filetest.MustWrite(t, dir+"/from/file", "new")
	filetest.MustWrite(t, dir+"/to/file", "old")
	var name string
	o := filecopy.Options{Atomic: true}
	watch, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(watch)
	if _, err := unix.InotifyAddWatch(watch, dir+"/to", unix.IN_CREATE); err != nil {
		t.Fatal(err)
	}
	copyAll(t, o, dir+"/to", dir+"/from")
	event := make([]byte, 4096)
	if n, err := unix.Read(watch, event); err != nil || n <= unix.SizeofInotifyEvent {
		t.Fatal(n, err)
	}
	name, _, _ = strings.Cut(string(event[unix.SizeofInotifyEvent:]), "\x00")
	filetest.MustWrite(t, dir+"/to/"+name, "another's")
	if err := os.Chown(dir+"/to/"+name, 1234, 1234); err != nil {
		t.Fatal(err)
	}
	copyAll(t, o, dir+"/to", dir+"/from")
	if got, err := os.ReadFile(dir + "/to/" + name); string(got) != "another's" {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.Chown(dir+"/to/"+name, 0, 0); err != nil {
		t.Fatal(err)
	}
	copyAll(t, o, dir+"/to", dir+"/from") // now it could be one of ours
	for what, make := range map[string]func() error{
		"a link":       func() error { return os.Symlink("file", dir+"/to/"+name) },
		"a pipe":       func() error { return unix.Mkfifo(dir+"/to/"+name, 0o600) },
		"of two names": func() error { return os.Link(dir+"/from/file", dir+"/to/"+name) },
	} {
		if err := make(); err != nil {
			t.Fatal(err)
		}
		copyAll(t, o, dir+"/to", dir+"/from")
		if err := os.Remove(dir + "/to/" + name); err != nil {
			t.Errorf("%s is gone: %v", what, err)
		}
	}
	if left := filetest.LeftIn(dir); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}
