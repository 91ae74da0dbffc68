//go:build go1.25

package rotate

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// TestBackupsNamesGoOn: another process has made a compressed backup in this millisecond, or a backup by a clock that was
// ahead. The next one takes neither name, and is the newest.
func TestBackupsNamesGoOn(t *testing.T) {
	for there, want := range map[string]string{
		"app-2000-01-01T00-00-00.000.log.gz": "app-2000-01-01T00-00-00.001.log",
		"app-2100-01-01T00-00-00.000.log":    "app-2100-01-01T00-00-00.001.log",
		"app-9999-12-31T23-59-59.999.log":    "app-2000-01-01T00-00-00.000.log", // no clock made it, and no name is later
		"app-2262-12-31T23-59-59.998.log":    "app-2262-12-31T23-59-59.999.log",
		"app-2262-12-31T23-59-59.999.log":    "app-2000-01-01T00-00-00.000.log", // no later name counts
	} {
		synctest.Test(t, func(t *testing.T) { // it begins at 2000-01-01, 00:00 UTC
			d, l := newMemory(t), ledger{}
			if err := d.WriteFile("/log/"+there, nil, 0o644); err != nil {
				t.Fatal(err)
			}
			o := Options{}
			if !strings.HasSuffix(there, packed) {
				o.MaxBackups = 5 // so it looks after the backups
			}
			f := opened(t, d, o)
			synctest.Wait()
			l.put(t, f, 1)
			if err := f.Rotate(); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			if got := names(logs(d.ProcessCrash())); !slices.Contains(got, want) {
				t.Errorf("beside %s the log has %q, want %s", there, got, want)
			}
		})
	}
}

// TestAFileWhoseSyncFailedIsNeverAcknowledged, though a rotation is refused, so that the log stays in that file.
func TestAFileWhoseSyncFailedIsNeverAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newMemory(t), ledger{}
		f := opened(t, d, Options{Policy: holdfast.Durable()})
		d.Add(fault.DiskFault{Op: fault.DiskDatasync, Err: syscall.EIO, Times: 1})
		d.Add(fault.DiskFault{Op: fault.DiskRename, Err: syscall.EACCES})
		for range 3 {
			n, err := f.Write(record(0, l[0]))
			if n == 0 || !errors.Is(err, syscall.EIO) {
				t.Errorf("Write = %d, %v", n, err)
			}
			l[0]++
			time.Sleep(100 * time.Millisecond)
		}
		d.Mend()
		time.Sleep(time.Minute)
		l.put(t, f, 1)
		l.closedWith(t, d, f, syscall.EIO)
	})
}

// TestWhatACloseKeptIsWrittenFirst: on Windows a log's file is closed to be renamed, and then the rename and the opening are
// refused. Records accepted meanwhile are written when the path can be opened again, each on a line of its own.
func TestWhatACloseKeptIsWrittenFirst(t *testing.T) {
	for _, end := range []func(f *File) error{(*File).Sync, (*File).Close} {
		synctest.Test(t, func(t *testing.T) {
			d := newMemory(t)
			f, err := open(d, "/log/app.log", Options{Policy: holdfast.Buffered(256)}, true)
			if err != nil {
				t.Fatal(err)
			}
			write := func(text string) {
				t.Helper()
				if _, err := f.Write([]byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			write("no line feed")
			if err := f.Sync(); err != nil {
				t.Fatal(err)
			}
			d.Add(fault.DiskFault{Op: fault.DiskRename, Err: syscall.EACCES, Times: 1})
			d.Add(fault.DiskFault{Op: fault.DiskOpen, Path: "app.log", Err: syscall.EMFILE, Times: 1})
			if err := f.Rotate(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(lineWait) // the line does not end
			synctest.Wait()
			if err := f.Err(); !errors.Is(err, syscall.EACCES) {
				t.Fatal(err)
			}
			write("kept\n")
			time.Sleep(10 * time.Second)
			if err := end(f); err != nil {
				t.Error(err)
			}
			var all []byte
			for _, name := range names(logs(d.ProcessCrash())) {
				all = append(all, logs(d.ProcessCrash())[name]...)
			}
			if want := "no line feed\nkept\n"; string(all) != want {
				t.Errorf("the log has %q, want %q", all, want)
			}
			f.Close()
		})
	}
}

// TestTheLogIsNoBackup, though it has the name of one: a rotation failed behind its rename, and could not take that back.
func TestTheLogIsNoBackup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newMemory(t), ledger{}
		f := opened(t, d, Options{Compress: true})
		l.put(t, f, 3)
		d.Add(fault.DiskFault{Op: fault.DiskOpen, Path: "app.log", Err: syscall.EMFILE, Times: 2})
		d.Add(fault.DiskFault{Op: fault.DiskRename, First: 2, Err: syscall.EACCES, Times: 1})
		if err := f.Rotate(); !errors.Is(err, syscall.EMFILE) {
			t.Fatal(err)
		}
		if got := names(logs(d.ProcessCrash())); len(got) != 1 || got[0] == "app.log" {
			t.Fatalf("the test proves nothing: the log has %q", got)
		}
		f.tend()
		l.put(t, f, 3)
		time.Sleep(time.Minute)
		l.put(t, f, 3)
		l.closed(t, d, f)
	})
}

