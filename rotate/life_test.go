//go:build go1.25

package rotate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// opened opens a log on a disk in memory.
func opened(t *testing.T, d *memory, o Options) *File {
	t.Helper()
	f, err := open(d, "/log/app.log", o, false)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// put writes n records, each of which must be accepted.
func (l ledger) put(t *testing.T, f *File, records int) {
	t.Helper()
	for range records {
		if _, err := f.Write(record(0, l[0])); err != nil {
			t.Fatal(err)
		}
		l[0]++
	}
}

// closed closes a log and holds that nothing is lost and nothing left.
func (l ledger) closed(t *testing.T, d *memory, f *File) map[string][]byte {
	t.Helper()
	return l.closedWith(t, d, f, nil)
}

// closedWith is closed of a log whose Close returns this error.
func (l ledger) closedWith(t *testing.T, d *memory, f *File, want error) map[string][]byte {
	t.Helper()
	if err := f.Close(); !errors.Is(err, want) {
		t.Errorf("Close = %v, want %v", err, want)
	}
	files := logs(d.ProcessCrash())
	if err := l.holds(files); err != nil {
		t.Error(err)
	}
	if n := d.Open(); n != 0 {
		t.Errorf("%d descriptors are left open", n)
	}
	if wrong := d.Violations(); len(wrong) > 0 {
		t.Error(wrong)
	}
	return files
}

func TestRotatesBySizeAfterTheRecordThatReachesIt(t *testing.T) {
	for _, p := range append([]holdfast.Policy{holdfast.Buffered(holdfast.KiB)}, policies...) {
		synctest.Test(t, func(t *testing.T) {
			d, l := newMemory(t), ledger{}
			f := opened(t, d, Options{MaxSize: 100, Policy: p})
			l.put(t, f, 40)
			for name, data := range l.closed(t, d, f) {
				if last := bytes.LastIndexByte(data[:max(0, len(data)-1)], '\n'); name != "app.log" && (len(data) < 100 || last >= 100) {
					t.Errorf("%v: %s has %d bytes, without its last record %d", p, name, len(data), last+1)
				}
			}
			if n := f.Stats().Rotations; n < 10 {
				t.Errorf("%v: %d rotations", p, n)
			}
		})
	}
}

func TestRotatesByTime(t *testing.T) {
	here := time.Local
	time.Local = time.FixedZone("here", 90*60)
	defer func() { time.Local = here }()
	check := func(o Options, modified, later time.Duration, rotations int64) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) { // it begins at midnight, UTC
			d, l := newMemory(t), ledger{0: 1}
			if err := d.WriteFile("/log/app.log", record(0, 0), 0o644); err != nil {
				t.Fatal(err)
			}
			d.modified = time.Now().Add(modified)
			f := opened(t, d, o)
			l.put(t, f, 1)
			time.Sleep(later - time.Nanosecond)
			l.put(t, f, 1)
			if n := f.Stats().Rotations; n != rotations-1 {
				t.Errorf("%+v: %d rotations just before %v", o, n, later)
			}
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			if n := f.Stats().Rotations; n != rotations {
				t.Errorf("%+v: %d rotations at %v, want %d", o, n, later, rotations)
			}
			time.Sleep(5 * time.Hour) // an empty file stays
			if n := f.Stats().Rotations; n != rotations {
				t.Errorf("%+v: %d rotations of an idle log, want %d", o, n, rotations)
			}
			l.put(t, f, 1)
			l.closed(t, d, f)
		})
	}
	check(Options{RotationInterval: time.Hour}, 0, time.Hour, 1)
	check(Options{RotationInterval: 7 * time.Second}, 0, 2*time.Second, 1) // 946684800 is 5 more than a multiple
	check(Options{RotateAt: []string{"01:45", "12:00"}}, 0, 15*time.Minute, 1)
	check(Options{RotateAt: []string{"01:15"}}, 0, 23*time.Hour+45*time.Minute, 1)
	check(Options{RotateAt: []string{"01:15"}, RotationInterval: 10 * time.Hour}, 0, 2*time.Hour, 1) // at 00:00 (UTC) 262968 h have passed
	check(Options{RotationInterval: time.Hour}, -time.Minute, time.Hour, 2)                          // it was due while no process had it
}

