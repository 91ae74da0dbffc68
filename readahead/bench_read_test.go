package readahead_test

import (
	"bufio"
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/readahead"
)

// readBytes is how long the file is that BenchmarkRead reads: b.N counts files.
const readBytes = 64 << 20

// A readArm reads all of f and returns the sum that the arms of its kind must
// agree on.
type readArm struct {
	name string
	read func(b *testing.B, f *os.File) uint32
}

// BenchmarkReadBytes times a look at each byte of a file in the page cache.
func BenchmarkReadBytes(b *testing.B) {
	benchmarkRead(b, false, []readArm{
		{"bufio=4KiB", func(b *testing.B, f *os.File) (sum uint32) {
			r := bufio.NewReader(f)
			for {
				c, err := r.ReadByte()
				if err != nil {
					return sum
				}
				sum += uint32(c)
			}
		}},
		{"holdfast/ReadByte", func(b *testing.B, f *os.File) (sum uint32) {
			r := readahead.NewReader(f, readahead.Options{})
			for {
				c, err := r.ReadByte()
				if err != nil {
					return sum
				}
				sum += uint32(c)
			}
		}},
		{"holdfast/Bytes", func(b *testing.B, f *os.File) (sum uint32) {
			r := readahead.NewReader(f, readahead.Options{})
			for c := range r.Bytes() {
				sum += uint32(c)
			}
			return sum
		}},
	})
}

// BenchmarkReadLines times lines of a file in the page cache.
func BenchmarkReadLines(b *testing.B) {
	benchmarkRead(b, false, []readArm{
		{"bufio.Scanner", func(b *testing.B, f *os.File) (sum uint32) {
			for s := bufio.NewScanner(f); s.Scan(); {
				sum += uint32(len(s.Bytes())) + 1
			}
			return sum
		}},
		{"holdfast/ReadLine", func(b *testing.B, f *os.File) (sum uint32) {
			r := readahead.NewReader(f, readahead.Options{})
			for {
				line, err := r.ReadLine()
				if err != nil {
					return sum
				}
				sum += uint32(len(line)) + 1
			}
		}},
		{"holdfast/Lines", func(b *testing.B, f *os.File) (sum uint32) {
			r := readahead.NewReader(f, readahead.Options{})
			for line, err := range r.Lines() {
				if err != nil {
					b.Error(err)
				}
				sum += uint32(len(line)) + 1
			}
			return sum
		}},
	})
}

// BenchmarkReadBlocks times a checksum over a file in the page cache, and over one
// that is not there.
func BenchmarkReadBlocks(b *testing.B) {
	arms := []readArm{
		{"bufio=4KiB", crcOfReads(4<<10, func(f *os.File) io.Reader { return bufio.NewReader(f) })},
		{"bufio=64KiB", crcOfReads(64<<10, func(f *os.File) io.Reader { return bufio.NewReaderSize(f, 64<<10) })},
	}
	for _, block := range []int{16 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20} {
		arms = append(arms, readArm{fmt.Sprintf("read(2)=%v", holdfast.Size(block)), crcOfReads(block, func(f *os.File) io.Reader { return f })})
	}
	for _, o := range []readahead.Options{
		{},
		{Buffer: 64 * holdfast.KiB},
		{Buffer: 128 * holdfast.KiB},
		{Buffer: holdfast.MiB},
		{ReadAhead: readahead.Never},
		{ReadAhead: readahead.Always},
		{DropBehind: true},
	} {
		name := fmt.Sprintf("holdfast/buffer=%v,ahead=%d,drop=%v", o.Buffer, o.ReadAhead, o.DropBehind)
		arms = append(arms, readArm{name, func(b *testing.B, f *os.File) (sum uint32) {
			r := readahead.NewReader(f, o)
			for block, err := range r.Blocks() {
				if err != nil {
					b.Error(err)
				}
				sum = crc32.Update(sum, crc32.IEEETable, block)
			}
			return sum
		}})
	}
	b.Run("warm", func(b *testing.B) { benchmarkRead(b, false, arms) })
	b.Run("cold", func(b *testing.B) { benchmarkRead(b, true, arms) })
}

// crcOfReads reads by Reads of size bytes.
func crcOfReads(size int, open func(*os.File) io.Reader) func(*testing.B, *os.File) uint32 {
	return func(b *testing.B, f *os.File) (sum uint32) {
		r, p := open(f), make([]byte, size)
		for {
			n, err := r.Read(p)
			sum = crc32.Update(sum, crc32.IEEETable, p[:n])
			if err != nil {
				return sum
			}
		}
	}
}

// benchmarkRead runs the arms on one file of lines. A cold one has no page in the
// page cache, or the benchmark fails.
func benchmarkRead(b *testing.B, cold bool, arms []readArm) {
	path := filepath.Join(b.TempDir(), "lines")
	line := []byte("2026-01-02T03:04:05Z a log line that is seventy-two bytes long, no less\n")
	if err := os.WriteFile(path, bytes.Repeat(line, readBytes/len(line)), 0o666); err != nil {
		b.Fatal(err)
	}
	f := openForRead(b, path, false)
	want := arms[0].read(b, f) // here, so that any arm can be run alone
	f.Close()
	for _, arm := range arms {
		b.Run(arm.name, func(b *testing.B) {
			b.SetBytes(readBytes / int64(len(line)) * int64(len(line)))
			b.ReportAllocs()
			for range b.N {
				b.StopTimer()
				f := openForRead(b, path, cold)
				b.StartTimer()
				if sum := arm.read(b, f); sum != want {
					b.Errorf("sum = %#x, want %#x", sum, want)
				}
				b.StopTimer()
				f.Close()
				b.StartTimer()
			}
		})
	}
}

func openForRead(b *testing.B, path string, cold bool) *os.File {
	f, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	if !cold {
		return f
	}
	if err := sys.Evict(f); err != nil {
		b.Skipf("there is no cold file here: %v", err)
	}
	if r, err := sys.PageCache(f); err != nil || r.Resident > 0 {
		b.Skipf("there is no cold file here: %d pages stayed, err = %v", r.Resident, err)
	}
	return f
}