// TestALinkThatCameMeanwhileIsNotFollowed: it has the log's name just before the log is opened.
func TestALinkThatCameMeanwhileIsNotFollowed(t *testing.T) {
	if sys.NoFollow == 0 {
		t.Skip("this system opens no link itself")
	}
	d := newMemory(t)
	if err := d.WriteFile("/victim", []byte("its own"), 0o644); err != nil {
		t.Fatal(err)
	}
	planted := false
	d.Watch(func(c fault.DiskCall) {
		if c.Op == fault.DiskResolve && !c.End.IsZero() && !planted {
			planted = true
			if err := d.Symlink("/victim", "/log/app.log"); err != nil {
				t.Error(err)
			}
		}
	})
	f, err := open(d, "/log/app.log", Options{}, false)
	if err == nil {
		_, err = f.Write([]byte("into the link\n"))
		err = errors.Join(err, f.Close())
	}
	if got, _ := d.ReadFile("/victim"); !planted || err == nil || string(got) != "its own" {
		t.Errorf("planted %v: %v, and where the link leads stands %q", planted, err, got)
	}
}

// TestErrorsNameTheLog whichever call returns them.
func TestErrorsNameTheLog(t *testing.T) {
	for _, c := range []struct {
		op   fault.DiskOp
		path string
		call func(f *File) error
	}{
		{fault.DiskWrite, "", func(f *File) error { _, err := f.Write([]byte("x\n")); return err }},
		{fault.DiskDatasync, "", (*File).Sync},
		{fault.DiskRename, "", (*File).Rotate},
		{fault.DiskOpen, "app.log", (*File).Rotate},
		{fault.DiskClose, "app.log", (*File).Close},
		{fault.DiskWrite, "", (*File).Close},
	} {
		failed := 0
		for _, p := range []holdfast.Policy{holdfast.Unbuffered(), holdfast.Buffered(holdfast.KiB), holdfast.Durable()} {
			synctest.Test(t, func(t *testing.T) {
				d := newMemory(t)
				f := opened(t, d, Options{Policy: p})
				synctest.Wait()
				if _, err := f.Write([]byte("first\n")); err != nil {
					t.Fatal(err)
				}
				d.Add(fault.DiskFault{Op: c.op, Path: c.path, Err: syscall.EIO})
				err := c.call(f)
				if err == nil && p.Buffer > 0 {
					err = f.Close()
				}
				if errors.Is(err, syscall.EIO) {
					failed++
				}
				var cause *fault.DiskError // which names the file too, as no system does
				if errors.As(err, &cause) && !strings.Contains(strings.ReplaceAll(err.Error(), cause.Error(), ""), f.path) {
					t.Errorf("%v, %v fails: %q", p, c.op, err)
				}
				d.Mend()
				f.Close()
			})
		}
		if failed == 0 {
			t.Errorf("a failing %v is no error", c.op)
		}
	}
}

// putBehindAFlush has a record come when the next write of a flush ends, and calls fail from then on.
func (l ledger) putBehindAFlush(t *testing.T, d *memory, f *File, faults ...fault.DiskFault) {
	came := false
	d.Watch(func(c fault.DiskCall) {
		if c.Op != fault.DiskWrite || c.End.IsZero() || came {
			return
		}
		came = true
		l.put(t, f, 1)
		for _, x := range faults {
			d.Add(x)
		}
	})
}

