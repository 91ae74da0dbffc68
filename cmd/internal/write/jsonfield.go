package write

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// The functions here look into JSON that json.Valid has found to be valid, and rely
// on it: they check no end of what is there.

const jsonSpace = " \t\r\n"

// fieldOf returns the value of a field of an object, as it stands there. Of a name
// that occurs twice the last counts, as encoding/json has it.
func fieldOf(object []byte, keys []string) (value []byte, ok bool) {
	value = bytes.TrimLeft(object, jsonSpace)
	for _, key := range keys {
		if value[0] != '{' {
			return nil, false
		}
		if value, ok = memberOf(value, key); !ok {
			return nil, false
		}
	}
	return value, true
}

// memberOf returns the value that an object has under a name.
func memberOf(object []byte, key string) (value []byte, ok bool) {
	i := skipSpace(object, 1)
	for object[i] != '}' {
		end := skipString(object, i)
		name := object[i+1 : end-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			name = appendUnquoted(nil, name)
		}
		i = skipSpace(object, skipSpace(object, end)+len(":"))
		end = skipValue(object, i)
		if string(name) == key {
			value, ok = object[i:end], true
		}
		if i = skipSpace(object, end); object[i] == ',' {
			i = skipSpace(object, i+1)
		}
	}
	return value, ok
}

func skipSpace(text []byte, i int) int {
	for text[i] == ' ' || text[i] == '\t' || text[i] == '\r' || text[i] == '\n' {
		i++
	}
	return i
}

// skipString returns where the string that begins at i ends.
func skipString(text []byte, i int) int {
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// skipValue returns where the value that begins at i ends.
func skipValue(text []byte, i int) int {
	switch text[i] {
	case '"':
		return skipString(text, i)
	case '{', '[':
		return skipNested(text, i)
	}
	return i + bytes.IndexAny(text[i:], jsonSpace+",}]")
}

func skipNested(text []byte, i int) int {
	depth := 0
	for {
		switch text[i] {
		case '"':
			i = skipString(text, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		i++
		if depth == 0 {
			return i
		}
	}
}

// appendUnquoted appends what stands between the quotes of a string. Half of a
// surrogate pair is kept as the three bytes that UTF-8 would give it: so such strings stay
// distinct.
func appendUnquoted(text, inner []byte) []byte {
	for {
		i := bytes.IndexByte(inner, '\\')
		if i < 0 {
			return append(text, inner...)
		}
		text = append(text, inner[:i]...)
		c := inner[i+1]
		inner = inner[i+2:]
		switch c {
		case 'u':
			text, inner = appendUnicode(text, inner)
			continue
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		}
		text = append(text, c)
	}
}

// appendUnicode appends the character of the four digits at the beginning of rest. It takes
// the second half of a surrogate pair too, if that follows, and returns what is left.
func appendUnicode(text, rest []byte) ([]byte, []byte) {
	r := fourDigits(rest)
	rest = rest[4:]
	if !utf16.IsSurrogate(r) {
		return utf8.AppendRune(text, r), rest
	}
	if bytes.HasPrefix(rest, []byte(`\u`)) {
		if pair := utf16.DecodeRune(r, fourDigits(rest[2:])); pair != utf8.RuneError {
			return utf8.AppendRune(text, pair), rest[6:]
		}
	}
	return append(text, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f), rest
}

func fourDigits(text []byte) rune {
	n, _ := strconv.ParseUint(string(text[:4]), 16, 16) // valid JSON has them
	return rune(n)
}
