// Package reads is the study of the reading side: a file is read by blocks, records,
// lines and bytes. Buffers are from 1 byte to 1 MiB, and the file comes from the page
// cache and from the disk. The kernel's read-ahead is on and off, and a Reader has its
// own.
//
// In the clock is all from the opening of the file until it is closed, the making
// of the buffers too. The stages are open, read and close. All arms of a group sum up their bytes
// in the clock alike, and so that the order counts: CRC-32 over blocks, records and lines, two
// running sums over bytes. The sums are compared with the written bytes' sums, after the clock.
//
// All trials read the same file, each through a link of its own, so that a large
// file is not written for each. An arm that takes a system call for a few bytes
// reads only the file's beginning. The arms are compared by the time of a byte. A
// cold arm starts with no page of the file in the page cache, which is proven, or
// it is not run.
//
// Start with [Study].
package reads

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/chart"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/probe"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
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
		Claims:   study.ClaimsOf(study.EfficientBuffering, readsClaims),
	}
}

// recordSize is how much the records' arms take of a buffer at once. With more
// than that, bufio would not copy it but read it directly from the file.
const recordSize = 64

// A fileReading is one way to read one file.
type fileReading struct {
	way    string // its name within its group, whatever the cache
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

func showReads(e study.Evidence) study.Shown {
	return study.Shown{
		Tables:  []study.Table{sweepTable(e), callsTable(e), waysTable(e)},
		Picture: sweepPicture(e),
		Learnt:  readsLearnt(e),
	}
}

// A column of the sweep: one way to read at every size.
type column struct {
	name string
	way  func(holdfast.Size) string
	kept result.Cache
}

func columns() []column {
	return []column{
		{"read(2), warm", blocksOf, result.Warm}, {"bufio, warm", recordsOf, result.Warm},
		{"read(2), cold", blocksOf, result.Cold}, {"bufio, cold", recordsOf, result.Cold},
	}
}

// sizesRun returns the buffer sizes of the sweep's arms, sorted.
func sizesRun(e study.Evidence) []holdfast.Size {
	var sizes []holdfast.Size
	for _, c := range append(e.InGroups("blocks"), e.InGroups("records")...) {
		if size := sizeOf(c); size > 0 && !slices.Contains(sizes, size) {
			sizes = append(sizes, size)
		}
	}
	slices.Sort(sizes)
	return sizes
}

// sizeOf is the size of the buffer of one of the sweep's arms, 0 for another.
func sizeOf(c result.Cell) holdfast.Size {
	name, _, _ := strings.Cut(c.Name, ", ")
	_, text, _ := strings.Cut(name, " ")
	size, err := holdfast.ParseSize(text)
	if err != nil {
		return 0
	}
	return size
}

func sweepTable(e study.Evidence) study.Table {
	t := study.Table{Title: "MiB a second, by the size of the buffer", Head: []string{"Buffer"}}
	for _, c := range columns() {
		t.Head = append(t.Head, c.name)
	}
	t.Head = append(t.Head, "time of read(2), warm, against 4KiB")
	for _, size := range sizesRun(e) {
		row := []string{size.String()}
		for _, c := range columns() {
			row = append(row, study.Median(e.Summary(readName(c.way(size), c.kept), study.Mebibytes), study.Digits))
		}
		against := study.Dash
		if four := warmBlocks(4 * holdfast.KiB); size != 4*holdfast.KiB {
			against = study.Compared(e.Ratio(warmBlocks(size), four, study.PerRecord))
		}
		t.Rows = append(t.Rows, append(row, against))
	}
	t.Notes = []string{
		fmt.Sprintf("bufio gives records of %d bytes; with a buffer no larger than a record it reads each record from the file, and its smallest buffer is 16 bytes.", recordSize),
		"Each block or record is summed up in the clock; small blocks are read from the beginning of the file only.",
	}
	return t
}

func callsTable(e study.Evidence) study.Table {
	t := study.Table{
		Title: "System calls and CPU, warm",
		Notes: []string{"Calls observed are all reads of the process during the trial, as the kernel counts them.", "Straight: the buffer is no larger than a record, so each record is read from the file past the buffer."},
	}
	var arms []result.Cell
	for _, size := range sizesRun(e) {
		arms = append(arms, e.Cells(warmBlocks(size), warmRecords(size))...)
	}
	return study.Tabulate(t, arms, []study.ArmColumn{
		{Head: "Buffer", Cell: func(c result.Cell) string { return sizeOf(c).String() }},
		{Head: "Way", Cell: func(c result.Cell) string {
			switch {
			case !strings.HasPrefix(c.Group, "records"):
				return "read(2)"
			case sizeOf(c) <= recordSize:
				return "bufio, straight"
			}
			return "bufio"
		}},
		study.Records("Bytes"),
		{Head: "Calls predicted", Cell: func(c result.Cell) string {
			each := sizeOf(c)
			if strings.HasPrefix(c.Group, "records") {
				each = max(each, recordSize)
			}
			return study.Whole(float64(study.CallsOf(c.Records, int64(each))))
		}},
		e.MedianOf("Calls observed", study.Reads, study.Whole), e.MedianOf("User CPU a byte", study.UserTime, study.Duration),
		e.MedianOf("System CPU a byte", study.SystemTime, study.Duration), e.MedianOf("Page faults a page", faultsPerPage, study.Digits),
	})
}

// waysTable has all arms that are not of the sweep, each against the first of its
// group.
func waysTable(e study.Evidence) study.Table {
	t := study.Table{
		Title: "Lines, bytes, computing consumers and read-ahead",
		Notes: []string{
			"Against the first: the time of a byte divided by the time with the group's first way, so below 1 is faster.",
			"bufio has its usual 4 KiB where no size is named, a Reader its 256 KiB.",
		},
	}
	arms := slices.DeleteFunc(e.Arms(), func(c result.Cell) bool {
		return strings.HasPrefix(c.Group, "blocks") || strings.HasPrefix(c.Group, "records")
	})
	return study.Tabulate(t, arms, []study.ArmColumn{
		{Head: "Way", Cell: func(c result.Cell) string { return c.Name }},
		e.IntervalOf("MiB/s", study.Mebibytes, study.Digits), e.MedianOf("Time of a byte", study.PerRecord, study.Duration),
		e.Against("Against the first", func(c result.Cell) string {
			return arms[slices.IndexFunc(arms, func(other result.Cell) bool { return other.Group == c.Group })].Name
		}),
		e.MedianOf("CPUs used", study.CPUsUsed, study.Digits), e.MedianOf("Allocations", study.Allocations, study.Whole), e.MedianOf("Calls", study.Reads, study.Whole),
	})
}

// sweepPicture has a row for each size and a dot for each way.
func sweepPicture(e study.Evidence) *chart.Dots {
	d := &chart.Dots{Title: "Time of a byte, by the size of the buffer", Scale: study.Duration}
	for _, c := range columns() {
		d.Series = append(d.Series, c.name)
	}
	for _, size := range sizesRun(e) {
		row := chart.Row{Label: size.String()}
		for i, c := range columns() {
			row.Points = append(row.Points, study.Point(i, e.Summary(readName(c.way(size), c.kept), study.PerRecord)))
		}
		d.Rows = append(d.Rows, row)
	}
	return d
}

// fastest returns the size at which a way is fastest, and how fast it is there.
func fastest(e study.Evidence, c column) (at holdfast.Size, s stat.Summary) {
	s.Median = math.NaN()
	for _, size := range sizesRun(e) {
		here := e.Summary(readName(c.way(size), c.kept), study.Mebibytes)
		if here.Median > s.Median || math.IsNaN(s.Median) && !math.IsNaN(here.Median) {
			at, s = size, here
		}
	}
	return at, s
}

func readsLearnt(e study.Evidence) string {
	var parts []string
	for _, c := range []column{columns()[0], columns()[2]} {
		if at, s := fastest(e, c); !math.IsNaN(s.Median) {
			parts = append(parts, fmt.Sprintf("%s was fastest with %v (%s MiB/s)", c.name, at, study.Median(s, study.Digits)))
		}
	}
	return strings.Join(append(parts, e.Learnt(
		study.Said{Format: "a buffer of 4 KiB made records of 64 bytes %s as fast", Over: warmBlocks(recordSize), Under: warmRecords(4 * holdfast.KiB)},
		study.Said{Format: "one of 32 KiB %s as fast as that", Over: warmRecords(4 * holdfast.KiB), Under: warmRecords(32 * holdfast.KiB)},
		study.Said{Format: "a Reader's lines came %s as fast as a Scanner's", Over: readName(scanner, result.Warm), Under: readName(readerLines, result.Warm)},
		study.Said{Format: "its bytes %s as fast as bufio's", Over: readName(bufioByte, result.Warm), Under: readName(readerBytesSeq, result.Warm)},
	)...), ", ")
}
