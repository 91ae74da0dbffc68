package chart_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/chart"
)

// line is a series with the given values at 0, 1 …
func line(name string, as chart.Form, look int, values ...float64) chart.Series {
	s := chart.Series{Name: name, As: as, Look: look}
	for i, v := range values {
		s.Marks = append(s.Marks, chart.Mark{X: float64(i), Y: v})
	}
	return s
}

// sampler has every element once.
func sampler() []chart.Plot {
	sweep := chart.Series{Name: "throughput", As: chart.Points | chart.Line | chart.Band}
	costs := chart.Series{Name: "policy", As: chart.Points, Look: 1}
	frontier := chart.Series{Name: "frontier", As: chart.Steps, Look: 4}
	for i, v := range []float64{40e6, 90e6, 200e6, 420e6, 470e6, 480e6, 440e6} {
		sweep.Marks = append(sweep.Marks, chart.Mark{X: 512 * math.Pow(4, float64(i)), Y: v, Low: v * 0.93, High: v * 1.05, Title: chart.Count(v) + "B/s"})
	}
	for i, v := range []float64{260, 31, 4, 1.1} {
		m := chart.Mark{X: v, XLow: v * 0.8, XHigh: v * 1.3, Y: 1e6 * math.Pow(12, float64(i)), Label: fmt.Sprintf("policy %d", i), Title: "a <policy>", Data: []chart.Attr{{Name: "cell", Value: `"` + strconv.Itoa(i)}}}
		if i == 1 {
			m.Class = "advised"
		}
		costs.Marks, frontier.Marks = append(costs.Marks, m), append(frontier.Marks, chart.Mark{X: m.X, Y: m.Y})
	}
	tail := chart.Series{Name: "service", As: chart.Steps}
	for i, v := range []float64{0, 0.5, 0.9, 0.99, 0.999, 0.9999} {
		tail.Marks = append(tail.Marks, chart.Mark{X: v, Y: 800 * math.Pow(9, float64(i))})
	}
	parts := []string{"write", "flush", "sync", "close"}
	var stacks []chart.Series
	for i, name := range parts {
		stacks = append(stacks, chart.Series{Name: name, As: chart.Bars, Look: i, Marks: []chart.Mark{{X: float64(i+1) * 2e6, Y: 0, Label: name}, {X: float64(4-i) * 3e6, Y: 1, Label: name}}})
	}
	beside := []chart.Series{line("promised", chart.Bars, 0, 10, 20, 5), line("observed", chart.Bars, 1, 8, 12, 5)}
	beside[1].Marks[1].Low, beside[1].Marks[1].High, beside[1].Marks[0].Hollow = 9, 17, true
	return []chart.Plot{
		{
			ID: "sweep", Title: "throughput by buffer size", Desc: "it rises to 128 KiB", Heading: true, Focus: true,
			X: chart.Axis{Name: "buffer", Scale: chart.Log2, Format: chart.Bytes}, Y: chart.Axis{Name: "bytes a second", Format: chart.Count},
			Regions: []chart.Region{{OnY: true, From: 456e6, To: 480e6, Label: "within 5 % of the best"}}, Series: []chart.Series{sweep},
		},
		{
			Title: "cost against loss", X: chart.Axis{Name: "cost", Scale: chart.Log}, Y: chart.Axis{Name: "lost at a power cut", Scale: chart.Log, Format: chart.Duration},
			Regions: []chart.Region{{OnY: true, From: 1e9, To: 1e9, Label: "the need: 1s"}, {From: 0.1, To: 2, Label: "cheap"}}, Series: []chart.Series{costs, frontier}, Legend: chart.Right,
		},
		{Title: "latency", X: chart.Axis{Scale: chart.Nines}, Y: chart.Axis{Scale: chart.Log, Format: chart.Duration}, Series: []chart.Series{tail}},
		{Title: "where the time goes", Stacked: true, X: chart.Axis{Format: chart.Duration}, Y: chart.Axis{Categories: []string{"buffer=64KiB,sync=1s", "buffer=0"}}, Series: stacks},
		{
			Title: "loss & promise", X: chart.Axis{Categories: []string{"one", "two", "a long name that is turned, and turned, and turned"}}, Series: beside,
			Notes: []string{"a note", "a second one"},
		},
	}
}

