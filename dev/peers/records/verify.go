package records

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
)

// A record identifies itself: its sequence number stands at both ends, its goroutine's number
// and a filling of that goroutine's own between. No two records of a trial are alike, and no
// piece of one fits another.
type record []byte

const ownLines = 256 // a size that the allocator aligns to lines, and to pairs of them

const minRecord = 8 + 4 + 8 // sequence, goroutine, sequence inverted

// newRecord has cache lines of its own: two goroutines that number theirs in one line would wait
// for each other.
func newRecord(size, goroutine int) record {
	r := make(record, size, max(size, ownLines))
	for i := range r {
		r[i] = byte('a' + (goroutine+i)%26)
	}
	binary.LittleEndian.PutUint32(r[8:], uint32(goroutine))
	return r
}

// number makes r its goroutine's record seq.
func (r record) number(seq int) {
	binary.LittleEndian.PutUint64(r, uint64(seq))
	binary.LittleEndian.PutUint64(r[len(r)-8:], ^uint64(seq))
}

func (r record) seq() uint64       { return binary.LittleEndian.Uint64(r) }
func (r record) goroutine() uint32 { return binary.LittleEndian.Uint32(r[8:]) }

// verify returns nil only if records is every record of every goroutine exactly
// once and whole, each goroutine's in its order.
func verify(records iter.Seq2[[]byte, error], w work) error {
	want := make([]record, w.goroutines)
	for g := range want {
		want[g] = newRecord(w.size, g)
	}
	next := make([]int, w.goroutines)
	count := 0
	for got, err := range records {
		if err != nil {
			return fmt.Errorf("after record %d: %w", count, err)
		}
		if err := verifyNext(got, want, next); err != nil {
			return fmt.Errorf("record %d of the file: %w", count, err)
		}
		count++
	}
	for g, n := range next {
		if n != w.each {
			return fmt.Errorf("goroutine %d wrote %d records, the file has %d", g, w.each, n)
		}
	}
	return nil
}

// verifyNext checks that got is whole and the next of its goroutine.
func verifyNext(got record, want []record, next []int) error {
	if len(got) < minRecord || int(got.goroutine()) >= len(want) {
		return errors.New("torn: it belongs to no goroutine")
	}
	g := got.goroutine()
	want[g].number(next[g])
	if bytes.Equal(got, want[g]) {
		next[g]++
		return nil
	}
	seq, due := got.seq(), uint64(next[g])
	want[g].number(int(seq))
	switch {
	case !bytes.Equal(got, want[g]):
		return fmt.Errorf("torn: goroutine %d, sequence %d", g, seq)
	case seq < due:
		return fmt.Errorf("duplicated or reordered: goroutine %d has %d where %d is due", g, seq, due)
	default:
		return fmt.Errorf("lost or reordered: goroutine %d has %d where %d is due", g, seq, due)
	}
}

// nothing yields the records of an arm that wrote none: they are not verified.
func nothing(_ string, w work) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for g := range w.goroutines {
			for rec, seq := newRecord(w.size, g), 0; seq < w.each; seq++ {
				if rec.number(seq); !yield(rec, nil) {
					return
				}
			}
		}
	}
}

// rawRecords yields the records of a file that holds nothing else.
func rawRecords(dir string, w work) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		f, err := os.Open(logPath(dir))
		if err != nil {
			yield(nil, err)
			return
		}
		defer f.Close()
		split(f, w.size, yield)
	}
}

// split yields r in pieces of size bytes; bytes left over are an error.
func split(r io.Reader, size int, yield func([]byte, error) bool) {
	in := bufio.NewReaderSize(r, 1<<20)
	rec := make([]byte, size)
	for {
		switch n, err := io.ReadFull(in, rec); {
		case err == io.EOF:
			return
		case err == io.ErrUnexpectedEOF:
			yield(nil, fmt.Errorf("torn: the file ends with %d bytes of a %d-byte record", n, size))
			return
		case err != nil:
			yield(nil, err)
			return
		}
		if !yield(rec, nil) {
			return
		}
	}
}
