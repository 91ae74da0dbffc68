package write

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const hexDigits = "0123456789ABCDEF"

// appendEscaped escapes control characters, bytes that are no text, a leading dot,
// until, and the characters of unsafe.
func appendEscaped(name, value []byte, until byte, unsafe string) []byte {
	for i := 0; i < len(value); {
		c := value[i]
		if c < utf8.RuneSelf {
			if c < ' ' || c == 0x7f || c == until || c == '.' && i == 0 || strings.IndexByte(unsafe, c) >= 0 {
				name = appendPercent(name, c)
			} else {
				name = append(name, c)
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(value[i:])
		if r == utf8.RuneError && size == 1 || unicode.IsControl(r) {
			for _, c := range value[i : i+size] {
				name = appendPercent(name, c)
			}
		} else {
			name = append(name, value[i:i+size]...)
		}
		i += size
	}
	return name
}

func appendPercent(name []byte, c byte) []byte {
	return append(name, '%', hexDigits[c>>4], hexDigits[c&15])
}
