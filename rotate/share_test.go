//go:build go1.25

package rotate

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
)

// openTwo opens a log twice, which is to its lock what two processes are.
func openTwo(t *testing.T, d disk, o Options) (both [2]*File) {
	t.Helper()
	o.Shared = true
	if o.OnError == nil {
		o.OnError = func(e *Error) { t.Error(e) }
	}
	for i := range both {
		f, err := open(d, "/log/app.log", o, false)
		if err != nil {
			t.Fatal(err)
		}
		both[i] = f
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
				both := openTwo(t, d, x.o)
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
		both := openTwo(t, d, Options{OnError: func(*Error) {}})
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
		both := openTwo(t, d, Options{Compress: true, Policy: holdfast.Unbuffered()})
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

// TestNoRecordComesBehindARotation of another process: the backup may be in compression.
func TestNoRecordComesBehindARotation(t *testing.T) {
	for _, p := range policies {
		synctest.Test(t, func(t *testing.T) {
			d := newMemory(t)
			both := openTwo(t, d, Options{Policy: p})
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
		both := openTwo(t, d, Options{RotationInterval: time.Minute})
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
