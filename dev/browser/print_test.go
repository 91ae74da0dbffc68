package browser

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/ledongthuc/pdf"
)

// TestPrintHasEveryColumn prints on A4, and looks for the heads of all tables on the paper. As it comes the answer,
// its picture and the table of policies are on the first page. Opened details are printed too.
func TestPrintHasEveryColumn(t *testing.T) {
	site := smallPage(t)
	file := filepath.Join(t.TempDir(), "policy.jsonl")
	if err := os.WriteFile(file, storedRun(t), 0o600); err != nil {
		t.Fatal(err)
	}
	pages := printed(open(t, report(t, file)))
	for _, want := range []string{"Whatarecordcosts", "Howsure", "Costagainstloss", "Policies,bywhatapowercuttakes", "unbuffered"} {
		if !strings.Contains(pages[0], want) {
			t.Errorf("%q is not on the first page:\n%s", want, pages[0])
		}
	}
	b := open(t, site)
	b.unfold()
	on := strings.Join(printed(b), "")
	heads := ask[[]string](b, `Array.from(document.querySelectorAll("thead th"), (th) => th.dataset.head || th.textContent)`)
	for _, head := range heads {
		if !strings.Contains(on, plain.Replace(head)) {
			t.Errorf("%q is not printed", head)
		}
	}
	if len(heads) < 50 {
		t.Errorf("%d heads", len(heads))
	}
	// A table wider than the paper would be cut off there.
	b = open(t, site, onPaper, chromedp.EmulateViewport(paperWide, paperTall))
	b.unfold()
	if wide := ask[[]string](b, `Array.from(document.querySelectorAll("table, svg, p, li")).filter((e) => e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.outerHTML.slice(0, 100))`); len(wide) > 0 {
		t.Errorf("wider than A4: %q", wide)
	}
}

// storedRun returns the results of the README's picture, of nine policies.
func storedRun(t *testing.T) []byte {
	t.Helper()
	f, err := os.Open("../../docs/measured/policy.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// plain takes out what a printed line may have more than its text.
var plain = strings.NewReplacer(" ", "", "\u00ad", "", "\n", "", "-", "", "ﬀ", "ff", "ﬁ", "fi", "ﬂ", "fl", "ﬃ", "ffi")

// printed returns the text of each printed page.
func printed(b *tab) (pages []string) {
	b.t.Helper()
	document, err := chromedp.Run(b.ctx, chromedp.PrintToPDF(chromedp.PDFPreferCSSPageSize(), chromedp.PDFPrintBackground()))
	if err != nil {
		b.t.Fatal(err)
	}
	reader, err := pdf.NewReader(bytes.NewReader(document), int64(len(document)))
	if err != nil {
		b.t.Fatal(err)
	}
	for i := range reader.NumPage() {
		p := reader.Page(i + 1)
		if box := p.V.Key("MediaBox"); box.Index(2).Float64() < 800 || box.Index(2).Float64() > 850 {
			b.t.Errorf("page %d is %v points wide, and A4 across 842", i+1, box.Index(2))
		}
		var text strings.Builder
		for _, piece := range p.Content().Text {
			text.WriteString(piece.S)
		}
		pages = append(pages, plain.Replace(text.String()))
	}
	return pages
}

// TestPageIsShort: what stands open on the page of a usual run takes at most four screens.
func TestPageIsShort(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.jsonl")
	if err := os.WriteFile(file, storedRun(t), 0o600); err != nil {
		t.Fatal(err)
	}
	const wide, tall, screens = 1280, 800, 4
	b := open(t, report(t, file), chromedp.EmulateViewport(wide, tall))
	ask[chromedp.Void](b, `document.querySelectorAll("section").forEach((e) => { e.style.contentVisibility = "visible" })`)
	if got := ask[int](b, `document.documentElement.scrollHeight`); got > screens*tall || got < tall {
		t.Errorf("the page is %d pixels tall, and a screen %d", got, tall)
	}
}
