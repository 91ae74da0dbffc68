//go:build go1.25

package wal

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/crashsuite"
	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// TestLogKeepsThePromises on systems that write and sync in one call, and on others.
func TestLogKeepsThePromises(t *testing.T) {
	isolate.Once(t)
	for name, under := range map[string]func(*fault.Disk) disk{
		"dsync":     func(d *fault.Disk) disk { return d },
		"fdatasync": func(d *fault.Disk) disk { return noDsync{d} },
	} {
		lacks := map[string]string{crashsuite.Panics: "it has no file of the caller's"}
		if name == "dsync" {
			for _, promise := range []string{crashsuite.Told, crashsuite.ToldOver, crashsuite.FinalSync, crashsuite.Heard, crashsuite.Within} {
				lacks[promise] = "a write that fails is a failed sync there: see fdatasync"
			}
		}
		t.Run(name, func(t *testing.T) {
			crashsuite.Run(t, crashsuite.Opener{
				Name: "wal.Log",
				Open: func(g *crashsuite.Ground) (crashsuite.Subject, error) {
					var d disk = sys.Disk{}
					if g.Disk != nil {
						d = under(g.Disk)
					}
					l, _, err := open(d, g.Dir, Options{Policy: g.Policy, SegmentSize: leastSegment, OnError: func(e *Error) { g.OnError(e) }})
					return appender{l}, err
				},
				Policies:   func(p holdfast.Policy) bool { return name != "dsync" || p.Sync.Waits() }, // others make no such calls
				Read:       readLog,
				Data:       "*.wal",
				Size:       func(record int) int { return (record + 36 + 7) &^ 7 },
				WriteSyncs: name == "dsync",
				AtRisk:     func(err error) int64 { return err.(*Error).AtRisk },
				OpenSyncs:  true,
				SyncWaits:  true,
				Resumes:    true,
				Clean:      func(holdfast.Policy) bool { return true },
				Lacks:      lacks,
			})
		})
	}
}

// TestWhatOpenFoundIsDurable, also if only the page cache has it: the program was killed, or a sync has failed. Then the
// power is cut. Close that returns nil promises the same, and that damage of the last batch is noticed.
func TestWhatOpenFoundIsDurable(t *testing.T) {
	isolate.Once(t) // one goroutine, and a disk in memory
	lazy := holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncClose}}
	for _, size := range []holdfast.Size{leastSegment, 32 * holdfast.KiB, 128 * holdfast.KiB} {
		for _, end := range []string{"kill", "failed sync", "a segment without a durable name", "close"} {
			d := newDisk(t, nil)
			l, _, err := open(d, "/log", Options{Policy: lazy, SegmentSize: size})
			if err != nil {
				t.Fatal(err)
			}
			var want [][]byte
			for l.head.end < int64(size)*3/4 || l.head.epoch < 2 {
				want = append(want, bytes.Repeat([]byte{byte(len(want))}, 700))
				if _, err := l.Append(want[len(want)-1]); err != nil {
					t.Fatal(err)
				}
			}
			second := l
			switch end {
			case "close":
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
			case "failed sync":
				d.Add(fault.DiskFault{Op: fault.DiskDatasync, Path: segmentName(l.head.epoch), Err: syscall.EIO})
				if err := l.Wait(background, l.Last()); err == nil {
					t.Fatal("the sync has not failed")
				}
				if err := l.Close(); err == nil {
					t.Fatal("Close has not returned the failed sync")
				}
				d.Mend()
			case "a segment without a durable name":
				l.background.Wait() // the spare file is made
				d.Add(fault.DiskFault{Op: fault.DiskSync, Err: syscall.EIO})
				for err = nil; err == nil; {
					want = append(want, bytes.Repeat([]byte{byte(len(want))}, 700))
					_, err = l.Append(want[len(want)-1])
				}
				want = want[:len(want)-1]
				if err := l.Close(); !errors.Is(err, syscall.EIO) {
					t.Fatal("Close has not returned the failed sync:", err)
				}
				d.Mend()
			case "kill":
				l.background.Wait()                   // the spare file is made
				if err := l.dir.close(); err != nil { // which unlocks it
					t.Fatal(err)
				}
				l.dir.fd, l.dir.lock = -1, -1
			}
			var images []*fault.Image // of a power cut while the log is opened the second time
			random := rand.New(rand.NewPCG(uint64(size), 0))
			d.Watch(func(fault.DiskCall) { images = append(images, d.PowerCut(random)) })
			if end != "close" {
				var found Recovery
				if second, found, err = open(d, "/log", Options{Policy: lazy, SegmentSize: size}); err != nil || found.Last != uint64(len(want)) {
					t.Fatal(size, end, found, err)
				}
			}
			d.Watch(nil)
			for _, image := range images {
				if after, _, err := open(newDisk(t, image), "/log", small); err != nil {
					t.Errorf("segments of %v, %s, a power cut during Open: %v", size, end, err)
				} else {
					after.Close()
				}
			}
			for seed := range uint64(12) {
				image := d.PowerCut(rand.New(rand.NewPCG(seed, 1)))
				after, found, err := open(newDisk(t, image), "/log", small)
				if err != nil {
					t.Fatal(size, end, err)
				}
				got, err := recordsOf(after, found.First)
				if err != nil || !slices.EqualFunc(got, want, bytes.Equal) {
					t.Errorf("segments of %v, %s: %d of %d records after a power cut, %v", size, end, len(got), len(want), err)
				}
				after.Close()
				if end == "close" {
					name := "/log/" + segmentName(l.head.epoch)
					for _, from := range []int64{l.head.end - 300, (l.head.end - 1) &^ 511} { // the last record, and the last block
						changed := maps.Clone(image.Files)
						changed[name] = bytes.Clone(image.Files[name])
						clear(changed[name][from : from+200])
						if found, _, err := reopen(t, changed); err == nil {
							t.Errorf("segments of %v: damage at %d of %d is not noticed: %+v", size, from, l.head.end, found)
						}
					}
				}
			}
			second.Close()
			l.Close()
		}
	}
}

