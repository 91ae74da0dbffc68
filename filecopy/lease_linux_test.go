//go:build go1.25

package filecopy

import (
	"context"
	"errors"
	"os"
	ossignal "os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// leased makes a file that this process has a lease on, and reports when another opens it.
func leased(t *testing.T, path string) (f *os.File, asked <-chan os.Signal) {
	t.Helper()
	must(t, os.WriteFile(path, []byte("leased"), 0o600))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	t.Cleanup(func() { _ = f.Close() }) // the lease ends with it
	signals := make(chan os.Signal, 1)
	ossignal.Notify(signals, unix.SIGIO)
	t.Cleanup(func() { ossignal.Stop(signals) })
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Skip("there are no leases on this file system: ", err)
	}
	return f, signals
}

func TestACopyWaitsForALease(t *testing.T) {
	for name, run := range map[string]func(dst, src string) error{
		"file": func(dst, src string) error { _, err := File(t.Context(), dst, src, Options{}); return err },
		"directory": func(dst, src string) error {
			pairs := func(yield func(string, string) bool) { yield(filepath.Dir(dst), filepath.Dir(src)) }
			_, err := All(t.Context(), pairs, Options{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := t.TempDir(), t.TempDir()
			src, dst := filepath.Join(from, "file"), filepath.Join(to, "file")
			f, asked := leased(t, src)
			done := make(chan error)
			go func() { done <- run(dst, src) }()
			<-asked
			_, err := f.WriteAt([]byte("given!"), 0)
			must(t, err)
			_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
			must(t, err)
			must(t, <-done)
			if got, err := os.ReadFile(dst); string(got) != "given!" {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestACopyThatWaitsForALeaseCanBeEnded(t *testing.T) {
	dir := t.TempDir()
	_, asked := leased(t, filepath.Join(dir, "src"))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := File(ctx, filepath.Join(dir, "dst"), filepath.Join(dir, "src"), Options{})
		done <- err
	}()
	<-asked
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A busyDisk has a source that can't be opened at once: never, or until it is denied.
type busyDisk struct {
	sys.Disk
	denied func() error
}

func (d busyDisk) OpenSource(int, sys.Name) (int, error) {
	if err := d.denied(); err != nil {
		return -1, err
	}
	return -1, syscall.EWOULDBLOCK
}

func TestACopyDoesNotWaitForALeaseForEver(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(dir+"/src", nil, 0o600))
	must(t, unix.Mkfifo(dir+"/pipe", 0o600))
	check := func(name string, denied, waits time.Duration, want error) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			disk := busyDisk{denied: func() error {
				if time.Since(began) >= denied {
					return syscall.EACCES
				}
				return nil
			}}
			_, err := copyOne(t.Context(), disk, dir+"/dst", dir+"/"+name, Options{})
			if waited := time.Since(began); waited != waits || !errors.Is(err, want) {
				t.Errorf("%s: after %v: %v", name, waited, err)
			}
		})
	}
	check("src", time.Hour, longestLease, syscall.EWOULDBLOCK)
	check("src", 3*time.Millisecond, 3*time.Millisecond, syscall.EACCES) // it waits 1 ms, and then 2 ms
	check("pipe", time.Hour, 0, syscall.EWOULDBLOCK)
}
