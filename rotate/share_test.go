//go:build go1.25

package rotate

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// openTwo opens a log twice, which is to its lock what two processes are.
func openTwo(t *testing.T, disks [2]disk, o Options) (both [2]*File) {
	t.Helper()
	o.Shared = true
	if o.OnError == nil {
		o.OnError = func(e *Error) { t.Error(e) }
	}
	for i := range both {
		f, err := open(disks[i], "/log/app.log", o, false)
		if err != nil {
			t.Fatal(err)
		}
		both[i] = f
		synctest.Wait() // the first one's background sleeps, or has ended
	}
	return both
}

func closeTwo(t *testing.T, both [2]*File) {
	t.Helper()
	for _, f := range both {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestAFileMadeBehindAnothersRenameLeavesTheBackupItsName: another process renames the log once more while this one follows its first
// rotation, and a power cut comes before that process has synced the directory.
func TestAFileMadeBehindAnothersRenameLeavesTheBackupItsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemory(t)
		f, err := open(d, "/log/app.log", Options{Policy: holdfast.Durable(), Shared: true}, false)
		if err != nil {
			t.Fatal(err)
		}
		rename := func(to string) {
			dir := logDirectory(t, d)
			if err := d.Rename(dir, sysName("app.log"), sysName(to)); err != nil {
				t.Error(err)
			}
			d.Close(dir)
		}
		rename("app.1")
		if err := d.WriteFile("/log/app.log", []byte("durable\n"), 0o640); err != nil { // on the disk, with its name
			t.Fatal(err)
		}
		synced := false
		d.Watch(func(c fault.DiskCall) {
			if c.Op == fault.DiskSync && !c.End.IsZero() && !synced {
				synced = true
				rename("app.2")
			}
		})
		if err := f.Reopen(); err != nil {
			t.Error(err)
		}
		if d.Watch(nil); !synced {
			t.Fatal("the directory was not synced")
		}
		for seed := range uint64(40) {
			files := d.PowerCut(rand.New(rand.NewPCG(seed, 0))).Files
			if string(files["/log/app.log"]) != "durable\n" && string(files["/log/app.2"]) != "durable\n" {
				t.Fatalf("a power cut left %q", files)
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestASharedLogRotatesOnceForAll: by time and by size, each file has the records of both, each has one header, and the limits
// count all.
func TestASharedLogRotatesOnceForAll(t *testing.T) {
	for _, p := range policies {
		for _, x := range []struct {
			name  string
			o     Options
			files int
		}{
			{"by time", Options{RotationInterval: time.Minute}, 6},
			{"by time of the day", Options{RotateAt: []string{"*:01", "*:02", "*:03", "*:04", "*:05"}}, 6},
			{"by size", Options{MaxSize: 1700}, 3},
		} {
			synctest.Test(t, func(t *testing.T) {
				d := newMemory(t)
				x.o.Policy, x.o.Header = p, []byte("#header\n")
				both := openTwo(t, [2]disk{d, d}, x.o)
				const seconds = 5*60 + 30
				time.Sleep(time.Microsecond)
				for i := range seconds {
					for j, f := range both {
						if _, err := f.Write(fmt.Appendf(nil, "%d %03d...\n", j, i)); err != nil {
							t.Fatal(err)
						}
						time.Sleep(time.Second / 2)
					}
				}
				closeTwo(t, both)
				files := logs(d.ProcessCrash())
				all := ""
				for _, name := range names(files) {
					body, ok := strings.CutPrefix(string(files[name]), "#header\n")
					if !ok || strings.Contains(body, "#header") {
						t.Errorf("%v %s: %s has %.60q", p, x.name, name, files[name])
					}
					all += body
				}
				if n := len(files); n != x.files && !(x.o.MaxSize > 0 && n == x.files+1) { // files in the other's memory do not count
					t.Errorf("%v %s: %d files, want %d: %q", p, x.name, n, x.files, names(files))
				}
				for j := range both {
					for i := range seconds {
						if n := strings.Count(all, fmt.Sprintf("%d %03d...\n", j, i)); n != 1 {
							t.Errorf("%v %s: record %d of %d is there %d times", p, x.name, i, j, n)
						}
					}
				}
				if rotated := both[0].Stats().Rotations + both[1].Stats().Rotations; rotated != int64(len(files)-1) {
					t.Errorf("%v %s: %d rotations and %d files", p, x.name, rotated, len(files))
				}
			})
		}
	}
}

// TestATornLineOfAnotherProcessIsEnded, and the file is not cut for a part of this process's own when a write fails.
func TestATornLineOfAnotherProcessIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemory(t)
		both := openTwo(t, [2]disk{d, d}, Options{OnError: func(*Error) {}})
		put := func(f *File, text string, want error) {
			t.Helper()
			if _, err := f.Write([]byte(text)); (err != nil) != (want != nil) {
				t.Errorf("Write: %v", err)
			}
		}
		put(both[0], "one\n", nil)
		put(both[1], "two\n", nil)
		put(both[0], "half", nil) // its process dies
		put(both[1], "three\n", nil)
		d.Add(fault.DiskFault{Op: fault.DiskWrite, Times: 2, Take: 2, Err: syscall.ENOSPC})
		put(both[1], "four\n", syscall.ENOSPC)
		put(both[0], "five\n", nil)
		put(both[1], "six\n", nil)
		closeTwo(t, both)
		got, want := string(logs(d.ProcessCrash())["app.log"]), "one\ntwo\nhalf\nthree\nfive\nsix\n"
		if got = strings.Replace(got, "four\n", "", 1); got != want {
			t.Errorf("the log has %q, want %q", got, want)
		}
		if n := both[1].Stats().Healed; n != 1 {
			t.Errorf("%d lines were healed", n)
		}
	})
}

// TestOneProcessCompresses: one process a backup at a time; a backup that a live process compresses is left alone, and a dead
// one's is done again.
func TestOneProcessCompresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const one, two = "app-1999-12-31T00-00-00.000.log", "app-1999-12-30T00-00-00.000.log"
		d := on(t, map[string][]byte{one: []byte("one\n"), one + ".gz.part": []byte("hal"), two: []byte("two\n"), two + ".gz.part": []byte("h"), "app-1998-12-31T00-00-00.000.log.gz.part": []byte("h")})
		dir, err := d.OpenDir(sysName("/log"))
		if err != nil {
			t.Fatal(err)
		}
		working, err := d.OpenSource(dir, sysName(one+".gz.part"))
		if err == nil {
			err = d.Lock(working)
		}
		if err != nil {
			t.Fatal(err)
		}
		both := openTwo(t, [2]disk{d, d}, Options{Compress: true, Policy: holdfast.Unbuffered()})
		time.Sleep(time.Minute)
		if got := names(backupsOf(d)); !slices.Equal(got, []string{two + ".gz", one, one + ".gz.part"}) {
			t.Errorf("beside a process that compresses there are %q", got)
		}
		d.Close(working)
		if _, err := both[0].Write([]byte("record\n")); err != nil {
			t.Error(err)
		}
		if err := both[0].Rotate(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if got := names(backupsOf(d)); len(got) != 3 || !strings.HasSuffix(strings.Join(got, "|"), ".gz") || slices.Contains(got, one) {
			t.Errorf("then there are %q", got)
		}
		closeTwo(t, both)
	})
}

