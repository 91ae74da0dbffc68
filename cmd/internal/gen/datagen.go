package gen

import (
	"encoding/binary"
	"errors"
)

// A filler has the bytes of a kind and a seed at every offset, the same on every machine. It does not
// change: any number of goroutines may read it. No disk and no file system can compress the random
// ones or find them twice: no eight bytes at a multiple of eight come twice. gzip makes the text, lines
// of made-up words, about a third as long. The random bytes are for measuring only: eight of them reveal
// all the others.
type filler struct {
	kind  genKind
	start uint64 // of the sequence of random words
	words *vocabulary
}

// newFiller returns the bytes of a kind and a seed. Zeros and holes have no use for a seed.
func newFiller(kind genKind, seed uint64) *filler {
	// Seeds that are near each other begin far from each other.
	f := &filler{kind: kind, start: mix(mix(seed+gamma) ^ gamma)}
	if kind == genText {
		f.words = newVocabulary()
	}
	return f
}

var errNegative = errors.New("gen: negative offset")

// ReadAt fills all of p with the bytes from offset on. Its only error is that the
// offset is negative: there is no end of file. It never blocks.
func (f *filler) ReadAt(p []byte, offset int64) (n int, err error) {
	if offset < 0 {
		return 0, errNegative
	}
	switch f.kind {
	case genRandom:
		fillRandom(p, f.start, uint64(offset))
	case genText:
		f.fillText(p, offset)
	case genZero, genSparse:
		clear(p)
	}
	return len(p), nil
}

// The constants of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom
// number generators", 2014; mix is its variant 13 of the finalizer of MurmurHash3).
// Word i is mix(start + i·gamma). gamma is odd and mix can be inverted, so the words
// come again only after 2^64 of them. Any of them can be had without the others.
const (
	gamma  = 0x9e3779b97f4a7c15
	gamma2 = gamma * 2 & (1<<64 - 1)
	gamma3 = gamma * 3 & (1<<64 - 1)
	gamma4 = gamma * 4 & (1<<64 - 1)
)

func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

const wordSize = 8

// fillRandom fills p with the bytes of the words, the least significant first, from
// offset on.
func fillRandom(p []byte, start, offset uint64) {
	x := start + offset/wordSize*gamma
	if within := offset % wordSize; within > 0 && len(p) > 0 {
		p = p[copyWord(p, x, within):]
		x += gamma
	}
	// Four at a time, which do not wait for each other: one multiplication after the
	// other takes three times as long.
	for len(p) >= 4*wordSize {
		four := p[: 4*wordSize : 4*wordSize]
		binary.LittleEndian.PutUint64(four, mix(x))
		binary.LittleEndian.PutUint64(four[wordSize:], mix(x+gamma))
		binary.LittleEndian.PutUint64(four[2*wordSize:], mix(x+gamma2))
		binary.LittleEndian.PutUint64(four[3*wordSize:], mix(x+gamma3))
		x += gamma4
		p = p[4*wordSize:]
	}
	for len(p) > 0 {
		p = p[copyWord(p, x, 0):]
		x += gamma
	}
}

// copyWord copies a word from its byte within on, as far as it fits.
func copyWord(p []byte, x, within uint64) int {
	var word [wordSize]byte
	binary.LittleEndian.PutUint64(word[:], mix(x))
	return copy(p, word[within:])
}

// Text is made of blocks, each of its own random words, so that a block can be had
// without those before it. A block begins and ends with a line.
const textBlock = 64 << 10

// vocabularyBits says how many words there are. With 512, a few of them frequent, gzip
// and zstd make the text 3.3 times as short: between prose and logs.
const vocabularyBits = 9

// mostColumns is after which column a line ends with the word.
const mostColumns = 72

// A vocabulary has words of up to seven letters, each with a space behind it.
type vocabulary [1 << vocabularyBits]struct {
	text uint64 // the first letter is the least significant byte
	size int
}

// newVocabulary makes the same words each time: open syllables.
func newVocabulary() *vocabulary {
	const consonants, vowels = "bdfghjklmnprstvz", "aeiou"
	v := new(vocabulary)
	for i := range v {
		x := mix(uint64(i))
		size := 2 + int(x%6)
		for k := range size {
			x = mix(x + gamma)
			from := consonants
			if k%2 == 1 {
				from = vowels
			}
			v[i].text |= uint64(from[x%uint64(len(from))]) << (8 * k)
		}
		v[i].text |= ' ' << (8 * size)
		v[i].size = size + 1
	}
	return v
}

func (f *filler) fillText(p []byte, offset int64) {
	var scratch []byte
	for len(p) > 0 {
		block, within := offset/textBlock, int(offset%textBlock)
		if within == 0 && len(p) >= textBlock {
			f.fillBlock(p[:textBlock], block)
			p, offset = p[textBlock:], offset+textBlock
			continue
		}
		if scratch == nil {
			scratch = make([]byte, textBlock)
		}
		f.fillBlock(scratch, block)
		n := copy(p, scratch[within:])
		p, offset = p[n:], offset+int64(n)
	}
}

// fillBlock fills p, which is a block long.
func (f *filler) fillBlock(p []byte, block int64) {
	const perDraw = 64 / vocabularyBits
	x := mix(f.start + uint64(block)*gamma)
	at, line := 0, 0
	for at+perDraw*wordSize <= len(p) {
		x += gamma
		// Both set a bit of four: a word with few ones in its number comes more often.
		for draw, left := mix(x)&mix(^x), perDraw; left > 0; left-- {
			w := &f.words[draw%uint64(len(f.words))]
			binary.LittleEndian.PutUint64(p[at:], w.text)
			at += w.size
			draw >>= vocabularyBits
		}
		if at-line >= mostColumns {
			p[at-1] = '\n'
			line = at
		}
	}
	for at < len(p) {
		p[at] = 'a'
		at++
	}
	p[len(p)-1] = '\n'
}
