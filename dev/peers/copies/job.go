package copies

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// A job is files to copy.
type job struct {
	name, title string
	files       int
	dirs        int   // that the files are in, side by side; 0 is the source's own
	size        int64 // of each
	data        int64 // of each; less than its size where it has holes
	durable     bool  // the copies, with their names
	alone       bool  // each file is copied by a call of its own
}

const kib, mib, gib = 1 << 10, 1 << 20, 1 << 30

func jobs(quick bool) []job {
	large, sparse, many, durable := int64(256*mib), int64(4*gib), 20_000, 1000
	if quick {
		large, sparse, many, durable = 32*mib, 64*mib, 1000, 100
	}
	return []job{
		{name: "1KiB", title: "200 files of 1 KiB, each by itself", files: 200, size: kib, data: kib, alone: true},
		{name: "1MiB", title: "20 files of 1 MiB, each by itself", files: 20, size: mib, data: mib, alone: true},
		{name: "256MiB", title: fmt.Sprintf("a file of %d MiB", large/mib), files: 1, size: large, data: large, alone: true},
		{name: "sparse", title: fmt.Sprintf("a file of %d MiB with 64 pieces of 64 KiB and holes between them", sparse/mib), files: 1, size: sparse, data: 4 * mib, alone: true},
		{name: "tree", title: fmt.Sprintf("%d files of 2 KiB in 100 directories", many), files: many, dirs: 100, size: 2 * kib, data: 2 * kib},
		{name: "directory", title: fmt.Sprintf("%d files of 2 KiB in one directory", many/4), files: many / 4, size: 2 * kib, data: 2 * kib},
		{name: "durable", title: fmt.Sprintf("%d files of 4 KiB in one directory, all of them durable, their names too", durable), files: durable, size: 4 * kib, data: 4 * kib, durable: true},
	}
}

func (j job) bytes() int64 { return int64(j.files) * max(j.data, 4*kib) }

// paths returns the paths of its files in a directory.
func (j job) paths(dir string) []string {
	paths := make([]string, j.files)
	for i := range paths {
		sub := ""
		if j.dirs > 0 {
			sub = fmt.Sprintf("%03d", i%j.dirs)
		}
		paths[i] = filepath.Join(dir, sub, fmt.Sprintf("file-%05d", i))
	}
	return paths
}

// lay makes the files to copy.
func (j job) lay(dir string) error {
	random := rand.NewChaCha8([32]byte{byte(len(j.name))})
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for i := range j.dirs {
		if err := os.Mkdir(filepath.Join(dir, fmt.Sprintf("%03d", i)), 0o777); err != nil {
			return err
		}
	}
	for _, path := range j.paths(dir) {
		if err := j.layFile(path, random); err != nil {
			return err
		}
	}
	return nil
}

// pieceSize is how long a piece of data is that holes surround.
const pieceSize = 64 * kib

func (j job) layFile(path string, random io.Reader) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if j.data == j.size {
		_, err = io.CopyN(f, random, j.size)
		return err
	}
	pieces := j.data / pieceSize
	for i := range pieces {
		if _, err := f.Seek(j.size/pieces*i+pieceSize, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.CopyN(f, random, pieceSize); err != nil {
			return err
		}
	}
	return f.Truncate(j.size)
}

// verify compares the copies with their sources, and counts them.
func (j job) verify(from, to string) error {
	copies := j.paths(to)
	for i, path := range j.paths(from) {
		if err := j.same(path, copies[i]); err != nil {
			return err
		}
	}
	found := 0
	err := filepath.WalkDir(to, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			found++
		}
		return err
	})
	if err == nil && found != j.files {
		err = fmt.Errorf("there are %d copies, and %d were to be made", found, j.files)
	}
	return err
}

func (j job) same(a, b string) error {
	copied, err := os.Stat(b)
	if err != nil {
		return err
	}
	if copied.Size() != j.size {
		return fmt.Errorf("%s has %d bytes, its source has %d", filepath.Base(b), copied.Size(), j.size)
	}
	if used, ok := allocated(copied); ok && j.data < j.size && used > 3*j.data {
		return fmt.Errorf("%w: the copy takes %d bytes on the disk for %d bytes of data", errFilled, used, j.data)
	}
	if j.data < j.size {
		return j.samePieces(a, b)
	}
	return sameFrom(a, b, 0, j.size)
}

// errFilled says that holes became data.
var errFilled = errors.New("its holes are filled")

func (j job) samePieces(a, b string) error {
	pieces := j.data / pieceSize
	for i := range pieces {
		at := j.size/pieces*i + pieceSize
		if err := sameFrom(a, b, at-pieceSize, 3*pieceSize); err != nil {
			return err
		}
	}
	return nil
}

// sameFrom compares a part of two files.
func sameFrom(a, b string, at, size int64) error {
	x, err := os.Open(a)
	if err != nil {
		return err
	}
	defer x.Close()
	y, err := os.Open(b)
	if err != nil {
		return err
	}
	defer y.Close()
	p, q := make([]byte, min(size, mib)), make([]byte, min(size, mib))
	for end := at + size; at < end; at += int64(len(p)) {
		p, q = p[:min(int64(len(p)), end-at)], q[:min(int64(len(p)), end-at)]
		_, errX := x.ReadAt(p, at)
		_, errY := y.ReadAt(q, at)
		if err := errors.Join(errX, errY); err != nil {
			return err
		}
		if !bytes.Equal(p, q) {
			return fmt.Errorf("%s differs from its source within %d bytes from byte %d on", filepath.Base(b), len(p), at)
		}
	}
	return nil
}
