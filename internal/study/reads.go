package study

import (
	"cmp"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/trial"
)

// Reading is the study of the reading side: a file is read by blocks, records, lines
// and bytes, with buffers from 1 byte to 1 MiB, from the page cache and from the
// disk, with the kernel's read-ahead and without, and with a Reader's own.
//
// In the clock is all from the opening of the file until it is closed, the making
// of the buffers too; they are the stages open, read and close. What is read is
// summed up in the clock, by all arms of a group alike, and so that the order
// counts: CRC-32 over blocks, records and lines, two running sums over bytes. The
// sums are compared with those of what was written, after the clock.
//
// All trials read the same file, each through a link of its own, so that a large
// file is not written for each. An arm that takes a system call for a few bytes
// reads only the file's beginning; the arms are compared by the time of a byte. A
// cold arm starts with no page of the file in the page cache, which is proven, or
// it is not run.
func Reading() Study {
	return Study{
		Name:     "reads",
		Question: "what does it cost to read a file, by the size of the buffer and the way of reading",
		Source:   efficientBuffering,
		Takes:    []string{TakesCount, TakesBuffer},
		Arms:     readsArms,
		Twin:     readName(blocksOf(4*holdfast.KiB), result.Warm),
		Show:     showReads,
		Claims:   readsClaims(),
	}
}

// recordSize is how much the records' arms take of a buffer at once: more than
// that, and bufio would not copy it but read it straight from the file.
const recordSize = 64

// A fileReading is one way to read one file.
type fileReading struct {
	way    string // tells it from the others of its group, of any cache
	group  string // without the cache
	does   string
	cache  result.Cache
	bytes  int64         // that are read
	each   time.Duration // that a thousand bytes take, about
	kind   kind
	access sys.Access
	run    readWay
}

func readName(way string, cache result.Cache) string { return way + ", " + string(cache) }

// The ways' names.
func blocksOf(size holdfast.Size) string  { return "read(2) " + size.String() }
func recordsOf(size holdfast.Size) string { return "bufio " + size.String() }

func accessOf(size holdfast.Size, a sys.Access) string {
	return blocksOf(size) + " " + [...]string{"normal", "sequential", "random"}[a]
}

// fileSize is how large the file is.
func fileSize(c Choice) int64 {
	of := map[string]int64{quick: 16 << 20, full: 256 << 20}
	return cmp.Or(c.Count, of[c.Preset.Name], 32<<20)
}

// The sizes of the sweep: those that the claims take, and some between them or
// every power of two. Cold arms take longer, and have fewer.
var (
	warmSizes = []holdfast.Size{
		1, 16, 64, 256, holdfast.KiB, 2 * holdfast.KiB, 4 * holdfast.KiB, 8 * holdfast.KiB,
		32 * holdfast.KiB, 64 * holdfast.KiB, 256 * holdfast.KiB, holdfast.MiB,
	}
	coldSizes = []holdfast.Size{64, holdfast.KiB, 4 * holdfast.KiB, 32 * holdfast.KiB, 256 * holdfast.KiB, holdfast.MiB}
)

func powersOfTwo() (sizes []holdfast.Size) {
	for size := holdfast.Size(1); size <= holdfast.MiB; size *= 2 {
		sizes = append(sizes, size)
	}
	return sizes
}

func sizesOf(c Choice, cache result.Cache) []holdfast.Size {
	preset := warmSizes
	switch {
	case c.Preset.Full:
		preset = powersOfTwo()
	case cache == result.Cold:
		preset = coldSizes
	}
	sizes := slices.Clone(or(c.Buffers, preset))
	slices.Sort(sizes)
	return slices.DeleteFunc(sizes, func(s holdfast.Size) bool { return s <= 0 })
}

func readsArms(c Choice) []Arm {
	text := newReadText(fileSize(c))
	var all []fileReading
	for _, cache := range []result.Cache{result.Warm, result.Cold} {
		of := slices.Concat(
			sweepReadings(sizesOf(c, cache), text.size), lineReadings(text.size), byteReadings(text.size),
			computingReadings(text.size), accessReadings(text.size))
		for _, r := range of {
			if r.cache = cache; c.Preset.Full || !r.onlyInFull() {
				all = append(all, r)
			}
		}
	}
	var arms []Arm
	for _, r := range all {
		arms = append(arms, r.arm(c, text, len(all)))
	}
	return arms
}

// onlyInFull reports whether the reading is left out of the shorter runs: those
// that say little of the state that the page cache is in.
func (r fileReading) onlyInFull() bool {
	cold := r.cache == result.Cold
	switch r.group {
	case "lines", "bytes":
		return cold && !slices.Contains([]string{scanner, readerLines, bufioByte, readerBytesSeq}, r.way)
	case "SHA-256":
		return !cold
	case accessGroup(4 * holdfast.KiB):
		return !cold
	case accessGroup(64 * holdfast.KiB):
		return true
	}
	return false
}

func accessGroup(block holdfast.Size) string { return "kernel's read-ahead, " + block.String() }

// arm makes the reading an arm of so many. The file is written once for all trials
// of all arms, so each has a part of it in the plan.
func (r fileReading) arm(c Choice, text *readText, arms int) Arm {
	a := Arm{
		Cell: result.Cell{
			Name: readName(r.way, r.cache), Group: readName(r.group, r.cache), Does: r.does,
			RecordBytes: 1, Writers: 1, Records: r.bytes, Cache: r.cache,
		},
		Time:  15*time.Millisecond + time.Duration(r.bytes)*r.each/1000 + time.Duration(text.size/8),
		Bytes: text.size / int64(arms*(c.rounds()+1)),
		Room:  text.size,
		Task:  func() trial.Task { return r.task(text) },
	}
	if r.cache == result.Cold {
		a.Missing, a.Elsewhere = cacheMissing(c, result.Cold), cacheElsewhere(c, result.Cold)
		a.Time += time.Duration(text.size)
	}
	return a
}
