package chart_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/chart"
)

func plot(points ...chart.Point) chart.Dots {
	return chart.Dots{
		Title: "speed <by> policy", Scale: func(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) },
		Series: []string{"1 & only"},
		Rows:   []chart.Row{{Label: `buffer="<0>"`, Points: points}},
	}
}

// circles parses the picture and returns where its data dots are, without the
// legend's.
func circles(t *testing.T, svg string) (x []float64) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return x[1:]
		}
		if err != nil {
			t.Fatalf("%v in %s", err, svg)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "circle" {
			for _, a := range e.Attr {
				if a.Name.Local == "cx" {
					v, _ := strconv.ParseFloat(a.Value, 64)
					x = append(x, v)
				}
			}
		}
	}
}

func TestDotsStandOnALogarithmicScale(t *testing.T) {
	nan := math.NaN()
	svg := string(plot(chart.Point{Value: 10, Low: nan, High: nan}, chart.Point{Value: 100, Low: 50, High: 200}, chart.Point{Value: 1000, Low: nan, High: nan}).SVG())
	x := circles(t, svg)
	if len(x) != 3 || x[0] != 24 || math.Abs((x[1]-x[0])-(x[2]-x[1])) > 0.11 || x[2] != 640-24 {
		t.Errorf("10, 100 and 1000 stand at %v", x)
	}
}

func TestTextIsEscaped(t *testing.T) {
	svg := string(plot(chart.Point{Value: 1, Low: 1, High: 1}).SVG())
	circles(t, svg)
	for _, raw := range []string{"<by>", `"<0>"`, "& only"} {
		if strings.Contains(svg, raw) {
			t.Errorf("%s is not escaped", raw)
		}
	}
}

func TestWhatCannotBeDrawnIsLeftOut(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, v := range []float64{0, -1, nan, inf} {
		if svg := plot(chart.Point{Value: v, Low: v, High: v}).SVG(); svg != "" {
			t.Errorf("%v: %s", v, svg)
		}
		svg := string(plot(chart.Point{Value: v, Low: v, High: v}, chart.Point{Value: 5, Low: 0, High: inf}).SVG())
		if x := circles(t, svg); len(x) != 1 || strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
			t.Errorf("%v beside 5: %v in %s", v, x, svg)
		}
	}
}

// TestLastNumberOfTheScaleIsWhole: a number at the margin is centred at its line only if there is room.
func TestLastNumberOfTheScaleIsWhole(t *testing.T) {
	d := plot(chart.Point{Value: 1, Low: 1, High: 1}, chart.Point{Value: 9999, Low: 1, High: 9999})
	for scale, want := range map[string]string{
		"%gx":        `x="640.0" y="%d" text-anchor="end">10000x<`,
		"%g seconds": `text-anchor="end">10000 seconds<`,
		"%.0e":       `x="616.0" y="%d" text-anchor="middle">1e+04<`,
	} {
		d.Scale = func(x float64) string { return fmt.Sprintf(scale, x) }
		if svg := d.SVG(); !strings.Contains(svg, strings.ReplaceAll(want, "%d", "116")) {
			t.Errorf("%q: no %q in %s", scale, want, svg)
		}
	}
}

// TestNarrowRangeIsSeen: a bar without a dot that is narrower than a dot gets one.
func TestNarrowRangeIsSeen(t *testing.T) {
	nan := math.NaN()
	d := plot(chart.Point{Value: nan, Low: 100, High: 101}, chart.Point{Value: nan, Low: 100, High: 900})
	if x := circles(t, d.SVG()); len(x) != 1 || x[0] < 24 || x[0] > 30 {
		t.Errorf("dots at %v", x)
	}
}

// TestEachSeriesHasItsLineInTheLegend: so that the names fit at any text size, with the scale below.
func TestEachSeriesHasItsLineInTheLegend(t *testing.T) {
	d := plot(chart.Point{Value: 5, Low: 5, High: 5})
	one := d.SVG()
	d.Series = []string{"times the cheapest, at full speed", "paced, times no sync", "a third"}
	three := d.SVG()
	for i, name := range d.Series {
		if want := fmt.Sprintf(`<text x="40" y="%d">%s</text>`, 21+22*i, name); !strings.Contains(three, want) {
			t.Errorf("no %s in %s", want, three)
		}
	}
	for svg, want := range map[string]string{one: `y1="48"`, three: `y1="92"`} {
		if !strings.Contains(svg, want) {
			t.Errorf("the scale does not begin at %s: %s", want, svg)
		}
	}
}
