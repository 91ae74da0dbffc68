package write

import "bytes"

// columnOf returns the nth column of a line, from 1. Without a separator, spaces and tabs separate
// columns, as in awk.
func columnOf(line, separator []byte, n int) ([]byte, bool) {
	if len(separator) == 0 {
		return wordOf(line, n)
	}
	for ; n > 1; n-- {
		_, rest, ok := bytes.Cut(line, separator)
		if !ok {
			return nil, false
		}
		line = rest
	}
	value, _, _ := bytes.Cut(line, separator)
	return value, true
}

func wordOf(line []byte, n int) ([]byte, bool) {
	for i := 0; ; n-- {
		for i < len(line) && isBlank(line[i]) {
			i++
		}
		start := i
		for i < len(line) && !isBlank(line[i]) {
			i++
		}
		if start == i || n == 1 {
			return line[start:i], start < i
		}
	}
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }
