//go:build go1.25

package readahead_test

import (
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/readahead"
)

// TestUnreadByteAfterAPeekAcrossABlock unreads the last byte of a block after a Peek
// has read the next block. A Peek consumes nothing, so this byte is still the one that
// was consumed last.
func TestUnreadByteAfterAPeekAcrossABlock(t *testing.T) {
	for _, ahead := range []readahead.Mode{readahead.Never, readahead.Always} {
		data := text(4 * testBlock)
		r := readahead.NewReader(fault.NewSource(data), readahead.Options{Buffer: testBlock, ReadAhead: ahead})
		for i := range 3 * testBlock {
			c, err := r.ReadByte()
			if err != nil || c != data[i] {
				t.Fatalf("ReadByte %d = %q, %v; want %q", i, c, err, data[i])
			}
			if next, err := r.Peek(1); err != nil || next[0] != data[i+1] {
				t.Fatalf("Peek behind byte %d = %q, %v; want %q", i, next, err, data[i+1])
			}
			if err := r.UnreadByte(); err != nil {
				t.Fatalf("UnreadByte of byte %d after a Peek: %v", i, err)
			}
			if c, err := r.ReadByte(); err != nil || c != data[i] {
				t.Fatalf("byte %d again = %q, %v; want %q", i, c, err, data[i])
			}
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestReadOfNoBytesReadsNothing: the source may be a pipe that has nothing yet.
func TestReadOfNoBytesReadsNothing(t *testing.T) {
	for _, ahead := range []readahead.Mode{readahead.Never, readahead.Regular} {
		source := strings.NewReader("text")
		r := readahead.NewReader(source, readahead.Options{ReadAhead: ahead})
		if n, err := r.Read(nil); n != 0 || err != nil || source.Len() != 4 {
			t.Errorf("Read of no bytes = %d, %v; %d bytes are left", n, err, source.Len())
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// countedReads gives zeros, and counts how often.
type countedReads struct{ n atomic.Int64 }

func (c *countedReads) Read(p []byte) (int, error) {
	c.n.Add(1)
	return len(p), nil
}

// TestNoReadBeginsAfterClose gives a block back just before it, while no other goroutine can run.
func TestNoReadBeginsAfterClose(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const tries = 20
	late := 0
	for range tries { // one of them may be interrupted
		source := &countedReads{}
		r := readahead.NewReader(source, readahead.Options{Buffer: 4096, ReadAhead: readahead.Always})
		if _, err := r.Discard(3*4096 + 1); err != nil {
			t.Fatal(err)
		}
		before := source.n.Load()
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if source.n.Load() > before {
			late++
		}
	}
	if late == tries {
		t.Error("each Close was followed by another Read")
	}
}
