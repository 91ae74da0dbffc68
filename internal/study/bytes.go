package study

import (
	"fmt"

	"github.com/holdfast-go/holdfast/internal/cstdio"
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// The names of the document's three programs.
const (
	noBuffering   = "no_buffering"   // read(2) and write(2)
	libcBuffering = "libc_buffering" // fread and fwrite of one byte
	diyBuffering  = "diy_buffering"  // a pair of one's own: internal/cstdio's dfread and dfwrite
)

// bytesCount is how many bytes the document reads and writes.
const bytesCount = 1 << 20

// Bytes asks what a buffer is worth to who reads and writes a byte a call.
//
// In the clock of a trial that reads are open, all the reads, and close; of one
// that writes, open, all the writes, the final flush (fflush) and close (fclose),
// each a stage of its own. The originals' clock began after open and ended before
// close, and so without the last block that was still in the buffer.
//
// A trial that writes overwrites a file that is there, without making it empty, as
// the originals do. A file that is not in the page cache costs them: a byte put
// into a page needs the page.
func Bytes() Study {
	return Study{
		Name:      "bytes",
		Question:  "what does it cost to read and write a file one byte a call, with and without a buffer",
		Source:    bufferingDrill,
		Takes:     []string{TakesCount, TakesBuffer, TakesCache},
		Published: bytesPublished(),
		Arms:      bytesArms,
		Twin:      byteArm(toRead, libcBuffering, result.Warm),
		Show:      showBytes,
		Claims:    bytesClaims(),
	}
}

// bytesPublished are the lines of the document, and what it makes of them.
func bytesPublished() []Table {
	return []Table{
		{
			Title: "One byte a call", Source: bufferingDrill,
			Head: []string{"Program", "Read", "Write"},
			Rows: [][]string{
				{noBuffering, "Read 1048576 bytes from test-file.txt in 717 ms", "Wrote 1048576 bytes to test-file.txt in 19632 ms"},
				{libcBuffering, "Read 1048576 bytes from test-file.txt in 14 ms", "Wrote 1048576 bytes to test-file.txt in 38 ms"},
			},
			Notes: []string{"The page cache was dropped before each; the clock ended before close, with the last block still in the buffer."},
		},
		{
			Title: "What the buffer saves", Source: bufferingDrill,
			Head: []string{"Program", "Read", "Write"},
			Rows: [][]string{{libcBuffering, "98 %", "99.8 %"}},
		},
	}
}

// A direction is what a trial does with the file.
type direction string

const (
	toRead  direction = "read"
	toWrite direction = "write"
)

// byteArm is the name of an arm.
func byteArm(d direction, way string, cache result.Cache) string {
	return string(d) + "/" + way + "/" + string(cache)
}

// cBuffer is the buffer of stdio and of the pair of one's own where nobody sets
// another: the block size of most file systems.
const cBuffer = 4096

// A byteWay is one way to read and write a byte a call.
type byteWay struct {
	name    string
	calls   map[direction]string // in words
	block   int64                // bytes that a system call takes along: 1 without a buffer
	toEnd   bool                 // it reads on until there is no more, which takes one call
	missing string               // why it is not to be had here, or empty
	open    func(path string) (byteReader, error)
	over    func(path string) (byteWriter, error) // opens a file to write over what is in it
}

// A byteReader reads a file from its beginning, one byte a call, and sums up what
// it read.
type byteReader interface {
	Read(n int64) (int64, error)
	Sum() cstdio.Sum
	Close() error
}

// A byteWriter writes the pattern, one byte a call.
type byteWriter interface {
	Write(n int64) (int64, error)
	Flush() error
	Close() error
}

// can reports whether the way goes in that direction.
func (w byteWay) can(d direction) bool {
	return d == toRead && w.open != nil || d == toWrite && w.over != nil
}

// systemCalls predicts how many n bytes take.
func (w byteWay) systemCalls(n int64) int64 {
	calls := parts(n, w.block)
	if w.toEnd {
		calls++
	}
	return calls
}

// byteWays are all of them; the first three are the document's programs.
func byteWays() []byteWay {
	c := []byteWay{
		inC(noBuffering, 1, cstdio.Setup{Method: cstdio.Raw, Mode: cstdio.None}),
		inC(libcBuffering, cBuffer, cstdio.Setup{Method: cstdio.Fread}),
		inC(diyBuffering, cBuffer, cstdio.Setup{Method: cstdio.DFread}),
		inC("libc_fgetc", cBuffer, cstdio.Setup{Method: cstdio.Fgetc}),
		inC("libc_unlocked", cBuffer, cstdio.Setup{Method: cstdio.GetcUnlocked}),
		inC("diy_dfgetc", cBuffer, cstdio.Setup{Method: cstdio.DFgetc}),
	}
	return append(c, goWays()...)
}

// inC is a way whose loop is wholly in C.
func inC(name string, block int64, s cstdio.Setup) byteWay {
	s.Keep = true
	return byteWay{
		name: name, block: block, missing: cstdio.Missing(),
		calls: map[direction]string{toRead: s.Method.Reads(), toWrite: s.Method.Writes()},
		open:  func(path string) (byteReader, error) { return cstdio.Open(path, s) },
		over:  func(path string) (byteWriter, error) { return cstdio.Create(path, s) },
	}
}

// setvbufWays are stdio's modes and sizes of buffer.
func setvbufWays(sizes []int) []byteWay {
	ways := []byteWay{inMode(cstdio.None.String(), 1, cstdio.Setup{Method: cstdio.Fread, Mode: cstdio.None})}
	for _, mode := range []cstdio.Mode{cstdio.Line, cstdio.Full} {
		for _, size := range sizes {
			name := fmt.Sprintf("%v,%d", mode, size)
			ways = append(ways, inMode(name, int64(size), cstdio.Setup{Method: cstdio.Fread, Mode: mode, Buffer: size}))
		}
	}
	return ways
}

// inMode is a way of stdio that says by its name what setvbuf was given.
func inMode(name string, block int64, s cstdio.Setup) byteWay {
	w := inC(name, block, s)
	for d, call := range w.calls {
		w.calls[d] = call + " after setvbuf " + name
	}
	return w
}

// accesses are what posix_fadvise is told of how a file is read.
func accesses() []access {
	return []access{{"normal", sys.Normal}, {"random", sys.Random}, {"sequential", sys.Sequential}}
}

type access struct {
	name string
	sys.Access
}
