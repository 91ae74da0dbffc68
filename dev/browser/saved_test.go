package browser

import (
	"bytes"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
)

// downloads lets a tab save files, and returns a function that clicks and returns the file that comes of it.
func downloads(t *testing.T, b *tab) func(selector string, n int) (name string, data []byte) {
	t.Helper()
	dir := t.TempDir()
	events := true
	allow := browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorAllowAndName, DownloadPath: dir, EventsEnabled: &events}
	type saved struct{ guid, name string }
	done := make(chan saved, 8)
	names := map[string]string{}
	err := chromedp.ListenBrowser(b.ctx, func(event any) {
		switch e := event.(type) {
		case *browser.EventDownloadWillBegin:
			names[e.GUID] = e.SuggestedFilename
		case *browser.EventDownloadProgress:
			if e.State == browser.DownloadProgressStateCompleted {
				done <- saved{e.GUID, names[e.GUID]}
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.CallBrowser(b.ctx, browser.SetDownloadBehavior, allow); err != nil {
		t.Fatal(err)
	}
	return func(selector string, n int) (string, []byte) {
		t.Helper()
		b.click(selector, n)
		select {
		case s := <-done:
			data, err := os.ReadFile(filepath.Join(dir, s.guid))
			if err != nil {
				t.Fatal(err)
			}
			return s.name, data
		case <-time.After(20 * time.Second):
			t.Fatalf("a click on %s %d saves nothing", selector, n)
			return "", nil
		}
	}
}

func TestTablesAndPicturesAreSaved(t *testing.T) {
	b := open(t, usualPage(t))
	b.unfold()
	save := downloads(t, b)

	name, data := save("[data-save=csv]", 3)
	rows, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil || !strings.HasSuffix(name, ".csv") {
		t.Fatalf("%s: %v", name, err)
	}
	want := ask[[][]string](b, `Array.from(document.querySelectorAll("table[data-name]")[3].rows, (r) => Array.from(r.cells, (c) => c.dataset.head || c.textContent))`)
	if fmt.Sprint(rows) != fmt.Sprint(want) || len(rows) < 10 {
		t.Errorf("%s has\n%q\nand the page\n%q", name, rows, want)
	}

	name, data = save("[data-save=svg]", 0)
	if !strings.HasSuffix(name, ".svg") || bytes.Contains(data, []byte("var(")) || bytes.Contains(data, []byte("class=")) {
		t.Errorf("%s leans on the page's style: %.300s", name, data)
	}
	circles := 0
	for d := xml.NewDecoder(bytes.NewReader(data)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "circle" {
			circles++
		}
	}
	if circles < 10 {
		t.Errorf("%s has %d circles", name, circles)
	}

	// A picture takes its line of the legend along, which it shares with others on the page.
	for _, of := range []struct {
		keys string
		want []string
	}{{"writers", []string{"1 writer", "8 writers"}}, {"stages", []string{"write", "flush", "sync", "open and close"}}} {
		at := ask[int](b, fmt.Sprintf(`Array.from(document.querySelectorAll("[data-save=svg]")).findIndex((e) => e.closest("figure").dataset.keys === %q)`, of.keys))
		if at < 0 {
			t.Errorf("no picture needs the %s", of.keys)
			continue
		}
		_, data = save("[data-save=svg]", at)
		for _, want := range of.want {
			if !bytes.Contains(data, []byte(">"+want+"</text>")) {
				t.Errorf("a saved picture of the %s does not say %q: %s", of.keys, want, data)
			}
		}
	}

	name, data = save("[data-save=png]", 0)
	picture, err := png.Decode(bytes.NewReader(data))
	if err != nil || !strings.HasSuffix(name, ".png") || picture.Bounds().Dx() < 1000 {
		t.Fatalf("%s: %v", name, err)
	}
	seen := map[any]bool{}
	for y := range picture.Bounds().Dy() {
		for x := range picture.Bounds().Dx() {
			seen[picture.At(x, y)] = true
		}
	}
	if len(seen) < 10 {
		t.Errorf("%s has %d colours", name, len(seen))
	}
}
