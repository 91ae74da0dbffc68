package filler

import "encoding/binary"

// Text is made of blocks, each of its own random words, so that a block can be had
// without those before it. A block begins and ends with a line.
const textBlock = 64 << 10

// vocabularyBits says how many words there are. With 512, of which few come often,
// gzip and zstd make the text 3.3 times as short: between prose and logs.
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

func (f *Filler) fillText(p []byte, offset int64) {
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
func (f *Filler) fillBlock(p []byte, block int64) {
	const perDraw = 64 / vocabularyBits
	x := mix(f.start + uint64(block)*gamma)
	at, line := 0, 0
	for at+perDraw*wordSize <= len(p) {
		x += gamma
		// Both set a bit of four: a word whose number has few ones comes more often.
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
