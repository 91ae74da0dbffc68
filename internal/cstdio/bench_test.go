package cstdio

import (
	"os"
	"path/filepath"
	"testing"
)

// benchSetups are one byte a call, each method with its usual buffer.
func benchSetups() []Setup {
	return []Setup{
		{Method: Raw, Mode: None},
		{Method: Fgetc}, {Method: Getc}, {Method: GetcUnlocked}, {Method: Fread},
		{Method: DFgetc}, {Method: DFread},
	}
}

// benchBytes is how many bytes a benchmark reads or writes at a time: as the
// exercise that asked the question does.
const benchBytes = 1 << 20

// BenchmarkBytes tells what a byte costs. Its figures compare only between runs
// that are interleaved: go test -bench Bytes -benchtime 5x -count 10, and medians.
func BenchmarkBytes(b *testing.B) {
	needsC(b)
	for _, s := range benchSetups() {
		b.Run("write/"+s.Method.Writes(), func(b *testing.B) { benchWrite(b, s) })
		b.Run("read/"+s.Method.Reads(), func(b *testing.B) { benchRead(b, s) })
	}
}

func benchWrite(b *testing.B, s Setup) {
	path := filepath.Join(b.TempDir(), "file")
	for b.Loop() {
		if err := writeFile(path, s, benchBytes); err != nil {
			b.Fatal(err)
		}
	}
	perByte(b)
}

func benchRead(b *testing.B, s Setup) {
	path := filepath.Join(b.TempDir(), "file")
	if err := os.WriteFile(path, pattern(benchBytes), 0o666); err != nil {
		b.Fatal(err)
	}
	want := PatternSum(benchBytes)
	for b.Loop() {
		f, err := Open(path, s)
		if err != nil {
			b.Fatal(err)
		}
		if n, err := f.Read(benchBytes); err != nil || n != benchBytes || f.Sum() != want {
			b.Fatalf("read %d bytes, sum %v, %v", n, f.Sum(), err)
		}
		if err := f.Close(); err != nil {
			b.Fatal(err)
		}
	}
	perByte(b)
}

func perByte(b *testing.B) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchBytes, "ns/byte")
}
