//go:build go1.25

package rotate

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
)

// TestEachMoveIsNoticedWithinASecond moves the log again and again, where records come and where none comes for a while. When it
// is closed, no timer is left.
func TestEachMoveIsNoticedWithinASecond(t *testing.T) {
	for _, p := range []holdfast.Policy{holdfast.Unbuffered(), holdfast.EachDurable()} {
		synctest.Test(t, func(t *testing.T) {
			d, l := newMemory(t), ledger{}
			f := opened(t, d, Options{Policy: p, OnError: func(e *Error) { t.Error(e) }})
			for i, pause := range []time.Duration{lookEvery / 10, lookEvery / 3, lookEvery, time.Hour, lookEvery / 10} {
				for range 3 { // it is looked at, and has not moved
					l.put(t, f, 1)
					time.Sleep(lookEvery)
					synctest.Wait()
				}
				l.put(t, f, 1)
				if err := d.Move("/log/app.log", fmt.Sprintf("/log/app-2000-01-01T00-00-00.00%d.log", i)); err != nil {
					t.Fatal(err)
				}
				for passed := time.Duration(0); passed < lookEvery; passed += pause {
					time.Sleep(pause)
					synctest.Wait()
					l.put(t, f, 1)
				}
				if n := f.Stats().Reopens; n != int64(i+1) {
					t.Errorf("%v, a record each %v: %d reopens after %d moves", p, pause, n, i+1)
				}
			}
			timer := f.current.Load().file.timer
			l.closed(t, d, f)
			if timer.Stop() {
				t.Errorf("%v: a timer is left after Close", p)
			}
		})
	}
}

// TestARecordForTheKernelAloneComesBehindTheHeaderAndNoticesAMove: on a disk of the system a record without a buffer takes the
// shortest way, unless more is to be done.
func TestARecordForTheKernelAloneComesBehindTheHeaderAndNoticesAMove(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	f, err := Open(path, Options{Header: []byte("head\n"), Policy: holdfast.Unbuffered()})
	if err != nil {
		t.Fatal(err)
	}
	put := func(record string) {
		if n, err := f.Write([]byte(record)); n != len(record) || err != nil {
			t.Errorf("%q: %d, %v", record, n, err)
		}
	}
	put("a\n")
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	f.current.Load().file.due.Store(true) // as the timer does within a second
	put("b\n")
	put("c\n")
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{path + ".1": "head\na\nb\n", path: "head\nc\n"} {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s has %q, %v, want %q", name, got, err, want)
		}
	}
}
