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

	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// A Source is the input of copies: random bytes, the same for a seed, in one file for each size,
// which all trials read.
type Source struct {
	Seed [32]byte

	// File is the path of a file that has the bytes instead; it must not change during the
	// run. Empty: they are random.
	File string

	salt  maphash.Seed
	known map[int64]uint64 // sums, by size
}

// New returns the source of a seed.
func New(seed uint64) *Source {
	s := &Source{salt: maphash.MakeSeed(), known: map[int64]uint64{}}
	binary.LittleEndian.PutUint64(s.Seed[:], seed)
	return s
}

// Name is the name of the source of that size, from which the trials read. It stands
// beside the path of a trial, because a bfs has no directories. It has at most 14 bytes:
// a bfs allows no more (linux/bfs_fs.h).
func Name(size int64) string { return "s-" + strconv.FormatInt(size, 10) }

// Of is where a trial at path finds its source.
func Of(path string, size int64) string {
	return filepath.Join(filepath.Dir(path), Name(size))
}

// Make makes the source of that size beside path, if it is not there yet.
func (s *Source) Make(path string, size int64) error {
	from, err := s.open()
	if err != nil {
		return err
	}
	var readErr error
	err = trial.NewFile(Of(path, size), size, func(block []byte) {
		if _, err := io.ReadFull(from, block); err != nil && readErr == nil {
			readErr = fmt.Errorf("read %d bytes of the source %s: %w", size, s.File, err)
		}
	})
	if errors.Is(err, fs.ErrExist) {
		return from.Close()
	}
	if readErr != nil {
		err = errors.Join(readErr, err, os.Remove(Of(path, size)))
	}
	return errors.Join(err, from.Close())
}

// open opens what has the bytes.
func (s *Source) open() (io.ReadCloser, error) {
	if s.File != "" {
		return os.Open(s.File)
	}
	return io.NopCloser(rand.NewChaCha8(s.Seed)), nil
}

// Block is the source's beginning.
func (s *Source) Block(size int64) []byte {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8(s.Seed).Read(b)
	return b
}

// A Sum is the size and checksum that a file of known content must have.
type Sum struct {
	size int64
	salt maphash.Seed
	sum  uint64
	err  error // why it is not known
}

// Sum returns the sum of the source's first size bytes.
func (s *Source) Sum(size int64) Sum {
	if sum, ok := s.known[size]; ok {
		return Sum{size, s.salt, sum, nil}
	}
	from, err := s.open()
	if err != nil {
		return Sum{err: err}
	}
	sum, _, err := sumOf(io.LimitReader(from, size), s.salt)
	if err = errors.Join(err, from.Close()); err == nil {
		s.known[size] = sum
	}
	return Sum{size, s.salt, sum, err}
}

// Repeated returns the sum of size bytes that repeat the block.
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
	return Sum{size, salt, h.Sum64(), nil}
}

func sumOf(r io.Reader, salt maphash.Seed) (sum uint64, size int64, err error) {
	var h maphash.Hash
	h.SetSeed(salt)
	size, err = io.CopyBuffer(struct{ io.Writer }{&h}, r, make([]byte, 256<<10))
	return h.Sum64(), size, err
}

// Holds reads the file at path and compares its sum with the source's.
func Holds(path string, want Sum) error {
	if want.err != nil {
		return want.err
	}
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

// Start is the plan's estimate of a copy trial's time before its first byte: garbage, links, settling.
const Start = 15 * time.Millisecond

// PerByte is the nanoseconds of a byte that is copied, its memory prepared, evicted and compared.
const PerByte = 3
