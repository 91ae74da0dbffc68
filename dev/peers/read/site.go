package read

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"

	"github.com/holdfast-go/holdfast/cmd/internal/lab/cstdio"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// A site is the file that all read, and its expected results.
type site struct {
	path string
	size int
	data []byte
	want map[string]result // by the kind of work
}

// A result is an arm's answer about the file, alike for all arms of a group.
type result struct{ a, b uint64 }

const line = "2026-01-02T03:04:05Z a line of a log that is as long as many of them are\n"

// newSite makes a file of lines with different numbers, all of it on the disk: a page that
// waits to be written can't be evicted.
func newSite(dir string, size int) (*site, error) {
	data := make([]byte, 0, size+2*len(line))
	for i := 0; len(data) < size; i++ {
		data = fmt.Appendf(data, "%d %s", i, line)
	}
	data = data[:size]
	s := &site{path: filepath.Join(dir, "lines"), size: size, data: data}
	s.want = map[string]result{"bytes": sumOf(data), "lines": linesOf(data), "blocks": {a: uint64(crc32.ChecksumIEEE(data))}}
	s.want["read"] = s.want["blocks"]
	return s, s.write()
}

func (s *site) write() error {
	f, err := os.OpenFile(s.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(s.data)
	return errors.Join(err, f.Sync(), f.Close())
}

func sumOf(data []byte) result {
	var s cstdio.Sum
	for _, b := range data {
		s.Add(b)
	}
	return result{s.Ones, s.Twos}
}

func linesOf(data []byte) (r result) {
	for l := range bytes.Lines(data) {
		r.line(bytes.TrimSuffix(l, []byte("\n")))
	}
	return r
}

// line counts in a line, by its number, its length and its last byte.
func (r *result) line(l []byte) {
	r.a++
	if n := uint64(len(l)); n > 0 {
		r.b = r.b*31 + n + uint64(l[n-1])<<8 + uint64(l[0])<<16
	}
}

// prepare brings the page cache into the state that is asked for. Where the
// kernel still holds a page after somebody mapped the file, a new one takes its
// place.
func (s *site) prepare(cold bool) error {
	if !cold {
		_, err := os.ReadFile(s.path)
		return err
	}
	if stayed, err := s.evict(); err != nil || stayed == 0 {
		return err
	}
	if err := errors.Join(os.Remove(s.path), s.write()); err != nil {
		return err
	}
	stayed, err := s.evict()
	if err == nil && stayed > 0 {
		err = fmt.Errorf("the file is not cold: %d of its pages are in the page cache; choose a disk with -dir", stayed)
	}
	return err
}

// evict returns how many pages stayed in the page cache.
func (s *site) evict() (stayed int64, err error) {
	f, err := os.Open(s.path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if err := sys.Evict(f); err != nil {
		return 0, err
	}
	r, err := sys.PageCache(f)
	return r.Resident, err
}
