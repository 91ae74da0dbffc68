//go:build go1.25

package files_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
)

func TestTornLineIsEndedBeforeAnAppend(t *testing.T) {
	for _, p := range appendPolicies() {
		for old, healed := range map[string]bool{"": false, "\n": false, "a\n": false, "a\r\n": false, "a": true, "a\nb": true, "a\r": true, "\x00": true} {
			t.Run(fmt.Sprintf("%v/%q", p, old), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "log")
				if err := os.WriteFile(path, []byte(old), 0o666); err != nil {
					t.Fatal(err)
				}
				f := appending(t, files.Options{Policy: p, Lines: true})
				mustAppend(t, f, path, "one\n")
				mustAppend(t, f, path, "two\n")
				if err := f.Close(); err != nil {
					t.Fatal(err)
				}
				end := map[bool]string{true: "\n"}[healed]
				wantFile(t, path, old+end+"one\ntwo\n")
				if n := f.Stats().Healed; n != int64(len(end)) {
					t.Errorf("%d files are counted as healed", n)
				}
			})
		}
	}
}

func TestTailIsTheCallersWithoutLines(t *testing.T) {
	disk := fault.NewDisk()
	if err := disk.WriteFile("/log", []byte("half"), 0o666); err != nil {
		t.Fatal(err)
	}
	f := onDisk(t, disk, files.Options{})
	mustAppend(t, f, "/log", "one\n")
	wantOnDisk(t, disk, "/log", "halfone\n")
	if n := disk.Count(fault.DiskRead); n != 0 || f.Stats().Healed != 0 {
		t.Errorf("%d reads, %d healed", n, f.Stats().Healed)
	}
}

// TestTornLineIsEndedOnceForAll lets goroutines append to a file of another device, through a
// link, and to others meanwhile: descriptors are closed to make room.
func TestTornLineIsEndedOnceForAll(t *testing.T) {
	for _, p := range appendPolicies() {
		t.Run(p.String(), func(t *testing.T) {
			disk := fault.NewDisk()
			for _, err := range []error{disk.Mount("/m"), disk.WriteFile("/m/log", []byte("half"), 0o666), disk.Symlink("m/log", "/link")} {
				if err != nil {
					t.Fatal(err)
				}
			}
			f := onDisk(t, disk, files.Options{Policy: p, Lines: true, Handles: 6})
			var all sync.WaitGroup
			want := []string{"", "half"}
			for g := range 4 {
				for i := range 20 {
					want = append(want, fmt.Sprint(g, " ", i))
				}
				all.Go(func() {
					for i := range 20 {
						mustAppend(t, f, "/link", fmt.Sprint(g, " ", i, "\n"))
						mustAppend(t, f, fmt.Sprint("/other", g, i%5), "x\n")
					}
				})
			}
			all.Wait()
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			text, err := disk.ReadFile("/m/log")
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Split(string(text), "\n")
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) || f.Stats().Healed != 1 {
				t.Errorf("%d healed; the file holds %q", f.Stats().Healed, text)
			}
		})
	}
}

func TestTornLineOfOurOwn(t *testing.T) {
	t.Run("its rest follows", func(t *testing.T) {
		disk := fault.NewDisk(fault.DiskFault{Op: fault.DiskWrite, Path: "log", Times: 1, Take: 3}, fault.DiskFault{Op: fault.DiskWrite, Path: "log", First: 2, Times: 1, Err: syscall.EIO})
		f := onDisk(t, disk, files.Options{Policy: holdfast.Buffered(4 * holdfast.KiB), Lines: true, Handles: 4, Retry: once})
		mustAppend(t, f, "/log", "first\n")
		failureOf(t, f.Flush(noContext), "/log", syscall.EIO)
		wantOnDisk(t, disk, "/log", "fir")
		for i := range 8 { // past the buffer: their descriptors take the place of the log's
			mustAppend(t, f, fmt.Sprint("/", i), strings.Repeat("x", 5000)+"\n")
		}
		if n := f.Stats().Evictions; n < 5 {
			t.Fatalf("%d descriptors made room", n)
		}
		mustAppend(t, f, "/log", "second\n")
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		wantOnDisk(t, disk, "/log", "first\nsecond\n")
	})
	t.Run("past the buffer", func(t *testing.T) {
		disk := fault.NewDisk(fault.DiskFault{Op: fault.DiskWrite, Times: 1, Take: 3}, fault.DiskFault{Op: fault.DiskWrite, First: 2, Times: 1, Err: syscall.EIO})
		f := onDisk(t, disk, files.Options{Lines: true, Retry: once})
		if failed := failureOf(t, f.Append(noContext, "/log", []byte("first\n")), "/log", syscall.EIO); failed.Offset != 3 || failed.Outcome != holdfast.OutcomePartial {
			t.Errorf("%+v", failed)
		}
		mustAppend(t, f, "/log", "second\n")
		wantOnDisk(t, disk, "/log", "fir\nsecond\n")
		if n := f.Stats().Healed; n != 1 {
			t.Errorf("%d healed", n)
		}
	})
}

