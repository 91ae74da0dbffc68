//go:build go1.25

package rotate

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
)

// An endDisk notes the bytes of each write to the log.
type endDisk struct {
	*memory
	mu     sync.Mutex
	writes []string
}

func (d *endDisk) Write(fd int, p []byte) (int, error) {
	n, err := d.memory.Write(fd, p)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.writes = append(d.writes, string(p[:n]))
	return n, err
}

// TestEachFlushEndsBehindALine of a logger that writes a line by several Writes: generated lines, under policies that flush by
// size, by time, for a sync, and before Writes that don't fit.
func TestEachFlushEndsBehindALine(t *testing.T) {
	for _, text := range []string{
		"buffer=256,sync=never", "buffer=1000,sync=close", "buffer=4KiB,flush=1KiB,sync=never", "buffer=1KiB,flush=10ms,sync=never", "buffer=4KiB,flush=20ms/2KiB,sync=100ms",
		"buffer=1KiB,sync=50ms", "buffer=64KiB,sync=100ms", "buffer=2KiB,sync=8KiB", "buffer=2KiB,sync=30ms/8KiB",
	} {
		p, err := holdfast.ParsePolicy(text)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			d := &endDisk{memory: newMemory(t)}
			f, err := open(d, "/log/app.log", Options{Policy: p, MaxSize: 20_000, OnError: func(e *Error) { t.Error(e) }}, false)
			if err != nil {
				t.Fatal(err)
			}
			random := rand.New(rand.NewPCG(43, uint64(len(text))))
			want := 0
			for i := range 1000 {
				line := fmt.Sprintf("%d %s\n", i, strings.Repeat("x", random.IntN(int(p.Buffer)/10)))
				want += len(line)
				for len(line) > 0 {
					n := len(line)
					if random.IntN(2) == 0 {
						n = 1 + random.IntN(len(line))
					}
					if _, err := f.Write([]byte(line[:n])); err != nil {
						t.Fatal(err)
					}
					line = line[n:]
				}
				time.Sleep(time.Duration(random.IntN(3)) * 777_777 * time.Nanosecond) // never at a flush's time
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			for i, w := range d.writes {
				want -= len(w)
				if !strings.HasSuffix(w, "\n") {
					t.Errorf("%s: write %d of %d ends with %q", text, i, len(d.writes), w[max(0, len(w)-20):])
				}
			}
			if want != 0 {
				t.Errorf("%s: %d bytes are missing", text, want)
			}
		})
	}
}

// TestALineWithoutAnEndIsFlushedInTime, and at once by Sync: no flush is put off, and a line that does not fit goes out in parts.
func TestALineWithoutAnEndIsFlushedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemory(t)
		p := holdfast.Policy{Buffer: 1024, FlushEvery: time.Second}
		f := opened(t, d, Options{Policy: p, OnError: func(e *Error) { t.Error(e) }})
		check := func(want string) {
			t.Helper()
			synctest.Wait()
			if got := logs(d.ProcessCrash())["app.log"]; string(got) != want {
				t.Errorf("the file has %q, want %q", got, want)
			}
		}
		put := func(text string) {
			t.Helper()
			if _, err := f.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		put("whole\nhalf")
		check("")
		time.Sleep(time.Second)
		check("whole\nhalf")
		put(" a line")
		if err := f.Sync(); err != nil {
			t.Error(err)
		}
		check("whole\nhalf a line")
		put("\n")
		long := strings.Repeat("y", 600)
		put(long)
		put(long) // both don't fit
		if got := logs(d.ProcessCrash())["app.log"]; !bytes.HasPrefix(got, []byte("whole\nhalf a line\n")) {
			t.Errorf("the file has %q", got)
		}
		time.Sleep(time.Second)
		check("whole\nhalf a line\n" + long + long)
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestRecordsThatAreNoLinesAreFlushedWhole, with line feeds within.
func TestRecordsThatAreNoLinesAreFlushedWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &endDisk{memory: newMemory(t)}
		f, err := open(d, "/log/app.log", Options{Records: true, Policy: holdfast.Buffered(1000)}, false)
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			if _, err := f.Write([]byte("a\nrecord.")); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		for _, w := range d.writes {
			if len(w)%9 != 0 {
				t.Errorf("a write of %d bytes, with records of 9", len(w))
			}
		}
	})
}
