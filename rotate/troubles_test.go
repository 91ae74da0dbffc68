//go:build go1.25

package rotate

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// A protected disk is one on which a directory may lose its write permission, by a chmod.
type protected struct {
	*memory
	denied atomic.Bool
}

func (d *protected) OpenFile(dir int, name sys.Name, flag int, perm uint32) (int, error) {
	if flag&os.O_CREATE != 0 && d.denied.Load() {
		if _, err := d.Stat(dir, name); errors.Is(err, fs.ErrNotExist) {
			return -1, syscall.EACCES
		}
	}
	return d.memory.OpenFile(dir, name, flag, perm)
}

func (d *protected) Rename(dir int, from, to sys.Name) error {
	if d.denied.Load() {
		return syscall.EACCES
	}
	return d.memory.Rename(dir, from, to)
}

func (d *protected) Remove(dir int, name sys.Name) error {
	if d.denied.Load() {
		return syscall.EACCES
	}
	return d.memory.Remove(dir, name)
}

// A troubled log is written to by 8 goroutines for ten seconds of a fake clock. After each second but
// the last something happens to it.
type troubled struct {
	*File
	disk   *protected
	pauses chan struct{}     // each goroutine takes one to write; all of them stop the writing
	kept   map[string][]byte // files that another program has taken away
	gone   []time.Time       // when the file was removed
}

// A trouble is an event, and the counts that the log must report in the end.
type trouble struct {
	name  string
	o     func(*Options, int) // for n records of each goroutine
	do    func(t *troubled, second int) error
	ended func(s Stats, refused int64, failures []string) bool
}

func quiet(failures []string) bool { return len(failures) == 0 }

var troubles = []trouble{
	{name: "size", o: full, ended: func(s Stats, _ int64, failures []string) bool { return s.Rotations > 9 && quiet(failures) }},
	{name: "time", o: func(o *Options, _ int) { o.RotationInterval = time.Second },
		ended: func(s Stats, _ int64, failures []string) bool { return s.Rotations >= 9 && quiet(failures) }},
	{name: "SIGHUP", do: func(t *troubled, second int) error { return errors.Join(t.move(second), t.Reopen()) },
		ended: func(s Stats, _ int64, failures []string) bool { return s.Reopens == 9 && quiet(failures) }},
	{name: "mv", do: each3(func(t *troubled, second int) error { return t.move(second) }),
		ended: func(s Stats, _ int64, failures []string) bool { return s.Reopens == 3 && quiet(failures) }},
	{name: "rm", do: each3((*troubled).remove), ended: func(s Stats, _ int64, _ []string) bool { return s.Reopens == 3 }},
	{name: "truncate", o: full, do: each3((*troubled).truncate),
		ended: func(s Stats, _ int64, failures []string) bool {
			return s.Rotations > 5 && s.Reopens == 0 && quiet(failures)
		}},
	{name: "chmod", o: full, do: (*troubled).protect,
		ended: func(s Stats, _ int64, failures []string) bool { return s.Rotations > 5 && only("rotate", failures) }},
	{name: "full disk", o: full, do: (*troubled).fill,
		ended: func(s Stats, refused int64, failures []string) bool {
			return s.Rotations > 5 && refused > 0 && !quiet(failures)
		}},
}

func full(o *Options, records int) { o.MaxSize = holdfast.Size(records * 20) }

// only reports whether all failures are of one kind, and there are some.
func only(op string, failures []string) bool {
	for _, f := range failures {
		if f != op {
			return false
		}
	}
	return len(failures) > 0
}

// each3 does something in every third second.
func each3(do func(*troubled, int) error) func(*troubled, int) error {
	return func(t *troubled, second int) error {
		if second%3 != 2 {
			return nil
		}
		return do(t, second)
	}
}

func (t *troubled) move(second int) error {
	return t.disk.Move("/log/app.log", fmt.Sprintf("/log/app.log.%d", second))
}

// stop has do called while no goroutine writes, and nothing is in memory.
func (t *troubled) stop(do func() error) error {
	for range cap(t.pauses) {
		t.pauses <- struct{}{}
	}
	err := errors.Join(t.Sync(), do())
	for range cap(t.pauses) {
		<-t.pauses
	}
	return err
}

// take keeps what is in the file, which another program then takes away.
func (t *troubled) take(second int, away func() error) error {
	return t.stop(func() error {
		data, err := t.disk.ReadFile("/log/app.log")
		t.kept[fmt.Sprintf("kept.%d", second)] = data
		return errors.Join(err, away())
	})
}

func (t *troubled) remove(second int) error {
	return t.take(second, func() error {
		t.gone = append(t.gone, time.Now())
		return t.disk.RemoveAll("/log/app.log")
	})
}

func (t *troubled) truncate(second int) error { // logrotate's copytruncate
	return t.take(second, func() error {
		dir, err := t.disk.OpenDir("/log\x00")
		fd, failed := t.disk.OpenFile(dir, "app.log\x00", os.O_WRONLY|os.O_TRUNC, 0)
		return errors.Join(err, failed, t.disk.Close(fd), t.disk.Close(dir))
	})
}

