//go:build go1.25

package fault_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/crash/fault"
)

func write(t *testing.T, f *fault.File, p string, want int, wantErr error) {
	t.Helper()
	n, err := f.Write([]byte(p))
	if n != want || !errors.Is(err, wantErr) {
		t.Fatalf("Write(%q) = %d, %v; want %d, %v", p, n, err, want, wantErr)
	}
}

func TestFaultHitsJustItsCalls(t *testing.T) {
	check := func(x fault.Fault, want string) {
		t.Helper()
		f := fault.New(x)
		got := ""
		for range 5 {
			_, err := f.Write([]byte("x"))
			got += map[bool]string{true: ".", false: "!"}[err == nil]
		}
		if got != want {
			t.Errorf("%+v: calls %s, want %s", x, got, want)
		}
	}
	check(fault.Fault{Op: fault.Write, Err: syscall.EIO}, "!!!!!")
	check(fault.Fault{Op: fault.Write, Err: syscall.EIO, First: 1, Times: 1}, "!....")
	check(fault.Fault{Op: fault.Write, Err: syscall.EIO, First: 2, Times: 2}, ".!!..")
	check(fault.Fault{Op: fault.Write, Err: syscall.EIO, First: 4}, "...!!")
	check(fault.Fault{Op: fault.Write, Err: syscall.EIO, First: 6}, ".....")
	check(fault.Fault{Op: fault.Sync, Err: syscall.EIO}, ".....")
}

func TestWriteTakesWhatTheFaultSays(t *testing.T) {
	f := fault.New(
		fault.Fault{Op: fault.Write, First: 1, Times: 1, Take: 2},
		fault.Fault{Op: fault.Write, First: 2, Times: 1, Take: 1, Err: syscall.EIO},
		fault.Fault{Op: fault.Write, First: 3, Times: 1, Take: fault.All, Err: syscall.EFBIG},
		fault.Fault{Op: fault.Write, First: 4, Times: 1},
	)
	write(t, f, "abc", 2, nil)
	write(t, f, "def", 1, syscall.EIO)
	write(t, f, "ghi", 3, syscall.EFBIG)
	write(t, f, "jkl", 0, nil)
	write(t, f, "mno", 3, nil)
	if got := string(f.ProcessCrash()); got != "abdghimno" {
		t.Errorf("file holds %q", got)
	}
}

func TestEachFailureIsAValueOfItsOwn(t *testing.T) {
	f := fault.New(fault.Fault{Op: fault.Write, Err: syscall.EIO})
	_, first := f.Write([]byte("a"))
	_, second := f.Write([]byte("a"))
	if errors.Is(first, second) {
		t.Errorf("%v is %v", first, second)
	}
	if got := first.Error(); got != "write 1: input/output error" {
		t.Errorf("first error is %q", got)
	}
}

func TestRoomIsFilledToTheLastByteAndLifts(t *testing.T) {
	f := fault.New()
	f.SetRoom(5)
	write(t, f, "abcd", 4, nil)
	write(t, f, "efgh", 1, syscall.ENOSPC)
	write(t, f, "fgh", 0, syscall.ENOSPC)
	f.SetRoom(8)
	write(t, f, "fgh", 3, nil)
	f.SetRoom(fault.Unlimited)
	write(t, f, "i", 1, nil)
	if got := string(f.ProcessCrash()); got != "abcdefghi" {
		t.Errorf("file holds %q", got)
	}
}

func TestDiskFillsUpInTheMidstOfAWrite(t *testing.T) {
	f := fault.New(fault.Fault{Op: fault.Write, First: 2, Times: 1, Take: 1, Full: true})
	write(t, f, "ab", 2, nil)
	write(t, f, "cd", 1, syscall.ENOSPC)
	write(t, f, "d", 0, syscall.ENOSPC)
	f.SetRoom(fault.Unlimited)
	write(t, f, "d", 1, nil)
	if got := string(f.ProcessCrash()); got != "abcd" {
		t.Errorf("file holds %q", got)
	}
}

func TestFailedSyncLosesItsBytesAndTheNextSucceeds(t *testing.T) {
	f := fault.New(fault.Fault{Op: fault.Sync, First: 2, Times: 1, Err: syscall.EIO})
	write(t, f, "aa", 2, nil)
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	write(t, f, "bb", 2, nil)
	if err := f.Sync(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("Sync = %v", err)
	}
	write(t, f, "cc", 2, nil)
	if err := f.Sync(); err != nil {
		t.Fatalf("Sync after a failed one = %v", err)
	}
	if got := string(f.ProcessCrash()); got != "aabbcc" {
		t.Errorf("process crash leaves %q", got)
	}
	for seed := range uint64(20) {
		if got := string(f.PowerCut(rand.New(rand.NewPCG(seed, 0)))); got != "aa\x00\x00cc" {
			t.Errorf("seed %d: power cut leaves %q", seed, got)
		}
	}
	if got := f.Stable(); got != 2 {
		t.Errorf("Stable = %d, want 2", got)
	}
	if v := f.Violations(); len(v) != 1 || !strings.Contains(v[0], "after a failed sync") {
		t.Errorf("violations %q", v)
	}
}

