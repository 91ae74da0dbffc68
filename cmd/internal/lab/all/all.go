// Package all lists the studies, one package each, and does what needs the list. It finds one by
// its name, repeats a run, and does the work of a second process.
//
// Start with [Studies].
package all

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/holdfast-go/holdfast/cmd/internal/lab/bytewise"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/copying"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/costs"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/latency"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/lines"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/locks"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/manyfiles"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/reads"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/zerocopy"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/sweep"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// Studies returns those that can be run by name.
func Studies() []study.Study {
	return []study.Study{
		lines.Study(), bytewise.Study(), costs.Study(), locks.Study(), reads.Study(),
		latency.Study(), manyfiles.Study(), copying.Study(), zerocopy.Study(),
	}
}

// Find returns the study of that name.
func Find(name string) (study.Study, bool) {
	all := Studies()
	i := slices.IndexFunc(all, func(s study.Study) bool { return s.Name == name })
	if i < 0 {
		return study.Study{}, false
	}
	return all[i], true
}

// AcrossOf returns what a run on several file systems shows of all together. That is
// what its study makes of it, or else the time of a record of every cell on each.
func AcrossOf(run result.Run) study.Shown {
	s, _ := Find(run.Header.Study)
	return s.ShowAcross(run)
}

// Again returns the matrix that a header describes: the same cells with the same
// records, the same order, rounds, width and limit. A study's cells must all be
// there still, and be able to run here.
func Again(h result.Header, counting trial.Counting) (trial.Matrix, error) {
	if s, ok := Find(h.Study); ok {
		return s.Again(h, counting)
	}
	if err := Known(h); err != nil {
		return trial.Matrix{Rounds: h.Plan.Rounds, Seed: h.Seed, Limit: h.Plan.Limit}, err
	}
	return sweep.Again(h, counting)
}

// ErrUnknown says that results are of a study that is not known here.
var ErrUnknown = errors.New("there is no such study")

// Known returns ErrUnknown for results of a study, and of none that is known.
func Known(h result.Header) error {
	if _, ok := Find(h.Study); !ok && len(h.Cells) > 0 && h.Cells[0].Group != "" {
		return fmt.Errorf("%w as %q", ErrUnknown, h.Study)
	}
	return nil
}

// Audited returns the studies whose claims are put to the test, in the order of
// the audit's table.
func Audited() []study.Study { return Studies() }

// ClaimNames lists the claims of all studies.
func ClaimNames() []string {
	var names []string
	for _, s := range Audited() {
		for _, c := range s.Claims {
			names = append(names, c.Name)
		}
	}
	return names
}

// AgainOn is Again for a run that made file systems of its own, which exist again.
// It is an error if one of those that the header has cells of is not among the sites.
func AgainOn(h result.Header, counting trial.Counting, sites []study.Site) (trial.Matrix, error) {
	whole := result.Run{Header: h}
	m := trial.Matrix{Rounds: h.Plan.Rounds, Seed: h.Seed, Limit: h.Plan.Limit}
	made := map[string]trial.Cell{}
	for _, name := range whole.FileSystems() {
		i := slices.IndexFunc(sites, func(s study.Site) bool { return s.FileSystem == name })
		if i < 0 {
			return m, fmt.Errorf("the results have cells on %s, which is not there", name)
		}
		part, err := Again(whole.On(name).Header, counting)
		if err != nil {
			return m, fmt.Errorf("%s: %w", name, err)
		}
		for _, c := range part.Cells {
			c = c.On(sites[i].WorkDir)
			c.Cell = c.Placed(name)
			made[c.Name] = c
		}
	}
	for _, c := range h.Cells {
		m.Cells = append(m.Cells, made[c.Name])
	}
	return m, nil
}

// roles are the work of all studies for a second process.
func roles() map[string]study.Role {
	all := map[string]study.Role{}
	for _, of := range []map[string]study.Role{lines.Roles(), latency.Roles, zerocopy.Roles, sweep.Roles} {
		maps.Copy(all, of)
	}
	return all
}

// RunSecond does the work of a second process; args are those that an arm gave to
// [trial.Clock.Second].
func RunSecond(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
	return study.RunRole(ctx, roles(), args, stdin, stdout)
}
