package gen

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"math/rand/v2"
	"testing"
)

var kinds = []genKind{genRandom, genText, genZero}

// bytesOf returns the first bytes of a kind and a seed.
func bytesOf(kind genKind, seed uint64, n int) []byte {
	p := make([]byte, n)
	newFiller(kind, seed).ReadAt(p, 0)
	return p
}

// TestSameSeedGivesTheSameBytesForEver holds the bytes that files were made of: a noted
// seed gives the same file again.
func TestSameSeedGivesTheSameBytesForEver(t *testing.T) {
	check := func(kind genKind, want string) {
		t.Helper()
		sum := sha256.Sum256(bytesOf(kind, 1, 1<<20))
		if got := hex.EncodeToString(sum[:]); got != want {
			t.Errorf("1 MiB of %v with seed 1 has the SHA-256 %s, want %s", kind, got, want)
		}
	}
	check(genRandom, "b862cfe6aa377e4eb46e16bc14dcf6d1dbb3aab17e99ccb300de91c968fea831")
	check(genText, "21072925e120939c07e727f47354902ef2181375709f9467301ec14150b1625f")
	check(genZero, "30e14955ebf1352266dc2ff8067e68104607e750abb9d3b36582b8af909fcb58")
}

func TestOtherSeedsGiveOtherBytes(t *testing.T) {
	for _, kind := range []genKind{genRandom, genText} {
		seen := map[string]uint64{}
		for _, seed := range []uint64{0, 1, 2, 3, gamma, 2 * (gamma >> 1), 1 << 63, 1<<64 - 1} {
			key := string(bytesOf(kind, seed, 64))
			if other, ok := seen[key]; ok {
				t.Errorf("%v: seeds %d and %d begin alike", kind, other, seed)
			}
			seen[key] = seed
		}
	}
}

// TestBytesDoNotDependOnHowTheyAreRead reads pieces of any size from any offset.
func TestBytesDoNotDependOnHowTheyAreRead(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, kind := range kinds {
		f, whole := newFiller(kind, 7), bytesOf(kind, 7, 3*textBlock+100)
		for range 300 {
			from := r.IntN(len(whole))
			size := r.IntN(len(whole) - from + 1)
			if r.IntN(2) == 0 {
				size = min(size, r.IntN(70))
			}
			got := bytes.Repeat([]byte{0xff}, size)
			if n, err := f.ReadAt(got, int64(from)); n != size || err != nil || !bytes.Equal(got, whole[from:from+size]) {
				t.Fatalf("%v: %d bytes at %d are others, or %v", kind, size, from, err)
			}
		}
	}
}

func TestStreamIsASection(t *testing.T) {
	got, err := io.ReadAll(io.NewSectionReader(newFiller(genRandom, 3), 5, 100_001))
	if err != nil || !bytes.Equal(got, bytesOf(genRandom, 3, 100_006)[5:]) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestFarOffsetsHaveBytes(t *testing.T) {
	p := make([]byte, 100)
	for _, kind := range kinds {
		if n, err := newFiller(kind, 1).ReadAt(p, 1<<63-1-100); n != 100 || err != nil {
			t.Errorf("%v: %d, %v", kind, n, err)
		}
		if n, err := newFiller(kind, 1).ReadAt(p, -1); n != 0 || err == nil {
			t.Errorf("%v: %d bytes at a negative offset, %v", kind, n, err)
		}
	}
}

// TestRandomBytesNeverComeTwice looks at every aligned word, and so at every block of
// 4 KiB too.
func TestRandomBytesNeverComeTwice(t *testing.T) {
	data := bytesOf(genRandom, 1, 64<<20)
	seen := make(map[[32]byte]bool, len(data)/4096)
	for block := data; len(block) > 0; block = block[4096:] {
		sum := [32]byte(block)
		if seen[sum] {
			t.Fatalf("a block begins as another one %d bytes before the end", len(block))
		}
		seen[sum] = true
	}
}

// packed returns what gzip makes of data, as a share of it.
func packed(t *testing.T, data []byte) float64 {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return float64(out.Len()) / float64(len(data))
}

func TestRandomCannotBeCompressedAndTextCan(t *testing.T) {
	check := func(kind genKind, least, most float64) {
		t.Helper()
		if share := packed(t, bytesOf(kind, 1, 4<<20)); share < least || share > most {
			t.Errorf("gzip leaves %.4f of %v, want %v to %v", share, kind, least, most)
		}
	}
	check(genRandom, 0.999, 1.01)
	check(genText, 1/4.0, 1/3.0)
	check(genZero, 0, 0.002)
}

// TestRandomBitsAreEven counts the ones at each place of a word: of n fair coins they
// are within six standard deviations of the half.
func TestRandomBitsAreEven(t *testing.T) {
	const n = 1 << 20
	data, ones := bytesOf(genRandom, 1, 8*n), [64]int{}
	for i, b := range data {
		for bit := range 8 {
			ones[i%8*8+bit] += int(b >> bit & 1)
		}
	}
	for place, got := range ones {
		const sixSigma = 6 * 1024 / 2
		if got < n/2-sixSigma || got > n/2+sixSigma {
			t.Errorf("bit %d is 1 in %d of %d words", place, got, n)
		}
	}
}

func TestTextIsLinesOfWords(t *testing.T) {
	data := bytesOf(genText, 1, 2*textBlock)
	lines := bytes.Split(data, []byte("\n"))
	if last := lines[len(lines)-1]; len(last) != 0 {
		t.Errorf("the last line of a block has no end: %q", last)
	}
	for i, line := range lines[:len(lines)-1] {
		if len(line) == 0 || len(line) > 2*mostColumns {
			t.Errorf("line %d has %d bytes", i+1, len(line))
		}
		if at := bytes.IndexFunc(line, func(r rune) bool { return r != ' ' && (r < 'a' || r > 'z') }); at >= 0 {
			t.Fatalf("line %d is no words: %q", i+1, line)
		}
	}
}

func BenchmarkReadAt(b *testing.B) {
	for _, kind := range kinds {
		b.Run(string(kind), func(b *testing.B) {
			f, p, at := newFiller(kind, 1), make([]byte, 256<<10), int64(0)
			b.SetBytes(int64(len(p)))
			for b.Loop() {
				f.ReadAt(p, at)
				at += int64(len(p))
			}
		})
	}
}