func (t *troubled) protect(second int) error {
	t.disk.denied.Store(second >= 3 && second < 6)
	return nil
}

func (t *troubled) fill(second int) error {
	switch second {
	case 3:
		t.disk.SetRoom(t.disk.Used() + 1000)
	case 6:
		t.disk.SetRoom(fault.Unlimited)
	}
	return nil
}

// mayBeGone reports whether a record that was written then may have gone with a removed file. The log
// notices that a second later, and a buffer's bytes of that time go to the old file too.
func (t *troubled) mayBeGone(written time.Time) bool {
	for _, at := range t.gone {
		if late := written.Sub(at); late >= 0 && late <= lookEvery+200*time.Millisecond {
			return true
		}
	}
	return false
}

// write gives n records of each goroutine, each until it is accepted, and returns when.
func (t *troubled) write(test *testing.T, records int) (accepted [8][]time.Time, refused int64) {
	var refusals atomic.Int64
	var writers sync.WaitGroup
	for g := range accepted {
		accepted[g] = make([]time.Time, records)
		writers.Go(func() {
			for i := 0; i < records; {
				time.Sleep(10 * time.Second / time.Duration(records))
				t.pauses <- struct{}{}
				n, err := t.Write(record(g, i))
				<-t.pauses
				if err != nil && n > 0 && !t.options.Policy.Sync.Waits() { // else it is accepted, and not durable yet
					test.Errorf("record %d of %d: %d, %v", i, g, n, err)
				}
				if n == 0 {
					refusals.Add(1)
					continue
				}
				accepted[g][i] = time.Now()
				i++
			}
		})
	}
	writers.Wait()
	return accepted, refusals.Load()
}

// tally counts in all files what is wrong with the records that were accepted.
func (t *troubled) tally(accepted [8][]time.Time) (lost, gone, twice, split int, err error) {
	files := logs(t.disk.ProcessCrash())
	maps.Copy(files, t.kept)
	all, err := text(files, false)
	there := map[[2]int]int{}
	for line := range bytes.Lines(all) {
		var g, i int
		if _, err := fmt.Sscanf(string(line), "%d %d ", &g, &i); err != nil || !bytes.Equal(line, record(g, i)) {
			split++
			continue
		}
		there[[2]int{g, i}]++
	}
	for g := range accepted {
		for i, at := range accepted[g] {
			switch n := there[[2]int{g, i}]; {
			case n == 0 && t.mayBeGone(at):
				gone++
			case n == 0:
				lost++
			case n > 1:
				twice++
			}
		}
	}
	return lost, gone, twice, split, err
}

// TestNoTroubleLosesRecords has all that may happen to a log while 8 goroutines write to it. No record is lost, and none comes
// twice or split. A file that is removed takes with it what comes within a second after.
func TestNoTroubleLosesRecords(t *testing.T) {
	isolate.Once(t, isolate.Ordinary)
	for i, x := range troubles {
		for j, p := range []holdfast.Policy{
			holdfast.Unbuffered(),
			holdfast.Buffered(4 * holdfast.KiB),
			holdfast.Periodic(20 * time.Millisecond),
			holdfast.Durable(),
			holdfast.EachDurable(),
		} {
			if isolate.RaceEnabled && (i+j)%3 != 0 { // goroutines meet in the same places under each: the policies take turns
				continue
			}
			t.Run(x.name+" "+p.String(), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					n := min(1000, many(t, false)) // 800 in each second between two troubles; they fill the buffer in less than 200 ms
					var failures []string
					o := Options{Policy: p, OnError: func(e *Error) { failures = append(failures, e.Op) }}
					if x.o != nil {
						x.o(&o, n)
					}
					l := &troubled{disk: &protected{memory: newMemory(t)}, pauses: make(chan struct{}, 8), kept: map[string][]byte{}}
					var err error
					if l.File, err = open(l.disk, "/log/app.log", o, false); err != nil {
						t.Fatal(err)
					}
					go func() {
						for second := 1; second < 10 && x.do != nil; second++ {
							time.Sleep(time.Second)
							if err := x.do(l, second); err != nil && !errors.Is(err, holdfast.ErrUnlinked) {
								t.Error(err)
							}
						}
					}()
					accepted, refused := l.write(t, n)
					synctest.Wait()
					if err := l.Close(); err != nil && !errors.Is(err, holdfast.ErrUnlinked) {
						t.Error(err)
					}
					lost, gone, twice, split, err := l.tally(accepted)
					if lost+twice+split > 0 || err != nil || (gone > 0) != (len(l.gone) > 0) {
						t.Errorf("%d lost, %d gone with a removed file, %d twice, %d split, %v", lost, gone, twice, split, err)
					}
					if s := l.Stats(); !x.ended(s, refused, failures) {
						t.Errorf("%+v, %d refused, failures %q", s, refused, failures)
					}
					if wrong := l.disk.Violations(); len(wrong) > 0 || l.disk.Open() > 0 {
						t.Errorf("%d descriptors are open; %v", l.disk.Open(), wrong)
					}
				})
			})
		}
	}
}
