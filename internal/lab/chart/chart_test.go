package chart_test

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/lab/chart"
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
