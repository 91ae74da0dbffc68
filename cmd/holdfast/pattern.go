package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A pattern says which file a line belongs to: elements of a path, in which
// placeholders stand for what a line holds. Two lines whose values differ never
// get one path, and none gets a path outside the folder of the elements before the
// first placeholder.
type pattern struct {
	text     string
	elements []element
}

// An element is one name of the path.
type element []part

// A part of an element is a text, or a placeholder that a line fills.
type part struct {
	kind partKind
	text string   // the text; of a placeholder as it was written, without braces
	keys []string // of a field: the way to it
	n    int      // the number of the column, or of the files to go round
	// until is a character that the text behind the placeholder holds, and that its
	// values therefore must not: it tells where they end. 0 if nothing else follows
	// in this element.
	until byte
}

type partKind int8

const (
	fixedText  partKind = iota
	jsonField           // {name}, {user.id}, {.line}
	column              // {3}
	roundRobin          // {%8}
	lineNumber          // {line}
)

// maxName is how many bytes a name may have on all usual file systems.
const maxName = 255

// maxNumber is more columns, or files to go round, than anybody has.
const maxNumber = 1_000_000

// parsePattern reads the value of --out.
func parsePattern(text string) (pattern, error) {
	parts, err := parseParts(text)
	if err != nil {
		return pattern{}, fmt.Errorf("%q: %w", text, err)
	}
	p := pattern{text: text, elements: elementsOf(parts)}
	if err := p.check(); err != nil {
		return pattern{}, fmt.Errorf("%q: %w", text, err)
	}
	return p, nil
}

// parseParts takes the text apart at its braces; a doubled brace is itself.
func parseParts(text string) (parts []part, err error) {
	var fixed strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c != '{' && c != '}':
			fixed.WriteByte(c)
		case i+1 < len(text) && text[i+1] == c:
			fixed.WriteByte(c)
			i++
		case c == '}':
			return nil, fmt.Errorf("the } at byte %d closes nothing; write }} for the character itself", i)
		default:
			end := strings.IndexByte(text[i:], '}')
			if end < 0 {
				return nil, fmt.Errorf("the { at byte %d is never closed; write {{ for the character itself", i)
			}
			placeholder, err := parsePlaceholder(text[i+1 : i+end])
			if err != nil {
				return nil, err
			}
			parts = append(parts, part{text: fixed.String()}, placeholder)
			fixed.Reset()
			i += end
		}
	}
	return append(parts, part{text: fixed.String()}), nil
}

