package report

import (
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/lab/advise"
	"github.com/holdfast-go/holdfast/internal/lab/figure"
	"github.com/holdfast-go/holdfast/internal/lab/result"
)

// A sheet is the figures of a run with the advice that follows from them.
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
	return text
}

// word returns the verdict on the row's cost.
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
	return fmt.Sprintf("at most %.1f %% between two runs of the same thing under two names (%s)", s.Noise.Floor*100, what)
}
