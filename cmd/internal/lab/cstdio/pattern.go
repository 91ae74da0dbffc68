package cstdio

// Period is after how many bytes the pattern repeats: a prime, so that no block
// of a file looks like its neighbour.
const Period = 251

// Fill fills p with the pattern from an offset on: the byte at offset i is i modulo [Period].
func Fill(p []byte, from int64) {
	b := byte(from % Period)
	for i := range p {
		p[i] = b
		b = After(b)
	}
}

// After returns the byte that follows b in the pattern.
func After(b byte) byte {
	if b < Period-1 {
		return b + 1
	}
	return 0
}

// A Sum is a checksum that costs two additions a byte: Ones is the sum of the bytes,
// Twos is the sum of all values that Ones had. Different bytes have the same Sum very rarely.
type Sum struct{ Ones, Twos uint64 }

// Add takes b in.
func (s *Sum) Add(b byte) {
	s.Ones += uint64(b)
	s.Twos += s.Ones
}

// PatternSum returns the sum of the pattern's first n bytes.
func PatternSum(n int64) Sum {
	var s Sum
	b := byte(0)
	for range n {
		s.Add(b)
		b = After(b)
	}
	return s
}