// TestWhatCameWhileTheWriterClosedIsKept, and goes to the old file: the disk refuses a record that came between the last flush and
// the Writer's Close.
func TestWhatCameWhileTheWriterClosedIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newMemory(t), ledger{}
		f := opened(t, d, Options{Policy: holdfast.Buffered(256)})
		l.put(t, f, 1)
		l.putBehindAFlush(t, d, f, fault.DiskFault{Op: fault.DiskWrite, Err: syscall.ENOSPC, Times: 1})
		if err := f.Rotate(); err != nil {
			t.Error(err)
		}
		files := backupsOf(d)
		if err := l.holds(files); err != nil || len(files) != 1 {
			t.Errorf("%v: %q", err, files)
		}
		l.closed(t, d, f)
		if n := d.Count(fault.DiskDatasync); n != 0 {
			t.Errorf("%d syncs under sync=never", n)
		}
	})
}

// TestASyncDoesNotForgetWhatIsRefusedMeanwhile: the Writer closes, and the disk refuses its last bytes, while an earlier sync runs. The
// next sync must not succeed without them.
func TestASyncDoesNotForgetWhatIsRefusedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemory(t)
		f := opened(t, d, Options{Policy: holdfast.Buffered(256)})
		l := f.current.Load().file
		d.Watch(func(c fault.DiskCall) {
			if c.Op != fault.DiskDatasync || c.End.IsZero() {
				return
			}
			d.Watch(nil)
			d.Add(fault.DiskFault{Op: fault.DiskWrite, Err: syscall.ENOSPC})
			l.setKeep(true)
			if n, err := l.Write([]byte("kept\n")); n != 5 || err != nil {
				t.Errorf("Write = %d, %v", n, err)
			}
			l.setKeep(false)
		})
		if err := l.Sync(); err != nil {
			t.Error(err)
		}
		if err := l.Sync(); !errors.Is(err, syscall.ENOSPC) || !errors.As(err, new(notSynced)) {
			t.Errorf("a sync without the kept bytes = %v", err)
		}
		d.Mend()
		if err := l.Sync(); err != nil {
			t.Error(err)
		}
		for seed := range uint64(20) {
			if got := string(d.PowerCut(rand.New(rand.NewPCG(seed, 0))).Files["/log/app.log"]); got != "kept\n" {
				t.Fatalf("after the sync a power cut leaves %q", got)
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestNothingIsAcceptedIntoMemoryWithoutABuffer: the disk refuses a Write that is under way while its Writer closes. The caller hears of it,
// as a crash of the process may take nothing that was accepted.
func TestNothingIsAcceptedIntoMemoryWithoutABuffer(t *testing.T) {
	for _, p := range []holdfast.Policy{holdfast.Unbuffered(), holdfast.Buffered(256)} {
		d := newMemory(t)
		f := opened(t, d, Options{Policy: p})
		l := f.current.Load().file
		d.Add(fault.DiskFault{Op: fault.DiskWrite, Err: syscall.ENOSPC, Times: 1})
		l.setKeep(true)
		n, err := l.Write([]byte("one\n"))
		l.setKeep(false)
		if want := p.Buffer == 0; (n == 0) != want || errors.Is(err, syscall.ENOSPC) != want {
			t.Errorf("%v: Write = %d, %v", p, n, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if got := string(d.ProcessCrash().Files["/log/app.log"]); (got == "") != (n == 0) {
			t.Errorf("%v: %d bytes were accepted, and the file holds %q", p, n, got)
		}
	}
}

// TestWhatTheDiskRefusedIsSyncedWhenItIsWritten: it refuses a record some times, from where the Writer flushes before it is
// exchanged. Nothing is lost or written twice, so Sync and Close succeed, and then a power cut takes nothing.
func TestWhatTheDiskRefusedIsSyncedWhenItIsWritten(t *testing.T) {
	for times := range 7 {
		for n, p := range []holdfast.Policy{policies[2], policies[3], policies[2], policies[3]} {
			for i, end := range []func(*File) error{(*File).Sync, (*File).Close} {
				synctest.Test(t, func(t *testing.T) {
					d, l := newMemory(t), ledger{}
					f := opened(t, d, Options{Policy: p})
					l.put(t, f, 1)
					refuses := fault.DiskFault{Op: fault.DiskWrite, Err: syscall.ENOSPC, Times: times + 1}
					if n > 1 { // it takes a part each time, and does not give that back
						refuses.Take = 1
						d.Add(fault.DiskFault{Op: fault.DiskTruncate, Err: syscall.EIO})
					}
					l.putBehindAFlush(t, d, f, refuses)
					refused := f.Rotate()
					d.Mend()
					if err := end(f); err != nil {
						t.Errorf("%d times, %v, way %d: %v, after a Rotate that returned %v", times+1, p, i, err, refused)
					}
					for seed := range uint64(8) {
						if err := l.holds(logs(d.PowerCut(rand.New(rand.NewPCG(seed, 0))))); err != nil {
							t.Errorf("%d times, %v, way %d: %v", times+1, p, i, err)
						}
					}
					l.closed(t, d, f)
				})
			}
		}
	}
}

// TestAFailedSyncOfWhatWasRefusedIsFinal: the file is synced when it is left, and that fails.
func TestAFailedSyncOfWhatWasRefusedIsFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newMemory(t), ledger{}
		f := opened(t, d, Options{Policy: policies[3]})
		l.put(t, f, 1)
		l.putBehindAFlush(t, d, f, fault.DiskFault{Op: fault.DiskWrite, Err: syscall.ENOSPC, Times: 2}, fault.DiskFault{Op: fault.DiskDatasync, Err: syscall.EIO, Times: 1})
		if err := f.Rotate(); err != nil || d.Count(fault.DiskDatasync) != 1 {
			t.Errorf("Rotate = %v, after %d syncs", err, d.Count(fault.DiskDatasync))
		}
		for range 2 {
			if err := f.Sync(); !errors.Is(err, syscall.EIO) {
				t.Error("Sync:", err)
			}
		}
		l.closedWith(t, d, f, syscall.EIO)
	})
}

// TestAPartIsNotCutOffOfAFileThatAnotherHasWrittenTo: its bytes would go too.
func TestAPartIsNotCutOffOfAFileThatAnotherHasWrittenTo(t *testing.T) {
	d := newMemory(t)
	f := opened(t, d, Options{})
	d.Add(fault.DiskFault{Op: fault.DiskWrite, Times: 1, Err: syscall.ENOSPC, Take: 5})
	d.Watch(func(c fault.DiskCall) {
		if c.Op != fault.DiskWrite || c.End.IsZero() || c.Err == nil {
			return
		}
		d.Watch(nil)
		fd, err := d.OpenFile(logDirectory(t, d), sysName("app.log"), os.O_WRONLY|os.O_APPEND, 0)
		if err == nil {
			_, err = d.Write(fd, []byte("another's\n"))
		}
		if err = errors.Join(err, d.Close(fd)); err != nil {
			t.Error(err)
		}
	})
	n, err := f.Write([]byte("refused\n"))
	if n != 5 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Write = %d, %v", n, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if got, _ := d.ReadFile("/log/app.log"); string(got) != "refusanother's\n" {
		t.Errorf("%q", got)
	}
}

