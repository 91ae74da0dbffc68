package reads

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/probe"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
	"github.com/holdfast-go/holdfast/readahead"
)

// A readWay reads the first n bytes of the file that is open, to its end if these
// are all. It closes the file.
type readWay func(f *os.File, n int64) (digest, error)

// fromFile reads from the file itself, or from its wrapper.
func fromFile[R io.Reader](wrap func(*os.File) R, read func(r R, n int64) (digest, error)) readWay {
	return func(f *os.File, n int64) (digest, error) {
		d, err := read(wrap(f), n)
		return d, errors.Join(err, f.Close())
	}
}

// fromReader reads through a Reader.
func fromReader(o readahead.Options, read func(r *readahead.Reader, n int64) (digest, error)) readWay {
	return func(f *os.File, n int64) (digest, error) {
		r := readahead.NewReader(f, o)
		d, err := read(r, n)
		return d, errors.Join(err, r.Err(), r.Close())
	}
}

func bare(f *os.File) *os.File { return f }

func buffered(size holdfast.Size) func(*os.File) *bufio.Reader {
	return func(f *os.File) *bufio.Reader { return bufio.NewReaderSize(f, int(size)) }
}

// reads takes n bytes, up to size at a time.
func reads[R io.Reader](size holdfast.Size) func(r R, n int64) (digest, error) {
	return func(r R, n int64) (d digest, err error) {
		p := make([]byte, size)
		for d.units < n && err == nil {
			var read int
			read, err = r.Read(p[:min(int64(size), n-d.units)])
			d.block(p[:read])
		}
		return d, err
	}
}

// mostCalls bounds how many system calls a trial of the sweep makes.
const mostCalls = 200_000

// sweepReadings read blocks, and records through bufio, with buffers of all sizes.
func sweepReadings(sizes []holdfast.Size, size int64) (all []fileReading) {
	for _, s := range sizes {
		n := min(size, mostCalls*int64(s))
		all = append(all, fileReading{
			way: blocksOf(s), group: "blocks", does: "read(2) of " + s.String(), bytes: n, each: perCall(s) + 60,
			run: fromFile(bare, reads[*os.File](s)),
		})
	}
	for _, s := range sizes {
		if s < 16 {
			continue // which is the least that bufio.NewReaderSize makes
		}
		each := max(s, recordSize)
		n := min(size, mostCalls*int64(each))
		all = append(all, fileReading{
			way: recordsOf(s), group: "records", does: fmt.Sprintf("records of %d bytes through bufio.Reader of %v", recordSize, s),
			bytes: n, each: perCall(each) + 300, run: fromFile(buffered(s), reads[*bufio.Reader](recordSize)),
		})
	}
	return all
}

// perCall is about what the calls for a thousand bytes take.
func perCall(size holdfast.Size) time.Duration { return 300 * 1000 / time.Duration(size) }

const largeBuffer = 256 * holdfast.KiB

// lineReadings take the file line by line. bufio has its own size, and the Reader's.
func lineReadings(size int64) []fileReading {
	line := func(way, does string, run readWay) fileReading {
		return fileReading{way: way, group: "lines", does: does, bytes: size, each: 800, kind: byLine, run: run}
	}
	return []fileReading{
		line(scanner, "bufio.Scanner", fromFile(scanning(0), scanLines)),
		line(scanner+" 256KiB", "bufio.Scanner with a buffer of 256 KiB", fromFile(scanning(largeBuffer), scanLines)),
		line("ReadSlice", "bufio.Reader.ReadSlice", fromFile(buffered(4*holdfast.KiB), func(r *bufio.Reader, _ int64) (d digest, err error) {
			for {
				line, err := r.ReadSlice('\n')
				if err != nil {
					return d, notEnd(err)
				}
				d.line(line[:len(line)-1])
			}
		})),
		line("ReadString", "bufio.Reader.ReadString, which allocates each line", fromFile(buffered(4*holdfast.KiB), func(r *bufio.Reader, _ int64) (d digest, err error) {
			var copied []byte
			for {
				line, err := r.ReadString('\n')
				if err != nil {
					return d, notEnd(err)
				}
				copied = append(copied[:0], line[:len(line)-1]...)
				d.line(copied)
			}
		})),
		line(readerLines, "holdfast.Reader.Lines", fromReader(readahead.Options{}, func(r *readahead.Reader, _ int64) (d digest, err error) {
			for line, err := range r.Lines() {
				if err != nil {
					return d, err
				}
				d.line(line)
			}
			return d, nil
		})),
	}
}