func TestPlotsAreTheGoldenOnes(t *testing.T) {
	for i, p := range sampler() {
		got, path := p.Document(), fmt.Sprintf("testdata/plot%d.svg", i)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s is not what is drawn now; look at it, and run with -update:\n%s", path, got)
		}
		if got != p.Document() {
			t.Errorf("%s: two drawings differ", path)
		}
		elements(t, got)
		elements(t, p.SVG())
	}
}

// An element of a picture: its name and attributes.
type element map[string]string

func elements(t *testing.T, svg string) (all []element) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%v in %s", err, svg)
		}
		if start, ok := token.(xml.StartElement); ok {
			e := element{"": start.Name.Local}
			for _, a := range start.Attr {
				e[a.Name.Local] = a.Value
			}
			all = append(all, e)
		}
	}
}

// count returns how many elements of a name have a class.
func count(all []element, name, class string) (n int) {
	for _, e := range all {
		if e[""] == name && slices.Contains(strings.Fields(e["class"]), class) {
			n++
		}
	}
	return n
}

func TestMarksCarryTheirDataAndNames(t *testing.T) {
	p := sampler()[1]
	svg := p.SVG()
	all := elements(t, svg)
	i := slices.IndexFunc(all, func(e element) bool { return e["data-cell"] == `"1` })
	if i < 0 || all[i]["class"] != "mark advised" || all[i+1][""] != "title" {
		t.Fatalf("no mark has its data, class and title in %s", svg)
	}
	if all[0]["role"] != "img" || all[0]["aria-label"] != p.Title || strings.Contains(svg, "tabindex") {
		t.Errorf("the picture is %v", all[0])
	}
	p.Focus, p.ID = true, "x"
	all = elements(t, p.SVG())
	if all[0]["role"] != "group" || all[0]["aria-labelledby"] != "x-title" || all[1]["id"] != "x-title" || all[2]["id"] != "x-desc" {
		t.Errorf("the picture is %v", all[:3])
	}
	if n := strings.Count(p.SVG(), `tabindex="0"`); n != 4 {
		t.Errorf("the keyboard reaches %d of 4 marks", n)
	}
}

func TestHostileTextsAreInert(t *testing.T) {
	const hostile = "\"><script>&\x1b[31m\x00\xff"
	p := chart.Plot{
		ID: hostile, Title: hostile, Desc: hostile, Heading: true, Notes: []string{hostile},
		X: chart.Axis{Name: hostile, Categories: []string{hostile}}, Y: chart.Axis{Name: hostile, Format: func(float64) string { return hostile }},
		Regions: []chart.Region{{From: 0, To: 1, Label: hostile, Class: hostile}},
		Series:  []chart.Series{{Name: hostile, Class: hostile, As: chart.Points, Marks: []chart.Mark{{Y: 1, Label: hostile, Title: hostile, Class: hostile, Data: []chart.Attr{{Name: "cell", Value: hostile}}}}}},
	}
	for _, svg := range []string{p.SVG(), p.Document()} {
		for _, e := range elements(t, svg) {
			if e[""] == "script" {
				t.Fatalf("a text became an element of %s", svg)
			}
		}
		if strings.ContainsAny(svg, "\x1b\x00") || !utf8.ValidString(svg) {
			t.Error("a control character is in the picture")
		}
	}
}

