package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/advise"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/chart"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
)

// A picture draws policies' cost against a power cut's loss, for one load: to choose one.
type picture struct {
	name string // of its file, without an ending
	plot chart.Plot
}

// costLoss returns a picture for each load of a run that has policies with a cost, in their order. It
// returns [figure.ErrNoRound] if no round is whole.
func costLoss(run result.Run) (pictures []picture, err error) {
	f, err := figure.Of(run)
	if err != nil {
		return nil, err
	}
	for _, g := range f.Groups {
		if g.Open() || g.Group != "" {
			continue
		}
		if policies := f.Priced(g); len(policies) > 0 {
			pictures = append(pictures, picture{plot: costLossPlot(f, g.Load, policies)})
		}
	}
	for i := range pictures {
		pictures[i].name = "cost-against-loss"
		if i > 0 {
			pictures[i].name += "-" + strconv.Itoa(i+1)
		}
		pictures[i].plot.ID = pictures[i].name
	}
	return pictures, nil
}

// plot has a row for each policy, the least loss on top. The steps join the frontier:
// policies such that none that loses no more costs less.
func costLossPlot(f figure.Figures, load figure.Load, policies []figure.Priced) chart.Plot {
	p := chart.Plot{
		Title: "What a policy costs a writer, and what a power cut takes", Heading: true, Width: 720,
		X:      chart.Axis{Name: "times the cost of the cheapest; the scale is logarithmic", Scale: chart.Log, Format: times},
		Y:      chart.Axis{Bands: map[int]string{}},
		Series: []chart.Series{{Name: "at full speed, with its 95 % interval", As: chart.Points}, {Name: "at a pace, times the same buffer without a sync", As: chart.Points, Look: 1}},
	}
	frontier := chart.Series{Name: "nothing that loses no more costs less", As: chart.Steps, Look: 4}
	advice, advised := advise.Choose(f.Groups)
	cheapest, band := math.Inf(1), ""
	var words []string
	for i, of := range policies {
		policy := of.Cell.Policy
		name, class := policy.String(), ""
		if advised && policy == advice.Policy {
			name, class = name+"  ◀ advised", "advised"
		}
		if loses := policy.Loss().Power.String(); loses != band {
			band = loses
			p.Y.Bands[i] = "A power cut takes " + loses
		}
		p.Y.Categories = append(p.Y.Categories, name)
		series := &p.Series[0]
		if of.Paced {
			series = &p.Series[1]
		}
		mark := chart.Mark{X: of.Times(), XLow: of.Cost.Low, XHigh: of.Cost.High, Y: float64(i), Class: class, Label: times(of.Times())}
		mark.Title = fmt.Sprintf("%v: %s (%s to %s)", policy, mark.Label, times(mark.XLow), times(mark.XHigh))
		if most, ok := of.AtMost(); ok {
			mark.X, mark.XLow, mark.XHigh, mark.Label = most, 1, most, advise.Cost(of.Row)
			mark.Title = fmt.Sprintf("%v: at most %s", policy, strings.TrimPrefix(mark.Label, "≤"))
		}
		words = append(words, mark.Title)
		series.Marks = append(series.Marks, mark)
		if !of.Paced && of.Cost.Ratio < cheapest { // the others are on a scale of their own
			cheapest = of.Cost.Ratio
			frontier.Marks = append(frontier.Marks, chart.Mark{X: mark.X, Y: float64(i)})
		}
	}
	p.Series = append(p.Series, frontier)
	p.Desc = "A row for each policy, those that lose least above. " + strings.Join(words, "; ") + "."
	p.Notes = []string{measured(f, load)}
	return p
}

// times is the text of a cost: three digits.
func times(x float64) string {
	if x < 100 {
		return strconv.FormatFloat(x, 'g', 3, 64) + "x"
	}
	unit := math.Pow(10, math.Floor(math.Log10(x))-2)
	return strconv.FormatFloat(math.Round(x/unit)*unit, 'f', 0, 64) + "x"
}

// measured says what was measured and where.
func measured(f figure.Figures, load figure.Load) string {
	words := []string{fmt.Sprintf("%v records, %d writers", holdfast.Size(load.RecordBytes), load.Writers)}
	if load.Writers == 1 {
		words[0] = strings.TrimSuffix(words[0], "s")
	}
	if load.FileSystem != "" {
		words = append(words, load.FileSystem)
	}
	for _, name := range []string{"CPU model", "CPUs", "virtualisation", "file system"} {
		value := machine.Get(f.Run.Header.Machine, name).Value
		if value == machine.Unknown || name == "file system" && load.FileSystem != "" {
			continue
		}
		if name == "CPUs" {
			value += " " + name
		}
		words = append(words, value)
	}
	return "Measured by holdfast bench: " + strings.Join(append(words, fmt.Sprintf("%d rounds", f.Rounds)), ", ")
}
