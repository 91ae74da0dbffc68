package main

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

// body is the line without its ending.
func (l *line) body() []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(l.text, []byte("\n")), []byte("\r"))
}

// value returns what a placeholder stands for, until the next call.
func (l *line) value(p *part) ([]byte, error) {
	if p.kind == column {
		if value, ok := columnOf(l.body(), l.separator, p.n); ok {
			return value, nil
		}
		return nil, &lineError{missing, fmt.Sprintf("it has no column %d", p.n)}
	}
	if err := l.mustBeObject(); err != nil {
		return nil, err
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
		return l.unquote(value), nil
	}
	return value, nil
}

// mustBeObject looks at the line as JSON once.
func (l *line) mustBeObject() error {
	if l.json == jsonUnknown {
		l.json = jsonKind(l.text)
	}
	switch l.json {
	case jsonNone:
		return &lineError{notJSON, "it is not JSON"}
	case jsonOther:
		return &lineError{notJSON, "it is no JSON object"}
	}
	return nil
}

func jsonKind(text []byte) jsonState {
	switch {
	case !json.Valid(text):
		return jsonNone
	case bytes.TrimLeft(text, jsonSpace)[0] != '{':
		return jsonOther
	}
	return jsonObject
}

// unquote returns the text of a JSON string.
func (l *line) unquote(quoted []byte) []byte {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	l.decoded = appendUnquoted(l.decoded[:0], inner)
	return l.decoded
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
