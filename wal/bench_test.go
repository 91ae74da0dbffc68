package wal

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// BenchmarkEnqueue accepts records of 128 bytes, and waits for each 8192nd: so each batch is one write
// and one sync.
func BenchmarkEnqueue(b *testing.B) {
	l, _, err := Open(b.TempDir(), Options{Policy: holdfast.Durable()})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	record := make([]byte, 128)
	b.ReportAllocs()
	for n := 1; b.Loop(); n++ {
		last, err := l.Enqueue(record)
		if err == nil && n%8192 == 0 {
			if err = l.Wait(context.Background(), last); err == nil {
				err = l.TruncateBefore(last)
			}
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := l.Wait(context.Background(), l.Last()); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkAppend appends records of 128 bytes without waiting for a sync, by a Log and by a Writer.
func BenchmarkAppend(b *testing.B) {
	record := make([]byte, 128)
	for _, p := range []holdfast.Policy{holdfast.Buffered(256 * holdfast.KiB), {Buffer: 256 * holdfast.KiB, Sync: holdfast.SyncEvery(time.Second)}} {
		run := func(name string, write func() error, done func() error) {
			b.Run(name+"/"+p.String(), func(b *testing.B) {
				for b.Loop() {
					if err := write(); err != nil {
						b.Fatal(err)
					}
				}
			})
			if err := done(); err != nil {
				b.Fatal(err)
			}
		}
		dir := b.TempDir()
		l, _, err := Open(dir+"/log", Options{Policy: p})
		if err != nil {
			b.Fatal(err)
		}
		run("log", func() error { _, err := l.Append(record); return err }, l.Close)
		w, err := holdfast.Create(dir+"/file", p)
		if err != nil {
			b.Fatal(err)
		}
		run("writer", func() error { _, err := w.Write(record); return err }, w.Close)
	}
}

// BenchmarkOpen reads and checks a log that is in the page cache, by the bytes of its records.
func BenchmarkOpen(b *testing.B) {
	for name, size := range map[string]int{"128B": 128, "4KiB": 4096} {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			o := Options{Policy: holdfast.Buffered(holdfast.MiB)}
			l, _, err := Open(dir, o)
			if err != nil {
				b.Fatal(err)
			}
			record := make([]byte, size)
			for range 128 << 20 / size {
				if _, err := l.Append(record); err != nil {
					b.Fatal(err)
				}
			}
			if err := l.Close(); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(128 << 20)
			for b.Loop() {
				l, found, err := Open(dir, o)
				if err != nil || found.Bytes != 128<<20 {
					b.Fatal(found, err)
				}
				if err := l.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRead reads records of a log in the page cache: one by one in order and at random by Read, and all by Records.
func BenchmarkRead(b *testing.B) {
	for _, size := range []int{128, 4096} {
		l, _, err := Open(b.TempDir()+"/log", Options{Policy: holdfast.Buffered(holdfast.MiB)})
		if err != nil {
			b.Fatal(err)
		}
		n := uint64(64 << 20 / size)
		for range n {
			if _, err := l.Append(make([]byte, size)); err != nil {
				b.Fatal(err)
			}
		}
		read := func(b *testing.B, index uint64) {
			if data, err := l.Read(index); err != nil || len(data) != size {
				b.Fatal(index, err)
			}
		}
		b.Run(fmt.Sprintf("order/%dB", size), func(b *testing.B) {
			for i := uint64(0); b.Loop(); i++ {
				read(b, i%n+1)
			}
		})
		b.Run(fmt.Sprintf("random/%dB", size), func(b *testing.B) {
			for r := rand.New(rand.NewPCG(1, 1)); b.Loop(); {
				read(b, r.Uint64N(n)+1)
			}
		})
		b.Run(fmt.Sprintf("records/%dB", size), func(b *testing.B) {
			b.SetBytes(int64(size) * int64(n))
			for b.Loop() {
				for r, err := range l.Records(1) {
					if err != nil || len(r.Data) != size {
						b.Fatal(r.Index, err)
					}
				}
			}
		})
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
