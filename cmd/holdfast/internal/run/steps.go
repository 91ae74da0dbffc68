package run

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/internal/lab/figure"
	"github.com/holdfast-go/holdfast/internal/lab/result"
	"github.com/holdfast-go/holdfast/internal/lab/study"
	"github.com/holdfast-go/holdfast/internal/lab/trial"
)

// stepText is the line for a trial. The arms of a study have names.
func stepText(s trial.Step) string {
	left := s.Left.Round(time.Second).String()
	if s.Open {
		left = "≤" + left
	}
	return fmt.Sprintf("round %d/%d, %s left, %s", s.Round, max(s.Round, s.Rounds), left, cellText(s.Cell))
}

// firstFigures says what a record took in the warm-up, at the least and at the most. They come
// long before the table of a run. It is empty where there are not two policies of a load.
func firstFigures(run result.Run) string {
	var load figure.Load
	var least, most float64
	var cheapest, dearest result.Cell
	for _, c := range run.Header.Cells {
		of := figure.LoadOf(c)
		if c.Empty || c.Twin != "" || of.Group != "" || of.Open() || least > 0 && of != load {
			continue
		}
		for _, t := range run.Trials {
			if t.Cell != c.Name || t.Round != 0 {
				continue
			}
			cost := of.Costs([]*result.Trial{t})[0]
			if least == 0 || cost < least {
				least, cheapest = cost, c
			}
			if cost > most {
				most, dearest = cost, c
			}
			load = of
		}
	}
	if cheapest.Name == dearest.Name {
		return ""
	}
	return fmt.Sprintf("first figures, of one short trial each: a record takes from %s (%v) to %s (%v), %s",
		study.Duration(least), cheapest.Policy, study.Duration(most), dearest.Policy, cli.CountText(int64(load.Writers), "writer"))
}

// cellText names a cell in a few words.
func cellText(c result.Cell) string {
	if c.Group != "" {
		return c.Name
	}
	return fmt.Sprintf("%d x %v", c.Writers, c.Policy)
}
