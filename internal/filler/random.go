package filler

import "encoding/binary"

// The constants of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom
// number generators", 2014; mix is its variant 13 of the finalizer of MurmurHash3).
// Word i is mix(start + i·gamma). gamma is odd and mix can be inverted, so the words
// come again only after 2^64 of them, and any of them can be had without the others.
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
