package holdfast

import (
	"bytes"
	"errors"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// relayFile takes about as long for a strip as its fill does. Once it fails a write that a Writer's own
// goroutine makes, if that is asked for.
type relayFile struct {
	memory
	fails, failed bool // guarded by the Writer's lock while no write is made
}

func (f *relayFile) Write(p []byte) (int, error) {
	if f.fails && !f.failed && inFlusher() {
		f.failed = true
		return 0, syscall.ENOSPC
	}
	for start := time.Now(); time.Since(start) < 30*time.Microsecond; {
	}
	return f.memory.Write(p)
}

func inFlusher() bool {
	stack := make([]byte, 4<<10)
	return strings.Contains(string(stack[:runtime.Stack(stack, false)]), "runFlusher")
}

// fillUntil writes records from one goroutine until a strip is handed over, or the file has failed. Other
// programs may have the CPUs, so it may take a while.
func fillUntil(t *testing.T, w *Writer, at int, done func() bool) (end int, err error) {
	for start := time.Now(); time.Since(start) < time.Minute; {
		n, err := w.Write(numberedBytes(at, 100))
		at += n
		if err != nil {
			return at, err
		}
		w.mu.Lock()
		ended := done()
		w.mu.Unlock()
		if ended {
			return at, nil
		}
	}
	t.Error("no strip was handed over in a minute")
	return at, nil
}

// TestFullStripsAreHandedOver has a flusher take a strip of one goroutine that fills strips fast, and closes
// the Writer meanwhile. Then it has that flush fail: one call returns the error, and nothing is lost.
func TestFullStripsAreHandedOver(t *testing.T) {
	if runtime.NumCPU() == 1 {
		t.Skip("there is no CPU to hand a strip to")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	for _, fails := range []bool{false, true} {
		file := &relayFile{fails: fails}
		w, err := New(file, Buffered(64*KiB))
		if err != nil {
			t.Fatal(err)
		}
		at, err := fillUntil(t, w, 0, w.relay.Pending)
		if fails && err == nil {
			at, err = fillUntil(t, w, at, func() bool { return false })
		}
		if failed := errors.Is(err, syscall.ENOSPC) && errors.As(err, new(*WriteError)); failed != fails || err != nil != fails {
			t.Errorf("the flush fails %v: %v", fails, err)
		}
		if fails {
			for range 10_000 {
				n, err := w.Write(numberedBytes(at, 100))
				if at += n; err != nil {
					t.Fatal("a second call fails:", err)
				}
			}
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if !bytes.Equal(file.Bytes(), numberedBytes(0, at)) {
			t.Errorf("the file has other bytes than the %d that were accepted", at)
		}
		if w.flusher.running {
			t.Error("a goroutine is left")
		}
	}
}
