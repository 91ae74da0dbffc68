package write

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A pattern says which file a line belongs to: elements of a path, in which placeholders
// stand for values of the line. Lines with different values never get the same path. No
// path leaves the directory of the elements before the first placeholder.
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
	// until is a character of the text behind the placeholder. It marks the end of the
	// values, so they must not hold it. 0 if no other placeholder follows in this
	// element.
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

// parsePattern reads the value of --out. It refuses what can't be a file's path, or would let
// values escape, and finds out where the values of each placeholder end.
func parsePattern(text string) (p pattern, err error) {
	if text == "" {
		return p, errors.New(`"": a name is missing; use for instance 'logs/{name}.jsonl'`)
	}
	defer func() {
		if err != nil {
			p, err = pattern{}, fmt.Errorf("%q: %w", text, err)
		}
	}()
	parts, err := parseParts(text)
	if err != nil {
		return p, err
	}
	if err := checkFile(text); err != nil {
		return p, err
	}
	p = pattern{text: text, elements: elementsOf(parts)}
	varies := false
	for _, e := range p.elements {
		if varies && len(e) == 1 && e[0].kind == fixedText && e[0].text == ".." {
			return p, errors.New(".. behind a placeholder leads out of the directory that its values name; leave it out")
		}
		varies = varies || e.varies()
		if err := e.check(); err != nil {
			return p, err
		}
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

// checkFile refuses what can't be the path of a file.
func checkFile(path string) error {
	switch path[strings.LastIndexByte(filepath.ToSlash(path), '/')+1:] {
	case "", ".", "..":
		return errors.New("it names a directory; end it with a file's name")
	}
	if path == "-" {
		return errors.New("only files are written; use ./- for a file of that name")
	}
	return nil
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
			return fmt.Errorf("nothing marks where {%s} ends and the next placeholder begins; put a character such as - or / between them", p.text)
		}
	}
	if length > maxName {
		return fmt.Errorf("a name of %d bytes is too long; use at most %d", length, maxName)
	}
	return nil
}

// delimiter returns the first character of a text that can mark the end of the value
// before it, because no escape holds it: 0 if there is none.
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

// appendPath appends the path of the file that a line belongs to, or returns a
// *lineError.
func (p *pattern) appendPath(path []byte, l *line) ([]byte, error) {
	for i, e := range p.elements {
		if i > 0 {
			path = append(path, os.PathSeparator)
		}
		start := len(path)
		for j := range e {
			switch part := &e[j]; part.kind {
			case fixedText:
				path = append(path, part.text...)
			case roundRobin:
				path = strconv.AppendInt(path, (l.number-1)%int64(part.n), 10)
			case lineNumber:
				path = strconv.AppendInt(path, l.number, 10)
			default:
				value, err := l.value(part)
				if err != nil {
					return path, err
				}
				path = appendName(path, value, part.until)
			}
		}
		if len(path)-start > maxName {
			path = shorten(path, start, e)
		}
	}
	return path, nil
}

// appendName appends a value so that it can stand in a file's name. What can't, or
// would mean something there, is written as in a URL: % and two hexadecimal digits
// for each byte. The empty value is %-. Two values never give one name, and none
// is empty, begins with a dot, or holds until, if that is not 0.
func appendName(name, value []byte, until byte) []byte {
	if len(value) == 0 {
		return append(name, "%-"...)
	}
	if runtime.GOOS == "windows" {
		return appendWindowsName(name, value, until)
	}
	return appendEscaped(name, value, until, `/\%`)
}

// appendWindowsName also escapes what means something to Windows. These are other
// characters, the names of devices, and a dot or space at the end, which Windows
// drops.
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

// shorten makes a name that is too long fit. The result is its beginning, %~, a
// digest of all of it, and the pattern's text at its end. No value that fits
// holds %~.
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