func TestSyncCoversWhatWasWrittenBeforeItStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fault.New(fault.Fault{Op: fault.Sync, Take: fault.All, Delay: time.Second})
		write(t, f, "before", 6, nil)
		go func() {
			time.Sleep(time.Millisecond)
			write(t, f, "beside", 6, nil)
		}()
		start := time.Now()
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d != time.Second {
			t.Errorf("Sync took %v", d)
		}
		if got := f.Stable(); got != 6 {
			t.Errorf("Stable = %d, want 6", got)
		}
	})
}

// TestPowerCutReachesEveryState checks that a power cut keeps all stable bytes and is a
// function of the seed. Some seed leaves each state of a sector.
func TestPowerCutReachesEveryState(t *testing.T) {
	f := fault.New()
	f.SetSector(4)
	write(t, f, "stable", 6, nil)
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	write(t, f, "AABBBBCC", 8, nil)
	seen := map[string]bool{}
	for seed := range uint64(2000) {
		image := f.PowerCut(rand.New(rand.NewPCG(seed, 1)))
		if again := f.PowerCut(rand.New(rand.NewPCG(seed, 1))); !bytes.Equal(image, again) {
			t.Fatalf("seed %d: %q, then %q", seed, image, again)
		}
		if !bytes.HasPrefix(image, []byte("stable")) {
			t.Fatalf("seed %d: stable bytes are lost: %q", seed, image)
		}
		seen[string(image[6:])] = true
	}
	for _, want := range []string{"", "AA", "\x00\x00", "\x00\x00BBBB", "AABBBBCC", "AA\x00\x00\x00\x00CC", "\x00\x00\x00\x00\x00\x00\x00\x00"} {
		if !seen[want] {
			t.Errorf("no seed leaves %q", want)
		}
	}
	for got := range seen {
		for i := range got {
			if got[i] != 0 && got[i] != "AABBBBCC"[i] {
				t.Errorf("power cut leaves %q", got)
			}
		}
	}
}

func TestViolationsAreRecorded(t *testing.T) {
	check := func(want string, do func(f *fault.File)) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			f := fault.New(
				fault.Fault{Op: fault.Write, Take: fault.All, Delay: time.Second},
				fault.Fault{Op: fault.Sync, Delay: time.Second})
			do(f)
			if got := strings.Join(f.Violations(), "; "); got != want {
				t.Errorf("violations %q, want %q", got, want)
			}
		})
	}
	both := func(a, b func()) {
		var group sync.WaitGroup
		group.Go(a)
		synctest.Wait()
		group.Go(b)
		group.Wait()
	}
	check("", func(f *fault.File) {
		both(func() { f.Write([]byte("a")) }, func() { f.Sync() })
		f.Close()
	})
	check("write 2: 2 of them at once", func(f *fault.File) {
		both(func() { f.Write([]byte("a")) }, func() { f.Write([]byte("b")) })
	})
	check("sync 2: 2 of them at once", func(f *fault.File) {
		both(func() { f.Sync() }, func() { f.Sync() })
	})
	check("close with 1 writes and 0 syncs in flight", func(f *fault.File) {
		both(func() { f.Write([]byte("a")) }, func() { f.Close() })
	})
	check("write 1: the file is closed; sync 1: the file is closed; close 2: the file is closed", func(f *fault.File) {
		f.Close()
		if n, err := f.Write([]byte("a")); n != 0 || !errors.Is(err, os.ErrClosed) {
			t.Errorf("Write after Close = %d, %v", n, err)
		}
		f.Sync()
		f.Close()
	})
	check("write 1: of no bytes", func(f *fault.File) { f.Write(nil) })
	check("write 1: its bytes changed while it was in flight", func(f *fault.File) {
		p := []byte("a")
		f.Watch(func(fault.Call) { p[0] = 'b' })
		f.Write(p)
	})
}

func TestCallsTellWhatHappenedWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		f := fault.New(fault.Fault{Op: fault.Write, Take: 2, Delay: 3 * time.Second})
		watched := 0
		f.Watch(func(fault.Call) { watched++ })
		write(t, f, "abc", 2, nil)
		f.Sync()
		f.Close()
		calls := f.Calls()
		want := fault.Call{Op: fault.Write, N: 1, From: 0, To: 2, Len: 3, Start: start, End: start.Add(3 * time.Second)}
		if len(calls) != 3 || calls[0] != want {
			t.Errorf("calls %+v, want first %+v", calls, want)
		}
		if watched != 6 {
			t.Errorf("watched %d, want a start and an end for 3 calls", watched)
		}
		if f.Count(fault.Write) != 1 || f.Count(fault.Sync) != 1 || f.Count(fault.Close) != 1 {
			t.Errorf("counts %d %d %d", f.Count(fault.Write), f.Count(fault.Sync), f.Count(fault.Close))
		}
	})
}
