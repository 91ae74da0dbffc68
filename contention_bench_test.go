package holdfast_test

import (
	"fmt"
	"io"
	"runtime"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast"
)

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
