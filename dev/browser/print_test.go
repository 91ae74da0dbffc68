package browser

import (
	"bytes"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/ledongthuc/pdf"
)

// TestPrintHasEveryColumn prints on A4, and looks for the heads of all tables in what was printed.
func TestPrintHasEveryColumn(t *testing.T) {
	site := usualPage(t)
	b := open(t, site)
	printed, err := chromedp.Run(b.ctx, chromedp.PrintToPDF(chromedp.PDFPreferCSSPageSize(), chromedp.PDFPrintBackground()))
	if err != nil {
		t.Fatal(err)
	}
	reader, err := pdf.NewReader(bytes.NewReader(printed), int64(len(printed)))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for i := range reader.NumPage() {
		p := reader.Page(i + 1)
		if box := p.V.Key("MediaBox"); box.Index(2).Float64() < 800 || box.Index(2).Float64() > 850 {
			t.Errorf("page %d is %v points wide, and A4 across 842", i+1, box.Index(2))
		}
		for _, piece := range p.Content().Text {
			text.WriteString(piece.S)
		}
	}
	plain := strings.NewReplacer(" ", "", "\u00ad", "", "\n", "", "-", "", "ﬀ", "ff", "ﬁ", "fi", "ﬂ", "fl", "ﬃ", "ffi")
	on := plain.Replace(text.String())
	heads := ask[[]string](b, `Array.from(document.querySelectorAll("thead th"), (th) => th.dataset.head || th.textContent)`)
	for _, head := range heads {
		if !strings.Contains(on, plain.Replace(head)) {
			t.Errorf("%q is not printed", head)
		}
	}
	if len(heads) < 50 {
		t.Errorf("%d heads", len(heads))
	}
	// What is wider than the paper would be cut off there.
	b = open(t, site, onPaper, chromedp.EmulateViewport(paperWide, paperTall))
	if wide := ask[[]string](b, `Array.from(document.querySelectorAll("table, svg, p, li")).filter((e) => e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.outerHTML.slice(0, 100))`); len(wide) > 0 {
		t.Errorf("wider than A4: %q", wide)
	}
}
