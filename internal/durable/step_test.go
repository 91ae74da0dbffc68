//go:build go1.25

package durable

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// A stepFile is a file that a batch of the test writes. An open one is synced by its own descriptor
// or with its file system, as a stream's is.
type stepFile struct {
	File
	open      OpenFile
	fd        int  // of an open one
	loses     bool // the kernel fails to write an open one back
	dir, name string
	temporary string // "": it is written under its name
	text      string
	at        *Place
	failed    error // of a call that is no part of the step
	durable   bool  // as was reported; guarded by the lock of runSteps
}

func (f *stepFile) isDurable() bool { return f.failed == nil && f.Err == nil }

func (f *stepFile) path() string { return f.dir + "/" + f.name }

// A stepBatch writes files in parts, and makes each part durable by a Run.
type stepBatch struct {
	disk  *fault.Disk
	step  Step
	ahead bool // the next part is written while one is made durable
	open  bool // the files stay open
	parts [][]*stepFile

	mu     sync.Mutex
	places map[string]*Place
	errseq *Errseq // of open files; nil: none is open
}

const oldText = "old"

// The directories in which the batches give names: the last two are on another device.
var stepDirs = []string{"/a", "/b", "/c", "/d", "/e", "/f", "/m/x", "/m/y"}

// newStepBatch returns a batch with two parts of three files in each directory. One is new, one
// replaces another, and one is new and in the next part.
func newStepBatch(disk *fault.Disk, names *NameSyncs, prefix string) *stepBatch {
	b := &stepBatch{disk: disk, places: map[string]*Place{}, parts: make([][]*stepFile, 2)}
	b.step = Step{Disk: disk, Names: names, SyncAll: disk.SyncAll, Most: 3}
	for _, dir := range stepDirs {
		b.parts[0] = append(b.parts[0],
			&stepFile{dir: dir, name: prefix + "new", text: prefix + dir + " new"},
			&stepFile{dir: dir, name: prefix + "replaced", temporary: prefix + "tmp", text: prefix + dir + " replaced"})
		b.parts[1] = append(b.parts[1], &stepFile{dir: dir, name: prefix + "next", text: prefix + dir + " next"})
	}
	return b
}

// newOpenBatch returns a batch with two parts of two files in each directory, which stay open.
func newOpenBatch(disk *fault.Disk, names *NameSyncs, prefix string) *stepBatch {
	b := newStepBatch(disk, names, prefix)
	b.open = true
	for i := range b.parts {
		b.parts[i] = nil
		for _, dir := range stepDirs {
			for _, name := range []string{"a", "b"} {
				name = fmt.Sprint(prefix, name, i)
				b.parts[i] = append(b.parts[i], &stepFile{dir: dir, name: name, text: dir + name, fd: -1})
			}
		}
	}
	return b
}

func stepName(name string) sys.Name {
	n, err := sys.NewName(name)
	if err != nil {
		panic(err)
	}
	return n
}

// in calls do with a directory open.
func (b *stepBatch) in(dir string, do func(fd int) error) error {
	fd, err := b.disk.OpenDir(stepName(dir))
	if err != nil {
		return err
	}
	defer b.disk.Close(fd)
	return do(fd)
}

// place returns the place for a directory.
func (b *stepBatch) place(dir string) (*Place, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at := b.places[dir]; at != nil {
		return at, nil
	}
	at := &Place{}
	err := b.in(dir, func(fd int) error {
		is, err := b.disk.StatFD(fd)
		at.Key = keyed.Key{Device: is.Device, Inode: is.Inode}
		at.Since = b.step.Names.Now()
		at.Sync = func() error {
			return b.in(dir, func(fd int) error {
				return b.step.Names.Directory(at.Key, func() error { return b.disk.Sync(fd) })
			})
		}
		at.Device = b.step.Device(is.Device)
		at.Device.Allowed = b.disk.SyncsAll(fd)
		return err
	})
	if err == nil {
		b.places[dir] = at
	}
	return at, err
}