func TestAnotherProgramMovesRemovesOrTruncatesTheFile(t *testing.T) {
	for _, p := range policies {
		for _, what := range []string{"mv", "mv and Reopen", "mv of the directory", "rm", "truncate"} {
			t.Run(p.String()+" "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d, l := newMemory(t), ledger{}
					var failures []*Error
					o := Options{Policy: p, OnError: func(e *Error) { failures = append(failures, e) }}
					if what == "truncate" {
						o.MaxSize = 500
					}
					f := opened(t, d, o)
					synctest.Wait() // else it may look for backups in a directory that was moved
					l.put(t, f, 5)
					before, kept := l[0], map[string][]byte{}
					var err error
					switch what {
					case "mv", "mv and Reopen":
						err = d.Move("/log/app.log", "/log/app-2000-01-01T00-00-00.000.log")
						if what != "mv" {
							err = errors.Join(err, f.Reopen())
						}
					case "mv of the directory":
						err = errors.Join(d.Move("/log", "/old"), d.MkdirAll("/log"))
					case "rm":
						err = errors.Join(f.Sync(), d.RemoveAll("/log/app.log"))
						l[0], before = 0, 0 // its records went with it
					case "truncate": // a copytruncate
						err = f.Sync()
						kept["app-2000-01-01T00-00-00.000.log"], _ = d.ReadFile("/log/app.log")
						fd, e := d.OpenFile(logDirectory(t, d), "app.log\x00", os.O_WRONLY|os.O_TRUNC, 0)
						err = errors.Join(err, e, d.Close(fd))
					}
					if err != nil {
						t.Fatal(err)
					}
					if what == "rm" {
						// The next second's records may go with the file, the later ones not.
						for range 3 {
							f.Write([]byte("gone\n"))
							time.Sleep(time.Second)
						}
						f.Sync()
						f.Sync()
					}
					time.Sleep(2 * time.Second)
					l.put(t, f, 1)
					time.Sleep(time.Second)
					l.put(t, f, 20)
					if err := f.Close(); err != nil {
						t.Error(err)
					}
					files := logs(d.ProcessCrash())
					for name, data := range files {
						if o.MaxSize > 0 && name != "app.log" && len(data) < 500 {
							t.Errorf("%s has %d bytes", name, len(data))
						}
					}
					for name, data := range kept {
						files[name] = data
					}
					for p, data := range d.ProcessCrash().Files {
						if strings.HasPrefix(p, "/old/") {
							files["app-1999-12-31T00-00-00.000.log"] = data
						}
					}
					for name, data := range files {
						files[name] = bytes.ReplaceAll(data, []byte("gone\n"), nil)
					}
					if err := l.holds(files); err != nil {
						t.Errorf("%v: %q", err, files)
					}
					if s := f.Stats(); what != "truncate" && s.Reopens != 1 || what == "truncate" && s.Reopens != 0 || l[0] <= before {
						t.Errorf("%+v", s)
					}
					if what != "rm" && len(failures) > 0 {
						t.Error(failures)
					}
				})
			})
		}
	}
}

// logDirectory opens the directory of the log for a test.
func logDirectory(t *testing.T, d *memory) int {
	fd, err := d.OpenDir("/log\x00")
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// TestWriteAfterAFailureThatIsOverSucceeds, and so does a Sync: log/slog gives no record twice.
func TestWriteAfterAFailureThatIsOverSucceeds(t *testing.T) {
	for _, sync := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			d, l := newMemory(t), ledger{}
			failures := 0
			f := opened(t, d, Options{Policy: policies[1], OnError: func(*Error) { failures++ }})
			d.Add(fault.DiskFault{Op: fault.DiskWrite, Err: syscall.ENOSPC, Times: 1})
			l.put(t, f, 1)
			time.Sleep(150 * time.Millisecond) // the flush by time fails
			if sync {
				if err := f.Sync(); err != nil {
					t.Error(err)
				}
			}
			l.put(t, f, 3)
			synctest.Wait()
			if failures != 1 {
				t.Errorf("%d failures", failures)
			}
			l.closed(t, d, f)
		})
	}
}

func TestAnInterruptedWriteGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newMemory(t), ledger{}
		f := opened(t, d, Options{})
		d.Add(fault.DiskFault{Op: fault.DiskWrite, Err: syscall.EINTR, Take: 3, Times: 5})
		l.put(t, f, 3)
		if s := f.Stats(); s.Errors != 0 {
			t.Errorf("%+v", s)
		}
		l.closed(t, d, f)
	})
}

