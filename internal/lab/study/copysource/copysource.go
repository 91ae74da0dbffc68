// Package copysource has what the studies of copies copy: random bytes of a seed, and the
// sums that say whether a copy is right.
//
// Start with [New].
package copysource

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
	"time"

	"github.com/holdfast-go/holdfast/internal/lab/trial"
)

// A Source is what is copied: random bytes, the same for a seed, in a file for each
// size that all trials read.
type Source struct {
	Seed  [32]byte
	salt  maphash.Seed
	known map[int64]uint64 // sums, by size
}

// New returns the source of a seed.
func New(seed uint64) *Source {
	s := &Source{salt: maphash.MakeSeed(), known: map[int64]uint64{}}
	binary.LittleEndian.PutUint64(s.Seed[:], seed)
	return s
}

// Name is the name of the source of that size, from which the trials read: beside
// the path of a trial, for a bfs has no directories, and of at most 14 bytes for the same
// reason.
func Name(size int64) string { return "s-" + strconv.FormatInt(size, 10) }

// Of is where a trial at path finds its source.
func Of(path string, size int64) string {
	return filepath.Join(filepath.Dir(path), Name(size))
}

// Make makes the source of that size beside path, if it is not there yet.
func (s *Source) Make(path string, size int64) error {
	random := rand.NewChaCha8(s.Seed)
	err := trial.NewFile(Of(path, size), size, func(block []byte) { _, _ = random.Read(block) }) // it never fails
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// Block is the source's beginning.
func (s *Source) Block(size int64) []byte {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8(s.Seed).Read(b)
	return b
}

// A Sum is what a file of known content has to be.
type Sum struct {
	size int64
	salt maphash.Seed
	sum  uint64
}

// Sum is that of the source's first bytes.
func (s *Source) Sum(size int64) Sum {
	sum, ok := s.known[size]
	if !ok {
		sum, _, _ = sumOf(io.LimitReader(rand.NewChaCha8(s.Seed), size), s.salt) // it never fails
		s.known[size] = sum
	}
	return Sum{size, s.salt, sum}
}

// Repeated is that of the block, over and over.
func Repeated(block []byte, size int64) Sum {
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
	return Sum{size, salt, h.Sum64()}
}

func sumOf(r io.Reader, salt maphash.Seed) (sum uint64, size int64, err error) {
	var h maphash.Hash
	h.SetSeed(salt)
	size, err = io.CopyBuffer(struct{ io.Writer }{&h}, r, make([]byte, 256<<10))
	return h.Sum64(), size, err
}

// Holds reads the file at path, which has to be what was summed up.
func Holds(path string, want Sum) error {
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

// Start is what a trial of a copy takes for the plan before its first byte: garbage, links, settling.
const Start = 15 * time.Millisecond

// PerByte is the nanoseconds of a byte that is copied, its memory prepared, evicted and compared.
const PerByte = 3