// parsePlaceholder reads what stands in braces.
func parsePlaceholder(text string) (part, error) {
	p := part{text: text}
	count, isRobin := strings.CutPrefix(text, "%")
	switch {
	case isRobin:
		p.kind = roundRobin
	case text != "" && strings.Trim(text, "0123456789") == "":
		p.kind, count = column, text
	case text == "line":
		p.kind = lineNumber
		return p, nil
	default:
		p.kind, p.keys = jsonField, strings.Split(strings.TrimPrefix(text, "."), ".")
		for _, key := range p.keys {
			if key == "" {
				return p, fmt.Errorf("{%s} names no field; use a field {name}, {user.id}, a column {3}, or {%%8} to go round 8 files", text)
			}
		}
		return p, nil
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 || n > maxNumber {
		return p, fmt.Errorf("{%s} needs a number from 1 to %d", text, maxNumber)
	}
	p.n = n
	return p, nil
}

// elementsOf takes the parts apart at the slashes of their texts.
func elementsOf(parts []part) []element {
	elements := []element{nil}
	for _, p := range parts {
		if p.kind != fixedText {
			last := len(elements) - 1
			elements[last] = append(elements[last], p)
			continue
		}
		for i, name := range strings.Split(filepath.ToSlash(p.text), "/") {
			if i > 0 {
				elements = append(elements, nil)
			}
			if last := len(elements) - 1; name != "" {
				elements[last] = append(elements[last], part{text: name})
			}
		}
	}
	return elements
}

// check refuses what can't be a file's path, or would let values escape, and finds
// out where the values of each placeholder end.
func (p *pattern) check() error {
	if p.text == "" {
		return errors.New("a name is missing; use for instance 'logs/{name}.jsonl'")
	}
	if err := checkFile(p.text); err != nil {
		return err
	}
	varies := false
	for _, e := range p.elements {
		if varies && e.is("..") {
			return fmt.Errorf(".. behind a placeholder leads out of the folder that its values name; leave it out")
		}
		varies = varies || e.varies()
		if err := e.check(); err != nil {
			return err
		}
	}
	return nil
}

// checkFile refuses what can't be the path of a file.
func checkFile(path string) error {
	switch path[strings.LastIndexByte(filepath.ToSlash(path), '/')+1:] {
	case "", ".", "..":
		return errors.New("it names a folder; end it with a file's name")
	}
	if path == "-" {
		return errors.New("only files are written; use ./- for a file of that name")
	}
	return nil
}

// parseElse reads the file for lines that have no other.
func parseElse(text string) (string, error) {
	if text == "" {
		return "", errors.New("a name is missing; leave --else out, and such lines are told and not written")
	}
	if err := checkFile(text); err != nil {
		return "", fmt.Errorf("%q: %w", text, err)
	}
	return filepath.Clean(text), nil
}

// parseSeparator reads what separates columns.
func parseSeparator(text string) (string, error) {
	switch {
	case text == "":
		return "", errors.New("nothing can't separate columns; leave --separator out for white space")
	case strings.Contains(text, "\n"):
		return "", fmt.Errorf("%q can't separate columns: a line feed ends the line; leave it out", text)
	}
	return text, nil
}

func (e element) is(name string) bool {
	return len(e) == 1 && e[0].kind == fixedText && e[0].text == name
}

func (e element) varies() bool {
	for _, p := range e {
		if p.kind != fixedText {
			return true
		}
	}
	return false
}

func (e element) check() error {
	length := 0
	for i := range e {
		p := &e[i]
		if p.kind == fixedText {
			length += len(p.text)
			if strings.IndexByte(p.text, 0) >= 0 {
				return fmt.Errorf("a name can't hold a NUL byte; leave it out")
			}
			if e.varies() && strings.Contains(p.text, "%") {
				return fmt.Errorf("a %% beside a placeholder is for what is escaped in its values; leave it out of %q", p.text)
			}
			continue
		}
		if !e[i+1:].varies() {
			continue
		}
		if p.until = delimiter(e[i+1]); p.until == 0 {
			return fmt.Errorf("nothing tells where {%s} ends and the next placeholder begins; put a character such as - or / between them", p.text)
		}
	}
	if length > maxName {
		return fmt.Errorf("a name of %d bytes is too long; use at most %d", length, maxName)
	}
	return nil
}

// delimiter returns the first character of a text that can tell where the value
// before it ends, because it is in no escape: 0 if there is none.
func delimiter(p part) byte {
	if p.kind != fixedText {
		return 0
	}
	for _, c := range []byte(p.text) {
		if c < utf8.RuneSelf && strings.IndexByte(hexDigits, c) < 0 {
			return c
		}
	}
	return 0
}

// has reports whether the pattern has such a placeholder.
func (p *pattern) has(kind partKind) bool {
	for _, e := range p.elements {
		for _, part := range e {
			if part.kind == kind {
				return true
			}
		}
	}
	return false
}

func (p *pattern) varies() bool {
	for _, e := range p.elements {
		if e.varies() {
			return true
		}
	}
	return false
}

// appendPath appends the path of the file that a line belongs to, or returns a
// *lineError.
func (p *pattern) appendPath(path []byte, l *line) ([]byte, error) {
	for i, e := range p.elements {
		if i > 0 {
			path = append(path, os.PathSeparator)
		}
		start := len(path)
		for j := range e {
			var err error
			if path, err = e[j].appendTo(path, l); err != nil {
				return path, err
			}
		}
		if len(path)-start > maxName {
			path = shorten(path, start, e)
		}
	}
	return path, nil
}

// appendTo appends what the part is for a line.
func (p *part) appendTo(path []byte, l *line) ([]byte, error) {
	switch p.kind {
	case fixedText:
		return append(path, p.text...), nil
	case roundRobin:
		return strconv.AppendInt(path, (l.number-1)%int64(p.n), 10), nil
	case lineNumber:
		return strconv.AppendInt(path, l.number, 10), nil
	}
	value, err := l.value(p)
	if err != nil {
		return path, err
	}
	return appendName(path, value, p.until), nil
}

// shorten makes a name that is too long fit: its beginning, %~, a digest of all of
// it, and the text that the pattern ends it with. No value that fits holds %~.
func shorten(path []byte, start int, e element) []byte {
	digest := sha256.Sum256(path[start:])
	ending := ""
	if last := e[len(e)-1]; last.kind == fixedText && len(last.text) <= maxName/4 {
		ending = last.text
	}
	cut := start + maxName - len(ending) - len("%~") - hex.EncodedLen(len(digest))
	for cut > start && !utf8.RuneStart(path[cut]) {
		cut--
	}
	path = append(path[:cut], "%~"...)
	path = hex.AppendEncode(path, digest[:])
	return append(path, ending...)
}
