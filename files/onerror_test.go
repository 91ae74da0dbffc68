//go:build go1.25

package files_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
)

func TestRemovedFilesAreHeardOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := fault.NewDisk()
		f := onDisk(t, disk, files.Options{Policy: holdfast.Periodic(time.Second)})
		var heard []*files.Error
		f.OnError(func(e *files.Error) { heard = append(heard, e) })
		mustAppend(t, f, "/a", "record")
		if err := f.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := disk.RemoveAll("/a"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(heard) != 1 || heard[0].Lost != 6 || !errors.Is(heard[0], holdfast.ErrUnlinked) {
			t.Errorf("heard %v", heard)
		}
		f.Sync(t.Context())
	})
}

func TestStatsTellWhatIsAtRisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := fault.NewDisk()
		disk.Add(fault.DiskFault{Op: fault.DiskDatasync, Delay: time.Second, Take: fault.All})
		f := onDisk(t, disk, files.Options{Policy: holdfast.Buffered(4 * holdfast.KiB)})
		check := func(when string, notFlushed, notDurable int64, oldest time.Duration) {
			t.Helper()
			if s := f.Stats(); s.NotFlushed != notFlushed || s.NotDurable != notDurable || s.Oldest != oldest {
				t.Errorf("%s: %d not flushed, %d not durable, the oldest waits for %v", when, s.NotFlushed, s.NotDurable, s.Oldest)
			}
		}
		check("new", 0, 0, 0)
		mustAppend(t, f, "/a", "record")
		time.Sleep(time.Second)
		mustAppend(t, f, "/b", "record")
		mustAppend(t, f, "/b", "record")
		time.Sleep(time.Second)
		check("in memory", 18, 18, 2*time.Second)
		if err := f.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		check("in the kernel", 0, 18, 2*time.Second)
		if err := f.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		check("durable", 0, 0, 0)
		time.Sleep(time.Hour)
		mustAppend(t, f, "/b", "record")
		time.Sleep(time.Second)
		check("after a pause", 6, 6, time.Second)
		if s := f.Stats(); s.Writes != 4 || s.Flushes != 2 || s.Flush.Count() != 2 || s.Sync.Count() == 0 || s.LongestSync == 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestTheEndOfAWaitForATurnIsNotHeard: no write of the bytes has failed.
func TestTheEndOfAWaitForATurnIsNotHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := fault.NewDisk(fault.DiskFault{Op: fault.DiskWrite, Path: "slow", Times: 1, Take: fault.All, Delay: time.Hour})
		f := newSet(disk, files.Options{Policy: holdfast.Unbuffered(), Handles: 4})
		f.OnError(func(e *files.Error) { t.Error("heard of", e) })
		go f.Append(noContext, "/slow", []byte("x"))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(noContext, time.Second)
		defer cancel()
		if err := f.Append(ctx, "/mine", []byte("x")); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		synctest.Wait()
		if n := f.Stats().Errors; n != 0 {
			t.Errorf("%d errors are counted", n)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestAFailedCloseIsToldByTheNextAppend for the path, which accepts nothing, and by OnError. The file was closed to make
// room for others, with bytes that wait for it in memory and without.
func TestAFailedCloseIsToldByTheNextAppend(t *testing.T) {
	for _, waits := range []string{"", "two\n"} {
		for _, text := range []string{"buffer=4KiB,flush=1h,sync=never", "buffer=4KiB,flush=1h,sync=1h"} {
			synctest.Test(t, func(t *testing.T) {
				p, err := holdfast.ParsePolicy(text)
				if err != nil {
					t.Fatal(err)
				}
				disk := fault.NewDisk(fault.DiskFault{Op: fault.DiskClose, Path: "log", Err: syscall.EIO})
				f := onDisk(t, disk, files.Options{Policy: p, Handles: 4, Retry: once})
				var heard []*files.Error
				f.OnError(func(e *files.Error) { heard = append(heard, e) })
				mustAppend(t, f, "/log", "one\n")
				if err := f.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
				if waits != "" {
					mustAppend(t, f, "/log", waits)
				}
				for i := range 8 { // past the buffer
					mustAppend(t, f, fmt.Sprint("/", i), strings.Repeat("x", 5000))
				}
				synctest.Wait()
				if len(heard) != 1 || !errors.Is(heard[0], syscall.EIO) || !isPath(heard[0].Path, "/log") {
					t.Errorf("%s: heard %v", text, heard)
				}
				if failed := failureOf(t, f.Append(t.Context(), "/log", []byte("refused\n")), "/log", syscall.EIO); failed.Offset != 0 || failed.Outcome != holdfast.OutcomeUntouched {
					t.Errorf("%s: %+v", text, failed)
				}
				mustAppend(t, f, "/log", "three\n")
				disk.Mend()
				if err := f.Close(); err != nil {
					t.Error(err)
				}
				wantOnDisk(t, disk, "/log", "one\n"+waits+"three\n")
			})
		}
	}
}

// TestSlowSyncsAreHeardOfWhileTheyRun: of appended files and of whole ones.
func TestSlowSyncsAreHeardOfWhileTheyRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := fault.NewDisk()
		disk.Add(fault.DiskFault{Op: fault.DiskDatasync, Delay: time.Minute, Take: fault.All})
		disk.Add(fault.DiskFault{Op: fault.DiskSync, Delay: time.Minute, Take: fault.All})
		f := onDisk(t, disk, files.Options{Policy: holdfast.Periodic(time.Second)})
		var heard []string
		f.OnSlowSync(10*time.Second, func(s holdfast.SlowSync) {
			heard = append(heard, fmt.Sprint(filepath.ToSlash(strings.TrimPrefix(s.Path, filepath.VolumeName(s.Path))), " ", time.Since(s.Since)))
		})
		mustAppend(t, f, "/a", "record")
		time.Sleep(12 * time.Second)
		synctest.Wait()
		if len(heard) != 1 || heard[0] != "/a 10s" {
			t.Errorf("heard %q", heard)
		}
		heard = nil
		if _, err := f.WriteFile(t.Context(), "/whole", []byte("text"), files.Replace); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if len(heard) != 1 || heard[0] != "/whole 10s" {
			t.Errorf("heard %q", heard)
		}
		f.Close()
	})
}