// write writes a file, syncs it unless the step does, and closes it.
func (b *stepBatch) write(f *stepFile) (err error) {
	if f.at, err = b.place(f.dir); err != nil {
		return err
	}
	x := f.at.Device
	whole := b.step.Takes(x, func() int {
		fd, err := b.disk.OpenDir(stepName(f.dir))
		if err != nil {
			return -1
		}
		return fd
	})
	err = b.in(f.dir, func(dir int) error {
		name, flag := f.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL
		if f.temporary != "" {
			name = f.temporary
		}
		fd, err := b.disk.OpenFile(dir, stepName(name), flag, 0o644)
		if err != nil {
			return err
		}
		_, err = b.disk.Write(fd, []byte(f.text))
		if err == nil && !whole {
			err = b.disk.Sync(fd)
		}
		return errors.Join(err, b.disk.Close(fd))
	})
	f.File = File{Place: f.at, Renames: f.temporary != ""}
	if whole {
		f.Whole = x
	}
	if !f.Renames {
		b.step.Named(f.at)
	}
	return err
}

func (b *stepBatch) writeAll(part []*stepFile) {
	for _, f := range part {
		f.failed = b.write(f)
	}
}

// writeOpen writes a file that stays open, as a stream does.
func (b *stepBatch) writeOpen(f *stepFile) (err error) {
	if f.at, err = b.place(f.dir); err != nil {
		return err
	}
	f.open = OpenFile{Dir: f.at.Key, Since: b.step.Names.Losses(f.at.Key)}
	return b.in(f.dir, func(dir int) error {
		if f.fd, err = b.disk.OpenFile(dir, stepName(f.name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644); err != nil {
			return err
		}
		f.open.Errseq = b.watch(f)
		_, err := b.disk.Write(f.fd, []byte(f.text))
		if f.loses {
			b.disk.Lose(f.path(), syscall.EIO)
		}
		return err
	})
}

// watch returns the errseq descriptor for a file: there is one, for the device of the first file.
func (b *stepBatch) watch(f *stepFile) *Errseq {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.errseq == nil && f.at.Device.Allowed {
		if fd, err := b.disk.OpenDir(stepName(f.dir)); err == nil {
			b.errseq = &Errseq{ID: f.at.Key.Device, Fd: fd}
		}
	}
	if b.errseq == nil || b.errseq.ID != f.at.Key.Device {
		return nil
	}
	return b.errseq
}

// syncOpen makes a part of open files durable, as streams do: their bytes, and then the names that did not
// become durable with them.
func (b *stepBatch) syncOpen(part []*stepFile) {
	part = slices.DeleteFunc(slices.Clone(part), func(f *stepFile) bool { return f.failed != nil })
	b.mu.Lock()
	e := b.errseq
	b.mu.Unlock()
	b.step.SyncOpen(e, len(part), func(i int) *OpenFile { return &part[i].open }, func(i int) error {
		return b.disk.Datasync(part[i].fd)
	})
	b.mu.Lock()
	closes := e != nil && b.errseq == e && !e.Works()
	if closes {
		b.errseq = nil
	}
	b.mu.Unlock()
	if closes {
		b.disk.Close(e.Fd)
	}
	synced := map[*Place]error{}
	for _, f := range part {
		if f.Err = f.open.Err; f.Err != nil || f.open.Named {
			continue
		}
		if _, ok := synced[f.at]; !ok {
			synced[f.at] = f.at.Sync()
		}
		if f.Err = synced[f.at]; f.Err == nil {
			f.Err = b.step.Names.LostSince(f.at.Key, f.open.Since)
		}
	}
}

// runOpen writes both parts and makes them durable; ahead: the second beside the first.
func (b *stepBatch) runOpen(report func(part []*stepFile)) {
	for _, dir := range stepDirs {
		b.place(dir) // before the parts: a lock is held meanwhile, and time stands still while others wait for it
	}
	var parts sync.WaitGroup
	for i, part := range b.parts {
		parts.Go(func() {
			time.Sleep(time.Duration(i) * 7 * time.Millisecond)
			for _, f := range part {
				f.failed = b.writeOpen(f)
			}
			b.syncOpen(part)
			report(part)
		})
		if !b.ahead {
			parts.Wait()
		}
	}
	parts.Wait()
	for _, f := range slices.Concat(b.parts...) {
		if f.fd >= 0 {
			b.disk.Close(f.fd)
		}
	}
	if b.errseq != nil {
		b.disk.Close(b.errseq.Fd)
	}
}

// run writes all parts and makes them durable. It calls report with each, after its Run.
func (b *stepBatch) run(report func(part []*stepFile)) {
	if b.open {
		b.runOpen(report)
		return
	}
	for i, part := range b.parts {
		if i == 0 || !b.ahead {
			b.writeAll(part)
		}
		var next sync.WaitGroup
		if b.ahead && i+1 < len(b.parts) {
			next.Go(func() { b.writeAll(b.parts[i+1]) })
		}
		b.step.Run(func(yield func(*File) bool) {
			for _, f := range part {
				if f.failed == nil && !yield(&f.File) {
					return
				}
			}
		}, func() {
			for _, f := range part {
				if f.failed == nil && f.Renames && f.Err == nil {
					f.Err = b.in(f.dir, func(fd int) error {
						return b.disk.Rename(fd, stepName(f.temporary), stepName(f.name))
					})
					b.step.Named(f.Place)
				}
			}
		})
		report(part)
		next.Wait()
	}
	b.step.Close(func(fd int) { b.disk.Close(fd) })
}

// A stepWay combines the disk's ways to sync with the second batch's outcome.
type stepWay struct {
	name  string
	setUp func(*fault.Disk)
	open  bool // its files stay open
	after int  // milliseconds until it starts
	loses int  // which of its open files the kernel fails to write back; 0: none
}

var stepWays = []stepWay{
	{name: "by syncfs", setUp: func(*fault.Disk) {}},
	{name: "one by one", setUp: func(d *fault.Disk) { d.SetDirty(-1) }},
	{name: "by syncfs on one device", setUp: func(d *fault.Disk) { d.SetSyncsAll("/m", false) }},
	{name: "open files by syncfs", setUp: func(*fault.Disk) {}, open: true},
	{name: "open files one by one", setUp: func(d *fault.Disk) { d.SetDirty(-1) }, open: true},
	{name: "open files by syncfs while others sync directories", setUp: func(d *fault.Disk) {
		d.SetDirty(-1)
		time.AfterFunc(10*time.Millisecond, func() { d.SetDirty(0) })
	}, open: true, after: 90},
}

// stepDisk returns a disk with stepDirs.
func stepDisk(t *testing.T) *fault.Disk {
	t.Helper()
	d := fault.NewDisk()
	if err := d.Mount("/m"); err != nil {
		t.Fatal(err)
	}
	for _, dir := range stepDirs {
		if err := d.MkdirAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// runSteps runs two batches in the same directories, and returns the disk's calls. The second is some milliseconds behind the
// first, and may write ahead of its steps. It cuts the power after each call, and after each Run.
func runSteps(t *testing.T, way stepWay, behind int, ahead bool, faults ...fault.DiskFault) (calls []fault.DiskCall) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d, names := stepDisk(t), &NameSyncs{}
		batches := []*stepBatch{newStepBatch(d, names, "one."), newStepBatch(d, names, "two.")}
		if way.open {
			batches[1] = newOpenBatch(d, names, "two.")
			if way.loses > 0 {
				slices.Concat(batches[1].parts...)[way.loses-1].loses = true
			}
		}
		batches[1].ahead = ahead
		var all []*stepFile
		for _, b := range batches {
			for _, f := range slices.Concat(b.parts...) {
				all = append(all, f)
				if f.temporary != "" {
					if err := d.WriteFile(f.path(), []byte(oldText), 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		way.setUp(d)
		// A directory is opened with locks held for which others wait, so that time would stand still.
		for op, ms := range map[fault.DiskOp]time.Duration{fault.DiskOpen: 1, fault.DiskWrite: 1, fault.DiskRename: 1, fault.DiskSync: 4, fault.DiskDatasync: 3, fault.DiskSyncAll: 6} {
			d.Add(fault.DiskFault{Op: op, Take: fault.All, Delay: ms * time.Millisecond})
		}
		for _, x := range faults {
			d.Add(x)
		}
		var mu sync.Mutex
		r := rand.New(rand.NewPCG(uint64(behind), 1))
		lost := map[string]bool{} // reported once
		cut := func(times int) {
			if isolate.RaceEnabled { // no goroutine takes part in it
				times /= 8
			}
			mu.Lock()
			defer mu.Unlock()
			for range times {
				image := d.PowerCut(r)
				for _, f := range all {
					data, ok := image.File(f.path())
					whole := ok && string(data) == f.text
					old := f.temporary != "" && ok && string(data) == oldText
					if bad := f.durable && !whole || f.temporary != "" && !whole && !old; bad && !lost[f.path()] {
						lost[f.path()] = true
						t.Errorf("%s, %d behind, %+v: a power cut leaves %q (%v) of %s; durable: %v", way.name, behind, faults, data, ok, f.path(), f.durable)
					}
				}
			}
		}
		d.Watch(func(c fault.DiskCall) {
			if !c.End.IsZero() && (c.Op == fault.DiskRename || c.Op == fault.DiskSync || c.Op == fault.DiskDatasync || c.Op == fault.DiskSyncAll) {
				cut(2)
			}
		})
		var both sync.WaitGroup
		for i, b := range batches {
			both.Go(func() {
				time.Sleep(time.Duration(i*behind) * time.Millisecond)
				b.run(func(part []*stepFile) {
					mu.Lock()
					for _, f := range part {
						f.durable = f.isDurable()
					}
					mu.Unlock()
					cut(8)
				})
			})
		}
		both.Wait()
		cut(8)
		calls = d.Calls()
		for _, f := range all {
			if !f.durable && !slices.ContainsFunc(calls, func(c fault.DiskCall) bool { return explains(c, f, way) }) {
				t.Errorf("%s, %d behind, %+v: %s is not durable, and no call of it failed: %v", way.name, behind, faults, f.path(), errors.Join(f.failed, f.Err))
			}
		}
		if n := d.Open(); n > 0 {
			t.Errorf("%s, %+v: %d descriptors are left open", way.name, faults, n)
		}
		for _, wrong := range d.Violations() {
			t.Errorf("%s, %d behind, %+v: %s", way.name, behind, faults, wrong)
		}
	})
	return calls
}

// explains reports whether a file may not be durable because of a call. A lost open file fails alone,
// though a sync of all reports it.
func explains(c fault.DiskCall, f *stepFile, way stepWay) bool {
	switch {
	case c.Err == nil:
		return false
	case c.Op == fault.DiskSyncAll:
		return way.loses == 0 && strings.HasPrefix(c.Path, "/m") == strings.HasPrefix(f.dir, "/m")
	}
	return c.Path == f.dir || c.Path == f.path() || c.To == f.path() || c.Path == path.Join(f.dir, f.temporary)
}

// TestStepReportsNothingDurableThatAPowerCutLoses fails and delays each call of two steps in the same
// directories, the one and the other at each place. Bytes reported durable survive each power cut.
// A replaced file is always old or new. A file fails only if a call of its own, of its directory or
// of its file system did.
func TestStepReportsNothingDurableThatAPowerCutLoses(t *testing.T) {
	isolate.Once(t, isolate.Ordinary)
	for _, way := range stepWays {
		for _, behind := range []int{0, 30, 60} {
			if testing.Short() && behind == 0 && way.after == 0 {
				continue
			}
			ahead := behind != 30
			behind := behind + way.after
			calls := runSteps(t, way, behind, ahead)
			for _, op := range []fault.DiskOp{fault.DiskSync, fault.DiskDatasync, fault.DiskSyncAll, fault.DiskRename, fault.DiskOpenDir, fault.DiskOpen, fault.DiskWrite, fault.DiskClose} {
				n := 0
				for _, c := range calls {
					if c.Op == op {
						n++
					}
				}
				every := 1
				switch {
				case isolate.RaceEnabled: // goroutines meet in the same places at each
					every = n/2 + 1
				case op == fault.DiskOpenDir:
					every = 4
				case op != fault.DiskSync && op != fault.DiskSyncAll: // a few are like all
					every = 15
				case testing.Short():
					every = 13
				case op == fault.DiskSync && ahead:
					every = 7
				}
				for first := 1; first <= n; first += every {
					if op == fault.DiskOpenDir {
						runSteps(t, way, behind, ahead, fault.DiskFault{Op: op, First: first, Times: 1, Err: syscall.EIO})
						continue
					}
					// A sync of all for open files counts for no names: the file system that lost some has stopped.
					stops := way.open && op == fault.DiskSyncAll
					runSteps(t, way, behind, ahead, fault.DiskFault{Op: op, First: first, Times: 1, Err: syscall.EIO, Stops: stops})
					runSteps(t, way, behind, ahead, fault.DiskFault{Op: op, First: first, Times: 1, Err: syscall.EIO, Stops: stops, Delay: 20 * time.Millisecond})
					runSteps(t, way, behind, ahead, fault.DiskFault{Op: op, First: first, Times: 1, Take: fault.All, Delay: 20 * time.Millisecond},
						fault.DiskFault{Op: fault.DiskSync, First: first, Times: 1, Err: syscall.ENOSPC, Delay: 2 * time.Millisecond})
				}
			}
		}
	}
}

// TestStepMakesEveryCallThatItNeeds counts the syncs of a batch without faults: a device at a time, and
// no directory where that does.
func TestStepMakesEveryCallThatItNeeds(t *testing.T) {
	check := func(way stepWay, syncs, syncAlls int) {
		t.Helper()
		count := map[fault.DiskOp]int{}
		for _, c := range runSteps(t, way, 1000, false) {
			count[c.Op]++
		}
		if count[fault.DiskSync] != 2*syncs || count[fault.DiskSyncAll] != 2*syncAlls {
			t.Errorf("%s: %d syncs and %d of all, want %d and %d", way.name, count[fault.DiskSync], count[fault.DiskSyncAll], 2*syncs, 2*syncAlls)
		}
	}
	check(stepWays[0], 2, 5)     // bytes 2, names after renames 1 and 2 directories, bytes with names 2
	check(stepWays[1], 24+16, 0) // files, and directories twice
	check(stepWays[2], 6+2+2, 3)
}

// TestOpenFileThatTheKernelLostFailsAlone has the kernel lose each of the open files in turn. A sync of all
// reports that; then each file is synced by its own descriptor, and only the lost one fails.
func TestOpenFileThatTheKernelLostFailsAlone(t *testing.T) {
	for _, way := range stepWays {
		for way.loses = 1; way.open && way.loses <= 4*len(stepDirs); way.loses++ {
			for _, ahead := range []bool{false, true} {
				calls := runSteps(t, way, 1000, ahead) // the batch of closed files has ended by then
				failed := slices.ContainsFunc(calls, func(c fault.DiskCall) bool { return c.Op == fault.DiskDatasync && c.Err != nil })
				if !failed {
					t.Errorf("%s: file %d was lost, and no sync of it says so", way.name, way.loses)
				}
			}
		}
	}
}

// TestOpenFilesWithoutAnErrseqDescriptorAreSyncedAlone, also where they are many.
func TestOpenFilesWithoutAnErrseqDescriptorAreSyncedAlone(t *testing.T) {
	b := newOpenBatch(stepDisk(t), &NameSyncs{}, "")
	open, alone := make([]OpenFile, 2*FewOpenFiles), atomic.Int64{}
	b.step.SyncOpen(nil, len(open), func(i int) *OpenFile { return &open[i] }, func(int) error { alone.Add(1); return nil })
	if n := int(alone.Load()); n != len(open) {
		t.Errorf("%d of %d were synced alone", n, len(open))
	}
}

// TestStepSyncsNoDirectoryOnceItHasEnded has Ended say so after the bytes.
func TestStepSyncsNoDirectoryOnceItHasEnded(t *testing.T) {
	for _, way := range stepWays {
		d, ended := stepDisk(t), errors.New("ended")
		way.setUp(d)
		b := newStepBatch(d, &NameSyncs{}, "")
		b.parts = b.parts[:1]
		b.step.Ended = func() error { return ended }
		b.run(func([]*stepFile) {})
		for _, f := range b.parts[0] {
			byAll := f.Whole != nil && !f.Renames
			if f.isDurable() != byAll || f.Ended == byAll || !byAll && f.Err != ended {
				t.Errorf("%s: %s: durable %v, ended %v, %v", way.name, f.path(), f.isDurable(), f.Ended, f.Err)
			}
		}
		for _, c := range d.Calls() {
			if c.Op == fault.DiskSync && slices.Contains(stepDirs, c.Path) {
				t.Errorf("%s: %s was synced", way.name, fmt.Sprint(c.Path))
			}
		}
	}
}

// TestAbandonedPlaceIsSyncedByTheNextRun, and rests meanwhile.
func TestAbandonedPlaceIsSyncedByTheNextRun(t *testing.T) {
	b := newStepBatch(stepDisk(t), &NameSyncs{}, "")
	at, err := b.place("/a")
	if err != nil {
		t.Fatal(err)
	}
	rests, syncs, sync := 0, 0, at.Sync
	at.Rest = func() { rests++ }
	at.Sync = func() error { syncs++; return sync() }
	b.step.Named(at)
	b.step.Abandon()
	if rests != 1 || syncs != 0 {
		t.Errorf("after Abandon %d rests and %d syncs", rests, syncs)
	}
	b.step.Run(slices.Values([]*File{}), func() { b.step.Named(at) })
	if rests != 2 || syncs != 1 || b.step.Loss(at) != nil {
		t.Errorf("after Run %d rests and %d syncs, %v", rests, syncs, b.step.Loss(at))
	}
}
