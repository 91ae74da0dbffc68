package holdfast_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
)

// killedTree makes a test be the process that copies a tree and is killed: a folder.
const killedTree = "HOLDFAST_TEST_KILLED_TREE"

// copyUntilStuck copies a tree, and stops at the first name that is told: the others wait
// for theirs.
func copyUntilStuck(folder string, o holdfast.CopyOptions) {
	o.Workers = 1
	o.Each = func(holdfast.CopyResult) {
		fmt.Println("copied")
		io.Copy(io.Discard, os.Stdin) // until it is killed
	}
	holdfast.CopyAll(context.Background(), pairs(folder+"/to", folder+"/from"), o)
}

// killTree kills a copy of a tree when it is told of the first file, and calls whileItLives before.
func killTree(t *testing.T, folder, how string, whileItLives func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestNextCopyRemovesWhatAKilledOneLeft$")
	cmd.Env = append(os.Environ(), killedTree+"="+how+":"+folder)
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

// leftIn returns the temporary files below a folder.
func leftIn(folder string) (left []string) {
	filepath.WalkDir(folder, func(path string, d os.DirEntry, _ error) error {
		if strings.HasPrefix(filepath.Base(path), ".holdfast-") {
			left = append(left, path)
		}
		return nil
	})
	return left
}

var killedCopies = map[string]holdfast.CopyOptions{
	"atomic": {Atomic: true, KeepGoing: true}, "archive": {Atomic: true, Archive: true, KeepGoing: true},
}

func TestNextCopyRemovesWhatAKilledOneLeft(t *testing.T) {
	if how, folder, ok := strings.Cut(os.Getenv(killedTree), ":"); ok {
		copyUntilStuck(folder, killedCopies[how])
		return
	}
	for how, o := range killedCopies {
		folder := memoryFolder(t)
		for i := range 20 {
			mustWrite(t, fmt.Sprintf("%s/from/sub/file%d", folder, i), strings.Repeat("text", i))
		}
		// What is refused is told at once, while the others wait for their names.
		if err := unix.Mkfifo(folder+"/from/sub/pipe", 0o600); err != nil {
			t.Fatal(err)
		}
		killTree(t, folder, how, func() {
			before := len(leftIn(folder))
			if _, err := holdfast.CopyAll(t.Context(), pairs(folder+"/to", folder+"/from"), o); err != nil && !strings.Contains(err.Error(), "pipe") {
				t.Errorf("%s: beside one that lives: %v", how, err)
			}
			if after := len(leftIn(folder)); after != before {
				t.Errorf("%s: of %d temporaries of one that lives %d are there", how, before, after)
			}
		})
		left := leftIn(folder)
		other := folder + "/to/sub/.holdfast-other"
		mustWrite(t, other, "another's")
		if _, err := holdfast.CopyAll(t.Context(), pairs(folder+"/to", folder+"/from"), o); err != nil && !strings.Contains(err.Error(), "pipe") {
			t.Errorf("%s: %v", how, err)
		}
		if now := leftIn(folder); len(left) == 0 || len(now) != 1 || now[0] != other {
			t.Errorf("%s: of %d temporaries there are %v", how, len(left), now)
		}
	}
}

// TestWhatIsNoLeftoverStays puts a file that cannot be one where a temporary would be.
func TestWhatIsNoLeftoverStays(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	folder := memoryFolder(t)
	mustWrite(t, folder+"/from/file", "new")
	mustWrite(t, folder+"/to/file", "old")
	var name string
	o := holdfast.CopyOptions{Atomic: true}
	watch, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(watch)
	if _, err := unix.InotifyAddWatch(watch, folder+"/to", unix.IN_CREATE); err != nil {
		t.Fatal(err)
	}
	copyAll(t, o, folder+"/to", folder+"/from")
	event := make([]byte, 4096)
	if n, err := unix.Read(watch, event); err != nil || n <= unix.SizeofInotifyEvent {
		t.Fatal(n, err)
	}
	name, _, _ = strings.Cut(string(event[unix.SizeofInotifyEvent:]), "\x00")
	mustWrite(t, folder+"/to/"+name, "another's")
	if err := os.Chown(folder+"/to/"+name, 1234, 1234); err != nil {
		t.Fatal(err)
	}
	copyAll(t, o, folder+"/to", folder+"/from")
	if got, err := os.ReadFile(folder + "/to/" + name); string(got) != "another's" {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.Chown(folder+"/to/"+name, 0, 0); err != nil {
		t.Fatal(err)
	}
	copyAll(t, o, folder+"/to", folder+"/from") // now it could be one of ours
	for what, make := range map[string]func() error{
		"a link":       func() error { return os.Symlink("file", folder+"/to/"+name) },
		"a pipe":       func() error { return unix.Mkfifo(folder+"/to/"+name, 0o600) },
		"of two names": func() error { return os.Link(folder+"/from/file", folder+"/to/"+name) },
	} {
		if err := make(); err != nil {
			t.Fatal(err)
		}
		copyAll(t, o, folder+"/to", folder+"/from")
		if err := os.Remove(folder + "/to/" + name); err != nil {
			t.Errorf("%s is gone: %v", what, err)
		}
	}
	if left := leftIn(folder); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}
