package trial

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
)

const testSize = 24

// records returns the records of two writers: three of the first, two of the second.
func records() [][]byte {
	a, b := newSource(0, testSize), newSource(1, testSize)
	var list [][]byte
	for _, s := range []*source{a, b, a, b, a} {
		list = append(list, slices.Clone(s.record()))
	}
	return list
}

func TestVerifyAcceptsAnyInterleaving(t *testing.T) {
	r := records()
	for _, order := range [][]int{{0, 1, 2, 3, 4}, {0, 2, 4, 1, 3}, {1, 3, 0, 2, 4}} {
		var file []byte
		for _, i := range order {
			file = append(file, r[i]...)
		}
		if err := verifyRecords(bytes.NewReader(file), 0, testSize, []int64{3, 2}); err != nil {
			t.Errorf("order %v: %v", order, err)
		}
	}
}

// TestVerifyCatches damages a correct file in every way that a writer could.
func TestVerifyCatches(t *testing.T) {
	check := func(name, want string, harm func(r [][]byte) [][]byte) {
		t.Helper()
		file := bytes.Join(harm(records()), nil)
		err := verifyRecords(bytes.NewReader(file), 0, testSize, []int64{3, 2})
		var content *ContentError
		if !errors.As(err, &content) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	check("lost in the middle", "record 2 of writer 0 is in the place of its record 1", func(r [][]byte) [][]byte { return slices.Delete(r, 2, 3) })
	check("lost at the end", "the file ends with 2 of 3 records of writer 0", func(r [][]byte) [][]byte { return r[:4] })
	check("lost all of a writer", "record 1 of writer 1", func(r [][]byte) [][]byte { return append(r[:1], r[2:]...) })
	check("empty", "with 0 of 3 records of writer 0", func([][]byte) [][]byte { return nil })
	check("doubled", "record 1 of writer 0 is repeated", func(r [][]byte) [][]byte { return slices.Insert(r, 3, r[2]) })
	check("swapped", "record 1 of writer 0 is in the place of its record 0", func(r [][]byte) [][]byte { r[0], r[2] = r[2], r[0]; return r })
	check("torn at the end", "the last record has only 23 of 24 bytes", func(r [][]byte) [][]byte { r[4] = r[4][:23]; return r })
	check("one byte lost in the middle", "wrong bytes", func(r [][]byte) [][]byte { r[2] = r[2][:23]; return r })
	check("one record too many", "record 2 of writer 1 was never written", func(r [][]byte) [][]byte {
		s := newSource(1, testSize)
		s.record()
		s.record()
		return append(r, s.record())
	})
	check("a stranger's bytes", "no record begins", func(r [][]byte) [][]byte { return append(r, bytes.Repeat([]byte("x"), testSize)) })
	check("zeros", "is repeated", func(r [][]byte) [][]byte { r[4] = make([]byte, testSize); return r })
	check("two records mixed", "wrong bytes", func(r [][]byte) [][]byte {
		copy(r[2][12:], r[3][12:])
		return r
	})
	for at := range testSize {
		check("a flipped bit", "the file differs from the written records: at byte 48", func(r [][]byte) [][]byte { r[2][at] ^= 1; return r })
	}
}

func TestRecordsDifferInMoreThanTheirStamps(t *testing.T) {
	s := newSource(0, 128)
	first := slices.Clone(s.record())
	if bytes.Equal(first[stampSize:128-stampSize], s.record()[stampSize:128-stampSize]) {
		t.Error("two records in a row have the same filling: a file system that compresses would be flattered")
	}
}

func TestRecordOfTheSmallestAndLargestSize(t *testing.T) {
	for _, size := range []int{MinRecord, MinRecord + 1, patternSize - 1, patternSize, patternSize + 1, 1 << 20} {
		s := newSource(3, size)
		var file []byte
		for range 3 {
			file = append(file, s.record()...)
		}
		if err := verifyRecords(bytes.NewReader(file), 0, size, []int64{0, 0, 0, 3}); err != nil {
			t.Errorf("records of %d bytes: %v", size, err)
		}
	}
}
