package result

import (
	"bytes"
	"compress/flate"
	"compress/zlib"
	"io"
	"math/rand/v2"
	"testing"
)

// deflated compresses a text.
func deflated(t testing.TB, text []byte, level int) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := zlib.NewWriterLevel(&b, level)
	if err == nil {
		_, err = z.Write(text)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestInflatesAllLevels: a stream that the inflater does not take is right, and slow.
func TestInflatesAllLevels(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var f inflater
	var got []byte
	for n := range 120 {
		text := make([]byte, n*n%5000)
		for i := range text {
			text[i] = byte(r.IntN(1 + n)) // of few letters to all, and with repetitions
			if i > 300 && r.IntN(3) > 0 {
				text[i] = text[i-1-r.IntN(300)]
			}
		}
		for level := zlib.HuffmanOnly; level <= zlib.BestCompression; level++ {
			stream := deflated(t, text, level)
			var ok bool
			if got, ok = f.inflate(stream, got, len(text)); !ok || !bytes.Equal(got, text) {
				t.Fatalf("%d bytes at level %d: %v", len(text), level, ok)
			}
			if got, ok := f.inflate(stream, nil, len(text)-1); ok {
				t.Fatalf("%d bytes at level %d where %d are the most", len(got), level, len(text)-1)
			}
		}
	}
}

// FuzzInflate compares with compress/flate what is taken; the checksum would refuse most of it.
func FuzzInflate(f *testing.F) {
	for level := zlib.HuffmanOnly; level <= zlib.BestCompression; level++ {
		f.Add(deflated(f, []byte("a text that has a text in a text, and has it again: zzzzzzzzzzzzzzzzz"), level)[2:])
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		const most = 1 << 16
		var i inflater
		got, ok := i.blocks(stream, nil, most)
		want, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(stream)), most+1))
		if taken := err == nil && len(want) <= most; ok != taken || ok && !bytes.Equal(got, want) {
			t.Fatalf("%x is %x, %v, and should be %x, %v", stream, got, ok, want, err)
		}
	})
}
