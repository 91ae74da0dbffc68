package workdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

// TestPathIsByTheOpenDirectoryWhereOthersMayRename plants directories and links of root and
// of a stranger.
func TestPathIsByTheOpenDirectoryWhereOthersMayRename(t *testing.T) {
	sticky, strangers := isolate.Public(t, false), isolate.Public(t, true)
	elsewhere := t.TempDir()
	isolate.AsStranger(t, func() error {
		return errors.Join(os.Mkdir(filepath.Join(sticky, "theirs"), 0o755),
			os.Symlink(elsewhere, filepath.Join(sticky, "their-link")))
	})
	for _, name := range []string{"ours", "ours/deep"} {
		if err := os.Mkdir(filepath.Join(sticky, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	open := filepath.Join(sticky, "open")
	if err := errors.Join(os.Symlink("ours/../ours", filepath.Join(sticky, "our-link")), os.Mkdir(open, 0o700), os.Chmod(open, 0o775)); err != nil {
		t.Fatal(err)
	}
	check := func(parent string, held bool) {
		t.Helper()
		d, err := Make(parent, "made")
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if d.IsHeld() != held || strings.HasPrefix(d.Path(), "/proc/") != held {
			t.Errorf("in %s it is %s", parent, d.Path())
		}
		if now, err := os.Stat(d.Path()); err != nil || !os.SameFile(now, d.is) {
			t.Errorf("in %s its path leads elsewhere: %v", parent, err)
		}
		if err := d.Remove(); err != nil {
			t.Error(err)
		}
	}
	check(sticky, false)
	check(filepath.Join(sticky, "ours/deep"), false)
	check(filepath.Join(sticky, "our-link/deep"), false)
	check(filepath.Join(sticky, "their-link"), true)
	check(filepath.Join(sticky, "theirs"), true)
	check(open, true)
	check(strangers, true)
	at, release, err := At(strangers)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	check(at, true)
}

func TestADirectoryThatOthersMayWriteToIsNotOurs(t *testing.T) {
	parent := isolate.Public(t, false)
	check := func(name string, mode fs.FileMode, uid int) {
		t.Helper()
		dir := filepath.Join(parent, name)
		if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, mode), os.Chown(dir, uid, -1)); err != nil {
			t.Fatal(err)
		}
		d, err := Open(parent, name)
		var foreign *ForeignError
		if ours := uid == 0 && mode&0o022 == 0; ours != (err == nil) || !ours && !errors.As(err, &foreign) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			_ = d.Close()
		}
	}
	check("ours", 0o755, 0)
	check("of all", 0o707, 0)
	check("of a group", 0o720, 0)
	check("of a stranger", 0o700, isolate.Stranger)
}

func TestWhatHasItsNameIsLeft(t *testing.T) {
	parent := t.TempDir()
	d, err := Make(parent, "made")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := errors.Join(os.Rename(d.Name(), d.Name()+"-before"), os.Mkdir(d.Name(), 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := d.Remove(); !errors.Is(err, errExchanged) {
		t.Errorf("removing it: %v", err)
	}
	if _, err := os.Stat(d.Name()); err != nil {
		t.Error(err)
	}
}

// TestADirectoryExchangedForALinkIsNotOpened has somebody exchange the name of a directory and a link to another one all the time: of
// the same user, so that its owner says nothing. What is opened is the first, or nothing.
func TestADirectoryExchangedForALinkIsNotOpened(t *testing.T) {
	parent := t.TempDir()
	at := func(name string) string { return filepath.Join(parent, name) }
	if err := errors.Join(os.Mkdir(at("ours"), 0o700), os.Mkdir(at("other"), 0o700), os.Symlink("other", at("link"))); err != nil {
		t.Fatal(err)
	}
	want, err := os.Stat(at("ours"))
	if err != nil {
		t.Fatal(err)
	}
	ends, ended := make(chan bool), make(chan error, 1)
	go func() {
		for {
			select {
			case <-ends:
				ended <- nil
				return
			default:
			}
			if err := unix.Renameat2(unix.AT_FDCWD, at("ours"), unix.AT_FDCWD, at("link"), unix.RENAME_EXCHANGE); err != nil {
				ended <- err
				return
			}
		}
	}()
	const most, enough = 1_000_000, 20
	exchanged, opened := 0, 0
	for try := 0; try < most && (exchanged < enough || opened < enough); try++ {
		d, err := Open(parent, "ours")
		switch {
		case errors.Is(err, errExchanged):
			exchanged++
		case err == nil:
			opened++
			if !os.SameFile(d.is, want) {
				t.Error("the other directory was opened")
				try = most
			}
			_ = d.Close()
		}
	}
	close(ends)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if !t.Failed() && exchanged < enough {
		t.Errorf("it was exchanged %d times while it was opened", exchanged)
	}
}