func TestMarksWithoutAPlaceAreLeftOut(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, scale := range []chart.Scale{chart.Linear, chart.Log, chart.Log2, chart.Nines} {
		p := chart.Plot{Legend: chart.Nowhere, Y: chart.Axis{Scale: scale}, Series: []chart.Series{line("a", chart.Points|chart.Line|chart.Band|chart.Bars, 0, nan, inf, -inf)}}
		if svg := p.SVG(); svg != "" {
			t.Errorf("scale %d: %s", scale, svg)
		}
		p.Series = append(p.Series, line("b", chart.Points|chart.Line, 0, 0.5, 0.5, nan, 0.75))
		p.Series[1].Marks[0].Low, p.Series[1].Marks[0].High = nan, inf
		p.Regions = []chart.Region{{OnY: true, From: -inf, To: nan}, {OnY: true, From: 0, To: inf}}
		svg := p.SVG()
		if n := count(elements(t, svg), "circle", "point"); n != 3 || strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
			t.Errorf("scale %d: %d points in %s", scale, n, svg)
		}
	}
	one := chart.Plot{X: chart.Axis{Scale: chart.Log}, Series: []chart.Series{{As: chart.Points, Marks: []chart.Mark{{X: 0, Y: 1}}}}}
	if svg := one.SVG(); svg != "" {
		t.Errorf("0 is drawn on a logarithmic axis: %s", svg)
	}
}

func TestLineIsBrokenWhereAMarkHasNoPlace(t *testing.T) {
	p := chart.Plot{Y: chart.Axis{Scale: chart.Log}, Series: []chart.Series{line("", chart.Line, 0, 4, 3, 0, 2, 1, 5)}}
	var lines []string
	for _, e := range elements(t, p.SVG()) {
		if e["class"] == "line" {
			lines = append(lines, e["d"])
		}
	}
	if len(lines) != 2 || strings.Count(lines[0], "L") != 1 || strings.Count(lines[1], "L") != 2 {
		t.Errorf("the lines are %q", lines)
	}
}

// TestBarsStandOnEachOther: three bars stacked, and three side by side.
func TestBarsStandOnEachOther(t *testing.T) {
	p := chart.Plot{Stacked: true, Legend: chart.Nowhere, X: chart.Axis{Categories: []string{"only"}}, Series: []chart.Series{line("a", chart.Bars, 0, 1), line("b", chart.Bars, 1, 2), line("c", chart.Bars, 2, 1)}}
	rects := func() (all [][4]float64) {
		for _, e := range elements(t, p.SVG()) {
			if e[""] == "rect" && e["class"] == "bar" {
				var r [4]float64
				for i, name := range []string{"x", "y", "width", "height"} {
					r[i], _ = strconv.ParseFloat(e[name], 64)
				}
				all = append(all, r)
			}
		}
		return all
	}
	near := func(a, b float64) bool { return math.Abs(a-b) < 0.21 }
	if r := rects(); len(r) != 3 || !near(r[0][1], r[1][1]+r[1][3]) || !near(r[1][1], r[2][1]+r[2][3]) || !near(r[1][3], 2*r[0][3]) || r[0][0] != r[1][0] {
		t.Errorf("stacked: %v", r)
	}
	p.Stacked = false
	if r := rects(); len(r) != 3 || !near(r[0][0]+r[0][2], r[1][0]) || !near(r[0][1]+r[0][3], r[1][1]+r[1][3]) {
		t.Errorf("side by side: %v", r)
	}
}

// labels returns the numbers of the axis Y.
func labels(t *testing.T, a chart.Axis, low, high float64) string {
	t.Helper()
	svg := chart.Plot{X: chart.Axis{Categories: []string{"", ""}}, Y: a, Series: []chart.Series{line("", chart.Points, 0, low, high)}}.SVG()
	var all []string
	for _, m := range regexp.MustCompile(`class="tick"[^>]*text-anchor="end">([^<]*)<`).FindAllStringSubmatch(svg, -1) {
		all = append(all, m[1])
	}
	return strings.Join(all, " ")
}

