package drill

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestReadmeNamesEveryCase compares the README's table of cases with the checker's cases, in their order.
func TestReadmeNamesEveryCase(t *testing.T) {
	names := func(path, begin, form string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), begin)
		var all []string
		for _, m := range regexp.MustCompile(form).FindAllStringSubmatch(rest, -1) {
			all = append(all, m[1])
		}
		return strings.Join(all, ", ")
	}
	has := names("../internal/lab/diy/c/check.c", "cases[] = {", `(?m)^\t\{"(.*?)", `)
	shown := names("README.md", "|---|---|", `(?m)^\| (.*?) \|`)
	if has == "" || has != shown {
		t.Errorf("the checker has the cases\n%s\nand README.md has\n%s", has, shown)
	}
}

// TestSourcesAreComplete compares the embedded files with the files that a student finds.
func TestSourcesAreComplete(t *testing.T) {
	for _, name := range []string{"c/diy_buffering.c", "c/diy_buffering.h", "df/df.c", "df/df.h"} {
		is, err := Sources.ReadFile(name)
		if want, err2 := os.ReadFile(name); err != nil || err2 != nil || string(is) != string(want) {
			t.Errorf("%s: %v, %v", name, err, err2)
		}
	}
}
