package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/advise"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// A sheet is the figures of a run, with the advice that follows from them.
type sheet struct {
	figure.Figures
	advice  advise.Advice
	advised bool
	columns int        // of the terminal; 0: no terminal
	studies study.List // the studies that the run may belong to
}

func newSheet(studies study.List, run result.Run) (sheet, error) {
	f, err := figure.Of(run)
	if err != nil {
		return sheet{}, err
	}
	s := sheet{Figures: f, studies: studies}
	if len(s.Policies()) > 0 && len(run.FileSystems()) == 0 {
		s.advice, s.advised = advise.Choose(s.Groups)
	}
	return s, nil
}

func (s sheet) advises(r figure.Row) bool { return s.advised && r.Cell.Policy == s.advice.Policy }

// doubt writes a warning as one line.
func doubt(w figure.Warning) string {
	line := w.What + "; " + w.Cure
	switch {
	case w.Cell == nil:
		return line
	case w.Cell.Group != "":
		return fmt.Sprintf("%s: %s", w.Cell.Name, line)
	}
	return fmt.Sprintf("%s, %s: %s", w.Cell.Policy, title(figure.LoadOf(*w.Cell)), line)
}

// title names a load; no other load has the same title.
func title(l figure.Load) string {
	if on := l.FileSystem; on != "" {
		l.FileSystem = ""
		return result.Named(on, title(l))
	}
	if l.Group != "" {
		return l.Group
	}
	text := fmt.Sprintf("%s records, %s", holdfast.Size(l.RecordBytes), plural(l.Writers, "writer"))
	if l.Rate > 0 {
		text += fmt.Sprintf(", %s records/s due", count(l.Rate))
	}
	if l.Cache != "" && l.Cache != result.NewFile {
		text += fmt.Sprintf(", page cache %s", l.Cache)
	}
	if l.Steady {
		text += ", until steady"
	}
	if l.Paced {
		text += ", paced trials"
	}
	return text
}

// noise names the largest noise of each kind.
func (s sheet) noise() string {
	if len(s.Noises) == 0 {
		return "not measured"
	}
	var parts []string
	for _, n := range s.Noises {
		what := fmt.Sprintf("%s, %s", n.Twin.Policy, plural(n.Twin.Writers, "writer"))
		if n.Twin.Group != "" {
			return fmt.Sprintf("at most %.1f %% between a cell and its repetition (%s)", s.Noise.Most*100, s.Noise.Of)
		}
		if n.Twin.Every > 0 {
			what += ", in paced trials"
		}
		if n.Twin.FileSystem != "" {
			what = n.Twin.FileSystem + ": " + what
		}
		floor := "not known, there are too few rounds"
		if n.Floor.Known() {
			floor = fmt.Sprintf("at most %s %%", digits(math.Ceil(float64(n.Floor)*1000)/10))
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", floor, what))
	}
	return strings.Join(parts, "; ") + ": the same cell, run twice"
}