func TestNumbersOfAxes(t *testing.T) {
	check := func(a chart.Axis, low, high float64, want string) {
		t.Helper()
		if got := labels(t, a, low, high); got != want {
			t.Errorf("from %v to %v: %s, want %s", low, high, got, want)
		}
	}
	var linear chart.Axis
	check(linear, 0, 114.4, "0 25 50 75 100 125")
	check(linear, 0, 0.93, "0.0 0.2 0.4 0.6 0.8 1.0")
	check(linear, 0.02, 0.0278, "0.00 0.01 0.02 0.03")
	check(linear, 0, 10.47, "0.0 2.5 5.0 7.5 10.0 12.5")
	check(linear, 0, 1e-6, "0.0000000 0.0000002 0.0000004 0.0000006 0.0000008 0.0000010")
	check(linear, 0, 0, "0.0 0.2 0.4 0.6 0.8 1.0")
	check(linear, -3, 4, "-4 -2 0 2 4")
	check(chart.Axis{Low: 90, High: 100}, 95, 99, "90 92 94 96 98 100")
	check(chart.Axis{Format: chart.Count}, 0, 2e6, "0 500k 1M 1.5M 2M")
	log := chart.Axis{Scale: chart.Log}
	check(log, 0.013, 31, "0.01 0.1 1 10")
	check(log, 0.0003, 1582, "0.001 0.01 0.1 1 10 100 1000")
	check(log, 0.3, 4, "0.2 0.5 1 2 5")
	check(log, 1, 1, "0.5 1 2")
	check(log, 100, 100, "50 100 200")
	check(chart.Axis{Scale: chart.Log, Format: chart.Duration}, 1, 3.6e12, "1ns 100ns 10µs 1ms 100ms 10s 16.67min")
	check(chart.Axis{Scale: chart.Log2, Format: chart.Bytes}, 512, 1<<20, "1KiB 4KiB 16KiB 64KiB 256KiB 1MiB")
	check(chart.Axis{Scale: chart.Log2, Format: chart.Bytes}, 4096, 4096, "2KiB 4KiB 8KiB")
	check(chart.Axis{Scale: chart.Nines}, 0, 0.9995, "p0 p50 p90 p99 p99.9 p99.99")
}

func TestUnitsAreReadable(t *testing.T) {
	check := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	check(chart.Count(999), "999")
	check(chart.Count(1000), "1k")
	check(chart.Count(2.5e6), "2.5M")
	check(chart.Bytes(1023), "1023B")
	check(chart.Bytes(1<<16), "64KiB")
	check(chart.Bytes(1.5*(1<<30)), "1.5GiB")
	check(chart.Duration(0), "0ns")
	check(chart.Duration(1500), "1.5µs")
	check(chart.Duration(59e9), "59s")
	check(chart.Duration(60e9), "1min")
	check(chart.Duration(2*3600e9), "2h")
}

// TestSeriesDifferInBlackAndWhite: for lines, and for points alone.
func TestSeriesDifferInBlackAndWhite(t *testing.T) {
	for _, as := range []chart.Form{chart.Line | chart.Points, chart.Points} {
		seen := map[string]int{}
		for look := range chart.Looks {
			var grey strings.Builder
			for _, e := range elements(t, chart.Plot{Legend: chart.Nowhere, Series: []chart.Series{line("", as, look, 1, 1)}}.SVG()) {
				switch class := e["class"]; {
				case class == "line":
					grey.WriteString(e["stroke-dasharray"])
				case strings.HasPrefix(class, "point"):
					grey.WriteString(e[""] + class + e["d"])
				}
			}
			if other, ok := seen[grey.String()]; ok {
				t.Errorf("form %d: look %d is look %d without colour", as, look, other)
			}
			seen[grey.String()] = look
		}
	}
}

// TestColoursStandOutFromThePaper: WCAG's contrast of 3 to 1 for graphics, and 4.5 to 1 for text.
func TestColoursStandOutFromThePaper(t *testing.T) {
	light, dark, found := strings.Cut(chart.CSS, "@media")
	if !found {
		t.Fatal("the style has no dark colours")
	}
	for _, of := range []string{light, dark} {
		colour := map[string]float64{}
		for _, m := range regexp.MustCompile(`--([a-z0-9]+): #([0-9a-f]{3,6});`).FindAllStringSubmatch(of, -1) {
			if len(m[2]) == 3 || len(m[2]) == 6 {
				colour[m[1]] = luminance(t, m[2])
			}
		}
		for name, least := range map[string]float64{"ink": 4.5, "soft": 4.5, "s0": 3, "s1": 3, "s2": 3, "s3": 3, "s4": 3, "s5": 3, "s6": 3, "s7": 3} {
			y, ok := colour[name]
			if contrast := (max(y, colour["paper"]) + 0.05) / (min(y, colour["paper"]) + 0.05); !ok || contrast < least {
				t.Errorf("%s stands out from the paper %.1f times, want %v", name, contrast, least)
			}
		}
	}
}

