package study

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// UserModeLinux is the prefix of file systems that a kernel in a process has made: their results are
// compared only with each other.
const UserModeLinux = "uml-"

// A Site is a work directory on a file system that the run has made for itself.
type Site struct {
	FileSystem string // its name, such as ext4-writeback
	WorkDir    *trial.WorkDir
}

// OnSite is the part of a run on several file systems that is on one of them.
type OnSite struct {
	Site
	Matrix  trial.Matrix
	Plan    result.Plan
	Missing []result.Missing
}

// Part is the choice for one of n file systems; each gets the same part of the time.
func (c Choice) Part(n int) Choice {
	c.Budget = c.Share(len(c.FileSystems)).Budget * time.Duration(n)
	return c
}

// PrepareOn is Prepare on several file systems: every arm runs once on each of them in every round, all
// in one order. A file system on which nothing of the study can run is reported as missing, and the
// others run; ErrNoArm means that this holds for all. The preset's time limit is for each file system,
// and a chosen limit is for all of them together.
func (s Study) PrepareOn(sites []Site, c Choice) (trial.Matrix, result.Plan, []result.Missing, error) {
	var all []OnSite
	var missing []result.Missing
	for _, site := range sites {
		m, plan, without, err := s.Prepare(site.WorkDir, c.Share(len(sites)))
		if errors.Is(err, ErrNoArm) {
			missing = append(missing, result.Missing{Cell: site.FileSystem, Why: err.Error()})
			continue
		}
		if err != nil {
			return m, plan, without, fmt.Errorf("%s: %w", site.FileSystem, err)
		}
		all = append(all, OnSite{site, m, plan, without})
	}
	if len(all) == 0 {
		return trial.Matrix{}, result.Plan{}, missing, fmt.Errorf("%w: %s", ErrNoArm, missing[0].Why)
	}
	m, plan, without := InOneOrder(all)
	return m, plan, append(missing, without...), nil
}

// OutlineOn returns the plan of PrepareOn for file systems with these names: the cells of one of them,
// and the plan of each.
func (s Study) OutlineOn(c Choice) (cells []result.Cell, each result.Plan) {
	return s.Outline(c.Share(len(c.FileSystems)))
}

// Share is the choice for one of n file systems: a chosen time is divided among them.
func (c Choice) Share(n int) Choice {
	if c.Budget > 0 {
		c.Budget = max(1, c.Budget/time.Duration(max(1, n)))
	}
	return c
}

// InOneOrder joins the matrices of several file systems into one, and sums their plans.
func InOneOrder(all []OnSite) (m trial.Matrix, plan result.Plan, missing []result.Missing) {
	m, plan = all[0].Matrix, all[0].Plan
	m.Cells = nil
	for _, p := range all {
		for _, c := range p.Matrix.Cells {
			c = c.On(p.WorkDir)
			c.Cell = c.Placed(p.FileSystem)
			m.Cells = append(m.Cells, c)
		}
		for _, without := range p.Missing {
			missing = append(missing, without.Placed(p.FileSystem))
		}
		m.Rounds = min(m.Rounds, p.Matrix.Rounds)
	}
	for _, p := range all[1:] {
		plan = Sum(plan, p.Plan)
		m.Limit += p.Matrix.Limit
	}
	plan.Rounds = m.Rounds
	return m, plan, missing
}

// Beside adds cells that run elsewhere, with their plan, to a matrix and its plan. The smaller number
// of rounds is used; a matrix without cells does not count.
func Beside(m trial.Matrix, plan result.Plan, cells []trial.Cell, of result.Plan) (trial.Matrix, result.Plan) {
	if len(m.Cells) == 0 {
		plan = of
	} else {
		plan = Sum(plan, of)
	}
	m.Cells, m.Rounds, m.Limit = append(slices.Clip(m.Cells), cells...), plan.Rounds, plan.Limit
	return m, plan
}

// Sum is the plan of two runs in one, with the same number of rounds.
func Sum(a, b result.Plan) result.Plan {
	a.Rounds = min(a.Rounds, b.Rounds)
	a.Estimate += b.Estimate
	a.Limit += b.Limit
	a.Size += b.Size
	a.Room += b.Room
	a.Files += b.Files
	return a
}

// IsUserMode reports whether a file system was made by a kernel in a process.
func IsUserMode(fileSystem string) bool { return strings.HasPrefix(fileSystem, UserModeLinux) }