// TestWhatIsNoFileIsNoLog, and it is left as it is.
func TestWhatIsNoFileIsNoLog(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("NUL is no file to which a link can lead")
	}
	path := filepath.Join(t.TempDir(), "app.log")
	if err := os.Symlink(os.DevNull, path); err != nil {
		t.Skip(err)
	}
	f, err := Open(path, Options{})
	if err == nil {
		f.Close()
	}
	if err == nil || !strings.Contains(err.Error(), path+" is no regular file and can't be rotated") {
		t.Error(err)
	}
}

// TestAFailedWriteIsOverWithTheNextRecord, also if a rotation that worked comes between them.
func TestAFailedWriteIsOverWithTheNextRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newMemory(t), ledger{}
		f := opened(t, d, Options{Policy: holdfast.Policy{Buffer: 256, FlushEvery: time.Second}})
		l.put(t, f, 1)
		d.Add(fault.DiskFault{Op: fault.DiskWrite, Times: 1, Err: syscall.ENOSPC})
		time.Sleep(time.Minute)
		if err := f.Err(); !errors.Is(err, syscall.ENOSPC) {
			t.Error("after a flush by time:", err)
		}
		if err := f.Rotate(); err != nil {
			t.Error(err)
		}
		l.put(t, f, 1)
		if err := f.Err(); err != nil {
			t.Error("after a record:", err)
		}
		l.closed(t, d, f)
	})
}

