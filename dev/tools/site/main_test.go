package main

import (
	"bytes"
	"html"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../../.."

// TestLinksOfTheSiteLeadSomewhere follows each link and picture of each page, also to a heading.
func TestLinksOfTheSiteLeadSomewhere(t *testing.T) {
	if err := exec.Command("git", "rev-parse", "HEAD").Run(); err != nil {
		t.Skip("not a clone of the repository: ", err)
	}
	out := filepath.Join(t.TempDir(), "site")
	pages, err := render(root, out)
	if err != nil || pages < 30 {
		t.Fatal(pages, err)
	}
	links := regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	titles, head := map[string]string{}, regexp.MustCompile(`<title>([^<]*)</title>`)
	found, leave := 0, 0
	err = filepath.WalkDir(out, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".html") {
			return err
		}
		text := read(t, name)
		if bytes.Contains(text, []byte("<script")) || !bytes.Contains(text, []byte("<title>")) || bytes.Contains(text, []byte("<title></title>")) {
			t.Errorf("%s runs a script, or has no title", name)
		}
		if !bytes.Contains(text, []byte("<main>\n<h1")) {
			t.Errorf("%s does not begin with its name", name)
		}
		if m := head.FindSubmatch(text); m != nil {
			if other := titles[string(m[1])]; other != "" {
				t.Errorf("%s and %s have the same title, %s", name, other, m[1])
			}
			titles[string(m[1])] = name
		}
		for _, m := range links.FindAllSubmatch(text, -1) {
			found++
			to, anchor, _ := strings.Cut(html.UnescapeString(string(m[1])), "#")
			if strings.HasPrefix(to, "https://") {
				leave++
				continue
			}
			at := name
			if to != "" {
				at = filepath.Join(filepath.Dir(name), filepath.FromSlash(to))
			}
			if info, err := os.Stat(at); err != nil || info.IsDir() {
				t.Errorf("%s links to %s, which is no file of the site: %v", name, to, err)
			} else if anchor != "" && !bytes.Contains(read(t, at), []byte(`id="`+anchor+`"`)) {
				t.Errorf("%s links to #%s of %s, which has no such heading", name, anchor, at)
			}
		}
		return nil
	})
	if err != nil || found < 300 || leave == found {
		t.Errorf("%d links, %d of them to other sites, %v", found, leave, err)
	}
	if _, err := render(root, out); err == nil || !strings.Contains(err.Error(), "a new directory") {
		t.Errorf("a site is made over another: %v", err)
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
