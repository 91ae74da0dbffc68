package result

import (
	"encoding/binary"
	"hash/adler32"
	"math/bits"
	"sync"
)

// An inflater decompresses zlib's streams (RFC 1950 and 1951) of some hundred bytes. There
// compress/zlib spends most of its time on tables for long streams. It is for one goroutine.
type inflater struct {
	in   []byte
	bits uint64 // the next ones, the first lowest
	n    int    // how many bits has; less than 0: more were taken than there were

	order   prefixCode
	own     codes // of the last block that has some
	lengths [mostLiterals + mostDistances]uint8
}

// inflate returns the whole of a stream, in to's memory if it fits. It is not ok for a stream that is damaged,
// or that has more than most bytes or any after its end.
func (f *inflater) inflate(stream, to []byte, most int) (text []byte, ok bool) {
	if len(stream) < 2 || stream[0]&0x8f != 8 || stream[1]&0x20 != 0 || binary.BigEndian.Uint16(stream)%31 != 0 {
		return nil, false
	}
	to, ok = f.blocks(stream[2:], to[:0], most)
	f.take(f.n & 7)
	sum := uint32(f.take(8))<<24 | uint32(f.take(8))<<16 | uint32(f.take(8))<<8 | uint32(f.take(8))
	return to, ok && f.n == 0 && len(f.in) == 0 && sum == adler32.Checksum(to)
}

// blocks appends what the blocks at the beginning of in have.
func (f *inflater) blocks(in, to []byte, most int) (text []byte, ok bool) {
	f.in, f.bits, f.n = in, 0, 0
	for last := false; !last; {
		last = f.take(1) == 1
		switch f.take(2) {
		case 0:
			f.take(f.n & 7)
			size := f.take(16)
			if f.take(16) != size^0xffff || len(to)+size > most {
				return nil, false
			}
			for ; size > 0 && f.n > 0; size-- {
				to = append(to, byte(f.take(8)))
			}
			if ok = f.n >= 0 && size <= len(f.in); ok && size > 0 {
				to, f.in, f.bits = append(to, f.in[:size]...), f.in[size:], 0
			}
		case 1:
			to, ok = f.block(to, most, fixedCodes())
		case 2:
			if ok = f.header(); ok {
				to, ok = f.block(to, most, &f.own)
			}
		default:
			ok = false
		}
		if !ok {
			return nil, false
		}
	}
	return to, f.n >= 0
}

// fill has 48 bits at hand, or all that are left.
func (f *inflater) fill() {
	for f.n <= 56 && len(f.in) > 0 {
		if len(f.in) >= 8 {
			f.bits |= binary.LittleEndian.Uint64(f.in) << f.n
			whole := (63 - f.n) / 8
			f.in, f.n = f.in[whole:], f.n+8*whole
			return
		}
		f.bits |= uint64(f.in[0]) << f.n
		f.in, f.n = f.in[1:], f.n+8
	}
}

// take takes a number of at most 16 bits.
func (f *inflater) take(n int) int {
	if f.n < n {
		f.fill()
	}
	v := int(f.bits & (1<<n - 1))
	f.bits, f.n = f.bits>>n, f.n-n
	return v
}

// codes are those of a block.
type codes struct{ literals, distances prefixCode }

const (
	mostLiterals  = 286 // with the lengths
	mostDistances = 30
	endOfBlock    = 256
)

var fixedCodes = sync.OnceValue(func() *codes {
	var c codes
	var lengths [288]uint8
	for i := range lengths {
		switch {
		case i < 144 || i >= 280:
			lengths[i] = 8
		case i < endOfBlock:
			lengths[i] = 9
		default:
			lengths[i] = 7
		}
	}
	c.literals.make(lengths[:])
	for i := range lengths[:32] {
		lengths[i] = 5
	}
	c.distances.make(lengths[:32])
	return &c
})

