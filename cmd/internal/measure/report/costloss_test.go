package report_test

import (
	"compress/gzip"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/advise"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/report"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
)

// TestCostStandsAgainstLoss reads the first picture of the page. It has bands in the order of loss,
// dots in the order of cost within each, and a path along the frontier.
func TestCostStandsAgainstLoss(t *testing.T) {
	_, rest, found := strings.Cut(page(t, paced(t, 10)), ">Cost against loss</h2>")
	svg, _, _ := strings.Cut(rest, "</svg>")
	if !found || svg == rest {
		t.Fatal("the page has no picture of cost against loss")
	}
	var bands []string
	for _, m := range regexp.MustCompile(`class="band"[^>]*>a power cut takes ([^<]*)<`).FindAllStringSubmatch(svg, -1) {
		bands = append(bands, m[1])
	}
	if len(bands) < 3 || bands[0] != "nothing" || bands[len(bands)-1] != "anything not synced" || len(slices.Compact(slices.Clone(bands))) != len(bands) {
		t.Errorf("the bands are %q", bands)
	}
	advised := regexp.MustCompile(`class="chosen"[^>]*>([^ <]*)  ◀ advised<`).FindAllStringSubmatch(svg, -1)
	if sentence := text(t, paced(t, 10)); len(advised) != 1 || !strings.Contains(sentence, "use  "+advised[0][1]) {
		t.Errorf("%q is marked, and the advice is\n%s", advised, sentence)
	}
	if !regexp.MustCompile(`<circle class="s1"[^>]* cx="[0-9.]+" cy="[0-9.]+" r="5"><title>`).MatchString(svg) {
		t.Error("no policy has its cost of paced trials")
	}

	number := func(text string) float64 {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	path := regexp.MustCompile(`class="frontier"[^>]* d="([^"]*)"`).FindStringSubmatch(svg)
	if path == nil {
		t.Fatal("there is no frontier")
	}
	onPath := map[[2]string]bool{}
	for _, m := range regexp.MustCompile(`[MH]([0-9.]+)[ V]([0-9.]+)`).FindAllStringSubmatch(path[1], -1) {
		onPath[[2]string{m[1], m[2]}] = true
	}
	cheapest, dots := 1e9, regexp.MustCompile(`class="s0"[^>]* cx="([0-9.]+)" cy="([0-9.]+)" r="5"><title>`).FindAllStringSubmatch(svg, -1)
	for _, dot := range dots {
		x, is := number(dot[1]), onPath[[2]string{dot[1], dot[2]}]
		if is != (x < cheapest) {
			t.Errorf("at %v, %v: on the frontier is %t, and the cheapest that loses no more is at %v", dot[1], dot[2], is, cheapest)
		}
		cheapest = min(cheapest, x)
	}
	if len(dots) < 3 || len(onPath) < 2 {
		t.Errorf("%d dots, %d on the frontier", len(dots), len(onPath))
	}
}

// TestNeededLossSaysWhichSideKeepsIt: policies that lose a size stand between policies that lose nothing and policies
// that lose a time.
func TestNeededLossSaysWhichSideKeepsIt(t *testing.T) {
	f, err := os.Open("../../../../docs/measured/policy.jsonl.gz")
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
	check := func(text string, want ...string) {
		t.Helper()
		need, err := advise.ParseNeed(text)
		if err != nil {
			t.Fatal(err)
		}
		var page strings.Builder
		if err := report.HTML(&page, nil, run, report.More{Need: need}); err != nil {
			t.Fatal(err)
		}
		var said []string
		broad := regexp.MustCompile(`(?s)<div class="slim">.*?</div>`).ReplaceAllString(page.String(), "") // it shows the same again
		for _, m := range regexp.MustCompile(`>need: loss&lt;=[0-9s]*, ([a-z ]*)<`).FindAllStringSubmatch(broad, -1) {
			said = append(said, m[1])
		}
		if !slices.Equal(said, want) {
			t.Errorf("%s: %q, want %q", text, said, want)
		}
	}
	check("loss<=2s", "not promised below", "promised below", "not promised below")
	check("loss<=0", "not promised below")
	check("rate>=50k/s")
}

// TestTilesWithoutAdvice: a page has its figures even if there is nothing to choose from, and if no policy is advised.
func TestTilesWithoutAdvice(t *testing.T) {
	tiles := func(run result.Run) string {
		_, rest, _ := strings.Cut(body(t, run), `<dl class="tiles">`)
		rest, _, _ = strings.Cut(rest, "</dl>")
		return regexp.MustCompile(`<[^>]*>`).ReplaceAllString(rest, " ")
	}
	only := func(keep func(result.Cell) bool) result.Run {
		run := planted(t, 10)
		run.Header.Cells = slices.DeleteFunc(run.Header.Cells, func(c result.Cell) bool { return !c.Empty && !keep(c) })
		run.Trials = slices.DeleteFunc(run.Trials, func(one *result.Trial) bool {
			return !slices.ContainsFunc(run.Header.Cells, func(c result.Cell) bool { return c.Name == one.Cell })
		})
		return run
	}
	group := planted(t, 10).Header.Cells[3].Policy
	if got := tiles(only(func(c result.Cell) bool { return c.Policy == group })); !strings.Contains(got, "What a record costs") || !strings.Contains(got, "a record  ") || strings.Count(got, "nothing") != 2 {
		t.Errorf("of one policy, %v: %s", group, got)
	}
	run := planted(t, 10)
	got := tiles(run)
	for _, want := range []string{"The fastest; a power cut takes anything not synced", "Loses nothing at a power cut", "From one to the other", "no policy is advised"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	// A tile has a short figure, and below it what that rests on.
	if got := tiles(paced(t, 10)); !regexp.MustCompile(`  at most the last 1\.02s  +1s \+ the longest of 40 syncs; 93 % take no longer; the policy promises: the last 1s`).MatchString(got) {
		t.Errorf("of an advice: %s", got)
	}
}
