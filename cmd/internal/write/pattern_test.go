package write

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// pathOf returns the path that a pattern gives a line.
func pathOf(t *testing.T, text string, l line) (string, error) {
	t.Helper()
	p, err := parsePattern(text)
	if err != nil {
		t.Fatal(err)
	}
	path, err := p.appendPath(nil, &l)
	return filepath.ToSlash(string(path)), err
}

func TestPatternGivesEachLineItsPath(t *testing.T) {
	check := func(pattern, text string, number int64, want string) {
		t.Helper()
		got, err := pathOf(t, pattern, line{text: []byte(text), number: number})
		if err != nil || got != want {
			t.Errorf("%s of %s is %s, %v; want %s", pattern, text, got, err, want)
		}
	}
	check("a", "x", 1, "a")
	check("/logs//{a}.log", `{"a":"x"}`, 1, "/logs//x.log")
	check("../{a}/{.a}-{%3}", `{"a":"x"}`, 7, "../x/x-0")
	check("{{{a}}}", `{"a":1}`, 1, "{1}")
	check("{line}", "x", 12, "12")
	check("{.line}", `{"line":3}`, 12, "3")
	check("{.3}", `{"3":"three"}`, 1, "three")
	check("{a b}.{1}", `{"a b":"c"} `, 1, `c.{"a`)
	check("{a.b.c}", ` {"a":{"b":{"c":"x\u0020y"}}}`+"\r\n", 1, "x y")
	check("{2}", "a b\r\n", 1, "b")
	check("{%1}", "", 9, "0")
}

func TestLineThatHasNoPathSaysWhy(t *testing.T) {
	check := func(pattern, text string, want lineErrorKind) {
		t.Helper()
		_, err := pathOf(t, pattern, line{text: []byte(text), number: 1})
		var got *lineError
		if !errors.As(err, &got) || got.kind != want {
			t.Errorf("%s of %q: %v, want kind %d", pattern, text, err, want)
		}
	}
	check("{a}", "", notJSON)
	check("{a}", "{", notJSON)
	check("{a}", `{"a":1}{}`, notJSON)
	check("{a}", `"a"`, notJSON)
	check("{a}", `{}`, missing)
	check("{a}", `{"b":{"a":1}}`, missing)
	check("{a.b}", `{"a":"b"}`, missing)
	check("{a.b}", `{"a":{"b":1},"a":{}}`, missing)
	check("{a.0}", `{"a":[1]}`, missing)
	check("{a}", `{"a":null}`, noValue)
	check("{a}", `{"a":[]}`, noValue)
	check("{a}", `{"a":{}}`, noValue)
	check("{2}", "a ", missing)
	check("{1}", " \t", missing)
}

// unescaped is what a name was made of.
func unescaped(t *testing.T, name string) string {
	t.Helper()
	var value strings.Builder
	for i := 0; i < len(name); i++ {
		switch {
		case name[i] != '%':
			value.WriteByte(name[i])
		case name == "%-":
			i++
		default:
			var c byte
			if _, err := fmt.Sscanf(name[i+1:i+3], "%02X", &c); err != nil {
				t.Fatalf("%q: %v", name, err)
			}
			value.WriteByte(c)
			i += 2
		}
	}
	return value.String()
}

var values = []string{
	"", ".", "..", "...", "a", "a.b", ".a", "%", "%-", "%2E", "a/b", `a\b`, "../../etc/passwd", "\x00", "\n", "\x7f", "\u0085",
	"naïve", "\xff", "\xc3", "\ufffd", "\xed\xa0\x80", "日本", "-", "x-y", " ", "a ", "a.", "CON", "con.txt", "COM1", "COM10", "nul ", "a:b", "~",
}

// TestEveryNameCanBeReadBack also holds the names for Windows, on any system.
func TestEveryNameCanBeReadBack(t *testing.T) {
	windows := map[string]string{}
	for _, value := range values {
		if name := string(appendName(nil, []byte(value), '-')); unescaped(t, name) != value {
			t.Errorf("%q gives %q, which is of %q", value, name, unescaped(t, name))
		}
		if value == "" {
			continue
		}
		name := string(appendWindowsName(nil, []byte(value), '-'))
		if unescaped(t, name) != value {
			t.Errorf("on Windows %q gives %q", value, name)
		}
		// What Windows would make of it.
		taken := strings.TrimRight(strings.ToUpper(name), " .")
		if other, ok := windows[taken]; ok || isDevice([]byte(name)) || taken == "" {
			t.Errorf("on Windows %q gives %q, which is a device, nothing, or that of %q", value, name, other)
		}
		windows[taken] = value
	}
}

