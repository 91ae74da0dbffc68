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

	"github.com/holdfast-go/holdfast/internal/trial"
)

// A copySource is what is copied: random bytes, the same for a seed, in a file for each
// size that all trials read through links of their own.
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

// make makes a folder with a link to the source of that size, which the first trial
// writes. Where there are no links, it is written anew.
func (s *copySource) make(path string, size int64) error {
	if err := os.Mkdir(path, 0o777); err != nil {
		return err
	}
	shared, own := filepath.Join(filepath.Dir(path), fmt.Sprintf("read-by-all-%d", size)), filepath.Join(path, copyFrom)
	err := os.Link(shared, own)
	if errors.Is(err, fs.ErrNotExist) {
		if err := s.write(shared, size); err != nil {
			return err
		}
		err = os.Link(shared, own)
	}
	if err != nil {
		return s.write(own, size)
	}
	return nil
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
