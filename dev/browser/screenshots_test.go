package browser

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

var screenshots = flag.String("screenshots", "", "keep the pictures of docs/screenshots in this directory")

// TestScreenshots makes the pictures of the documents. One is of a run that is made up, the others of short runs of
// audit, prove and bench on this machine.
func TestScreenshots(t *testing.T) {
	if *screenshots == "" {
		t.Skip("-screenshots names no directory")
	}
	site := usualPage(t)
	keep := func(name, site string, wide, tall int64, before []action, then func(*tab)) {
		b := open(t, site, append(before, chromedp.EmulateViewport(wide, tall))...)
		if then != nil {
			then(b)
		}
		picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		const most = 250_000
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
	keep("light", site, 1000, 900, nil, nil)
	keep("dark", site, 1000, 900, []action{colours("dark")}, nil)
	keep("compare", site, 1000, 900, nil, pinned)
	keep("phone", site, 390, 844, nil, nil)
	const margin = 38 // pixels: 10 mm
	keep("print", site, paperWide+2*margin, paperTall+2*margin, []action{onPaper}, func(b *tab) {
		ask[chromedp.Void](b, fmt.Sprintf(`document.documentElement.style.margin = "%dpx", 0`, margin))
	})

	dir := t.TempDir()
	made := func(args ...string) {
		t.Helper()
		c := exec.Command(command, args...)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v: %s", args, err, out)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "disk"), 0o755); err != nil {
		t.Fatal(err)
	}
	made("audit", "--dir", "disk", "--page", "audit.html", "--claim", "lines-20x", "--claim", "lines-25-50-calls", "--claim", "lines-forgotten-flush",
		"--claim", "lines-page-4096", "--claim", "costs-switch", "--claim", "costs-seek", "--claim", "files-64-cores")
	keep("audit", filepath.Join(dir, "audit.html"), 1200, 760, nil, nil)
	made("prove", "--level", "memory", "-o", "proof.jsonl")
	keep("prove", report(t, filepath.Join(dir, "proof.jsonl")), 1440, 900, nil, nil)
}

// onPaper shows a page as it is printed, on A4 across without its margins.
var onPaper = call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})

const paperWide, paperTall = 1046, 718 // pixels: 277 mm and 190 mm, of 96 to 25.4 mm