// header makes the codes of a block that brings its own.
func (f *inflater) header() bool {
	literals, distances, orders := 257+f.take(5), 1+f.take(5), 4+f.take(4)
	if literals > mostLiterals || distances > mostDistances {
		return false
	}
	var order [19]uint8
	for i, at := range [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15} {
		if i < orders {
			order[at] = uint8(f.take(3))
		}
	}
	if !f.order.make(order[:]) {
		return false
	}
	all := f.lengths[:literals+distances]
	for i := 0; i < len(all); {
		length, times := uint8(0), 1
		switch symbol := f.symbol(&f.order); symbol {
		case 16:
			if times = 3 + f.take(2); i > 0 {
				length = all[i-1]
			} else {
				return false
			}
		case 17:
			times = 3 + f.take(3)
		case 18:
			times = 11 + f.take(7)
		default:
			length = uint8(symbol)
		}
		if f.n < 0 || times > len(all)-i {
			return false
		}
		for ; times > 0; times-- {
			all[i] = length
			i++
		}
	}
	return f.own.literals.make(all[:literals]) && f.own.distances.make(all[literals:])
}

// What a length and a distance begin with, and how many bits follow it.
var (
	lengthBase   = [29]uint16{3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258}
	lengthBits   = [29]uint8{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0}
	distanceBase = [30]uint16{1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577}
)

// block appends what a block has.
func (f *inflater) block(to []byte, most int, c *codes) ([]byte, bool) {
	for {
		symbol := f.symbol(&c.literals)
		switch {
		case f.n < 0 || len(to) >= most:
			return to, f.n >= 0 && symbol == endOfBlock
		case symbol < endOfBlock:
			to = append(to, byte(symbol))
			continue
		case symbol == endOfBlock:
			return to, true
		case symbol > endOfBlock+len(lengthBase):
			return to, false
		}
		symbol -= endOfBlock + 1
		length := int(lengthBase[symbol]) + f.take(int(lengthBits[symbol]))
		far := f.symbol(&c.distances)
		if far >= len(distanceBase) {
			return to, false
		}
		back := int(distanceBase[far]) + f.take(max(0, far/2-1))
		if f.n < 0 || back > len(to) || length > most-len(to) {
			return to, false
		}
		for ; length > 0; length-- {
			to = append(to, to[len(to)-back])
		}
	}
}

// A prefixCode is one of Huffman's, whose codes of one length follow each other.
type prefixCode struct {
	short   [1 << shortBits]uint16 // by the next bits: the symbol << 4 | the length of its code, or 0 if that is longer
	counts  [16]uint16             // of the codes of each length
	symbols [288]uint16            // in the order of their codes
}

const shortBits = 8

// make makes the code whose symbols have codes of these lengths, 0 for none. It refuses lengths with which
// some bits would be no code, except where there is one symbol or none.
func (c *prefixCode) make(lengths []uint8) bool {
	clear(c.short[:])
	clear(c.counts[:])
	for _, n := range lengths {
		if n > 0 { // of most symbols it is 0
			c.counts[n]++
		}
	}
	var next, at [16]uint16 // the next code, and its place in symbols
	left := 1
	for n := 1; n < 16; n++ {
		next[n] = (next[n-1] + c.counts[n-1]) << 1
		at[n] = at[n-1] + c.counts[n-1]
		if left = left<<1 - int(c.counts[n]); left < 0 {
			return false
		}
	}
	for symbol, n := range lengths {
		if n == 0 {
			continue
		}
		c.symbols[at[n]] = uint16(symbol)
		at[n]++
		if n <= shortBits {
			for code := bits.Reverse16(next[n] << (16 - n)); code < 1<<shortBits; code += 1 << n {
				c.short[code] = uint16(symbol)<<4 | uint16(n)
			}
		}
		next[n]++
	}
	return left == 0 || at[15] == 0 || at[15] == 1 && c.counts[1] == 1
}

// symbol takes the next symbol; after bits that are no code, n is less than 0.
func (f *inflater) symbol(c *prefixCode) int {
	if f.n < 15 {
		f.fill()
	}
	if short := c.short[f.bits&(1<<shortBits-1)]; short != 0 {
		n := int(short & 15)
		f.bits, f.n = f.bits>>n, f.n-n
		return int(short >> 4)
	}
	code, first, at := 0, 0, 0
	for n := 1; n < 16; n++ {
		code |= int(f.bits >> (n - 1) & 1)
		count := int(c.counts[n])
		if code-first < count {
			f.bits, f.n = f.bits>>n, f.n-n
			return int(c.symbols[at+code-first])
		}
		at += count
		first = (first + count) << 1
		code <<= 1
	}
	f.in, f.n = nil, -1
	return 0
}
