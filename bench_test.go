//go:build go1.25

package holdfast_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// BenchmarkWrite times a 40-byte Write until all is in the page cache, against
// bufio in the same run. The flush and the close are in the clock.
func BenchmarkWrite(b *testing.B) {
	record := []byte("2026-01-02T03:04:05Z a log line of 40 B\n")
	for _, goroutines := range []int{1, 2, 8, 64} {
		run := func(name string, open func(path string) (sink, error)) {
			b.Run(fmt.Sprintf("%s/goroutines=%d", name, goroutines), func(b *testing.B) {
				benchmarkSink(b, record, goroutines, open)
			})
		}
		for _, size := range []holdfast.Size{4 * holdfast.KiB, 64 * holdfast.KiB, 256 * holdfast.KiB} {
			run(fmt.Sprintf("policy=%v", holdfast.Buffered(size)), openHoldfast(holdfast.Buffered(size)))
			run(fmt.Sprintf("bufio=%v", size), openBufio(size, goroutines > 1))
		}
		run("policy=buffer=256KiB,flush=100ms,sync=1s", openHoldfast(holdfast.Policy{Buffer: 256 * holdfast.KiB, FlushEvery: 1e8, Sync: holdfast.SyncEvery(1e9)}))
		run("policy=buffer=0,sync=never", openHoldfast(holdfast.Unbuffered()))
		run("osfile", func(path string) (sink, error) { return os.Create(path) })
	}
}

// BenchmarkDurable times a 128-byte Write that returns when it is durable,
// against a bare loop (and a mutex around it) of write and fdatasync.
func BenchmarkDurable(b *testing.B) {
	record := make([]byte, 128)
	for _, goroutines := range []int{1, 8, 64} {
		run := func(name string, open func(path string) (sink, error)) {
			b.Run(fmt.Sprintf("%s/goroutines=%d", name, goroutines), func(b *testing.B) {
				benchmarkSink(b, record, goroutines, open)
			})
		}
		run("policy="+holdfast.Durable().String(), openHoldfast(holdfast.Durable()))
		run("policy="+holdfast.EachDurable().String(), openHoldfast(holdfast.EachDurable()))
		run("fdatasync", openFdatasync)
	}
}

// BenchmarkShortLived times the whole life of a file of 20,000 Writes of 4 bytes.
func BenchmarkShortLived(b *testing.B) {
	benchmarkLives(b, []byte("four"), 20_000, 16*holdfast.KiB)
}

// BenchmarkSmallBuffer times the whole life of a file of 100,000 lines.
func BenchmarkSmallBuffer(b *testing.B) {
	benchmarkLives(b, []byte("2026-01-02T03:04:05Z a log line of 40 B\n"), 100_000, 4*holdfast.KiB)
}

func benchmarkLives(b *testing.B, record []byte, records int, buffer holdfast.Size) {
	run := func(name string, open func(path string) (sink, error)) {
		b.Run(name, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "file")
			b.SetBytes(int64(records * len(record)))
			b.ReportAllocs()
			for b.Loop() {
				s, err := open(path)
				if err != nil {
					b.Fatal(err)
				}
				for range records {
					if _, err := s.Write(record); err != nil {
						b.Fatal(err)
					}
				}
				if err := errors.Join(s.Close(), os.Remove(path)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run(fmt.Sprintf("policy=%v", holdfast.Buffered(buffer)), openHoldfast(holdfast.Buffered(buffer)))
	run(fmt.Sprintf("bufio=%v", buffer), openBufio(buffer, false))
}

type sink interface {
	io.Writer
	io.Closer
}

func benchmarkSink(b *testing.B, record []byte, goroutines int, open func(path string) (sink, error)) {
	path := filepath.Join(b.TempDir(), "file")
	s, err := open(path)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(record)))
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for g := range goroutines {
		n := b.N / goroutines
		if g < b.N%goroutines {
			n++
		}
		wg.Go(func() {
			for range n {
				if _, err := s.Write(record); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	if size := int64(b.N) * int64(len(record)); info.Size() != size {
		b.Fatalf("file has %d bytes, want %d", info.Size(), size)
	}
	if err := os.Remove(path); err != nil {
		b.Fatal(err)
	}
}

func openHoldfast(p holdfast.Policy) func(string) (sink, error) {
	return func(path string) (sink, error) { return holdfast.Create(path, p) }
}

// bufioSink is bufio on a file, behind a mutex if there is more than one writer.
type bufioSink struct {
	mu  sync.Mutex
	buf *bufio.Writer
	f   *os.File
}

func (s *bufioSink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *bufioSink) Close() error {
	if err := s.buf.Flush(); err != nil {
		return err
	}
	return s.f.Close()
}

// bareBufio writes without the mutex.
type bareBufio struct{ *bufioSink }

func (s bareBufio) Write(p []byte) (int, error) { return s.buf.Write(p) }

func openBufio(size holdfast.Size, shared bool) func(string) (sink, error) {
	return func(path string) (sink, error) {
		f, err := os.Create(path)
		if err != nil {
			return nil, err
		}
		s := &bufioSink{buf: bufio.NewWriterSize(f, int(size)), f: f}
		if shared {
			return s, nil
		}
		return bareBufio{s}, nil
	}
}

// syncedFile syncs after each write, one at a time.
type syncedFile struct {
	mu     sync.Mutex
	f      *os.File
	handle *sys.Handle
}

func (s *syncedFile) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.f.Write(p)
	if err != nil {
		return n, err
	}
	return n, s.handle.Datasync()
}

func (s *syncedFile) Close() error { return s.f.Close() }

func openFdatasync(path string) (sink, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	h, err := sys.NewHandle(f)
	return &syncedFile{f: f, handle: h}, err
}

// discard is a File that keeps nothing.
type discard struct{ io.Writer }

func (discard) Sync() error  { return nil }
func (discard) Close() error { return nil }

// BenchmarkContention times a 40-byte Write by many goroutines into a file that
// discards it. It runs with as many Ps as CPUs and with more. The baseline is a
// sync.Mutex around a copy into 64 KiB.
func BenchmarkContention(b *testing.B) {
	record := []byte("2026-01-02T03:04:05Z a log line of 40 B\n")
	for _, procs := range []int{1, 2, 32} {
		for _, goroutines := range []int{1, 2, 8, 32, 64, 512} {
			run := func(name string, w io.WriteCloser) {
				b.Run(fmt.Sprintf("%s/procs=%d/goroutines=%d", name, procs, goroutines), func(b *testing.B) {
					defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
					var group sync.WaitGroup
					for range goroutines {
						group.Go(func() {
							for range max(1, b.N/goroutines) {
								if _, err := w.Write(record); err != nil {
									b.Error(err)
									return
								}
							}
						})
					}
					group.Wait()
				})
				if err := w.Close(); err != nil {
					b.Fatal(err)
				}
			}
			w, err := holdfast.New(discard{io.Discard}, holdfast.Buffered(64*holdfast.KiB))
			if err != nil {
				b.Fatal(err)
			}
			run("writer", w)
			run("mutex", &mutexCopy{buf: make([]byte, 64*holdfast.KiB)})
		}
	}
}

// mutexCopy copies into a buffer that starts anew when it is full.
type mutexCopy struct {
	mu  sync.Mutex
	buf []byte
	n   int
}

func (m *mutexCopy) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.n+len(p) > len(m.buf) {
		m.n = 0
	}
	m.n += copy(m.buf[m.n:], p)
	return len(p), nil
}

func (*mutexCopy) Close() error { return nil }