// A tardy disk sleeps in one call of a File, in which another File works on.
type tardy struct {
	*memory
	list bool          // in the next list of a directory, behind the reading of its names
	part time.Duration // in each look for a partial compression that is not there
}

func (d *tardy) OpenSource(dir int, name sys.Name) (int, error) {
	fd, err := d.memory.OpenSource(dir, name)
	if err != nil && strings.HasSuffix(name.String(), partly) {
		time.Sleep(d.part)
	}
	return fd, err
}

func (d *tardy) ReadNames(fd int, buf []byte, all []sys.DirEntry) ([]sys.DirEntry, error) {
	all, err := d.memory.ReadNames(fd, buf, all)
	if d.list && len(all) > 0 {
		d.list = false
		time.Sleep(time.Minute)
	}
	return all, err
}

// TestACompressionThatHasBegunMeanwhileIsLeftAlone: a File that has found no partial compression removes none. Else the file that
// it makes in its place, which is empty, takes the backup's place.
func TestACompressionThatHasBegunMeanwhileIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const one = "app-1999-12-31T00-00-00.000.log"
		d := on(t, map[string][]byte{one: []byte("one\n")})
		o := Options{Compress: true, Compressor: Compressor{".x", func(w io.Writer) (io.WriteCloser, error) { return lazy{w}, nil }}}
		both := openTwo(t, [2]disk{&tardy{memory: d, part: 1500 * time.Millisecond}, d}, o)
		for range 60 {
			files := backupsOf(d)
			text, plain := files[one]
			if !plain {
				text = files[one+".x"]
			}
			if string(text) != "one\n" {
				t.Errorf("the backup is %q", files)
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		closeTwo(t, both)
		if files := backupsOf(d); len(files) != 1 || files[one+".x"] == nil {
			t.Errorf("in the end there are %q", files)
		}
	})
}

