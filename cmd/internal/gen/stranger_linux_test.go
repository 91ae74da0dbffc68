package gen

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

// TestGenOpensNothingThatAStrangerLinksItsLeftoverTo has a name that gen looks at exchanged
// for a link all the time.
func TestGenOpensNothingThatAStrangerLinksItsLeftoverTo(t *testing.T) {
	parent := isolate.Public(t, true)
	victim := filepath.Join(t.TempDir(), "victim")
	name, link := slot(filepath.Join(parent, "file"), 0), filepath.Join(parent, "zz-link")
	if err := errors.Join(os.WriteFile(victim, []byte("mine"), 0o600), os.Symlink(victim, link)); err != nil {
		t.Fatal(err)
	}
	opened, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err == nil {
		_, err = unix.InotifyAddWatch(opened, victim, unix.IN_OPEN)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(opened)
	removed := 0
	for range isolate.Shortened(isolate.AttackRounds) {
		if err := os.WriteFile(name, nil, 0o600); err != nil && !errors.Is(err, unix.ELOOP) {
			t.Fatal(err)
		}
		_ = os.Remove(link)
		if err := os.Symlink(victim, link); err != nil {
			t.Fatal(err)
		}
		stop := isolate.ExchangingAll(t, parent, link)
		for range 50 {
			removeLeftover(name)
		}
		stop()
		if _, err := os.Lstat(name); errors.Is(err, os.ErrNotExist) {
			removed++
		}
		_ = os.Remove(name)
	}
	t.Logf("a leftover was removed in %d rounds", removed)
	if n, _ := unix.Read(opened, make([]byte, 1<<16)); n > 0 {
		t.Errorf("the file that the link leads to was opened, about %d times", n/unix.SizeofInotifyEvent)
	}
	if text, err := os.ReadFile(victim); err != nil || string(text) != "mine" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestGenMakesItsFileInOneDirectory has a stranger exchange the directory for a link to one
// of root, each time that it is opened.
func TestGenMakesItsFileInOneDirectory(t *testing.T) {
	victim := filepath.Join(t.TempDir(), "victim")
	if err := errors.Join(os.Mkdir(victim, 0o700), os.WriteFile(filepath.Join(victim, "file"), []byte("mine"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, force := range []string{"--force=false", "--force"} {
		lost, exchanged := 0, 0
		for range isolate.Exchanges(t, isolate.Shortened(isolate.AttackRounds)/2, &exchanged) {
			parent := isolate.Public(t, false)
			dir, link := filepath.Join(parent, "dir"), filepath.Join(parent, "zz-link")
			isolate.AsStranger(t, func() error {
				return errors.Join(os.Mkdir(dir, 0o777), os.Symlink(victim, link))
			})
			stop := isolate.Exchanging(t, dir, link, func() {}, dir)
			_ = genRun(t.Context(), []string{"gen", force, filepath.Join(dir, "file"), "10kB"}, nil, io.Discard, io.Discard)
			exchanged += stop()
			text, err := os.ReadFile(filepath.Join(victim, "file"))
			if entries, _ := os.ReadDir(victim); err != nil || string(text) != "mine" || len(entries) != 1 {
				lost++
				if err := errors.Join(os.RemoveAll(victim), os.Mkdir(victim, 0o700), os.WriteFile(filepath.Join(victim, "file"), []byte("mine"), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if lost > 0 {
			t.Errorf("%s: in %d rounds root has made a file where a stranger led it", force, lost)
		}
	}
}
