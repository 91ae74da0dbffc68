package trial

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
)

// MinRecord is the size of the smallest record: its stamp at both ends.
const MinRecord = 2 * stampSize

// A stamp is the writer's number and the record's. By it the check finds a record that is
// torn, lost, duplicated, swapped or merged with another.
const stampSize = 8

// patternSize is the number of different filling bytes for each writer, at least one record. It is
// small enough to stay in the cache, and larger than a file system's block, so that the next block
// differs.
const patternSize = 8 << 10

// A source makes the records of one writer. Making one costs two stores, so the
// clock measures writing alone.
type source struct {
	writer  uint32
	next    uint32
	size    int
	at      int    // place of the next record in the pattern
	pattern []byte // whole records, with random filling
}

func newSource(writer, size int) *source {
	slots := max(1, patternSize/size)
	return &source{writer: uint32(writer), size: size, pattern: filling(uint64(writer), slots*size)}
}

// filling returns random bytes that depend only on the seed and the size.
func filling(seed uint64, size int) []byte {
	random := rand.New(rand.NewPCG(seed, uint64(size)))
	b := make([]byte, 0, size+stampSize)
	for len(b) < size {
		b = binary.LittleEndian.AppendUint64(b, random.Uint64())
	}
	return b[:size:size]
}

// head returns the content of a file before the first record, if the file is not new.
func head(size int64) []byte { return filling(headSeed, int(size)) }

// headSeed differs from all writers' numbers.
const headSeed = 1 << 40

// record returns the next record. A later call overwrites it.
func (s *source) record() []byte {
	r := s.pattern[s.at : s.at+s.size : s.at+s.size]
	if s.at += s.size; s.at == len(s.pattern) {
		s.at = 0
	}
	stamp := uint64(s.writer)<<32 | uint64(s.next)
	binary.LittleEndian.PutUint64(r, stamp)
	binary.LittleEndian.PutUint64(r[len(r)-stampSize:], ^stamp)
	s.next++
	return r
}

// A ContentError names the place where a file differs from the written records.
type ContentError struct {
	Offset int64
	Reason string
}

func (e *ContentError) Error() string {
	return fmt.Sprintf("the file differs from the written records: at byte %d %s", e.Offset, e.Reason)
}

// readBytes is the approximate size of a read.
const readBytes = 64 << 10

// verify checks that the file at path holds its head, then every writer's first
// counts[i] records once, complete, in their order, and nothing else. It returns a
// *ContentError with the first byte that is wrong.
func verify(path string, headSize int64, size int, counts []int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	got := make([]byte, headSize)
	if _, err := io.ReadFull(f, got); err != nil && headSize > 0 {
		return &ContentError{0, fmt.Sprintf("the earlier content is incomplete: %v", err)}
	}
	for i, want := range head(headSize) {
		if got[i] != want {
			return &ContentError{int64(i), "the earlier content has changed"}
		}
	}
	return verifyRecords(f, headSize, size, counts)
}

// verifyRecords reads records that begin at byte offset of the file.
func verifyRecords(r io.Reader, offset int64, size int, counts []int64) error {
	sources := make([]*source, len(counts))
	for i := range sources {
		sources[i] = newSource(i, size)
	}
	got := make([]byte, max(1, readBytes/size)*size) // whole records
	for {
		n, err := io.ReadFull(r, got)
		for whole := got[:n-n%size]; len(whole) > 0; whole, offset = whole[size:], offset+int64(size) {
			if reason := check(whole[:size], sources, counts); reason != "" {
				return &ContentError{offset, reason}
			}
		}
		switch {
		case n%size > 0 && errors.Is(err, io.ErrUnexpectedEOF):
			return &ContentError{offset, fmt.Sprintf("the last record has only %d of %d bytes", n%size, size)}
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			for i, s := range sources {
				if int64(s.next) != counts[i] {
					return &ContentError{offset, fmt.Sprintf("the file ends with %d of %d records of writer %d", s.next, counts[i], i)}
				}
			}
			return nil
		case err != nil:
			return fmt.Errorf("read back: %w", err)
		}
	}
}

// check compares a record with the next one of its source, and describes the error.
func check(got []byte, sources []*source, counts []int64) string {
	stamp := binary.LittleEndian.Uint64(got)
	writer, number := stamp>>32, int64(uint32(stamp))
	if writer >= uint64(len(sources)) {
		return "no record begins"
	}
	s := sources[writer]
	switch next := int64(s.next); {
	case number < next:
		return fmt.Sprintf("record %d of writer %d is repeated or too late", number, writer)
	case number > next:
		return fmt.Sprintf("record %d of writer %d is in the place of its record %d", number, writer, next)
	case number >= counts[writer]:
		return fmt.Sprintf("record %d of writer %d was never written", number, writer)
	}
	if !bytes.Equal(got, s.record()) {
		return fmt.Sprintf("record %d of writer %d has wrong bytes", number, writer)
	}
	return ""
}