// TestABackupIsNamedBehindOneThatIsBeingCompressed: the clock was set back, and the name of the last backup changes while the names
// are read.
func TestABackupIsNamedBehindOneThatIsBeingCompressed(t *testing.T) {
	ahead := jumpingClock(t)
	synctest.Test(t, func(t *testing.T) {
		d := newMemory(t)
		slow := &tardy{memory: d}
		both := openTwo(t, [2]disk{d, slow}, Options{Compress: true, Compressor: Compressor{".x", func(w io.Writer) (io.WriteCloser, error) { return lazy{w}, nil }}})
		ahead.Store(int64(time.Hour))
		for i, f := range both {
			if _, err := fmt.Fprintf(f, "%d\n", i); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Microsecond) // a File that has followed a rotation at this time makes none
			slow.list = i == 1
			if err := f.Rotate(); err != nil {
				t.Fatal(err)
			}
			ahead.Store(0)
		}
		time.Sleep(time.Minute)
		closeTwo(t, both)
		all := ""
		files := backupsOf(d)
		for _, name := range names(files) {
			all += string(files[name])
		}
		if all != "0\n1\n" || slow.list {
			t.Errorf("the backups are %q", files)
		}
	})
}

// TestNoRecordComesBehindARotation of another process: the backup may be in compression.
func TestNoRecordComesBehindARotation(t *testing.T) {
	for _, p := range policies {
		synctest.Test(t, func(t *testing.T) {
			d := newMemory(t)
			both := openTwo(t, [2]disk{d, d}, Options{Policy: p})
			for i := range 3 {
				for j, f := range both {
					if _, err := f.Write(fmt.Appendf(nil, "%d %d\n", j, i)); err != nil {
						t.Fatal(err)
					}
				}
				if err := both[i%2].Rotate(); err != nil {
					t.Error(err)
				}
				before := backupsOf(d)
				if _, err := both[1-i%2].Write([]byte("behind\n")); err != nil {
					t.Fatal(err)
				}
				if err := both[1-i%2].Sync(); err != nil {
					t.Error(err)
				}
				after := backupsOf(d)
				for name, text := range before {
					if string(after[name]) != string(text) {
						t.Errorf("%v: %s had %q, and has %q", p, name, text, after[name])
					}
				}
			}
			closeTwo(t, both)
		})
	}
}

// TestARotationThatAnotherProcessMadeIsNotMadeAgain: a record has followed it before this process's own timer is heard.
func TestARotationThatAnotherProcessMadeIsNotMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemory(t)
		both := openTwo(t, [2]disk{d, d}, Options{RotationInterval: time.Minute})
		for _, f := range both {
			if _, err := f.Write([]byte("record\n")); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute - time.Nanosecond)
		both[1].mu.Lock()
		time.Sleep(time.Nanosecond)
		for both[0].Stats().Rotations == 0 {
			runtime.Gosched()
		}
		if _, err := both[1].Write([]byte("followed\n")); err != nil {
			t.Fatal(err)
		}
		both[0].mu.Lock() // its timer reads the clock too
		clock = func() time.Time { return time.Now().Add(time.Second) }
		both[0].mu.Unlock()
		defer func() { clock = time.Now }()
		both[1].mu.Unlock()
		synctest.Wait()
		if n := both[1].Stats().Rotations; n != 0 || string(logs(d.ProcessCrash())["app.log"]) != "followed\n" {
			t.Errorf("%d rotations more, and the files %q", n, logs(d.ProcessCrash()))
		}
		closeTwo(t, both)
	})
}

// TestNobodyMakesAFileWhileARotationMayBeTakenBack: a process's sync of the directory fails in a rotation. Another one, which is
// two files behind, writes just before the first gives the file its name back.
func TestNobodyMakesAFileWhileARotationMayBeTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newMemory(t), ledger{}
		both := openTwo(t, [2]disk{d, d}, Options{Policy: holdfast.Durable(), OnError: func(*Error) {}})
		l.put(t, both[0], 3)
		if err := both[0].Rotate(); err != nil {
			t.Fatal(err)
		}
		l.put(t, both[0], 3)
		wrote := make(chan error)
		d.Add(fault.DiskFault{Op: fault.DiskSync, Path: "/log", Times: 1, Err: syscall.EIO})
		d.Watch(func(c fault.DiskCall) {
			if c.Op != fault.DiskSync || c.End.IsZero() || !errors.Is(c.Err, syscall.EIO) {
				return
			}
			d.Watch(nil)
			go func() {
				_, err := both[1].Write(record(1, 0))
				wrote <- err
			}()
			synctest.Wait() // it has written, or waits
		})
		if err := both[0].Rotate(); !errors.Is(err, syscall.EIO) {
			t.Errorf("Rotate = %v", err)
		}
		if err := <-wrote; err != nil {
			t.Error(err)
		}
		l[1] = 1
		for seed := range uint64(50) {
			if err := l.holds(logs(d.PowerCut(rand.New(rand.NewPCG(seed, 0))))); err != nil {
				t.Error(err)
				break
			}
		}
		l.put(t, both[0], 3)
		closeTwo(t, both)
		if err := l.holds(logs(d.ProcessCrash())); err != nil {
			t.Error(err)
		}
	})
}

