package result_test

import (
	"encoding"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
)

// keys returns the JSON keys of a struct. The keys of a nested struct follow a dot, and the keys of a
// list's elements follow [].
func keys(t reflect.Type, prefix string) []string {
	var all []string
	for i := range t.NumField() {
		field := t.Field(i)
		if !field.IsExported() {
			continue
		}
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		inner := field.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			if inner.Kind() == reflect.Slice {
				key += "[]"
			}
			inner = inner.Elem()
		}
		switch {
		case field.Anonymous:
			all = append(all, keys(inner, prefix)...)
		case inner.Kind() == reflect.Struct && !inner.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
			all = append(all, keys(inner, prefix+key+".")...)
		default:
			all = append(all, prefix+key)
		}
	}
	return all
}

var documentedKey = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]+) \\| ([^|]+) \\|$")

// TestEveryKeyIsDocumented compares docs/results.md with the structs: each kind of line has a section
// with a row for each key, with its unit and its meaning.
func TestEveryKeyIsDocumented(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "results.md"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	check := func(kind string, of reflect.Type) {
		t.Helper()
		_, section, found := strings.Cut(text, "\n### `"+kind+"`\n")
		if !found {
			t.Errorf("there is no section for %s", kind)
			return
		}
		section, _, _ = strings.Cut(section, "\n## ")
		section, _, _ = strings.Cut(section, "\n### ")
		want := append([]string{"kind"}, keys(of, "")...)
		var got []string
		for _, row := range documentedKey.FindAllStringSubmatch(section, -1) {
			got = append(got, row[1])
			if !slices.Contains(want, row[1]) {
				t.Errorf("%s: %s is documented, and there is no such key", kind, row[1])
			}
			if strings.TrimSpace(row[2]) == "" || strings.TrimSpace(row[3]) == "" {
				t.Errorf("%s: %s has no unit or no meaning", kind, row[1])
			}
		}
		for _, key := range want {
			if !slices.Contains(got, key) {
				t.Errorf("%s: %s is not documented", kind, key)
			}
		}
	}
	check("header", reflect.TypeFor[result.Header]())
	check("resume", reflect.TypeFor[result.Resumption]())
	check("trial", reflect.TypeFor[result.Trial]())
	check("control", reflect.TypeFor[result.Control]())
	check("rest", reflect.TypeFor[result.Rest]())
	check("end", reflect.TypeFor[result.End]())
}
