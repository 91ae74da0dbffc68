package reads

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/probe"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// A readText is the file's content: lines like the study lines', over and over, and a newline at
// the end. How often they come again is no power of two, so that no block is like another.
type readText struct {
	size    int64
	pattern []byte
	known   map[string]digest
}

// at fills block with the file's bytes from offset on.
func (t *readText) at(offset int64, block []byte) {
	for n := 0; n < len(block); {
		n += copy(block[n:], t.pattern[(offset+int64(n))%int64(len(t.pattern)):])
	}
	if end := t.size - 1 - offset; 0 <= end && end < int64(len(block)) {
		block[end] = '\n'
	}
}

// make makes the file at path. It is a link to the one file in the same directory
// for all trials, which the first of them writes. Where there are no links, it is
// written anew.
func (t *readText) make(path string) error {
	shared := filepath.Join(filepath.Dir(path), fmt.Sprintf("read-by-all-%d", t.size))
	err := os.Link(shared, path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := t.write(shared); err != nil {
			return err
		}
		err = os.Link(shared, path)
	}
	if err != nil {
		return t.write(path)
	}
	return nil
}

func (t *readText) write(path string) error {
	offset := int64(0)
	return trial.NewFile(path, t.size, func(block []byte) {
		t.at(offset, block)
		offset += int64(len(block))
	})
}

// A digest summarizes the bytes of a reading: sums, and the number of blocks that they cover.
type digest struct {
	sum, sums uint64
	units     int64 // bytes, or lines
}

// A kind says what a reading sums up.
type kind int

const (
	byBlock  kind = iota // CRC-32 over all bytes
	byLine               // CRC-32 over all bytes but the newlines, and the number of lines
	byByte               // two running sums over the bytes
	bySHA256             // the beginning of SHA-256 over all bytes
)

// castagnoli is the polynomial that processors have an instruction for. Its tables are made
// at the first use, not at the start of every command.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

func (d *digest) block(p []byte) {
	d.sum = uint64(crc32.Update(uint32(d.sum), castagnoli(), p))
	d.units += int64(len(p))
}

// line takes a line without its newline.
func (d *digest) line(p []byte) {
	d.sum = uint64(crc32.Update(uint32(d.sum), castagnoli(), p))
	d.units++
}

func (d *digest) byte(b byte) {
	d.sum += uint64(b)
	d.sums += d.sum
	d.units++
}

// want returns the digest of the file's first n bytes.
func (t *readText) want(n int64, k kind) digest {
	key := fmt.Sprint(n, " ", k)
	d, ok := t.known[key]
	if !ok {
		d = t.compute(n, k)
		t.known[key] = d
	}
	return d
}

func (t *readText) compute(n int64, k kind) digest {
	var d digest
	sha := newSHA256()
	block := make([]byte, 256<<10)
	for offset := int64(0); offset < n; offset += int64(len(block)) {
		block = block[:min(int64(len(block)), n-offset)]
		t.at(offset, block)
		switch k {
		case byBlock:
			d.block(block)
		case bySHA256:
			sha.block(block)
		case byLine:
			lines := d.units + int64(bytes.Count(block, newline))
			d.block(bytes.ReplaceAll(block, newline, nil))
			d.units = lines
		case byByte:
			for _, b := range block {
				d.byte(b)
			}
		}
	}
	if k == bySHA256 {
		return sha.seen()
	}
	return d
}

var newline = []byte{'\n'}

// A consumer computes something of the blocks that it is given.
type consumer interface {
	block(p []byte)
	seen() digest
}

func (d *digest) seen() digest { return *d }

// A shaDigest takes some ten times as long for a byte as the other sums.
type shaDigest struct {
	hash.Hash
	units int64
}

func newSHA256() *shaDigest { return &shaDigest{Hash: sha256.New()} }

func (d *shaDigest) block(p []byte) {
	d.Write(p)
	d.units += int64(len(p))
}

func (d *shaDigest) seen() digest {
	return digest{sum: binary.LittleEndian.Uint64(d.Sum(nil)), units: d.units}
}

// task reads, and compares the digest with the written bytes' digest.
func (r fileReading) task(text *readText) trial.Task {
	var seen digest
	do := func(_ context.Context, c *trial.Clock) error {
		f, err := os.Open(c.Path)
		if err != nil {
			return err
		}
		if r.access != probe.Normal {
			err = probe.AdviseAccess(f, r.access)
		}
		c.Lap(trial.Open)
		if err != nil {
			return errors.Join(err, f.Close())
		}
		seen, err = r.run(f, r.bytes)
		c.Lap(trial.Read)
		return err
	}
	check := func(string) error {
		if want := text.want(r.bytes, r.kind); seen != want {
			return &trial.ContentError{Reason: fmt.Sprintf("and on, a reader saw %+v, not %+v", seen, want)}
		}
		return nil
	}
	return trial.Task{Make: text.make, Cache: r.cache, Do: do, Check: check}
}
