//go:build go1.25 && unix

package wal

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

// umask sets what new files of the process must not permit, until the test ends.
func umask(t *testing.T, mask int) {
	old := syscall.Umask(mask)
	t.Cleanup(func() { syscall.Umask(old) })
}

// fillSegments goes on to a later segment, and waits until the next one is prepared.
func fillSegments(t *testing.T, l *Log, segments uint64) {
	t.Helper()
	for until := l.head.epoch + segments; l.head.epoch < until || l.head.end < headerSize+2500; {
		if _, err := l.Append(make([]byte, 700)); err != nil {
			t.Fatal(err)
		}
	}
	l.background.Wait()
}

// filesPermit holds all files of a directory to permissions, from an epoch on.
func filesPermit(t *testing.T, dir string, epoch uint64, want fs.FileMode) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(e.Name(), segmentSuffix) && e.Name() < segmentName(epoch) {
			continue
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s permits %v, want %v", e.Name(), info.Mode(), want)
		}
	}
}

func dirPermits(t *testing.T, dir string, want fs.FileMode) {
	t.Helper()
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != want {
		t.Errorf("%v, %v; want %v", info.Mode(), err, want)
	}
}

// TestNewFilesPermitWhatTheOptionSays, but what umask takes: segments that are new, prepared and recycled, the lock, and the
// directory.
func TestNewFilesPermitWhatTheOptionSays(t *testing.T) {
	for _, c := range []struct {
		mask            int
		perm, file, dir fs.FileMode
	}{
		{0, 0, 0o666, 0o777},
		{0o022, 0, 0o644, 0o755},
		{0, 0o600, 0o600, 0o700},
		{0, 0o640, 0o640, 0o750},
		{0, 0o662, 0o662, 0o772}, // others may write, and not read
		{0o027, 0o666, 0o640, 0o750},
		{0o077, 0o640, 0o600, 0o700},
	} {
		umask(t, c.mask)
		dir := filepath.Join(t.TempDir(), "log")
		o := small
		o.Perm = c.perm
		for range 2 {
			l, _ := mustOpen(t, dir, o)
			dirPermits(t, dir, c.dir)
			filesPermit(t, dir, 0, c.file)
			fillSegments(t, l, 2)
			filesPermit(t, dir, 0, c.file)
			if err := removeSpare(l); err != nil {
				t.Fatal(err)
			}
			var was, is os.FileInfo
			was, err := os.Stat(filepath.Join(dir, l.segments[0].name))
			if err == nil {
				err = l.TruncateBefore(l.Last())
			}
			if err == nil {
				is, err = os.Stat(filepath.Join(dir, spareFile))
			}
			if err != nil || !os.SameFile(was, is) {
				t.Fatal("no segment was recycled", err)
			}
			fillSegments(t, l, 1)
			if is, err = os.Stat(filepath.Join(dir, l.head.name)); err != nil || !os.SameFile(was, is) {
				t.Errorf("umask %#o, %#o: a recycled segment was made anew, %v", c.mask, c.perm, err)
			}
			fillSegments(t, l, 1)
			filesPermit(t, dir, 0, c.file)
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestWhatIsThereKeepsItsPermissions: the directory, the lock and segments. But no new segment permits more than the option says
// because a file is recycled.
func TestWhatIsThereKeepsItsPermissions(t *testing.T) {
	umask(t, 0)
	dir := filepath.Join(t.TempDir(), "log")
	l, _ := mustOpen(t, dir, small)
	fillSegments(t, l, 1)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	o := small
	o.Perm = 0o640
	l, _ = mustOpen(t, dir, o)
	old := l.head.epoch
	if _, err := l.Append([]byte("goes on in the same segment")); err != nil || l.head.epoch != old {
		t.Fatal(l.head.epoch, err)
	}
	dirPermits(t, dir, 0o777)
	for name, want := range map[string]fs.FileMode{lockFile: 0o666, segmentName(old): 0o666} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%v, %v; want %v", info, err, want)
		}
	}
	// Each of them becomes the spare file.
	if err := os.Remove(filepath.Join(dir, lockFile)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := errors.Join(removeSpare(l), l.TruncateBefore(l.Last())); err != nil {
			t.Fatal(err)
		}
		fillSegments(t, l, 1)
	}
	filesPermit(t, dir, old+1, 0o640)
}

// TestNothingButRegularFilesIsOpened puts something else in the place of each of a log's files. No call waits, writes through a
// link, or leaves out the file's name.
func TestNothingButRegularFilesIsOpened(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	kinds := map[string]func(name string) error{
		"it is a symbolic link; move the file itself there": func(name string) error { return os.Symlink(elsewhere, name) },
		"it is no regular file; move it away":               func(name string) error { return syscall.Mkfifo(name, 0o666) },
		"directory":                                         func(name string) error { return os.Mkdir(name, 0o777) },
	}
	says := func(what string, err error, path, words string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), path) || words != "directory" && !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v; want %s and %q", what, err, path, words)
		}
	}
	for words, put := range kinds {
		dir := filepath.Join(t.TempDir(), "log")
		at := func(name string) string { return filepath.Join(dir, name) }
		l, _ := mustOpen(t, dir, small)
		fillSegments(t, l, 2)
		text, err := os.ReadFile(at(segmentName(1)))
		if err == nil {
			err = os.WriteFile(elsewhere, text, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
		replace := func(name string) {
			t.Helper()
			if err := errors.Join(os.Rename(at(name), at("aside")), put(at(name))); err != nil {
				t.Fatal(err)
			}
		}
		restore := func(name string) {
			t.Helper()
			if err := errors.Join(os.RemoveAll(at(name)), os.Rename(at("aside"), at(name))); err != nil {
				t.Fatal(err)
			}
		}

		// While it is open.
		replace(segmentName(1))
		_, err = l.Read(1)
		says("Read", err, at(segmentName(1)), words)
		restore(segmentName(1))
		if _, err := l.Read(1); err != nil {
			t.Error(err)
		}
		replace(spareFile)
		next, last := l.head.epoch+1, uint64(0)
		for err = nil; err == nil && l.head.epoch < next; {
			last, err = l.Append(make([]byte, 700))
		}
		says("Append", err, at(spareFile), words)
		restore(spareFile)
		if err := l.Wait(t.Context(), last); err != nil || l.head.epoch != next {
			t.Errorf("%s is there again: %v", spareFile, err)
		}
		l.background.Wait()
		if err := errors.Join(removeSpare(l), put(at(spareMaking))); err != nil {
			t.Fatal(err)
		}
		for err = nil; err == nil && l.head.epoch < next+1; {
			_, err = l.Append(make([]byte, 700))
		}
		if words == "directory" {
			says("Append", err, dir, words)
		} else if err != nil {
			t.Errorf("%s: %v", words, err)
		}
		if err := errors.Join(os.RemoveAll(at(spareMaking)), l.Wait(t.Context(), l.Last()), l.Close()); err != nil {
			t.Fatal(err)
		}

		// And before.
		for _, name := range []string{lockFile, segmentName(1), l.head.name} {
			replace(name)
			_, _, err := Open(dir, small)
			says("Open", err, dir, words)
			if name != lockFile {
				says("Open", err, at(name), words)
			}
			_, err = Scan(dir, func(Record, *DamageError) bool { return true })
			says("Scan", err, dir, words)
			restore(name)
		}
		_, found := mustOpen(t, dir, small)
		if found.Last != l.Last() || found.Records != int64(found.Last) {
			t.Errorf("%+v, want %d records", found, l.Last())
		}
		if got, err := os.ReadFile(elsewhere); err != nil || string(got) != string(text) {
			t.Errorf("what the links lead to was changed, %v", err)
		}
	}
}

// secondProcess makes TestASecondProcessIsRefused be the second one, for a directory.
const secondProcess = "HOLDFAST_TEST_SECOND_LOG"

func TestASecondProcessIsRefused(t *testing.T) {
	if dir := os.Getenv(secondProcess); dir != "" {
		_, _, err := Open(dir, small)
		if err == nil {
			t.Fatal("it was opened")
		}
		_, scanned := Scan(dir, func(Record, *DamageError) bool { return true })
		t.Fatalf("Open: %v\nScan: %v", err, scanned)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	l, _ := mustOpen(t, dir, small)
	cmd := exec.CommandContext(t.Context(), exe, isolate.OnlyThis(t))
	cmd.Env = append(os.Environ(), secondProcess+"="+dir)
	out, err := cmd.CombinedOutput()
	for _, call := range []string{"Open: ", "Scan: "} {
		if want := call + "wal: the log is open elsewhere; close it there first: " + filepath.Join(dir, lockFile) + "\n"; err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%v, %s, want %q", err, out, want)
		}
	}
	if _, err := l.Append([]byte("still ours")); err != nil {
		t.Error(err)
	}
}
