package write

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// fieldByTheLibrary is what encoding/json finds: the text of a value that can be
// one, or the kind of failure.
func fieldByTheLibrary(text []byte, keys []string) (value string, kind lineErrorKind, ok bool) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var found any
	if !json.Valid(text) || d.Decode(&found) != nil {
		return "", notJSON, false
	}
	if _, isObject := found.(map[string]any); !isObject {
		return "", notJSON, false
	}
	for _, key := range keys {
		object, isObject := found.(map[string]any)
		if !isObject {
			return "", missing, false
		}
		if found, ok = object[key]; !ok {
			return "", missing, false
		}
	}
	switch found.(type) {
	case string, bool, json.Number:
		return fmt.Sprint(found), 0, true
	}
	return "", noValue, false
}

// checkField compares what write finds with what encoding/json does.
func checkField(t *testing.T, text []byte, keys []string) {
	t.Helper()
	l := line{text: text, number: 1}
	got, err := l.value(&part{kind: jsonField, keys: keys})
	want, kind, ok := fieldByTheLibrary(text, keys)
	if !ok {
		if why, isLine := err.(*lineError); !isLine || why.kind != kind {
			t.Errorf("%q of %s: %q, %v; want kind %d", keys, text, got, err, kind)
		}
		return
	}
	if err != nil || withoutHalves(got) != want {
		t.Errorf("%q of %s: %q, %v; want %q", keys, text, got, err, want)
	}
}

// withoutHalves has the replacement character for half of a surrogate pair and for
// each byte that is no text, as encoding/json does.
func withoutHalves(text []byte) string {
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if r == utf8.RuneError && size == 1 && len(text) >= 3 && text[0] == 0xed && text[1] >= 0xa0 {
			size = 3
		}
		b.WriteRune(r)
		text = text[size:]
	}
	return b.String()
}

// A scribe writes random JSON, spaced and escaped in every way.
type scribe struct {
	*rand.Rand
	bytes.Buffer
}

func (s *scribe) space() {
	for s.IntN(4) == 0 {
		s.WriteByte(jsonSpace[s.IntN(len(jsonSpace))])
	}
}

func (s *scribe) text(text string) {
	s.WriteByte('"')
	for _, r := range text {
		switch {
		case r < 0x10000 && (s.IntN(8) == 0 || r < ' '):
			fmt.Fprintf(s, `\u%04x`, r)
		case r == '"' || r == '\\' || r == '/' && s.IntN(2) == 0:
			s.WriteByte('\\')
			s.WriteRune(r)
		default:
			s.WriteRune(r)
		}
	}
	s.WriteString([]string{"", "", "", `\n`, `\b\f\r\t`, `\ud83d\ude00`, `\ud800`, `\udc00\ud800`, `\ud800\u0041`}[s.IntN(9)])
	s.WriteByte('"')
}

func (s *scribe) value(depth int) {
	s.space()
	defer s.space()
	switch n := s.IntN(9); {
	case n < 3 && depth > 0:
		s.object(depth - 1)
	case n == 3 && depth > 0:
		s.WriteByte('[')
		for i := range s.IntN(3) {
			if i > 0 {
				s.WriteByte(',')
			}
			s.value(depth - 1)
		}
		s.space()
		s.WriteByte(']')
	case n < 6:
		s.text([]string{"", "x", "a/b", `{"a":1}`, `\"`, "日本\u2028", "😀"}[s.IntN(7)])
	default:
		s.WriteString([]string{"0", "-1.50e+3", "1E400", "true", "false", "null"}[s.IntN(6)])
	}
}

func (s *scribe) object(depth int) {
	s.WriteByte('{')
	for i := range s.IntN(5) {
		if i > 0 {
			s.WriteByte(',')
		}
		s.space()
		s.name()
		s.space()
		s.WriteByte(':')
		s.value(depth)
	}
	s.space()
	s.WriteByte('}')
}

func (s *scribe) name() {
	name := []string{"a", "b", "c", "}", "é"}[s.IntN(5)]
	if s.IntN(3) == 0 {
		fmt.Fprintf(s, `"\u%04X"`, []rune(name)[0])
		return
	}
	fmt.Fprintf(s, `"%s"`, name)
}

func TestFieldsAreThoseOfEncodingJSON(t *testing.T) {
	s := &scribe{Rand: rand.New(rand.NewPCG(1, 2))}
	found := 0
	texts := 20_000
	if testing.Short() {
		texts = 2000
	}
	for range texts {
		s.Reset()
		s.space()
		s.object(4)
		s.space()
		text := s.Bytes()
		if s.IntN(10) == 0 {
			text = text[:s.IntN(len(text))]
		}
		for _, keys := range [][]string{{"a"}, {"b"}, {"}"}, {"é"}, {"a", "b"}, {"c", "a", "é"}} {
			checkField(t, text, keys)
			if _, _, ok := fieldByTheLibrary(text, keys); ok {
				found++
			}
		}
	}
	if found < texts/5 {
		t.Errorf("only %d fields were there", found)
	}
}

func FuzzField(f *testing.F) {
	f.Add([]byte(`{"a":{"b":"c\u0041"}}`), "a", "b")
	f.Add([]byte(` {"a":[{},"]"],"b":-1e9}`+"\r\n"), "b", "")
	f.Add([]byte(`{"":"\ud800"}`), "", "")
	f.Fuzz(func(t *testing.T, text []byte, key, inner string) {
		// Of what is no text, encoding/json makes another key.
		if !utf8.Valid(text) || !utf8.ValidString(key+inner) || strings.ContainsRune(key+inner, utf8.RuneError) {
			return
		}
		checkField(t, text, []string{key})
		checkField(t, text, []string{key, inner})
	})
}

func BenchmarkField(b *testing.B) {
	p, err := parsePattern("logs/{user.id}.jsonl")
	if err != nil {
		b.Fatal(err)
	}
	text := []byte(`{"time":"2024-05-01T12:00:00Z","level":"info","user":{"name":"ann","id":1234567},"message":"request served in 12 ms","path":"/index.html","status":200}` + "\n")
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	var l line
	var path []byte
	for b.Loop() {
		l.reset(text, 1)
		path, _ = p.appendPath(path[:0], &l)
	}
}