func luminance(t *testing.T, hex string) (y float64) {
	if len(hex) == 3 {
		hex = string([]byte{hex[0], hex[0], hex[1], hex[1], hex[2], hex[2]})
	}
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		v, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		y += weight * math.Pow(float64(v)/255, 2.2)
	}
	return y
}

func TestPlotScalesWithItsSize(t *testing.T) {
	p := sampler()[0]
	p.Width, p.Height = 320, 240
	all := elements(t, p.Document())
	if all[0]["viewBox"] != "0 0 320 240" || all[0]["width"] != "320" {
		t.Errorf("the picture is %v", all[0])
	}
	p.Width, p.Height = 20, 20
	if svg := p.SVG(); svg != "" {
		t.Errorf("drawn without room: %s", svg)
	}
}

// TestNamesOfCategoriesAreTurnedWhereTheyTouch: side by side they would overlap.
func TestNamesOfCategoriesAreTurnedWhereTheyTouch(t *testing.T) {
	turned := func(names ...string) int {
		p := chart.Plot{X: chart.Axis{Categories: names}, Series: []chart.Series{line("", chart.Points, 0, make([]float64, len(names))...)}}
		return strings.Count(p.SVG(), "rotate(-45)")
	}
	if n := turned("btrfs", "ext2", "ext4", "jfs", "xfs"); n != 0 {
		t.Errorf("%d short names are turned", n)
	}
	if n := turned("btrfs", "ext2", "ext3", "ext4-ordered", "ext4-journal", "ext4-nojournal", "ext4-writeback", "xfs"); n != 8 {
		t.Errorf("%d of 8 long names are turned", n)
	}
	if n := turned("only"); n != 0 {
		t.Error("one name is turned")
	}
}

// TestNamesStandBesideTheirMarks: with Beside a name ends left of the plot, at the height of its marks, and a row is lower.
func TestNamesStandBesideTheirMarks(t *testing.T) {
	p := chart.Plot{
		X: chart.Axis{High: 10}, Y: chart.Axis{Categories: []string{"buffer=64KiB,flush=100ms,sync=1s", "durable"}},
		Series: []chart.Series{{As: chart.Points, Marks: []chart.Mark{{X: 5, Y: 0, Title: "first"}, {X: 5, Y: 1, Title: "second"}}}},
	}
	height := func(svg string) (tall float64) {
		if _, err := fmt.Sscanf(svg, `<svg class="plot" viewBox="0 0 640 %g"`, &tall); err != nil {
			t.Fatal(err)
		}
		return tall
	}
	above := p.SVG()
	p.Beside = true
	beside := p.SVG()
	if height(beside) >= height(above) {
		t.Errorf("%v units tall with the names beside, %v with them above", height(beside), height(above))
	}
	number := `([0-9.]+)`
	name := regexp.MustCompile(`class="row" x="` + number + `" y="` + number + `" text-anchor="end">durable<`).FindStringSubmatch(beside)
	marks := regexp.MustCompile(`<circle class="point" cx="`+number+`" cy="`+number+`"`).FindAllStringSubmatch(beside, -1)
	if name == nil || len(marks) != 2 {
		t.Fatal(beside)
	}
	at := func(text string) float64 { x, _ := strconv.ParseFloat(text, 64); return x }
	if at(name[1]) >= at(marks[1][1]) || math.Abs(at(name[2])-4-at(marks[1][2])) > 1 || at(marks[1][2]) <= at(marks[0][2]) {
		t.Errorf("the name ends at %v, its mark is at %v, the one above at %v", name[1:], marks[1][1:], marks[0][1:])
	}
}
