package report

import (
	"compress/gzip"
	"flag"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
)

var update = flag.Bool("update", false, "draw the README's picture anew")

const (
	stored = "../../../docs/measured/policy.jsonl.gz"
	drawn  = "../../../docs/cost-loss.svg"
)

func storedRun(t *testing.T) result.Run {
	t.Helper()
	f, err := os.Open(stored)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	run, err := result.Read(z)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// TestPictureOfTheREADMEIsDrawnFromTheStoredResults: with -update it is drawn anew.
func TestPictureOfTheREADMEIsDrawnFromTheStoredResults(t *testing.T) {
	pictures, err := costLoss(storedRun(t))
	if err != nil || len(pictures) != 1 {
		t.Fatalf("%d pictures, %v", len(pictures), err)
	}
	got := pictures[0].plot.Document()
	if *update {
		if err := os.WriteFile(drawn, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(drawn)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != got {
		t.Errorf("%s is not what is drawn of %s now; look at it after go test ./cmd/internal/report -update", drawn, stored)
	}
}

// TestRowsAreInTheOrderOfLoss: what loses least is above, and each further step of the frontier costs less.
func TestRowsAreInTheOrderOfLoss(t *testing.T) {
	pictures, err := costLoss(storedRun(t))
	if err != nil {
		t.Fatal(err)
	}
	p := pictures[0].plot
	if first, last := p.Y.Bands[0], p.Y.Categories[len(p.Y.Categories)-1]; first != "A power cut takes nothing" || !strings.Contains(last, "sync=never") && !strings.Contains(last, "sync=close") {
		t.Errorf("the first band is %q, and the last row %q", first, last)
	}
	frontier := p.Series[len(p.Series)-1].Marks
	cost := math.Inf(1)
	for _, m := range frontier {
		if m.X >= cost {
			t.Errorf("a step of the frontier costs %v, and the one before %v", m.X, cost)
		}
		cost = m.X
	}
	advised := 0
	for _, s := range p.Series {
		for _, m := range s.Marks {
			if m.Class == "advised" {
				advised++
				if !strings.HasSuffix(p.Y.Categories[int(m.Y)], "◀ advised") {
					t.Errorf("the advised mark is in the row %q", p.Y.Categories[int(m.Y)])
				}
			}
		}
	}
	if len(frontier) < 2 || advised != 1 {
		t.Errorf("the frontier has %d policies, and %d are advised", len(frontier), advised)
	}
	if len(p.Y.Categories) != 9 {
		t.Errorf("the rows are %q", p.Y.Categories)
	}
}

func TestRunWithoutARoundHasNoPicture(t *testing.T) {
	run := result.Run{Header: result.Header{Cells: []result.Cell{{Name: "a", Policy: holdfast.Policy{}, Writers: 1}}}}
	if pictures, err := costLoss(run); err == nil {
		t.Errorf("%d pictures", len(pictures))
	}
}