// byteReadings take the file byte by byte.
func byteReadings(size int64) []fileReading {
	one := func(way, does string, each time.Duration, run readWay) fileReading {
		return fileReading{way: way, group: "bytes", does: does, bytes: size, each: each, kind: byByte, run: run}
	}
	return []fileReading{
		one(bufioByte, "bufio.Reader.ReadByte", 3000, fromFile(buffered(4*holdfast.KiB), readBytesOf)),
		one(bufioByte+" 256KiB", "bufio.Reader.ReadByte with a buffer of 256 KiB", 3000, fromFile(buffered(largeBuffer), readBytesOf)),
		one(readerByte, "holdfast.Reader.ReadByte", 2000, fromReader(readahead.Options{}, func(r *readahead.Reader, _ int64) (d digest, err error) {
			for {
				b, err := r.ReadByte()
				if err != nil {
					return d, notEnd(err)
				}
				d.byte(b)
			}
		})),
		one(readerBytesSeq, "holdfast.Reader.Bytes, ranged over", 600, fromReader(readahead.Options{}, func(r *readahead.Reader, _ int64) (d digest, err error) {
			for b := range r.Bytes() {
				d.byte(b)
			}
			return d, nil
		})),
	}
}

// The ways that claims and sentences name.
const (
	scanner        = "Scanner"
	readerLines    = "holdfast Lines"
	bufioByte      = "bufio ReadByte"
	readerByte     = "holdfast ReadByte"
	readerBytesSeq = "holdfast Bytes"
)

func scanning(size holdfast.Size) func(*os.File) *scanned {
	return func(f *os.File) *scanned {
		s := bufio.NewScanner(f)
		if size > 0 {
			s.Buffer(make([]byte, size), int(size))
		}
		return &scanned{f, s}
	}
}

// A scanned file is one with a Scanner, which is no io.Reader itself.
type scanned struct {
	*os.File
	lines *bufio.Scanner
}

func scanLines(s *scanned, _ int64) (d digest, err error) {
	for s.lines.Scan() {
		d.line(s.lines.Bytes())
	}
	return d, s.lines.Err()
}

func readBytesOf(r *bufio.Reader, _ int64) (d digest, err error) {
	for {
		b, err := r.ReadByte()
		if err != nil {
			return d, notEnd(err)
		}
		d.byte(b)
	}
}

