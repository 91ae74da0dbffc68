package chart_test

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/chart"
)

var update = flag.Bool("update", false, "write the golden files anew")

// nanoseconds formats powers of ten as the numbers of a time scale.
func nanoseconds(x float64) string {
	for _, unit := range []string{"ns", "µs", "ms"} {
		if x < 999 {
			return strconv.FormatFloat(math.Round(x), 'f', 0, 64) + unit
		}
		x /= 1000
	}
	return strconv.FormatFloat(x, 'f', 0, 64) + "s"
}

func published(low, high float64) chart.Point {
	return chart.Point{Series: 1, Value: math.NaN(), Low: low, High: high}
}

func ladder() chart.Dots {
	nan := math.NaN()
	return chart.Dots{
		Title: "costs", Scale: nanoseconds, Series: []string{"measured here", "published"},
		Rows: []chart.Row{
			{Label: "function call", Points: []chart.Point{published(1, 5), {Value: 1.6, Low: 1.5, High: 1.7}}},
			{Label: "empty system call", Points: []chart.Point{published(50, 100), {Value: 150, Low: 120, High: 300}}},
			{Label: "write of 40 bytes", Points: []chart.Point{published(1e3, 5e3), {Value: 710, Low: nan, High: nan}}},
			{Label: "not run", Points: []chart.Point{{Value: nan, Low: nan, High: nan}}},
			{Label: "fsync", Points: []chart.Point{{Value: 60e3, Low: 50e3, High: 90e3}}},
			{Label: "cold read of 4 KiB", Points: []chart.Point{published(5e6, 10e6), {Value: 90e3, Low: 30e3, High: 2e6}}},
		},
	}
}

func TestLadderInText(t *testing.T) {
	for _, width := range []int{80, 40} {
		got := ladder().Text(width)
		path := filepath.Join("testdata", "ladder_"+strconv.Itoa(width)+".txt")
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
			t.Errorf("%s is not what is drawn now (-update writes it):\n%s", path, got)
		}
	}
}

func TestTextKeepsItsWidth(t *testing.T) {
	for _, width := range []int{20, 34, 60, 80, 200} {
		for line := range strings.Lines(ladder().Text(width)) {
			line = strings.TrimSuffix(line, "\n")
			if strings.Contains(line, "measured here") {
				continue // the legend is as long as its names
			}
			if n := utf8.RuneCountInString(line); n > max(width, width/2+2+16) {
				t.Errorf("a line of a picture %d wide has %d characters: %s", width, n, line)
			}
		}
	}
}

func TestTextIsNothingWithoutPoints(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, p := range []chart.Point{{Value: nan, Low: nan, High: nan}, {Value: 0, Low: 0, High: 1}, {Value: inf, Low: 1, High: inf}, {Value: -1, Low: 2, High: 1}} {
		if text := plot(p).Text(80); text != "" {
			t.Errorf("%+v is drawn as %s", p, text)
		}
	}
	if text := plot(chart.Point{Value: 5, Low: nan, High: nan}).Text(80); !strings.Contains(text, "●") {
		t.Errorf("one dot is drawn as %s", text)
	}
}

func TestRangeIsABarWithoutADot(t *testing.T) {
	svg := string(plot(published(1, 10)).SVG())
	if n := strings.Count(svg, `<line class="s1"`); n != 1 || len(circles(t, svg)) != 0 {
		t.Errorf("%d bars and the dots %v in %s", n, circles(t, svg), svg)
	}
}
