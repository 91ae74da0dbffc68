// Package bytewise asks what a buffer is worth to a program that reads and writes a
// byte a call.
//
// In the clock of a trial that reads are open, all the reads, and close. A clock of writing covers
// open, all the writes, the final flush (fflush) and close (fclose). Each is a stage of its own.
// The originals' clock began after open and ended before close, and so without the last block that
// was still in the buffer.
//
// A trial that writes overwrites an existing file, without emptying it. So do the originals,
// but for the one with libc, whose fopen empties it. A file that is not in the page cache costs them: a byte put into a page
// needs the page.
//
// Start with [Study].
package bytewise

import (
	"github.com/holdfast-go/holdfast/cmd/internal/lab/cstdio"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/probe"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// The names of the document's three programs.
const (
	noBuffering   = "no_buffering"   // read(2) and write(2)
	libcBuffering = "libc_buffering" // fread and fwrite of one byte
	diyBuffering  = "diy_buffering"  // a pair of one's own: dfread and dfwrite of drill/df
	yours         = "yours"          // a student's diy_fread and diy_fwrite, in a process of its own
)

// bytesCount is how many bytes the document reads and writes.
const bytesCount = 1 << 20

// Study returns the study, with its arms and claims.
func Study() study.Study {
	return study.Study{
		Name:     "bytes",
		Question: "what does it cost to read and write a file one byte a call, with and without a buffer",
		Source:   study.BufferingDrill,
		Takes:    []string{study.TakesCount, study.TakesBuffer, study.TakesCache, "diy"},

		Published: []study.Table{
			{
				Title: "One byte a call", Source: study.BufferingDrill,
				Head: []string{"Program", "Read", "Write"},
				Rows: [][]string{
					{noBuffering, "Read 1048576 bytes from test-file.txt in 717 ms", "Wrote 1048576 bytes to test-file.txt in 19632 ms"},
					{libcBuffering, "Read 1048576 bytes from test-file.txt in 14 ms", "Wrote 1048576 bytes to test-file.txt in 38 ms"},
				},
				Notes: []string{"The page cache was dropped before each; the clock ended before close, with the last block still in the buffer."},
			},
			{
				Title: "What the buffer saves", Source: study.BufferingDrill,
				Head: []string{"Program", "Read", "Write"},
				Rows: [][]string{{libcBuffering, "98 %", "99.8 %"}},
			},
		},
		Arms:   bytesArms,
		Twin:   byteArm(toRead, libcBuffering, result.Warm),
		Show:   showBytes,
		Claims: study.ClaimsOf(study.BufferingDrill, bytesClaims()),
	}
}

// A direction says whether a trial reads or writes the file.
type direction string

const (
	toRead  direction = "read"
	toWrite direction = "write"
)

// byteArm is the name of an arm.
func byteArm(d direction, way string, cache result.Cache) string {
	return string(d) + "/" + way + "/" + string(cache)
}

// A byteWay is one way to read and write a byte a call.
type byteWay struct {
	name    string
	calls   map[direction]string // in words
	block   int64                // bytes that a system call takes along: 1 without a buffer
	toEnd   bool                 // it reads on until there is no more, which takes one call
	missing string               // why it is not to be had here, or empty
	source  string               // of a student, whose program does the work; open and over are for can alone
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
	calls := study.CallsOf(n, w.block)
	if w.toEnd {
		calls++
	}
	return calls
}

type access struct {
	name string
	probe.Access
}
