package fsync

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
	"unsafe"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// A loop writes the same block of a file again and again.
type loop struct {
	flags int  // of open(2)
	sync  bool // fdatasync(2) after each write
}

func (l loop) try(ctx context.Context, s *site) (sample, error) {
	return s.inDir(func(dir string) (sample, error) {
		path := filepath.Join(dir, "data")
		if err := allocate(path); err != nil {
			return sample{}, err
		}
		f, err := os.OpenFile(path, os.O_WRONLY|l.flags, 0)
		if err != nil {
			return sample{}, err
		}
		block := alignedBlock()
		taken, err := l.overwrite(ctx, f, block, s.length)
		if err := errors.Join(err, f.Close()); err != nil {
			return sample{}, err
		}
		return taken, verify(path, block)
	})
}

// allocate makes a file of random bytes that is on the disk.
func allocate(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	for range fileBytes / blockBytes {
		if _, err := f.Write(alignedBlock()); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return errors.Join(f.Sync(), f.Close())
}

// pageBytes is the alignment that O_DIRECT asks for at most.
const pageBytes = 4 << 10

// alignedBlock returns a block of random bytes that O_DIRECT takes.
func alignedBlock() []byte {
	b := make([]byte, blockBytes+pageBytes)
	skip := -int(uintptr(unsafe.Pointer(&b[0]))) & (pageBytes - 1)
	b = b[skip : skip+blockBytes]
	for i := 0; i < len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], rand.Uint64())
	}
	return b
}

// overwrite goes on for length. The number at the block's beginning makes each write differ
// from the one before.
func (l loop) overwrite(ctx context.Context, f *os.File, block []byte, length time.Duration) (sample, error) {
	handle, err := sys.NewHandle(f)
	if err != nil {
		return sample{}, err
	}
	var n int64
	var writing time.Duration
	begun := time.Now()
	now := begun
	for now.Sub(begun) < length && ctx.Err() == nil {
		n++
		binary.LittleEndian.PutUint64(block, uint64(n))
		if _, err := f.WriteAt(block, 0); err != nil {
			return sample{}, err
		}
		written := time.Now()
		writing += written.Sub(now)
		now = written
		if !l.sync {
			continue
		}
		if err := handle.Datasync(); err != nil {
			return sample{}, err
		}
		now = time.Now()
	}
	taken := sample{Units: int(n), Elapsed: now.Sub(begun), Write: mean(writing, n)}
	if l.sync {
		taken.Sync = mean(taken.Elapsed-writing, n)
	}
	return taken, ctx.Err()
}

// verify wants the last block that was written at the begin of the file, and the
// file as long as it was.
func verify(path string, block []byte) error {
	got, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if len(got) != fileBytes || !bytes.Equal(got[:blockBytes], block) {
		return fmt.Errorf("%s is not what was written: %d bytes", filepath.Base(path), len(got))
	}
	return nil
}