// A movedJustNow is a disk on which another program moves the log just before it is renamed.
type movedJustNow struct {
	*memory
	done bool
}

func (d *movedJustNow) Rename(dir int, from, to sys.Name) error {
	if !d.done {
		d.done = true
		if err := d.memory.Rename(dir, from, sysName("other.log")); err != nil {
			return err
		}
	}
	return d.memory.Rename(dir, from, to)
}

func TestAMoveJustBeforeARotationIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := &movedJustNow{memory: newMemory(t)}, ledger{}
		f, err := open(d, "/log/app.log", Options{}, false)
		if err != nil {
			t.Fatal(err)
		}
		l.put(t, f, 3)
		if err := f.Rotate(); err != nil {
			t.Error(err)
		}
		l.put(t, f, 3)
		if s := f.Stats(); s.Reopens != 1 || s.Rotations != 0 || s.Errors != 0 {
			t.Errorf("%+v", s)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		all := logs(d.ProcessCrash())
		if err := l.holds(map[string][]byte{"app-2006-01-02T15-04-05.000.log": all["other.log"], "app.log": all["app.log"]}); err != nil {
			t.Error(err, names(all))
		}
	})
}

func TestRotationThatFailsGoesOnInTheSameFileUntilItWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newMemory(t), ledger{}
		var at []time.Duration
		start := time.Now()
		f := opened(t, d, Options{MaxSize: 100, OnError: func(e *Error) {
			if e.Op != "rotate" || !errors.Is(e, syscall.EACCES) || !strings.HasSuffix(e.Error(), "permission denied; the log goes on in the same file and tries again") {
				t.Error(e)
			}
			at = append(at, time.Since(start))
		}})
		d.Add(fault.DiskFault{Op: fault.DiskRename, Err: syscall.EACCES})
		l.put(t, f, 50)
		if f.Rotate() == nil {
			t.Error("Rotate works")
		}
		time.Sleep(190 * time.Second)
		synctest.Wait()
		if err := f.Err(); !errors.Is(err, syscall.EACCES) {
			t.Error("while it fails:", err)
		}
		s := time.Second
		if want := []time.Duration{0, 0, 2 * s, 6 * s, 14 * s, 30 * s, 62 * s, 122 * s, 182 * s}; !slices.Equal(at, want) {
			t.Errorf("it tried at %v, want %v", at, want)
		}
		if files := logs(d.ProcessCrash()); len(files) != 1 {
			t.Error(names(files))
		}
		d.Mend()
		time.Sleep(time.Minute)
		synctest.Wait()
		if files := logs(d.ProcessCrash()); len(files) != 2 || len(files["app.log"]) > 0 {
			t.Error("mended: ", names(files))
		}
		if err := f.Err(); err != nil {
			t.Error("mended:", err)
		}
		at, start = nil, time.Now()
		d.Add(fault.DiskFault{Op: fault.DiskRename, Err: syscall.EACCES, Times: 2})
		l.put(t, f, 10)
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := []time.Duration{0, s}; !slices.Equal(at, want) {
			t.Errorf("later it tried at %v, want %v", at, want)
		}
		l.closed(t, d, f)
	})
}

// TestOnErrorMayLogToTheSameLog has a handler with a lock of its own, as log/slog's.
func TestOnErrorMayLogToTheSameLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemory(t)
		var logger *slog.Logger
		calls := 0
		f := opened(t, d, Options{MaxSize: 300, OnError: func(e *Error) {
			calls++
			logger.Error("the log fails", "error", e)
		}})
		logger = slog.New(slog.NewTextHandler(f, nil))
		d.Add(fault.DiskFault{Op: fault.DiskWrite, Err: syscall.ENOSPC})
		for range 20 {
			logger.Info("lost")
		}
		synctest.Wait()
		if calls != 1 {
			t.Errorf("OnError was called %d times for one failure", calls)
		}
		d.Mend()
		logger.Info("it is over")
		d.Add(fault.DiskFault{Op: fault.DiskRename, Err: syscall.EROFS})
		for range 10 {
			logger.Info("in the same file")
		}
		synctest.Wait()
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		data, _ := d.ReadFile("/log/app.log")
		if n := bytes.Count(data, []byte(`msg="in the same file"`)); n != 10 || calls != 2 || !bytes.Contains(data, []byte("read-only file system; the log goes on")) {
			t.Errorf("%d calls, %d records: %s", calls, n, data)
		}
		if n := f.Stats().Errors; n != 2 {
			t.Errorf("%d errors", n)
		}
	})
}