func TestTornLineThatCantBeEnded(t *testing.T) {
	for name, x := range map[string]fault.DiskFault{
		"no room for the line feed": {Op: fault.DiskWrite, Times: 1, Err: syscall.ENOSPC},
		"its last byte is unknown":  {Op: fault.DiskRead, Times: 1, Err: syscall.EIO},
	} {
		t.Run(name, func(t *testing.T) {
			disk := fault.NewDisk()
			if err := disk.WriteFile("/log", []byte("half"), 0o666); err != nil {
				t.Fatal(err)
			}
			disk.Add(x)
			f := onDisk(t, disk, files.Options{Policy: holdfast.EachDurable(), Lines: true, Retry: once})
			if failed := failureOf(t, f.Append(noContext, "/log", []byte("one\n")), "/log", x.Err); failed.Offset != 0 || failed.Outcome != holdfast.OutcomeUntouched {
				t.Errorf("%+v", failed)
			}
			wantOnDisk(t, disk, "/log", "half")
			mustAppend(t, f, "/log", "one\n")
			wantOnDisk(t, disk, "/log", "half\none\n")
			if n := f.Stats().Healed; n != 1 {
				t.Errorf("%d healed", n)
			}
		})
	}
}

// TestLinesAfterACrashStandAlone cuts the power at each call of a run, and appends to the file that
// is left. Each line that a call has made durable is whole, and so are the new ones.
func TestLinesAfterACrashStandAlone(t *testing.T) {
	for _, p := range []holdfast.Policy{holdfast.EachDurable(), holdfast.Durable(), holdfast.Periodic(1e6), holdfast.Unbuffered()} {
		t.Run(p.String(), func(t *testing.T) {
			type left struct {
				log   []byte
				acked int64
			}
			var lefts []left
			var mu sync.Mutex
			var acked atomic.Int64
			disk := fault.NewDisk()
			disk.SetSector(5)
			r := rand.New(rand.NewPCG(7, 7))
			f := onDisk(t, disk, files.Options{Policy: p, Lines: true})
			disk.Watch(func(fault.DiskCall) {
				mu.Lock()
				defer mu.Unlock()
				n := acked.Load()
				for _, image := range []*fault.Image{disk.ProcessCrash(), disk.PowerCut(r), disk.PowerCut(r)} {
					log, _ := image.File("/log")
					lefts = append(lefts, left{log, n})
				}
			})
			for i := range 12 {
				mustAppend(t, f, "/log", fmt.Sprintf("first %d\n", i))
				if p.Sync.Waits() {
					acked.Store(int64(i + 1))
				}
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			for _, l := range lefts {
				checkLinesAfter(t, p, l.log, int(l.acked))
			}
		})
	}
}

func checkLinesAfter(t *testing.T, p holdfast.Policy, log []byte, acked int) {
	t.Helper()
	disk := fault.NewDisk()
	if err := disk.WriteFile("/log", log, 0o666); err != nil {
		t.Fatal(err)
	}
	f := newSet(disk, files.Options{Policy: p, Lines: true})
	for i := range 3 {
		mustAppend(t, f, "/log", fmt.Sprintf("second %d\n", i))
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := disk.ReadFile("/log")
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(text, []byte("\n"))
	has := func(line string) bool {
		return slices.ContainsFunc(lines, func(l []byte) bool { return string(l) == line })
	}
	for i := range acked {
		if line := fmt.Sprintf("first %d", i); !has(line) {
			t.Fatalf("%q is not whole in %q", line, text)
		}
	}
	for i := range 3 {
		if line := fmt.Sprintf("second %d", i); !has(line) {
			t.Fatalf("%q is not whole in %q after %q", line, text, log)
		}
	}
	torn := len(log) > 0 && !bytes.HasSuffix(log, []byte("\n"))
	if n := f.Stats().Healed; (n == 1) != torn {
		t.Fatalf("%d are counted as healed after %q", n, log)
	}
}
