package holdfast_test

import (
	"bytes"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A slowFile takes 4 ms for each write, and notes when it was given a byte of a Lane.
type slowFile struct{ lane chan time.Time }

func (f *slowFile) Write(p []byte) (int, error) {
	if bytes.IndexByte(p, 'L') >= 0 {
		f.lane <- time.Now()
	}
	time.Sleep(4 * ms)
	return len(p), nil
}

func (f *slowFile) Sync() error  { return nil }
func (f *slowFile) Close() error { return nil }

// TestALaneIsFlushedInTimeBesideAWriterWithoutPause has one goroutine Write as fast as the
// file takes it, and looks when what a Lane holds is on its way. Loss promises the
// period and what is in flight: the write under way, and those of what memory holds.
func TestALaneIsFlushedInTimeBesideAWriterWithoutPause(t *testing.T) {
	const most = 10*ms + 4*4*ms
	for _, c := range []struct{ size, held int }{
		{100, 1}, {700, 1}, {4096, 1},
		{100, 400}, {700, 400}, {4096, 400}, // for which there must be room
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &slowFile{lane: make(chan time.Time, 1)}
			w, err := holdfast.New(f, holdfast.Policy{Buffer: 4 * holdfast.KiB, FlushEvery: 10 * ms})
			if err != nil {
				t.Fatal(err)
			}
			var ended atomic.Bool
			var writer sync.WaitGroup
			writer.Go(func() {
				record := bytes.Repeat([]byte("w"), c.size)
				for !ended.Load() {
					if _, err := w.Write(record); err != nil {
						t.Error(err)
						return
					}
				}
			})
			lane := w.Lane()
			for range 5 {
				time.Sleep(33 * ms)
				start := time.Now()
				if _, err := lane.Write(append([]byte("L"), bytes.Repeat([]byte("l"), c.held-1)...)); err != nil {
					t.Fatal(err)
				}
				if late := (<-f.lane).Sub(start); late > most {
					t.Errorf("beside Writes of %d bytes a Lane's %d bytes are on their way after %v, want %v at most", c.size, c.held, late, most)
				}
			}
			ended.Store(true)
			writer.Wait()
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A keptFile takes 4 ms for each write, and keeps what it was given.
type keptFile struct {
	slowFile
	bytes.Buffer
}

func (f *keptFile) Write(p []byte) (int, error) {
	time.Sleep(4 * ms)
	return f.Buffer.Write(p)
}

// TestLongRecordsOfALaneWaitForRoom fills the memory of a slow file with records that a Lane
// does not gather.
func TestLongRecordsOfALaneWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &keptFile{}
		w, err := holdfast.New(f, holdfast.Policy{Buffer: 4 * holdfast.KiB})
		if err != nil {
			t.Fatal(err)
		}
		lane := w.Lane()
		var want []byte
		for i := range 200 {
			record := bytes.Repeat([]byte{byte(i)}, 300+i)
			want = append(want, record...)
			if _, err := lane.Write(record); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil || !bytes.Equal(f.Bytes(), want) {
			t.Errorf("%v, and the file has not what was written", err)
		}
	})
}
