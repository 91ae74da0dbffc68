package report

import (
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/advise"
	"github.com/holdfast-go/holdfast/internal/figure"
	"github.com/holdfast-go/holdfast/internal/result"
)

// A sheet is the figures of a run with the advice that is drawn from them.
type sheet struct {
	figure.Figures
	advice  advise.Advice
	advised bool
}

func newSheet(run result.Run) (sheet, error) {
	f, err := figure.Of(run)
	if err != nil {
		return sheet{}, err
	}
	s := sheet{Figures: f}
	if len(s.Policies()) > 0 && len(run.FileSystems()) == 0 {
		s.advice, s.advised = advise.Choose(s.Groups)
	}
	return s, nil
}

// doubt is a warning as one line.
func doubt(w figure.Warning) string {
	line := w.What + "; " + w.Cure
	if w.Cell != nil {
		line = fmt.Sprintf("%s: %s", cellName(*w.Cell), line)
	}
	return line
}

// cellName tells a cell from all others.
func cellName(c result.Cell) string {
	if c.Group != "" {
		return c.Name
	}
	return fmt.Sprintf("%s, %s", c.Policy, title(figure.LoadOf(c)))
}

// title tells a load from the others.
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
	return text
}

// word is the verdict on the row's cost.
func word(r figure.Row) string {
	if r.Fastest {
		return "fastest"
	}
	return string(r.Cost.Verdict)
}

// noise says how large the noise is.
func (s sheet) noise() string {
	if !s.Noise.Floor.Known() {
		return "not measured"
	}
	what := fmt.Sprintf("%s, %s", s.Noise.Twin.Policy, plural(s.Noise.Twin.Writers, "writer"))
	if s.Noise.Twin.Group != "" {
		what = s.Noise.Of
	}
	return fmt.Sprintf("%.1f %% between two runs of the same thing under two names (%s)", s.Noise.Floor*100, what)
}

// cautious reports whether the rounds are too few to prove what is compared.
func (s sheet) cautious() bool { return s.Rounds < s.VerdictRounds() }
