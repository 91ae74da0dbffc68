//go:build go1.25

package wal

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// damages returns what a log's files may become: each has a damage that Open reports.
func damages(files map[string][]byte) map[string]map[string][]byte {
	all := map[string]map[string][]byte{}
	for epoch := uint64(1); epoch <= 4; epoch++ {
		name := "/log/" + segmentName(epoch)
		add := func(what string, change func(data []byte) []byte) {
			changed := maps.Clone(files)
			changed[name] = change(bytes.Clone(files[name]))
			if changed[name] == nil {
				delete(changed, name)
			}
			all[fmt.Sprint(what, " in ", epoch)] = changed
		}
		add("no file", func([]byte) []byte { return nil })
		add("no bytes", func([]byte) []byte { return []byte{} })
		add("half the bytes", func(data []byte) []byte { return data[:headerSize+1500] })
		add("a byte short", func(data []byte) []byte { return data[:len(data)-1] })
		add("no page", func(data []byte) []byte { clear(data[:headerSize]); return data })
		for _, at := range []int{20, headerSize + 10, headerSize + 50, headerSize + 1300} {
			add(fmt.Sprint("byte ", at), func(data []byte) []byte { data[at] ^= 4; return data })
		}
	}
	return all
}

// openRepaired opens what is damaged with Repair, and returns its records.
func openRepaired(t *testing.T, image *fault.Image) (*fault.Disk, Recovery, [][]byte) {
	t.Helper()
	d := newDisk(t, image)
	l, found, err := open(d, "/log", Options{Policy: holdfast.Durable(), SegmentSize: leastSegment, Repair: true})
	if err != nil {
		t.Fatal(err)
	}
	records, err := recordsOf(l, found.First)
	if err != nil || int64(len(records)) != found.Records {
		t.Fatal(found, len(records), err)
	}
	if _, err := l.Append([]byte("more")); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil || d.Open() != 0 {
		t.Fatal(err, d.Open())
	}
	return d, found, append(records, []byte("more"))
}

// TestRepairKeepsWhatIsBeforeTheDamage of each kind and sets the rest aside, and Open goes on with it.
func TestRepairKeepsWhatIsBeforeTheDamage(t *testing.T) {
	files, records := aLog(t, true)
	short := 0
	for what, damaged := range damages(files) {
		_, _, err := reopen(t, damaged)
		var damage *DamageError
		if !errors.As(err, &damage) {
			t.Errorf("%s: %v", what, err)
			continue
		}
		d, found, got := openRepaired(t, &fault.Image{Files: damaged})
		kept := got[:len(got)-1]
		front := what == "no file in 1" || what == "no bytes in 1" || what == "no page in 1"
		header := strings.HasPrefix(what, "byte 20 ") || strings.HasPrefix(what, "a byte short") || strings.HasPrefix(what, "no page") && !front
		switch {
		case found.Damage == nil || *found.Damage != *damage:
			t.Errorf("%s: found %v, reported %v", what, found.Damage, damage)
		case found.Last+1-found.First != uint64(len(kept)) || int(found.Last) > len(records):
			t.Errorf("%s: %+v with %d records", what, found, len(kept))
		case len(kept) > 0 && !slices.EqualFunc(kept, records[found.First-1:found.Last], bytes.Equal):
			t.Errorf("%s: other records", what)
		case front && (found.First < 2 || int(found.Last) != len(records)), !front && found.First > 1 && len(kept) > 0:
			t.Errorf("%s: %d to %d", what, found.First, found.Last)
		case header && len(kept) != len(records), !header && !front && found.Last+1 != damage.Index:
			t.Errorf("%s: %d to %d, damaged at %v", what, found.First, found.Last, damage)
		}
		if !header && !front {
			short++
		}
		image := d.ProcessCrash()
		asides := 0
		for name := range image.Files {
			if strings.HasSuffix(name, asideSuffix) {
				asides++
			}
		}
		if asides != len(found.Aside) || asides == 0 && !strings.HasPrefix(what, "no file in 4") && !strings.HasPrefix(what, "no file in 1") {
			t.Errorf("%s: %d files are aside, and it says %q", what, asides, found.Aside)
		}
		again, after, err := reopen(t, image.Files)
		if err != nil || again.First != found.First || !slices.EqualFunc(after, got, bytes.Equal) {
			t.Errorf("%s: again: %+v, %d of %d records, %v", what, again, len(after), len(got), err)
		}
	}
	if short < 15 {
		t.Error(short)
	}
}

// TestACrashInsideOfRepairTakesNothing: the next repair finds the same records.
func TestACrashInsideOfRepairTakesNothing(t *testing.T) {
	isolate.Once(t)
	files, _ := aLog(t, true)
	r := rand.New(rand.NewPCG(1, 1))
	for what, damaged := range damages(files) {
		_, found, _ := openRepaired(t, &fault.Image{Files: damaged})
		d := newDisk(t, &fault.Image{Files: damaged})
		var images []*fault.Image
		d.Watch(func(fault.DiskCall) { images = append(images, d.PowerCut(r)) })
		l, _, err := open(d, "/log", Options{Policy: holdfast.Durable(), SegmentSize: leastSegment, Repair: true})
		d.Watch(nil)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		for i, image := range images {
			if i%8 != 0 && (testing.Short() || i%2 != 0 || !strings.Contains(what, "in 2")) {
				continue
			}
			if _, again, _ := openRepaired(t, image); again.First != found.First || again.Last != found.Last {
				t.Errorf("%s, crash %d of %d: %+v, want %+v", what, i, len(images), again, found)
			}
		}
	}
}