// TestEachSubsetOfTheSectorsInFlight opens what each of them leaves: of three appends, and of Close, in segments of three
// sizes, on new ground and over an older segment whose frames are as long.
func TestEachSubsetOfTheSectorsInFlight(t *testing.T) {
	isolate.Once(t) // one goroutine, and a disk in memory
	check := func(size holdfast.Size, recycled bool) {
		d, m := newDisk(t, nil), newModel(t)
		l, _, err := open(d, "/log", Options{Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncClose}}, SegmentSize: size})
		if err != nil {
			t.Fatal(err)
		}
		add := func(lengths ...int) {
			t.Helper()
			var batch [][]byte
			for _, n := range lengths {
				batch = append(batch, bytes.Repeat([]byte{byte(len(m.records) + len(batch))}, n))
			}
			m.accept(batch)
			if last, err := l.Append(batch...); err != nil || last != m.last() {
				t.Fatal(last, err)
			}
		}
		acknowledge := func() {
			t.Helper()
			if err := l.Wait(background, l.Last()); err != nil {
				t.Fatal(err)
			}
			m.acknowledged(l.Last())
		}
		fill := func(epoch uint64) {
			for l.head.epoch < epoch || l.head.end < int64(size)/2 {
				add(700)
			}
			acknowledge()
			l.background.Wait()
		}
		if fill(2); recycled {
			first := l.head.first
			if err := l.TruncateBefore(first); err != nil {
				t.Fatal(err)
			}
			m.cutTo(first, l.Last())
			fill(4) // the third has the spare file that was made, the fourth the first's
		}
		each := func(what string, change func()) {
			before := d.ProcessCrash().Files
			change()
			after := d.ProcessCrash().Files
			type place struct {
				name string
				at   int
			}
			var sectors []place
			for name, data := range after {
				for at := 0; at < len(data); at += 512 {
					if !bytes.Equal(data[at:min(at+512, len(data))], before[name][at:min(at+512, len(data))]) {
						sectors = append(sectors, place{name, at})
					}
				}
			}
			if n := len(sectors); n < 2 || n > 8 {
				t.Fatalf("%s changes %d sectors", what, n)
			}
			slices.SortFunc(sectors, func(a, b place) int { return a.at - b.at })
			for set := range 1 << len(sectors) {
				files := maps.Clone(before)
				for i, s := range sectors {
					if set>>i&1 == 1 {
						files[s.name] = bytes.Clone(files[s.name])
						copy(files[s.name][s.at:], after[s.name][s.at:min(s.at+512, len(after[s.name]))])
					}
				}
				err := m.judge(&fault.Image{Files: files})
				// The mark is durable before the note is written: a note alone says that the mark is lost.
				if noteAlone := len(sectors) == 2 && set == 1 && sectors[0].at == noteAt; noteAlone != errors.As(err, new(*DamageError)) || !noteAlone && err != nil {
					t.Errorf("segments of %v, recycled %v, %s: %b of the sectors %v: %v", size, recycled, what, set, sectors, err)
				}
			}
		}
		each("three appends", func() {
			add(700)
			add(300, 0, 400)
			add(700)
		})
		acknowledge()
		each("Close", func() {
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
	for _, size := range []holdfast.Size{leastSegment, 32 * holdfast.KiB, 128 * holdfast.KiB} {
		check(size, false)
		check(size, true)
	}
}

// TestACutAtASegmentsFirstRecordIsDurable, and so are the records appended behind it.
func TestACutAtASegmentsFirstRecordIsDurable(t *testing.T) {
	for _, size := range []holdfast.Size{leastSegment, 32 * holdfast.KiB} {
		d := newDisk(t, nil)
		l, _, err := open(d, "/log", Options{Policy: holdfast.Durable(), SegmentSize: size})
		if err != nil {
			t.Fatal(err)
		}
		for l.head.epoch < 4 {
			if _, err := l.Append(bytes.Repeat([]byte("old"), 300)); err != nil {
				t.Fatal(err)
			}
		}
		cut := l.segments[2].first
		if err := l.TruncateAfter(cut - 1); err != nil {
			t.Fatal(err)
		}
		for round, want := range []uint64{cut - 1, cut} {
			for seed := range uint64(12) {
				after, found, err := open(newDisk(t, d.PowerCut(rand.New(rand.NewPCG(seed, 1)))), "/log", small)
				if err != nil || found.Last != want {
					t.Fatalf("segments of %v, %d: %+v, %v; want the last %d", size, round, found, err, want)
				}
				if data, err := after.Read(found.Last); err != nil || (string(data) == "new") != (round == 1) {
					t.Errorf("the last is %.9q, %v", data, err)
				}
				after.Close()
			}
			if _, err := l.Append([]byte("new")); err != nil {
				t.Fatal(err)
			}
		}
		l.Close()
	}
}

// An appender appends records one by one.
type appender struct{ *Log }

func (l appender) Write(p []byte) (n int, err error) {
	index, err := l.Append(p)
	if index == 0 {
		return 0, err
	}
	return len(p), err
}

func (l appender) Sync() error {
	err := l.Wait(background, l.Last())
	return err
}

// readLog opens what is there on a disk of its own.
func readLog(_ *testing.T, files map[string][]byte) ([][]byte, error) {
	l, found, err := open(crashsuite.OnDisk("/log", files), "/log", small)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	all, err := recordsOf(l, found.First)
	return slices.Clone(all), err
}
