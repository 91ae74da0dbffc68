package write

import (
	"bytes"
)

// A line is one of the input, with what its placeholders have learnt of it.
type line struct {
	text      []byte // with its ending
	number    int64  // from 1
	separator []byte // between columns; empty for any white space
	json      jsonState
	decoded   []byte // memory for values that are escaped in the line
}

// A jsonState is what is known of a line as JSON.
type jsonState int8

const (
	jsonUnknown jsonState = iota
	jsonObject
	jsonOther
	jsonNone
)

// A lineError says why a line can't be written.
type lineError struct {
	kind lineErrorKind
	text string
}

func (e *lineError) Error() string { return e.text }

type lineErrorKind int8

const (
	missing   lineErrorKind = iota // it has no such field or column
	notJSON                        // it is no JSON object
	noValue                        // the field is null, an object or an array
	tooLong                        // the line is longer than maxLine
	refused                        // its file has not taken it
	uncertain                      // its file has taken it, and then a sync failed
	lineErrorKinds
)

// reset begins a new line.
func (l *line) reset(text []byte, number int64) {
	l.text, l.number, l.json = text, number, jsonUnknown
}

// columnOf returns the nth column, from 1. Without a separator columns are runs of
// what is no white space, as awk has it.
func columnOf(text, separator []byte, n int) ([]byte, bool) {
	if len(separator) == 0 {
		return wordOf(text, n)
	}
	for ; n > 1; n-- {
		_, rest, ok := bytes.Cut(text, separator)
		if !ok {
			return nil, false
		}
		text = rest
	}
	value, _, _ := bytes.Cut(text, separator)
	return value, true
}

func wordOf(text []byte, n int) ([]byte, bool) {
	i := 0
	for {
		for i < len(text) && isBlank(text[i]) {
			i++
		}
		start := i
		for i < len(text) && !isBlank(text[i]) {
			i++
		}
		if start == i {
			return nil, false
		}
		if n--; n == 0 {
			return text[start:i], true
		}
	}
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }
