package isolate

import (
	"errors"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// Stranger is the user of [AsStranger]: nobody.
const Stranger = 65534

// AsStranger runs do as another user, without root's rights, on a thread of its own, and waits for
// it. Like all functions of this file it skips the test unless root runs it.
func AsStranger(t *testing.T, do func() error) {
	t.Helper()
	if err := <-asStranger(t, do); err != nil {
		t.Fatal(err)
	}
}

func asStranger(t *testing.T, do func() error) <-chan error {
	t.Helper()
	skipUnlessRoot(t)
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its goroutine
		for _, call := range []uintptr{unix.SYS_SETRESGID, unix.SYS_SETRESUID} {
			if _, _, errno := unix.RawSyscall(call, Stranger, Stranger, Stranger); errno != 0 {
				done <- errno
				return
			}
		}
		done <- do()
	}()
	return done
}

func skipUnlessRoot(t *testing.T) {
	t.Helper()
	Once(t, Race) // it sees nothing of what another user does
	if os.Geteuid() != 0 {
		t.Skip("to be another user takes root")
	}
}

// Public makes a directory of root or of the stranger in which every user may make files. It is
// removed with the test.
func Public(t *testing.T, strangers bool) string {
	t.Helper()
	skipUnlessRoot(t)
	above := t.TempDir()
	dir, err := os.MkdirTemp(above, "public-")
	if err == nil {
		err = errors.Join(os.Chmod(dir, os.ModeSticky|0o777), os.Chmod(filepath.Dir(above), 0o755)) // its parent could be entered by its owner only
	}
	if err == nil && strangers {
		err = os.Chown(dir, Stranger, Stranger)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Exchanging makes a stranger exchange two names (renameat2(2), RENAME_EXCHANGE) each time that one
// of the files is opened (inotify(7)), and then call then. stop ends that and returns the number of
// exchanges.
func Exchanging(t *testing.T, a, b string, then func(), files ...string) (stop func() int) {
	t.Helper()
	return exchanging(t, files, unix.IN_OPEN, func() (n int, err error) {
		defer then()
		return exchange(a, b)
	})
}

// ExchangingAll makes a stranger exchange every name in a directory for a link, each time that
// something was made, opened or read in it.
func ExchangingAll(t *testing.T, dir, link string) (stop func() int) {
	t.Helper()
	return exchanging(t, []string{dir}, unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_OPEN|unix.IN_ATTRIB, func() (n int, err error) {
		entries, err := os.ReadDir(dir)
		for _, e := range entries {
			name := filepath.Join(dir, e.Name())
			if name == link || err != nil {
				continue
			}
			var more int
			more, err = exchange(name, link)
			n += more
		}
		return n, err
	})
}

// exchange returns the number of successful exchanges: a name may be gone, or root's.
func exchange(a, b string) (n int, err error) {
	err = unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	switch {
	case err == nil:
		return 1, nil
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES), errors.Is(err, unix.EBUSY):
		return 0, nil
	}
	return 0, err
}

func exchanging(t *testing.T, files []string, events uint32, each func() (int, error)) (stop func() int) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	watches := make(chan error, 1)
	done := asStranger(t, func() error {
		watched, err := watch(files, events)
		watches <- err
		if err != nil {
			return err
		}
		defer unix.Close(watched)
		for goesOn(int(read.Fd()), watched) {
			more, err := each()
			if err != nil {
				return err
			}
			n += more
		}
		return nil
	})
	select {
	case err = <-watches:
	case err = <-done:
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() int {
		t.Helper()
		_ = write.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
		_ = read.Close()
		return n
	}
}

// watch returns a descriptor that reports events on files.
func watch(files []string, events uint32) (fd int, err error) {
	fd, err = unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	for _, file := range files {
		if err == nil {
			_, err = unix.InotifyAddWatch(fd, file, events|unix.IN_DONT_FOLLOW)
		}
	}
	return fd, err
}

// goesOn waits for an event, and reports whether it came before stop.
func goesOn(stop, watched int) bool {
	fds := []unix.PollFd{{Fd: int32(stop), Events: unix.POLLIN}, {Fd: int32(watched), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(fds, -1); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if fds[1].Revents != 0 {
		_, _ = unix.Read(watched, make([]byte, 4096))
	}
	return fds[0].Revents == 0
}

// A Lure is a directory of a stranger. Each time that it, or a file in it, is opened, the stranger
// exchanges it for a link to a directory of root. Both have a file of the same name.
type Lure struct{ Dir, File, Victim string }

// Mine is the content of the victim's file.
const Mine = "mine"

// Shortened returns a tenth of the rounds in a short test.
func Shortened(rounds int) int {
	if testing.Short() {
		return rounds / 10
	}
	return rounds
}

// Exchanges yields rounds in which a stranger should exchange a directory: the given number, and
// more until half as many exchanges were made. On a busy machine a round may end before the
// stranger runs.
func Exchanges(t *testing.T, rounds int, exchanged *int) iter.Seq[int] {
	return func(yield func(int) bool) {
		i := 0
		for ; i < rounds || *exchanged < rounds/2 && i < 30*rounds; i++ {
			if !yield(i) {
				return
			}
		}
		t.Logf("%d exchanges in %d rounds", *exchanged, i)
		if *exchanged < rounds/2 {
			t.Error("the directory was seldom exchanged")
		}
	}
}

// Lured runs do in rounds, each with a Lure of its own; wait returns when the directory was
// exchanged back. The victim's file must not change.
func Lured(t *testing.T, theirs string, do func(l Lure, wait func())) {
	t.Helper()
	rounds, lost, exchanged := Shortened(AttackRounds), 0, 0
	for range Exchanges(t, rounds, &exchanged) {
		parent := Public(t, false)
		l := Lure{Dir: filepath.Join(parent, "dir"), Victim: filepath.Join(t.TempDir(), "victim")}
		link := filepath.Join(parent, "zz-link")
		l.File = filepath.Join(l.Dir, "file")
		if err := errors.Join(os.Mkdir(l.Victim, 0o700), os.WriteFile(filepath.Join(l.Victim, "file"), []byte(Mine), 0o600)); err != nil {
			t.Fatal(err)
		}
		AsStranger(t, func() error {
			err := errors.Join(os.Mkdir(l.Dir, 0o777), os.Chmod(l.Dir, 0o777), os.Symlink(l.Victim, link))
			if err == nil && theirs != "" {
				err = errors.Join(os.WriteFile(l.File, []byte(theirs), 0o666), os.Chmod(l.File, 0o666))
			}
			return err
		})
		again := make(chan bool, 1)
		stop := Exchanging(t, l.Dir, link, func() {
			select {
			case again <- true:
			default:
			}
		}, l.Dir)
		do(l, func() { <-again })
		exchanged += stop()
		text, err := os.ReadFile(filepath.Join(l.Victim, "file"))
		if entries, _ := os.ReadDir(l.Victim); err != nil || string(text) != Mine || len(entries) != 1 {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("in %d rounds root has changed what a stranger led it to", lost)
	}
}

// AttackRounds is how often a stranger attacks. Root that made a directory by its path was led elsewhere in one round of fifty.
const AttackRounds = 200
