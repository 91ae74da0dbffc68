package study

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"github.com/holdfast-go/holdfast/internal/trial"
)

// A copySource is what is copied: random bytes, the same for a seed, in a file for each
// size that all trials read.
type copySource struct {
	seed  [32]byte
	salt  maphash.Seed
	known map[int64]uint64 // sums, by size
}

func newCopySource(seed uint64) *copySource {
	s := &copySource{salt: maphash.MakeSeed(), known: map[int64]uint64{}}
	binary.LittleEndian.PutUint64(s.seed[:], seed)
	return s
}

// sourceName is the name of the source of that size, from which the trials read: beside
// the path of a trial, for a bfs has no folders, and of at most 14 bytes for the same
// reason.
func sourceName(size int64) string { return "s-" + strconv.FormatInt(size, 10) }

// sourceOf is where a trial at path finds its source.
func sourceOf(path string, size int64) string {
	return filepath.Join(filepath.Dir(path), sourceName(size))
}

// make makes the source of that size beside path, if it is not there yet.
func (s *copySource) make(path string, size int64) error {
	err := s.write(sourceOf(path, size), size)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

func (s *copySource) write(path string, size int64) error {
	random := rand.NewChaCha8(s.seed)
	return trial.NewFile(path, size, func(block []byte) { _, _ = random.Read(block) }) // it never fails
}

// block is the source's beginning.
func (s *copySource) block(size int64) []byte {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8(s.seed).Read(b)
	return b
}

// A fileSum is what a file of known content has to be.
type fileSum struct {
	size int64
	salt maphash.Seed
	sum  uint64
}

// sum is that of the source's first bytes.
func (s *copySource) sum(size int64) fileSum {
	sum, ok := s.known[size]
	if !ok {
		sum, _, _ = sumOf(io.LimitReader(rand.NewChaCha8(s.seed), size), s.salt) // it never fails
		s.known[size] = sum
	}
	return fileSum{size, s.salt, sum}
}

// repeatedSum is that of the block, over and over.
func repeatedSum(block []byte, size int64) fileSum {
	salt := maphash.MakeSeed()
	var h maphash.Hash
	h.SetSeed(salt)
	many := make([]byte, 0, max(len(block), 64<<10))
	for len(many)+len(block) <= cap(many) {
		many = append(many, block...)
	}
	for left := size; left > 0; left -= int64(len(many)) {
		_, _ = h.Write(many[:min(left, int64(len(many)))])
	}
	return fileSum{size, salt, h.Sum64()}
}

func sumOf(r io.Reader, salt maphash.Seed) (sum uint64, size int64, err error) {
	var h maphash.Hash
	h.SetSeed(salt)
	size, err = io.CopyBuffer(struct{ io.Writer }{&h}, r, make([]byte, 256<<10))
	return h.Sum64(), size, err
}

// holdsSum reads the file at path, which has to be what was summed up.
func holdsSum(path string, want fileSum) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	sum, size, err := sumOf(struct{ io.Reader }{f}, want.salt)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if size != want.size || sum != want.sum {
		return &trial.ContentError{Reason: fmt.Sprintf("the %d bytes that were written are not the %d of the source", size, want.size)}
	}
	return nil
}
