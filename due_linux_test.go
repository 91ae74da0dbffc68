//go:build go1.25

package holdfast_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// dueTogether are the Writers of a test, each with a record that is due soon.
func dueTogether(t *testing.T, dir string, n int, policy string) []*holdfast.Writer {
	t.Helper()
	all := make([]*holdfast.Writer, n)
	for i := range all {
		w, err := holdfast.Create(filepath.Join(dir, fmt.Sprint(i)), mustParse(t, policy))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		})
		all[i] = w
	}
	for _, w := range all {
		if _, err := w.Write([]byte("record")); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func awaitDurable(all []*holdfast.Writer) {
	for _, w := range all {
		for w.Durable() < w.Written() {
			runtime.Gosched()
		}
	}
}

// TestDueWritersStartFewGoroutines has thousands of Writers due at one time, and counts goroutines all the while: at most 64 in flushes
// and 64 in syncs for one file system, the clock's and the counter, not one for each Writer.
func TestDueWritersStartFewGoroutines(t *testing.T) {
	isolate.Once(t, isolate.Ordinary)
	const most = 2*64 + 16
	writers := 1500
	if isolate.RaceEnabled { // a few times the goroutines that there may be
		writers = 500
	}
	before := runtime.NumGoroutine()
	var peak atomic.Int64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				peak.Store(max(peak.Load(), int64(runtime.NumGoroutine()-before)))
				runtime.Gosched()
			}
		}
	}()
	awaitDurable(dueTogether(t, t.TempDir(), writers, "buffer=4KiB,flush=100ms,sync=300ms"))
	close(stop)
	<-stopped
	if n := peak.Load(); n > most {
		t.Errorf("%d Writers that were due had %d goroutines at one time, want at most %d", writers, n, most)
	}
}

// TestHangingWritersHoldUpNoOther has flushes of 100 Writers hang, to pipes that nobody reads, whose names are on the file system of others.
// These flush and sync meanwhile.
func TestHangingWritersHoldUpNoOther(t *testing.T) {
	const hanging = 100
	dir := t.TempDir()
	pipes := make([]*os.File, hanging)
	var all []*holdfast.Writer
	for i := range pipes {
		path := filepath.Join(dir, fmt.Sprint("pipe", i))
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if pipes[i], err = os.OpenFile(path, os.O_RDWR, 0); err != nil {
			t.Fatal(err)
		}
		for n := 0; n < 1<<16; n += 1 << 12 { // as much as it takes
			if _, err := f.Write(make([]byte, 1<<12)); err != nil {
				t.Fatal(err)
			}
		}
		w, err := holdfast.New(f, mustParse(t, "buffer=4KiB,flush=1ms,sync=never"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte("record")); err != nil {
			t.Fatal(err)
		}
		all = append(all, w)
	}
	for _, w := range dueTogether(t, dir, 200, "buffer=4KiB,flush=100ms,sync=never") { // which no sync flushes
		for w.Flushed() < w.Written() {
			runtime.Gosched()
		}
	}
	awaitDurable(dueTogether(t, dir, 200, "buffer=4KiB,flush=100ms,sync=300ms"))
	for i, w := range all {
		if w.Flushed() > 0 {
			t.Errorf("the flush to pipe %d does not hang", i)
		}
		if _, err := pipes[i].Read(make([]byte, 1<<16)); err != nil {
			t.Error(err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if err := pipes[i].Close(); err != nil {
			t.Error(err)
		}
	}
}

// A hangingFile is on a device whose syncs hang until release is closed, and which takes writes.
type hangingFile struct {
	syncs   *atomic.Int64
	release chan struct{}
}

func (f hangingFile) Write(p []byte) (int, error) { return len(p), nil }
func (f hangingFile) Close() error                { return nil }
func (f hangingFile) FileSystemDevice() uint64    { return 1 << 60 }

func (f hangingFile) Sync() error {
	f.syncs.Add(1)
	<-f.release
	return nil
}

// TestHangingSyncsHoldUpNoFlush has more Writers' syncs hang than a device gets at once. The bytes of other Writers on it are
// flushed in time all the same, and of those that wait for a sync too.
func TestHangingSyncsHoldUpNoFlush(t *testing.T) {
	const hanging, atOnce = 100, 64
	var syncs atomic.Int64
	release := make(chan struct{})
	var all []*holdfast.Writer
	start := func(policy string) {
		w, err := holdfast.New(hangingFile{&syncs, release}, mustParse(t, policy))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte("record")); err != nil {
			t.Fatal(err)
		}
		all = append(all, w)
	}
	for range hanging {
		start("buffer=4KiB,flush=1ms,sync=2ms")
	}
	for syncs.Load() < atOnce {
		runtime.Gosched()
	}
	for range hanging {
		start("buffer=4KiB,flush=1ms,sync=never")
	}
	for _, w := range all {
		for w.Flushed() < w.Written() {
			runtime.Gosched()
		}
	}
	if n := syncs.Load(); n > atOnce {
		t.Errorf("%d syncs of a device at once, want at most %d", n, atOnce)
	}
	close(release)
	for _, w := range all {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}
