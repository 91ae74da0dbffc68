package readahead_test

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/fault"
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