func TestTornLineIsEndedBeforeTheNextRecord(t *testing.T) {
	check := func(old, want string, healed int64) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			d := newMemory(t)
			if err := d.WriteFile("/log/app.log", []byte(old), 0o644); err != nil {
				t.Fatal(err)
			}
			f := opened(t, d, Options{})
			if n := f.Stats().Healed; n != healed {
				t.Errorf("%q: %d healed", old, n)
			}
			fmt.Fprint(f, "next\n")
			d.Add(fault.DiskFault{Op: fault.DiskRename, Err: syscall.EACCES, Times: 1})
			if err := f.Rotate(); !errors.Is(err, syscall.EACCES) {
				t.Errorf("%q: Rotate = %v", old, err)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			if n := f.Stats().Healed; n != healed {
				t.Errorf("%q: %d healed after a rotation that failed", old, n)
			}
			if got, _ := d.ReadFile("/log/app.log"); string(got) != want {
				t.Errorf("%q becomes %q, want %q", old, got, want)
			}
		})
	}
	check("", "next\n", 0)
	check("\n", "\nnext\n", 0)
	check("whole\n", "whole\nnext\n", 0)
	check("whole\nto", "whole\nto\nnext\n", 1)
	check("zeros\x00\x00", "zeros\x00\x00\nnext\n", 1)
}

func TestBackupsAreRemovedAndCompressed(t *testing.T) {
	check := func(o Options, want ...string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			d := newMemory(t)
			for _, name := range []string{
				"app-1999-12-31T00-00-00.000.log", "app-1999-12-30T00-00-00.000.log.gz", "app-1999-12-29T00-00-00.000.log",
				"app-1999-12-28T00-00-00.000.log", "app-1999-12-28T00-00-00.000.log.gz", // a killed lumberjack
				"app-1999-12-31.log", "app-1999-12-31T00-00-00.000.txt", "app-1999-13-31T00-00-00.000.log", "apple.log", "app-.log",
			} {
				if err := d.WriteFile("/log/"+name, []byte(strings.Repeat(name, 100)), 0o640); err != nil {
					t.Fatal(err)
				}
			}
			o.OnError = func(e *Error) { t.Error(e) }
			f := opened(t, d, o)
			synctest.Wait()
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			var got []string
			for _, name := range names(logs(d.ProcessCrash())) {
				if short, ok := strings.CutPrefix(name, "app-1999-12-"); ok && len(name) > 25 && !strings.HasSuffix(name, ".txt") {
					got = append(got, strings.Replace(short, "T00-00-00.000.log", "", 1))
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%+v leaves %v, want %v", o, got, want)
			}
			if n := len(logs(d.ProcessCrash())) - len(got); n != 6 {
				t.Errorf("%+v: %d other files", o, n)
			}
		})
	}
	check(Options{}, "28.gz", "29", "30.gz", "31") // a begun removal is finished
	check(Options{MaxBackups: 4}, "28.gz", "29", "30.gz", "31")
	check(Options{Compress: true}, "28.gz", "29.gz", "30.gz", "31.gz")
	check(Options{MaxBackups: 2}, "30.gz", "31")
	check(Options{MaxAge: 49 * time.Hour, Compress: true}, "30.gz", "31.gz")
	check(Options{MaxTotal: 7 * holdfast.KiB}, "30.gz", "31")
	check(Options{MaxTotal: 1}, []string(nil)...)
}

func TestCompressionKeepsBytesModeAndOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newMemory(t), ledger{}
		f := opened(t, d, Options{Compress: true, Policy: holdfast.Buffered(64 * holdfast.KiB)})
		l.put(t, f, 5000) // more than one chunk
		dir := logDirectory(t, d)
		fd, err := d.OpenFile(dir, "app.log\x00", os.O_WRONLY, 0)
		if err = errors.Join(err, d.Chmod(fd, 0o604), d.Chown(fd, 77, 88), d.Close(fd), d.Close(dir)); err != nil {
			t.Fatal(err)
		}
		if err := f.Rotate(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if s := f.Stats(); s.Compressed != 1 || s.Compressing != "" || s.CompressedBytes != s.CompressingSize || s.CompressedBytes < packChunk {
			t.Errorf("%+v", s)
		}
		l.put(t, f, 1)
		files := l.closed(t, d, f)
		for name := range files {
			is, err := d.StatPath(sysName("/log/" + name))
			if err != nil || is.Mode&0o777 != 0o604 || is.UID != 77 || is.GID != 88 {
				t.Errorf("%s: %+v, %v", name, is, err)
			}
		}
		if len(files) != 2 {
			t.Error(names(files))
		}
	})
}

