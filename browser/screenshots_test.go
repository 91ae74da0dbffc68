package browser

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

var screenshots = flag.String("screenshots", "", "keep the pictures of docs/screenshots in this directory")

// TestScreenshots makes the pictures of the documents, of a run that is made up.
func TestScreenshots(t *testing.T) {
	if *screenshots == "" {
		t.Skip("-screenshots names no directory")
	}
	site := usualPage(t)
	keep := func(name string, wide, tall int64, before []action, then func(*tab)) {
		b := open(t, site, append(before, chromedp.EmulateViewport(wide, tall))...)
		if then != nil {
			then(b)
		}
		picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		const most = 150_000
		if len(picture) > most {
			t.Errorf("%s has %d bytes, of at most %d", name, len(picture), most)
		}
		if err := os.WriteFile(filepath.Join(*screenshots, name+".png"), picture, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	pinned := func(b *tab) {
		b.click(mark, 1)
		b.click(mark, 8)
		b.pointAt(mark, 5)
	}
	keep("light", 1000, 900, nil, nil)
	keep("dark", 1000, 900, []action{colours("dark")}, nil)
	keep("compare", 1000, 900, nil, pinned)
	keep("phone", 390, 844, nil, nil)
}
