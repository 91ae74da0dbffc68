// Package filler makes the bytes of files to measure with: random ones, which no disk
// and no file system can compress or find twice, text, and zeros. The same kind and
// seed give the same bytes on every machine, from any offset on.
//
// Start with [New]. It knows nothing of files; io.NewSectionReader makes a stream of
// a Filler. Its random bytes are for measuring only: who has seen eight of them can
// tell all the others.
package filler

import (
	"errors"
	"fmt"
)

// A Kind is what the bytes are like.
type Kind int

// The kinds.
const (
	Random Kind = iota // incompressible; no eight bytes at a multiple of eight come twice
	Text               // lines of made-up words, which gzip makes about a third as long
	Zero
)

var kindNames = [...]string{Random: "random", Text: "text", Zero: "zero"}

// String returns random, text or zero.
func (k Kind) String() string {
	if k < 0 || int(k) >= len(kindNames) {
		return fmt.Sprintf("Kind(%d)", int(k))
	}
	return kindNames[k]
}

// A Filler has bytes at every offset. It does not change: any number of goroutines
// may read it.
type Filler struct {
	kind  Kind
	start uint64 // of the sequence of random words
	words *vocabulary
}

// New returns the bytes of a kind and a seed. Zero has no use for a seed. It panics
// if there is no such kind.
func New(kind Kind, seed uint64) *Filler {
	if kind < 0 || int(kind) >= len(kindNames) {
		panic(fmt.Sprintf("filler: there is no %v", kind))
	}
	// Seeds that are near each other begin far from each other.
	f := &Filler{kind: kind, start: mix(mix(seed+gamma) ^ gamma)}
	if kind == Text {
		f.words = newVocabulary()
	}
	return f
}

var errNegative = errors.New("filler: negative offset")

// ReadAt fills all of p with the bytes from offset on. Its only error is that the
// offset is negative: there is no end of file. It never blocks.
func (f *Filler) ReadAt(p []byte, offset int64) (n int, err error) {
	if offset < 0 {
		return 0, errNegative
	}
	switch f.kind {
	case Random:
		fillRandom(p, f.start, uint64(offset))
	case Text:
		f.fillText(p, offset)
	case Zero:
		clear(p)
	}
	return len(p), nil
}
