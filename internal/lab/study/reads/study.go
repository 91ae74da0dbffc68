// Package reads is the study of the reading side: a file is read by blocks, records,
// lines and bytes. Buffers are from 1 byte to 1 MiB, and the file comes from the page
// cache and from the disk. The kernel's read-ahead is on and off, and a Reader has its
// own.
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
//
// Start with [Study].
package reads

import (
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/lab/probe"
	"github.com/holdfast-go/holdfast/internal/lab/result"
	"github.com/holdfast-go/holdfast/internal/lab/study"
)

// Study returns the study, with its arms and claims.
func Study() study.Study {
	return study.Study{
		Name:     "reads",
		Question: "what does it cost to read a file, by the size of the buffer and the way of reading",
		Source:   study.EfficientBuffering,
		Takes:    []string{study.TakesCount, study.TakesBuffer},
		Arms:     readsArms,
		Twin:     readName(blocksOf(4*holdfast.KiB), result.Warm),
		Show:     showReads,
		Claims:   readsClaims,
	}
}

// recordSize is how much the records' arms take of a buffer at once: more than
// that, and bufio would not copy it but read it straight from the file.
const recordSize = 64

// A fileReading is one way to read one file.
type fileReading struct {
	way    string // its name among those of its group, of any cache
	group  string // without the cache
	does   string
	cache  result.Cache
	bytes  int64         // that are read
	each   time.Duration // that a thousand bytes take, about
	kind   kind
	access probe.Access
	run    readWay
}

func readName(way string, cache result.Cache) string { return way + ", " + string(cache) }

// The ways' names.
func blocksOf(size holdfast.Size) string  { return "read(2) " + size.String() }
func recordsOf(size holdfast.Size) string { return "bufio " + size.String() }

func accessOf(size holdfast.Size, a probe.Access) string {
	return blocksOf(size) + " " + [...]string{"normal", "sequential", "random"}[a]
}

func accessGroup(block holdfast.Size) string { return "kernel's read-ahead, " + block.String() }