// TestAFailedSyncOfANewFileCountsAgainstItsNeighbour: without a journal that sync may have lost the names of both.
func TestAFailedSyncOfANewFileCountsAgainstItsNeighbour(t *testing.T) {
	d, names := newMemory(t), &durable.NameSyncs{} // on a real disk all logs share them
	var logs []*logFile
	for _, path := range []string{"/log/app.log", "/log/neighbour.log"} {
		l, err := openFile(d, names, path, 0o600, nil, &Options{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		logs = append(logs, l)
	}
	d.Add(fault.DiskFault{Op: fault.DiskDatasync, Path: "app.log", Err: syscall.EIO, Times: 1})
	if err := logs[0].Sync(); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	if err := logs[1].Sync(); err == nil {
		t.Error("a file is durable whose name may be lost")
	}
}

// TestABackupWhoseNameIsNotDurableIsTakenBack: the sync of the directory fails, and the log goes on
// in the same file.
func TestABackupWhoseNameIsNotDurableIsTakenBack(t *testing.T) {
	d := newMemory(t)
	f := opened(t, d, Options{Policy: holdfast.Durable()})
	if _, err := f.Write([]byte("record\n")); err != nil {
		t.Fatal(err)
	}
	d.Add(fault.DiskFault{Op: fault.DiskSync, Path: "/log", Err: syscall.EIO, Times: 1})
	if err := f.Rotate(); !errors.Is(err, syscall.EIO) {
		t.Error(err)
	}
	if text, err := d.ReadFile("/log/app.log"); string(text) != "record\n" || err != nil {
		t.Errorf("the log holds %q, %v", text, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// TestARotationThatFailsReplacesNothing: another program has made a file with the log's name since the rename, and then the
// directory can't be synced. The log stays in its own file, of which no later sync makes the name durable.
func TestARotationThatFailsReplacesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemory(t)
		f := opened(t, d, Options{Policy: holdfast.Durable()})
		write := func(text string) {
			t.Helper()
			if _, err := f.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		write("one\n")
		d.Add(fault.DiskFault{Op: fault.DiskSync, Path: "/log", Err: syscall.EIO, Times: 1})
		d.Watch(func(c fault.DiskCall) {
			if c.Op == fault.DiskRename && !c.End.IsZero() {
				d.Watch(nil)
				if err := d.WriteFile("/log/app.log", []byte("another's\n"), 0o640); err != nil {
					t.Error(err)
				}
			}
		})
		if err := f.Rotate(); !errors.Is(err, syscall.EIO) {
			t.Error(err)
		}
		time.Sleep(2 * time.Second)
		write("two\n")
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		files := logs(d.ProcessCrash())
		if string(files["app.log"]) != "another's\n" || string(files["app-2000-01-01T00-00-00.000.log"]) != "one\ntwo\n" || len(files) != 2 {
			t.Errorf("%q", files)
		}
	})
}

// TestANameThatCannotBeLookedForIsNotTaken for a backup: it may be one, which the rename would replace.
func TestANameThatCannotBeLookedForIsNotTaken(t *testing.T) {
	d, l := newMemory(t), ledger{}
	f := opened(t, d, Options{})
	l.put(t, f, 1)
	d.Add(fault.DiskFault{Op: fault.DiskStat, Path: "app-*", Err: syscall.EACCES})
	if err := f.Rotate(); !errors.Is(err, syscall.EACCES) || d.Count(fault.DiskRename) != 0 {
		t.Errorf("Rotate = %v, after %d renames", err, d.Count(fault.DiskRename))
	}
	d.Mend()
	l.closed(t, d, f)
}

// TestAFullDiskLeavesMemoryBounded, however often a rotation is tried.
func TestAFullDiskLeavesMemoryBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newMemory(t), ledger{}
		f := opened(t, d, Options{Policy: holdfast.Buffered(holdfast.KiB)})
		d.Add(fault.DiskFault{Op: fault.DiskWrite, Err: syscall.ENOSPC})
		accepted := 0
		for range 20 {
			for {
				next := record(0, l[0])
				if n, _ := f.Write(next); n == 0 {
					break
				}
				l[0]++
				accepted += len(next)
			}
			if err := f.Rotate(); !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
		}
		if accepted > 2<<10 {
			t.Errorf("%d bytes wait in memory, and the buffer has 1 KiB", accepted)
		}
		d.Mend()
		l.closed(t, d, f)
	})
}

// TestAFailedSyncIsHeardOnceAFile, though the log must go on in it with another Writer.
func TestAFailedSyncIsHeardOnceAFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, heard := newMemory(t), 0
		f := opened(t, d, Options{Policy: holdfast.Durable(), OnError: func(e *Error) {
			if e.Op == "sync" {
				heard++
			}
		}})
		d.Add(fault.DiskFault{Op: fault.DiskDatasync, Err: syscall.EIO, Times: 1})
		d.Deny("app-*", syscall.EACCES)
		for range 5 {
			if _, err := f.Write([]byte("record\n")); !errors.Is(err, syscall.EIO) {
				t.Errorf("Write = %v", err)
			}
		}
		synctest.Wait()
		if heard != 1 {
			t.Errorf("heard of it %d times", heard)
		}
		d.Mend()
		f.Close()
	})
}