func TestReadFailureLeavesTheBackup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newMemory(t), ledger{}
		d.readErr = syscall.EIO
		failures := 0
		f := opened(t, d, Options{Compress: true, OnError: func(e *Error) {
			failures++
			if e.Op != "compress" {
				t.Error(e)
			}
		}})
		synctest.Wait() // else the backup may be looked at twice
		l.put(t, f, 5)
		if err := f.Rotate(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(150 * time.Second)
		synctest.Wait()
		if files := logs(d.ProcessCrash()); len(files) != 2 || failures != 3 {
			t.Error(names(files), failures)
		}
		d.mu.Lock()
		d.readErr = nil
		d.mu.Unlock()
		time.Sleep(time.Minute)
		if n := f.Stats().Compressed; n != 1 {
			t.Errorf("%d compressed", n)
		}
		l.closed(t, d, f)
	})
}

func TestCloseEndsACompressionAndTheNextOpenMakesItAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newMemory(t), ledger{}
		f := opened(t, d, Options{Compress: true, Policy: holdfast.Buffered(64 * holdfast.KiB)})
		l.put(t, f, 5000)
		var closing sync.WaitGroup
		d.Watch(func(c fault.DiskCall) {
			if c.Op == fault.DiskOpen && strings.HasSuffix(c.Path, partly) && !c.End.IsZero() {
				closing.Go(func() { f.Close() })
				<-f.stop
			}
		})
		if err := f.Rotate(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		d.Watch(nil)
		closing.Wait()
		if files := l.closed(t, d, f); len(files) != 2 || f.Stats().Compressed != 0 {
			t.Error(names(files))
		}
		finishes(t, d, Options{Compress: true})
		if err := l.holds(logs(d.ProcessCrash())); err != nil {
			t.Error(err)
		}
	})
}

func TestCallsAfterCloseFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemory(t)
		f := opened(t, d, Options{RotationInterval: time.Hour})
		if err := errors.Join(f.Close(), f.Close()); err != nil {
			t.Error(err)
		}
		n, err := f.Write([]byte("x\n"))
		if n != 0 || !errors.Is(err, os.ErrClosed) {
			t.Error(n, err)
		}
		for _, call := range []func() error{f.Sync, f.Rotate, f.Reopen} {
			if err := call(); !errors.Is(err, holdfast.ErrClosed) {
				t.Error(err)
			}
		}
	})
}

func TestOpenRefusesWhatItCannotKeep(t *testing.T) {
	dir := t.TempDir()
	check := func(path string, o Options, says string) {
		t.Helper()
		if f, err := Open(path, o); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q %+v: %v", path, o, err)
			if err == nil {
				f.Close()
			}
		}
		if entries, _ := os.ReadDir(dir); len(entries) > 0 {
			t.Errorf("%+v: it has made %v", o, entries)
		}
	}
	path := filepath.Join(dir, "app.log")
	check("", Options{}, "the log has no path; name a file")
	check(path, Options{MaxSize: -5}, "MaxSize -5 is negative; 0 sets no limit")
	check(path, Options{MaxBackups: -1}, "MaxBackups -1 is negative")
	check(path, Options{MaxAge: -time.Hour}, "MaxAge -1h0m0s is negative")
	check(path, Options{MaxTotal: -1}, "MaxTotal -1 is negative")
	check(path, Options{RotationInterval: -1}, "RotationInterval -1ns is negative")
	check(path, Options{RotationInterval: time.Millisecond}, "RotationInterval 1ms is below 1s; use")
	check(path, Options{RotateAt: []string{"00:00", "24:00"}}, `RotateAt "24:00" is no time of the day; write it like`)
	check(path, Options{Perm: os.ModeDir | 0o600}, "holds more than permissions; use")
	check(path, Options{Policy: holdfast.Policy{Buffer: -1}}, "buffer")
	none := func(io.Writer) (io.WriteCloser, error) { return nil, errors.New("never asked") }
	check(path, Options{Compress: true, Compressor: Compressor{Suffix: ".zst"}}, `Compressor of ".zst" has no New`)
	check(path, Options{Compressor: Compressor{Suffix: ".zst", New: none}}, "Compress is not")
	for _, suffix := range []string{"", ".", "zst", ".zstd", ".gz", ".p/", "..z", ".\x00"} {
		check(path, Options{Compress: true, Compressor: Compressor{Suffix: suffix, New: none}}, "use a dot and one to three letters or digits, such as .zst")
	}
	if _, err := Open(filepath.Join(dir, "none", "app.log"), Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory that is missing: %v", err)
	}
	check(dir, Options{}, "")
	check(filepath.Join(dir, strings.Repeat("x", 230)), Options{}, "too long for those of its backups; use one of at most 222 bytes")
}

