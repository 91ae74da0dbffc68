package study

import (
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
)

// A List is the studies that this program knows. The nil List knows none: then all results are results
// of sweeps.
type List []Study

// Find returns the study of that name.
func (l List) Find(name string) (Study, bool) {
	i := slices.IndexFunc(l, func(s Study) bool { return s.Name == name })
	if i < 0 {
		return Study{}, false
	}
	return l[i], true
}

// ErrUnknown means that results are of a study that this program does not know.
var ErrUnknown = errors.New("there is no such study")

// Known returns ErrUnknown for results of a study that is not in the list.
func (l List) Known(h result.Header) error {
	if _, ok := l.Find(h.Study); !ok && Is(h) {
		return fmt.Errorf("%w as %q", ErrUnknown, h.Study)
	}
	return nil
}

// Is reports whether results are of a study, known or not: its arms have groups.
func Is(h result.Header) bool { return len(h.Cells) > 0 && h.Cells[0].Group != "" }

// Names are the names of the studies.
func (l List) Names() (names []string) {
	for _, s := range l {
		names = append(names, s.Name)
	}
	return names
}

// ClaimNames lists the claims of all studies.
func (l List) ClaimNames() (names []string) {
	for _, s := range l {
		for _, c := range s.Claims {
			names = append(names, c.Name)
		}
	}
	return names
}

// AcrossOf returns the comparison of the file systems of a run on several: the study's own if it has
// one, else the time of a record of every cell on each.
func (l List) AcrossOf(run result.Run) Shown {
	s, _ := l.Find(run.Header.Study)
	return s.ShowAcross(run)
}
