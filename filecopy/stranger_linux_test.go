package filecopy

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

// TestCopiesAreMadeWhereNoStrangerLeadsThem has a stranger replace all that comes into the
// destination by a link to a directory of root. The stranger also plants what looks like a
// stale file.
func TestCopiesAreMadeWhereNoStrangerLeadsThem(t *testing.T) {
	from := filepath.Join(t.TempDir(), "from")
	victim := filepath.Join(t.TempDir(), "victim")
	for _, dir := range []string{from, victim} {
		if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "file"), []byte(filepath.Base(dir)), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	exchanged, copied := 0, 0
	for range 100 {
		to := isolate.Public(t, true)
		link := filepath.Join(to, "zz-link")
		if err := os.Symlink(victim, link); err != nil {
			t.Fatal(err)
		}
		stop := isolate.ExchangingAll(t, to, link)
		result, err := All(t.Context(), maps.All(map[string]string{filepath.Join(to, "copy"): from}), Options{Atomic: true})
		if err == nil && result.Failed == 0 {
			copied++
		}
		exchanged += stop()
		text, err := os.ReadFile(filepath.Join(victim, "file"))
		entries, _ := os.ReadDir(victim)
		if err != nil || string(text) != "victim" || len(entries) != 1 {
			t.Fatalf("the victim has %q, %v, and %d entries", text, err, len(entries))
		}
	}
	t.Logf("%d exchanges, %d of 100 copies without an error", exchanged, copied)
}

// TestALeftoverIsRemovedWhereNoStrangerLeadsTheCopy has a stranger replace a directory of the
// destination, in which a killed copy has left a file. The link that takes its place leads to
// one of root with a file of the same name.
func TestALeftoverIsRemovedWhereNoStrangerLeadsTheCopy(t *testing.T) {
	from, victim, to := t.TempDir(), t.TempDir(), isolate.Public(t, true)
	sub, link := filepath.Join(to, "sub"), filepath.Join(to, "zz-link")
	if err := errors.Join(os.Mkdir(filepath.Join(from, "sub"), 0o700), os.WriteFile(filepath.Join(from, "sub", "file"), []byte("new"), 0o600), os.Symlink(victim, link)); err != nil {
		t.Fatal(err)
	}
	isolate.AsStranger(t, func() error { return errors.Join(os.Mkdir(sub, 0o777), os.Chmod(sub, 0o777)) })
	pair := maps.All(map[string]string{to: from})
	watch, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(watch)
	if _, err := unix.InotifyAddWatch(watch, sub, unix.IN_CREATE); err != nil {
		t.Fatal(err)
	}
	if _, err := All(t.Context(), pair, Options{Atomic: true}); err != nil {
		t.Fatal(err)
	}
	event := make([]byte, 4096)
	if n, err := unix.Read(watch, event); err != nil || n <= unix.SizeofInotifyEvent {
		t.Fatal(n, err)
	}
	name, _, _ := strings.Cut(string(event[unix.SizeofInotifyEvent:]), "\x00")
	if err := os.WriteFile(filepath.Join(victim, name), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	exchanged, copied, removed, rounds := 0, 0, 0, 200
	if testing.Short() {
		rounds /= 10
	}
	for range rounds {
		is, err := os.Lstat(sub)
		if err == nil && !is.IsDir() {
			err = unix.Renameat2(unix.AT_FDCWD, sub, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(sub, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		stop := isolate.ExchangingAll(t, to, link)
		result, err := All(t.Context(), pair, Options{Atomic: true, KeepGoing: true})
		if err == nil && result.Failed == 0 {
			copied++
		}
		exchanged += stop()
		if _, err := os.Lstat(filepath.Join(sub, name)); errors.Is(err, os.ErrNotExist) {
			removed++
		}
		text, err := os.ReadFile(filepath.Join(victim, name))
		entries, _ := os.ReadDir(victim)
		if err != nil || string(text) != "mine" || len(entries) != 1 {
			t.Fatalf("the victim has %q, %v, and %d entries", text, err, len(entries))
		}
	}
	t.Logf("%d exchanges, %d of %d copies without an error, %d leftovers removed", exchanged, copied, rounds, removed)
	if exchanged == 0 || removed == 0 {
		t.Errorf("%d exchanges, %d leftovers removed", exchanged, removed)
	}
}
