//go:build go1.25

package rotate

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A hangingDisk takes a time for each sync of a file.
type hangingDisk struct {
	*memory
	takes time.Duration
}

func (d *hangingDisk) Datasync(fd int) error {
	time.Sleep(d.takes)
	return d.memory.Datasync(fd)
}

// TestASlowSyncIsHeardOfWhileItRuns, once, also after rotations, and the log may be used then.
func TestASlowSyncIsHeardOfWhileItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &hangingDisk{newMemory(t), 0}
		var f *File
		var heard []holdfast.SlowSync
		f, err := open(d, "/log/app.log", Options{Policy: holdfast.Periodic(time.Second), SlowSync: 5 * time.Second, OnSlowSync: func(s holdfast.SlowSync) {
			heard = append(heard, s)
			if _, err := f.Write([]byte("the disk hangs\n")); err != nil {
				t.Error(err)
			}
		}}, false)
		if err != nil {
			t.Fatal(err)
		}
		put := func() {
			t.Helper()
			if _, err := f.Write([]byte("record\n")); err != nil {
				t.Fatal(err)
			}
		}
		put()
		if err := f.Rotate(); err != nil {
			t.Error(err)
		}
		d.takes = 4 * time.Second
		put()
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if len(heard) > 0 {
			t.Errorf("heard of %v", heard)
		}
		d.takes = time.Minute
		start := time.Now()
		put()
		time.Sleep(6*time.Second + time.Millisecond) // the sync is due after one
		synctest.Wait()
		if len(heard) != 1 || heard[0].Path != f.path || heard[0].Since.Sub(start) != time.Second {
			t.Errorf("heard of %v, %v after the Write", heard, time.Since(start))
		}
		d.takes = 0
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
	})
}