// TestAFailedSyncOfAnOlderProcessesLinesIsFinal: a killed process has left lines that are perhaps not on the disk, and the first
// sync of them, in a rotation, fails.
func TestAFailedSyncOfAnOlderProcessesLinesIsFinal(t *testing.T) {
	for _, text := range []string{"buffer=4KiB,sync=close", "buffer=4KiB,sync=1s", "buffer=4KiB,sync=200B"} {
		p, err := holdfast.ParsePolicy(text)
		if err != nil {
			t.Fatal(err)
		}
		d := on(t, map[string][]byte{"app.log": []byte("older\n")})
		f := opened(t, d, Options{Policy: p})
		d.Add(fault.DiskFault{Op: fault.DiskDatasync, Err: syscall.EIO, Times: 1})
		if err := f.Rotate(); !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: Rotate = %v", text, err)
		}
		if err := f.Rotate(); err != nil { // no sync of that file is tried again
			t.Errorf("%s: the second Rotate = %v", text, err)
		}
		if _, err := f.Write([]byte("newer\n")); err != nil {
			t.Errorf("%s: Write = %v", text, err)
		}
		for _, call := range []func() error{f.Sync, f.Err, f.Close} {
			if err := call(); !errors.Is(err, syscall.EIO) {
				t.Errorf("%s: Sync, Err or Close = %v", text, err)
			}
		}
	}
}

// TestASyncNoticesThatTheLogIsMoved: the record behind it is the last one of the old file, without a second passing.
func TestASyncNoticesThatTheLogIsMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newMemory(t), ledger{}
		f := opened(t, d, Options{})
		l.put(t, f, 1)
		if err := d.Rename(logDirectory(t, d), sysName("app.log"), sysName("app.1")); err != nil {
			t.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			t.Error(err)
		}
		l.put(t, f, 2)
		if got, err := d.ReadFile("/log/app.log"); string(got) != string(record(0, 2)) {
			t.Errorf("the new file holds %q, %v", got, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestTheTimeIsBeforeTheLastDot of a backup's name, as in lumberjack's.
func TestTheTimeIsBeforeTheLastDot(t *testing.T) {
	for _, c := range []struct{ name, before, behind string }{{"app.v1.log", "app.v1-", ".log"}, {"app", "app-", ""}, {".log", "-", ".log"}} {
		if before, behind := parts(sys.Name(c.name + "\x00")); before != c.before || behind != c.behind {
			t.Errorf("%s: %q and %q", c.name, before, behind)
		}
	}
}

// TestABackupTakesNoNameOfACompressedOne that another process has made since: it would replace that
// when it is compressed itself.
func TestABackupTakesNoNameOfACompressedOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemory(t)
		if err := d.WriteFile("/log/app.log", []byte("x"), 0o600); err != nil { // one byte is a torn line too
			t.Fatal(err)
		}
		f := opened(t, d, Options{Policy: holdfast.Durable()})
		for i := range 2 {
			if _, err := f.Write([]byte("record\n")); err != nil {
				t.Fatal(err)
			}
			if text, err := d.ReadFile("/log/app.log"); i == 0 && string(text) != "x\nrecord\n" || err != nil {
				t.Errorf("the log holds %q, %v", text, err)
			}
			next := f.last.Add(time.Millisecond)
			if i == 1 {
				if err := d.WriteFile("/log/app-"+next.Format(stamp)+".log.gz", []byte("other"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := f.Rotate(); err != nil {
				t.Fatal(err)
			}
			if i == 1 && !f.last.After(next) {
				t.Errorf("a backup is named as that of %v", next)
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestARemovedLogIsBegunAnew though the directory can't be synced: the file has no name that a new one could take.
func TestARemovedLogIsBegunAnew(t *testing.T) {
	d := newMemory(t)
	f := opened(t, d, Options{Policy: holdfast.Buffered(holdfast.KiB)})
	if _, err := f.Write([]byte("one\n")); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	d.Add(fault.DiskFault{Op: fault.DiskSync, Path: "/log", Err: syscall.EIO})
	if err := d.RemoveAll("/log/app.log"); err != nil {
		t.Fatal(err)
	}
	if err := f.Reopen(); err != nil {
		t.Error(err)
	}
	if _, err := f.Write([]byte("two\n")); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if files := logs(d.ProcessCrash()); string(files["app.log"]) != "two\n" {
		t.Errorf("%q", files)
	}
}