func TestTooLongNamesStayApart(t *testing.T) {
	seen := map[string]bool{}
	for _, value := range []string{
		strings.Repeat("a", 249), strings.Repeat("a", 250), strings.Repeat("a", 251), strings.Repeat("a", 10000), strings.Repeat("a", 10000) + "b",
		strings.Repeat("é", 125), strings.Repeat("é", 126), strings.Repeat("\x01", 84), strings.Repeat("/", 300),
	} {
		path, err := pathOf(t, "logs/{1}.jsonl", line{text: []byte(value), number: 1, separator: []byte(",")})
		name := strings.TrimPrefix(path, "logs/")
		if err != nil || seen[name] || len(name) > maxName || !utf8.ValidString(name) || !strings.HasSuffix(name, ".jsonl") {
			t.Errorf("%.20q… of %d bytes gives %q, %v", value, len(value), name, err)
		}
		seen[name] = true
	}
}

// columnsInstead makes every placeholder that asks for something of a line ask for
// a column of its own, and returns how many there are.
func columnsInstead(p *pattern) (n int) {
	for _, e := range p.elements {
		for i := range e {
			if e[i].kind == jsonField || e[i].kind == column {
				n++
				e[i].kind, e[i].n = column, n
			}
		}
	}
	return n
}

// FuzzPattern gives values to any pattern that is not refused. Whatever they are,
// each path has the elements of the pattern, in its directory, and two paths are one
// only if all values are.
func FuzzPattern(f *testing.F) {
	for _, text := range []string{"logs/{a}.jsonl", "{a}-{b}", "{a}x{2}/{%3}", "{{{a}}}", ".{a}", "{a}/../b", "{a}{b}", "{a}.", "/{a}/{line}", "{a}%~{b}", "{a}é-{b}"} {
		for i := range values {
			f.Add(text, values[i]+"\n"+values[len(values)-1-i], values[(i+1)%len(values)]+"\n"+values[len(values)/2])
		}
	}
	f.Add("{a}-{b}", "x-y\nz", "x\ny-z")
	f.Add("{a}, {b}", "x, y\nz", "x\ny, z")
	f.Add("{a}-{b}", strings.Repeat("a", 300), strings.Repeat("a", 300)+"\nb")
	f.Fuzz(func(t *testing.T, text, one, other string) {
		p, err := parsePattern(text)
		if err != nil {
			return
		}
		n := columnsInstead(&p)
		path := func(values []string) string {
			l := line{text: []byte(strings.Join(values, "\n") + "\nend\n"), number: 5, separator: []byte("\n")}
			path, err := p.appendPath(nil, &l)
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			checkInside(t, &p, string(path))
			return string(path)
		}
		a, b := someValues(one, n), someValues(other, n)
		if (path(a) == path(b)) != slices.Equal(a, b) {
			t.Errorf("%q: %q gives %q, and %q gives %q", text, a, path(a), b, path(b))
		}
	})
}

// someValues takes n values from a text.
func someValues(text string, n int) []string {
	return append(strings.SplitN(text, "\n", -1), make([]string, n)...)[:n]
}

func checkInside(t *testing.T, p *pattern, path string) {
	t.Helper()
	names := strings.Split(path, string(os.PathSeparator))
	if len(names) != len(p.elements) {
		t.Fatalf("%q gives %q, which has %d elements", p.text, path, len(names))
	}
	for i, name := range names {
		if !p.elements[i].varies() {
			continue
		}
		if name == "" || name == "." || name == ".." || len(name) > maxName || strings.ContainsRune(name, 0) {
			t.Errorf("%q gives %q", p.text, path)
		}
		hasControl := func(text string) bool { return strings.ContainsFunc(text, unicode.IsControl) }
		if hasControl(name) && !hasControl(p.text) {
			t.Errorf("%q gives %q", p.text, path)
		}
	}
}

func TestLineFeedIsNoSeparator(t *testing.T) {
	if _, err := parseSeparator("a\n"); err == nil {
		t.Error("no column of a line holds one")
	}
	if text, err := parseSeparator("::"); text != "::" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}