// notEnd is nil at the end of the file.
func notEnd(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// computingReadings give blocks to a consumer, which the next block may be read
// beside.
func computingReadings(size int64) (all []fileReading) {
	for _, of := range []struct {
		name string
		kind kind
		each time.Duration
		make func() consumer
	}{
		{"CRC-32", byBlock, 200, func() consumer { return new(digest) }},
		{"SHA-256", bySHA256, 800, func() consumer { return newSHA256() }},
	} {
		add := func(way, does string, run readWay) {
			all = append(all, fileReading{way: of.name + ", " + way, group: of.name, does: does, bytes: size, each: of.each, kind: of.kind, run: run})
		}
		for _, block := range []holdfast.Size{4 * holdfast.KiB, largeBuffer} {
			add(blocksOf(block), "read(2) and compute, in turn", fromFile(bare, func(f *os.File, _ int64) (digest, error) {
				c, p := of.make(), make([]byte, block)
				for {
					n, err := f.Read(p)
					if c.block(p[:n]); err != nil {
						return c.seen(), notEnd(err)
					}
				}
			}))
		}
		for _, ahead := range []aheadMode{
			{readerAlone, "holdfast.Reader, which reads when it is asked", readahead.Never},
			{"holdfast, read-ahead as it gains", "holdfast.Reader as it comes: a goroutine reads ahead once that is seen to gain", readahead.Regular},
			{readerAhead, "holdfast.Reader, a goroutine reads ahead", readahead.Always},
		} {
			add(ahead.name, ahead.does, fromReader(readahead.Options{ReadAhead: ahead.mode}, func(r *readahead.Reader, _ int64) (digest, error) {
				c := of.make()
				for block, err := range r.Blocks() {
					if err != nil {
						return c.seen(), err
					}
					c.block(block)
				}
				return c.seen(), nil
			}))
		}
	}
	return all
}

type aheadMode struct {
	name, does string
	mode       readahead.Mode
}

const (
	readerAlone = "holdfast, no read-ahead"
	readerAhead = "holdfast, read-ahead"
)

// accessMost is how much is read with the kernel's read-ahead changed: without it
// each small read waits for the disk.
const accessMost = 4 << 20

// accessReadings tell the kernel how the file is going to be read.
func accessReadings(size int64) (all []fileReading) {
	for _, block := range []holdfast.Size{4 * holdfast.KiB, 64 * holdfast.KiB} {
		for _, a := range []probe.Access{probe.Normal, probe.Sequential, probe.Random} {
			n := min(size, accessMost)
			all = append(all, fileReading{
				way: accessOf(block, a), group: accessGroup(block), does: "read(2) after posix_fadvise(2)",
				bytes: n, each: 15_000, access: a, run: fromFile(bare, reads[*os.File](block)),
			})
		}
	}
	return all
}

func readsArms(c study.Choice) []study.Arm {
	of := map[string]int64{study.PresetQuick: 16 << 20, study.PresetFull: 256 << 20}
	text := newReadText(cmp.Or(c.Count, of[c.Preset.Name], 32<<20))
	var all []fileReading
	for _, cache := range []result.Cache{result.Warm, result.Cold} {
		preset := warmSizes
		switch {
		case c.Preset.Full:
			preset = nil
			for size := holdfast.Size(1); size <= holdfast.MiB; size *= 2 {
				preset = append(preset, size)
			}
		case cache == result.Cold:
			preset = coldSizes
		}
		sizes := slices.Clone(study.Or(c.Buffers, preset))
		slices.Sort(sizes)
		readings := slices.Concat(
			sweepReadings(slices.DeleteFunc(sizes, func(s holdfast.Size) bool { return s <= 0 }), text.size), lineReadings(text.size), byteReadings(text.size),
			computingReadings(text.size), accessReadings(text.size))
		for _, r := range readings {
			if r.cache = cache; c.Preset.Full || !r.onlyInFull() {
				all = append(all, r)
			}
		}
	}
	var arms []study.Arm
	for _, r := range all {
		arms = append(arms, r.arm(c, text, len(all)))
	}
	return arms
}

func newReadText(size int64) *readText {
	t := &readText{size: size, known: map[string]digest{}}
	for i := range 25_000 {
		t.pattern = fmt.Appendf(t.pattern, "Line %d: This is buffered write data\n", i)
	}
	return t
}

// onlyInFull reports whether the reading is left out of the shorter runs: the page cache's state
// hardly matters to it.
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

// arm makes an arm of the reading. The file is written once for all trials
// of all arms, so each has a part of it in the plan.
func (r fileReading) arm(c study.Choice, text *readText, arms int) study.Arm {
	a := study.Arm{
		Cell: result.Cell{
			Name: readName(r.way, r.cache), Group: readName(r.group, r.cache), Does: r.does,
			RecordBytes: 1, Writers: 1, Records: r.bytes, Cache: r.cache,
		},
		Time:  15*time.Millisecond + time.Duration(r.bytes)*r.each/1000 + time.Duration(text.size/8),
		Bytes: text.size / int64(arms*(c.RoundsToRun()+1)),
		Room:  text.size,
		Task:  func() trial.Task { return r.task(text) },
	}
	a.Missing, a.Elsewhere = study.CacheMissing(c, r.cache), study.CacheElsewhere(c, r.cache)
	if r.cache == result.Cold {
		a.Time += time.Duration(text.size)
	}
	return a
}

// The sizes of the sweep: the claims' sizes, and some between them or every power of two. Cold arms
// take longer, and have fewer.
var (
	warmSizes = []holdfast.Size{
		1, 16, 64, 256, holdfast.KiB, 2 * holdfast.KiB, 4 * holdfast.KiB, 8 * holdfast.KiB,
		32 * holdfast.KiB, 64 * holdfast.KiB, 256 * holdfast.KiB, holdfast.MiB,
	}
	coldSizes = []holdfast.Size{64, holdfast.KiB, 4 * holdfast.KiB, 32 * holdfast.KiB, 256 * holdfast.KiB, holdfast.MiB}
)
