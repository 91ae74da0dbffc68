package write

import (
	"bytes"
	"encoding/json"
	"fmt"
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

// value returns what a placeholder stands for, until the next call.
func (l *line) value(p *part) ([]byte, error) {
	if p.kind == column {
		body := bytes.TrimSuffix(bytes.TrimSuffix(l.text, []byte("\n")), []byte("\r"))
		if value, ok := columnOf(body, l.separator, p.n); ok {
			return value, nil
		}
		return nil, &lineError{missing, fmt.Sprintf("it has no column %d", p.n)}
	}
	if l.json == jsonUnknown {
		switch {
		case !json.Valid(l.text):
			l.json = jsonNone
		case bytes.TrimLeft(l.text, jsonSpace)[0] != '{':
			l.json = jsonOther
		default:
			l.json = jsonObject
		}
	}
	switch l.json {
	case jsonNone:
		return nil, &lineError{notJSON, "it is not JSON"}
	case jsonOther:
		return nil, &lineError{notJSON, "it is no JSON object"}
	}
	value, ok := fieldOf(l.text, p.keys)
	if !ok {
		return nil, &lineError{missing, "it has no field " + p.text}
	}
	switch value[0] {
	case 'n':
		return nil, &lineError{noValue, "field " + p.text + " is null"}
	case '{':
		return nil, &lineError{noValue, "field " + p.text + " is an object"}
	case '[':
		return nil, &lineError{noValue, "field " + p.text + " is an array"}
	case '"':
		inner := value[1 : len(value)-1]
		if bytes.IndexByte(inner, '\\') < 0 {
			return inner, nil
		}
		l.decoded = appendUnquoted(l.decoded[:0], inner)
		return l.decoded, nil
	}
	return value, nil
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