func FuzzTimeOfDay(f *testing.F) {
	for _, text := range []string{"00:00", "23:59", "*:07", "*:7", "*:60", "**:00", "24:00", "9:30", "09:3", "-1:00", "+1:00", "09:30:00", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		hour, minute, err := timeOfDay(text)
		again := fmt.Sprintf("%02d:%02d", hour, minute)
		if hour == eachHour {
			again = fmt.Sprintf("*:%02d", minute)
		}
		if err == nil && (again != text || hour < eachHour || hour >= 24 || minute < 0 || minute >= 60) {
			t.Errorf("%q is %d, %d", text, hour, minute)
		}
	})
}

// TestSyncReturnsTheFailedSyncOfAnEarlierFile has a sync by time fail, which no call waits for. Each caller may have
// records in that file, so each Sync returns it, and so does Close.
func TestSyncReturnsTheFailedSyncOfAnEarlierFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newMemory(t), ledger{}
		var failures []*Error
		f := opened(t, d, Options{Policy: holdfast.Periodic(time.Second), OnError: func(e *Error) { failures = append(failures, e) }})
		d.Add(fault.DiskFault{Op: fault.DiskDatasync, Err: syscall.EIO, Times: 1})
		l.put(t, f, 3)
		time.Sleep(2 * time.Second)
		l.put(t, f, 3) // to a new file
		synctest.Wait()
		if len(failures) != 1 || failures[0].Op != "sync" || failures[0].AtRisk != int64(len(record(0, 0))+len(record(0, 1))+len(record(0, 2))) ||
			!strings.Contains(failures[0].Error(), fmt.Sprintf("(%d bytes at risk)", failures[0].AtRisk)) {
			t.Error(failures)
		}
		for range 3 {
			if err := f.Sync(); !errors.Is(err, syscall.EIO) || !errors.Is(f.Err(), syscall.EIO) {
				t.Errorf("a Sync after it: %v, and Err = %v", err, f.Err())
			}
			if err := f.Rotate(); err != nil { // which takes nothing back
				t.Error(err)
			}
		}
		if files := l.closedWith(t, d, f, syscall.EIO); len(files) != 3 {
			t.Error(names(files))
		}
	})
}

func TestBytesOfAFileThatIsClosedAreAtRiskNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newMemory(t), ledger{}
		f := opened(t, d, Options{})
		l.put(t, f, 3)
		if err := f.Rotate(); err != nil {
			t.Fatal(err)
		}
		if s := f.Stats(); s.NotFlushed != 0 || s.NotDurable != 0 {
			t.Errorf("%+v", s)
		}
		l.closed(t, d, f)
	})
}

// TestAFailedSyncOfAnEarlierFileIsReturned also by a Sync that itself fails otherwise, and by each Close.
func TestAFailedSyncOfAnEarlierFileIsReturned(t *testing.T) {
	for _, fails := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			d, l := newMemory(t), ledger{}
			f := opened(t, d, Options{Policy: holdfast.Periodic(time.Second)})
			d.Add(fault.DiskFault{Op: fault.DiskDatasync, Err: syscall.EIO, Times: 1})
			l.put(t, f, 3)
			time.Sleep(2 * time.Second)
			synctest.Wait()
			l.put(t, f, 3) // to a new file
			if fails {
				d.Add(fault.DiskFault{Op: fault.DiskWrite, Err: syscall.ENOSPC})
				if err := f.Sync(); !errors.Is(err, syscall.ENOSPC) || !errors.Is(err, syscall.EIO) {
					t.Error("Sync:", err)
				}
				d.Mend()
				if err := f.Sync(); !errors.Is(err, syscall.EIO) || errors.Is(err, syscall.ENOSPC) {
					t.Error("the second Sync:", err)
				}
				l.closedWith(t, d, f, syscall.EIO)
				return
			}
			for range 2 {
				if err := f.Close(); !errors.Is(err, syscall.EIO) {
					t.Error("Close:", err)
				}
			}
		})
	}
}