// TestASharedLogInADirectoryThatIsGoneIsAnError, which ends: the names of a removed directory can't be read (ENOENT).
func TestASharedLogInADirectoryThatIsGoneIsAnError(t *testing.T) {
	d := newMemory(t)
	d.Add(fault.DiskFault{Op: fault.DiskReadNames, Err: syscall.ENOENT})
	f, err := open(d, "/log/app.log", Options{Shared: true, Policy: holdfast.Durable()}, false)
	if !errors.Is(err, syscall.ENOENT) {
		t.Errorf("%v, %v", f, err)
	}
}

// A rivalled disk lets another process come in before each opening of the log, and looks behind it.
type rivalled struct {
	*memory
	rival, look func()
}

func (d *rivalled) OpenFile(dir int, name sys.Name, flag int, perm uint32) (int, error) {
	if d.rival != nil && name.String() == "app.log" {
		d.rival()
		defer d.look()
	}
	return d.memory.OpenFile(dir, name, flag, perm)
}

// TestNobodyMakesAFileBehindARenameThatIsNotDurable: a process finds no file at the path, and waits for the other's rotation. That one
// begins its next rotation before the first opens the new file. A power cut comes before its sync of the directory.
func TestNobodyMakesAFileBehindARenameThatIsNotDurable(t *testing.T) {
	t.Run("never rotated", func(t *testing.T) { makeNoFile(t, false) })
	t.Run("has rotated", func(t *testing.T) { makeNoFile(t, true) })
}

func makeNoFile(t *testing.T, rotated bool) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newMemory(t), ledger{}
		late := &rivalled{memory: d}
		both := openTwo(t, [2]disk{d, late}, Options{Policy: holdfast.Durable(), OnError: func(*Error) {}})
		l.put(t, both[0], 3)
		if rotated {
			if err := both[1].Rotate(); err != nil {
				t.Fatal(err)
			}
			l.put(t, both[0], 3)
			time.Sleep(time.Second) // a Rotate before would be the other's
		}
		if err := both[0].Rotate(); err != nil {
			t.Fatal(err)
		}
		l.put(t, both[0], 3) // the other is two files behind at the next rotation
		renamed, release, done := make(chan bool), make(chan bool), make(chan error, 2)
		opened := 0
		late.look = func() {
			for seed := range uint64(100) {
				if err := l.holds(logs(d.PowerCut(rand.New(rand.NewPCG(seed, 0))))); err != nil {
					t.Error(err)
					break
				}
			}
		}
		late.rival = func() {
			if opened++; opened == 2 { // the first found no file
				l.put(t, both[0], 3)
				go func() { done <- both[0].Rotate() }()
				synctest.Wait()
				close(renamed)
			}
		}
		rotations := d.Count(fault.DiskRename)
		before := rotations
		d.Watch(func(c fault.DiskCall) {
			if c.Op != fault.DiskSync || !c.End.IsZero() || d.Count(fault.DiskRename) == rotations {
				return
			}
			rotations++
			switch rotations - before {
			case 1: // one has renamed
				go func() {
					_, err := both[1].Write(record(1, 0))
					done <- err
				}()
				synctest.Wait() // it waits for the rotation
			case 2: // the next has
				<-release
			}
		})
		if err := both[0].Rotate(); err != nil {
			t.Fatal(err)
		}
		<-renamed
		synctest.Wait()
		close(release)
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		d.Watch(nil)
		l[1] = 1
		l.put(t, both[0], 3)
		closeTwo(t, both)
		if err := l.holds(logs(d.ProcessCrash())); err != nil {
			t.Error(err)
		}
	})
}

// A deniedBackups refuses to open backups for writing.
type deniedBackups struct{ *memory }

func (d deniedBackups) OpenFile(dir int, name sys.Name, flag int, perm uint32) (int, error) {
	if flag&os.O_WRONLY != 0 && name.String() != "app.log" {
		return -1, syscall.EACCES
	}
	return d.memory.OpenFile(dir, name, flag, perm)
}

func TestASharedLogGoesOnBesideABackupThatMayOnlyBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newMemory(t), ledger{}
		both := openTwo(t, [2]disk{deniedBackups{d}, deniedBackups{d}}, Options{Policy: holdfast.Durable(), OnError: func(*Error) {}})
		l.put(t, both[0], 3)
		if err := both[0].Rotate(); err != nil {
			t.Fatal(err)
		}
		l.put(t, both[0], 3)
		if err := d.Move("/log/app.log", "/log/away"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * lookEvery)
		if _, err := both[1].Write(record(1, 0)); err != nil {
			t.Error(err)
		}
		closeTwo(t, both)
	})
}
