//go:build go1.25

// These are white-box tests, of state that no call shows and of moments that no call can wait for.

package files

import (
	"errors"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/sys"
)

func TestNothingIsKeptOfManyPaths(t *testing.T) {
	paths := 20_000
	if testing.Short() {
		paths = 2000
	}
	for _, p := range []holdfast.Policy{holdfast.Buffered(holdfast.KiB), {Buffer: holdfast.KiB, Sync: holdfast.Sync{Mode: holdfast.SyncClose}}, holdfast.Durable()} {
		disk := fault.NewDisk()
		f := newSet(disk, Options{Policy: p, Handles: 8, Memory: 16 * holdfast.KiB})
		for i := range paths {
			if err := f.Append(t.Context(), "/"+strconv.Itoa(i), []byte("x")); err != nil {
				t.Fatal(err)
			}
			if i%3 == 0 {
				f.Release(t.Context(), "/"+strconv.Itoa(i))
			}
		}
		if err := f.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		s, h := &f.streams, &f.handles
		kept := map[string]int{
			"streams": len(s.paths), "names": len(s.forgotten.names), "left": len(s.forgotten.left), "open files": len(f.open.byFile),
			"directories": len(h.Dirs), "lost names": len(f.names.Lost), "queues": len(f.turns.Last), "made": len(f.fresh.sealed),
		}
		for what, n := range kept {
			if n > 16 {
				t.Errorf("%v: %d %s are kept", p, n, what)
			}
		}
		if m := &f.flusher.memory; m.used+m.spare > m.limit || m.used < 0 || m.spare < 0 {
			t.Errorf("%v: %d bytes in use and %d spare, of %d", p, m.used, m.spare, m.limit)
		}
		f.Close()
	}
}

// The next in the queue of a file's writers looks there as soon as its turn comes.
func TestATornAppendIsKnownBeforeItsTurnEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := fault.NewDisk(
			fault.DiskFault{Op: fault.DiskWrite, Path: "log", Times: 1, Take: 3, Delay: time.Second, Err: syscall.ENOSPC})
		f := newSet(disk, Options{Policy: holdfast.Buffered(holdfast.KiB), Retry: Retry{Attempts: 1}})
		if err := f.Append(t.Context(), "/log", []byte("appended ")); err != nil {
			t.Fatal(err)
		}
		var flush sync.WaitGroup
		flush.Go(func() { f.Flush(t.Context()) })
		synctest.Wait() // it writes

		path, err := sys.Absolute("/log")
		if err != nil {
			t.Fatal(err)
		}
		var next keyed.Ticket
		f.turns.Join(f.streams.paths[path].file.key, &next)
		f.streams.mu.Lock() // no failure can be noted
		time.Sleep(time.Second)
		ended := false
		for range 1000 {
			runtime.Gosched()
			select {
			case <-next.First:
				ended = true
			default:
			}
		}
		f.streams.mu.Unlock()
		if ended {
			t.Error("the turn ended before it was noted what is written")
		}
		<-next.First
		if err := f.flusher.torn(path); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("in its turn the next gets %v", err)
		}
		f.turns.Leave(&next)
		flush.Wait()
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestMemoryIsTakenAtOnceAfterAFlush appends as much to a file again and again. Its bytes are copied from block to block only before
// the first flush, and where memory is short or less was flushed a block is small.
func TestMemoryIsTakenAtOnceAfterAFlush(t *testing.T) {
	const memory = 128 << 10
	f := newSet(fault.NewDisk(), Options{Policy: holdfast.Buffered(64 * holdfast.KiB), Memory: memory})
	check := func(path string, n, want int) {
		t.Helper()
		if err := f.Append(t.Context(), path, make([]byte, n)); err != nil {
			t.Fatal(err)
		}
		absolute, err := f.pathOf(path) // on Windows it begins with a volume
		if err != nil {
			t.Fatal(err)
		}
		if got := cap(f.streams.paths[absolute].wait.bytes); got != want {
			t.Errorf("%d bytes of %s are in a block of %d, not %d", n, path, got, want)
		}
	}
	check("/a", 10<<10, 16<<10)
	check("/a", 50<<10, 64<<10)
	check("/a", 10<<10, 64<<10) // it does not fit: the 60 KiB are flushed
	if err := f.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("/a", 1<<10, 16<<10)
	check("/a", 60<<10, 64<<10)
	if err := f.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("/b", 60<<10, 64<<10)
	check("/c", 10<<10, 16<<10)
	check("/a", 1<<10, 1<<10) // of the 48 KiB that are left
	if used := f.flusher.memory.used; used > memory {
		t.Errorf("%d bytes are used of %d", used, memory)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
