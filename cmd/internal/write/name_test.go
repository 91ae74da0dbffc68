package write

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestColumnOfALine(t *testing.T) {
	check := func(line, separator string, n int, want string, ok bool) {
		t.Helper()
		if got, is := columnOf([]byte(line), []byte(separator), n); string(got) != want || is != ok {
			t.Errorf("column %d of %q is %q, %v; want %q, %v", n, line, got, is, want, ok)
		}
	}
	check("a b", "", 2, "b", true)
	check(" \t a\tb ", "", 2, "b", true)
	check("a ", "", 2, "", false)
	check(" \t", "", 1, "", false)
	check("", "", 1, "", false)
	check("a,,c", ",", 2, "", true)
	check("a,,c", ",", 3, "c", true)
	check("a,,c", ",", 4, "", false)
	check("a,,c", ",,", 2, "c", true)
	check("", ",", 1, "", true)
}

func TestTargetHasAPlaceForTheValue(t *testing.T) {
	check := func(path, value, want string) {
		t.Helper()
		target, err := parseTarget(path)
		if got := filepath.ToSlash(target.path([]byte(value))); err != nil || got != want || target.String() != filepath.FromSlash(path) && target.String() != path {
			t.Errorf("%s of %q is %s, %v; want %s", path, value, got, err, want)
		}
	}
	check("a", "x", "a")
	check("{}", "x", "x")
	check("/logs/a-{}.log", "x", "/logs/a-x.log")
	last := "."
	if runtime.GOOS == "windows" { // which drops a last dot
		last = "%2E"
	}
	check("../{}", "..", "../%2E"+last)
	check("../{}", "/etc/passwd", "../%2Fetc%2Fpasswd")
	check("100%/{}", "", "100%/%-")
}

// unescaped returns the original of a name.
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

func TestNamesForWindows(t *testing.T) {
	check := func(value, want string) {
		t.Helper()
		if got := fileName([]byte(value), true); got != want {
			t.Errorf("%q gives %q, want %q", value, got, want)
		}
	}
	check("CON", "%43ON")
	check("con.txt", "%63on.txt")
	check("COM1", "%43OM1")
	check("COM10", "COM10")
	check("nul ", "%6Eul%20")
	check("LPT9.x", "%4CPT9.x")
	check("a:b", "a%3Ab")
	check("a.", "a%2E")
	check("a. .", "a%2E%20%2E")
}

// FuzzName makes names of values, for Windows too, on any system. Each stays in its directory, and is of one value.
func FuzzName(f *testing.F) {
	for _, value := range values {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for _, windows := range []bool{false, true} {
			name := fileName([]byte(value), windows)
			if unescaped(t, name) != value {
				t.Errorf("%q gives %q, which is of %q", value, name, unescaped(t, name))
			}
			if name == "" || name[0] == '.' || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) || strings.ContainsAny(name, `/\`) {
				t.Errorf("%q gives %q", value, name)
			}
			if windows && (strings.ContainsAny(name, `:*?"<>|`) || isDevice(name) || strings.HasSuffix(name, ".") || strings.HasSuffix(name, " ")) {
				t.Errorf("%q gives %q for Windows", value, name)
			}
		}
	})
}

func TestLineFeedIsNoSeparator(t *testing.T) {
	if _, err := parseSeparator("a\n"); err == nil {
		t.Error("no column of a line holds one")
	}
	if text, err := parseSeparator("::"); text != "::" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}
