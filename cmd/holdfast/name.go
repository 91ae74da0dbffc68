package main

import (
	"runtime"
	"strings"
	"unicode"
	"unicode/utf8"
)

const hexDigits = "0123456789ABCDEF"

// appendName appends a value so that it can stand in a file's name. What can't, or
// would mean something there, is written as % and two hexadecimal digits for each
// byte, as in a URL; the empty value is %-. Two values never give one name, and
// none is empty, begins with a dot, or holds until, if that is not 0.
func appendName(name, value []byte, until byte) []byte {
	if len(value) == 0 {
		return append(name, "%-"...)
	}
	if runtime.GOOS == "windows" {
		return appendWindowsName(name, value, until)
	}
	return appendEscaped(name, value, until, `/\%`)
}

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

// appendWindowsName escapes in addition what means something to Windows: other
// characters, the names of devices, and a dot or space at the end, which it drops.
func appendWindowsName(name, value []byte, until byte) []byte {
	const unsafe = `/\%:*?"<>|`
	if isDevice(value) {
		return appendEscaped(appendPercent(name, value[0]), value[1:], until, unsafe+". ")
	}
	last := len(value) - 1
	if c := value[last]; c == '.' || c == ' ' {
		return appendPercent(appendEscaped(name, value[:last], until, unsafe), c)
	}
	return appendEscaped(name, value, until, unsafe)
}

// isDevice reports whether Windows takes the name for a device's, whatever ending
// it has.
func isDevice(value []byte) bool {
	stem, _, _ := strings.Cut(string(value[:min(len(value), len("COM1")+1)]), ".")
	stem = strings.ToUpper(strings.TrimRight(stem, " "))
	switch stem {
	case "CON", "PRN", "AUX", "NUL":
		return true
	}
	port, isPort := strings.CutPrefix(stem, "COM")
	if !isPort {
		port, isPort = strings.CutPrefix(stem, "LPT")
	}
	return isPort && len(port) == 1 && port[0] >= '0' && port[0] <= '9'
}