func TestNewFileWhoseOwnerCannotBeKeptIsForFewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newMemory(t), ledger{}
		f := opened(t, d, Options{})
		l.put(t, f, 1)
		dir := logDirectory(t, d)
		fd, err := d.OpenFile(dir, "app.log\x00", os.O_WRONLY, 0)
		if err = errors.Join(err, d.Chmod(fd, 0o640), d.Chown(fd, 77, 88), d.Close(fd), d.Close(dir)); err != nil {
			t.Fatal(err)
		}
		d.Add(fault.DiskFault{Op: fault.DiskChown, Err: syscall.EPERM})
		if err := f.Rotate(); err != nil {
			t.Fatal(err)
		}
		if is, err := d.StatPath(sysName("/log/app.log")); err != nil || is.Mode&0o777 != 0o600 {
			t.Errorf("%o, %v", is.Mode, err)
		}
		l.closed(t, d, f)
	})
}

// TestABackupStaysWhereTheCompressedOneIsNotClosed: a close may be the call that reports lost bytes.
func TestABackupStaysWhereTheCompressedOneIsNotClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newMemory(t), ledger{}
		var heard []*Error
		f := opened(t, d, Options{Compress: true, OnError: func(e *Error) { heard = append(heard, e) }})
		synctest.Wait() // else the backup may be looked at twice
		l.put(t, f, 5)
		d.Add(fault.DiskFault{Op: fault.DiskClose, Path: "*" + partly, Times: 1, Err: syscall.EIO})
		if err := f.Rotate(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := f.Stats().Compressed; n != 0 || len(heard) != 1 || !errors.Is(heard[0], syscall.EIO) {
			t.Errorf("%d compressed, heard of %v", n, heard)
		}
		time.Sleep(time.Minute)
		if n := f.Stats().Compressed; n != 1 {
			t.Errorf("%d compressed", n)
		}
		l.closed(t, d, f)
	})
}

// TestABackupThatCannotBeRemovedIsTriedAgain each minute, and is reported each time.
func TestABackupThatCannotBeRemovedIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newMemory(t), ledger{}
		var heard []*Error
		f := opened(t, d, Options{MaxBackups: 1, OnError: func(e *Error) { heard = append(heard, e) }})
		synctest.Wait()
		d.Add(fault.DiskFault{Op: fault.DiskRemove, Err: syscall.EACCES})
		for range 2 {
			l.put(t, f, 5)
			if err := f.Rotate(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		time.Sleep(longestPause)
		synctest.Wait()
		if n := f.Stats().Removed; n != 0 || len(heard) != 2 || heard[0].Op != "remove" || !errors.Is(heard[0], syscall.EACCES) || f.Err() == nil {
			t.Errorf("%d removed, heard of %v, Err = %v", n, heard, f.Err())
		}
		d.Mend()
		time.Sleep(longestPause)
		synctest.Wait()
		if n := f.Stats().Removed; n != 1 || f.Err() != nil {
			t.Errorf("mended: %d removed, Err = %v", n, f.Err())
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if files := logs(d.ProcessCrash()); len(files) != 2 {
			t.Errorf("there are %q", names(files))
		}
	})
}

// finishes opens a log and holds that everything that was begun is finished then.
func finishes(t *testing.T, d *memory, o Options) {
	t.Helper()
	o.MaxSize, o.OnError = 0, func(e *Error) { t.Errorf("opened again: %v", e) }
	f, err := open(d, "/log/app.log", o, false)
	if err != nil {
		t.Fatal("opened again:", err)
	}
	synctest.Wait()
	if err := f.Close(); err != nil {
		t.Error("opened again:", err)
	}
	for name := range logs(d.ProcessCrash()) {
		if strings.HasPrefix(name, "app-") && filepath.Ext(name) != packed {
			t.Errorf("opened again, %s is left", name)
		}
	}
}
