package study

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/trial"
)

// userModeLinux begins the names of file systems that a kernel in a process has made:
// what was measured there is compared among itself only.
const userModeLinux = "uml-"

// A Site is a ground on a file system that the run has made for itself.
type Site struct {
	FileSystem string // its name, such as ext4-writeback
	Ground     *trial.Ground
}

// onSite is what one file system has of a run on several.
type onSite struct {
	site    Site
	matrix  trial.Matrix
	plan    result.Plan
	missing []result.Missing
}

// Part is the choice for n of the file systems that it is for, each of which has the
// same part of the time.
func (c Choice) Part(n int) Choice {
	c.Budget = c.share(len(c.FileSystems)).Budget * time.Duration(n)
	return c
}

// PrepareOn is Prepare on several file systems: every arm is run once on each of them
// in every round, all in one order. A file system on which nothing of the study can be
// run is missing, the others are run; ErrNoArm is all of them. A limit of the preset's
// is one for each file system, and one that was chosen is for all of them together.
func (s Study) PrepareOn(sites []Site, c Choice) (trial.Matrix, result.Plan, []result.Missing, error) {
	var all []onSite
	var missing []result.Missing
	for _, site := range sites {
		m, plan, without, err := s.Prepare(site.Ground, c.share(len(sites)))
		if errors.Is(err, ErrNoArm) {
			missing = append(missing, result.Missing{Cell: site.FileSystem, Why: err.Error()})
			continue
		}
		if err != nil {
			return m, plan, without, fmt.Errorf("%s: %w", site.FileSystem, err)
		}
		all = append(all, onSite{site, m, plan, without})
	}
	if len(all) == 0 {
		return trial.Matrix{}, result.Plan{}, missing, fmt.Errorf("%w: %s", ErrNoArm, missing[0].Why)
	}
	m, plan, without := inOneOrder(all)
	return m, plan, append(missing, without...), nil
}

// OutlineOn returns what PrepareOn would run on file systems of these names, with the
// cells of one of them, and the plan of each.
func (s Study) OutlineOn(c Choice) (cells []result.Cell, each result.Plan) {
	return s.Outline(c.share(len(c.FileSystems)))
}

// share is the choice for one of n file systems: a time that was chosen is for all.
func (c Choice) share(n int) Choice {
	if c.Budget > 0 {
		c.Budget = max(1, c.Budget/time.Duration(max(1, n)))
	}
	return c
}

// PrepareOn is Prepare on several file systems: it calibrates on each of them, as what
// fits into the time of a trial on one need not on another, and runs all cells in one
// order. The rounds are those of the file system that has the fewest.
func (s Sweep) PrepareOn(ctx context.Context, sites []Site, c Choice, probed func(done, all int)) (trial.Matrix, result.Plan, error) {
	var all []onSite
	for _, site := range sites {
		m, plan, err := s.Prepare(ctx, site.Ground, c.share(len(sites)), probed)
		if err != nil {
			return m, plan, fmt.Errorf("%s: %w", site.FileSystem, err)
		}
		all = append(all, onSite{site: site, matrix: m, plan: plan})
	}
	m, plan, _ := inOneOrder(all)
	return m, plan, nil
}

// OutlineOn is Outline for one of the choice's file systems.
func (s Sweep) OutlineOn(c Choice) ([]result.Cell, result.Plan) {
	return s.Outline(c.share(len(c.FileSystems)))
}

// inOneOrder makes one matrix of those of several file systems, and adds their plans up.
func inOneOrder(all []onSite) (m trial.Matrix, plan result.Plan, missing []result.Missing) {
	m, plan = all[0].matrix, all[0].plan
	m.Cells = nil
	for _, p := range all {
		for _, c := range p.matrix.Cells {
			c = c.On(p.site.Ground)
			c.Cell = c.Placed(p.site.FileSystem)
			m.Cells = append(m.Cells, c)
		}
		for _, without := range p.missing {
			missing = append(missing, without.Placed(p.site.FileSystem))
		}
		m.Rounds = min(m.Rounds, p.matrix.Rounds)
	}
	for _, p := range all[1:] {
		plan = Sum(plan, p.plan)
		m.Limit += p.matrix.Limit
	}
	plan.Rounds = m.Rounds
	return m, plan, missing
}

// Beside adds cells that are run elsewhere, with their plan, to a matrix and its plan.
// The rounds are those of the one that has fewer; a matrix without cells has none.
func Beside(m trial.Matrix, plan result.Plan, cells []trial.Cell, of result.Plan) (trial.Matrix, result.Plan) {
	if len(m.Cells) == 0 {
		plan = of
	} else {
		plan = Sum(plan, of)
	}
	m.Cells, m.Rounds, m.Limit = append(slices.Clip(m.Cells), cells...), plan.Rounds, plan.Limit
	return m, plan
}

// Sum is the plan of two runs in one, with the same rounds.
func Sum(a, b result.Plan) result.Plan {
	a.Rounds = min(a.Rounds, b.Rounds)
	a.Estimate += b.Estimate
	a.Limit += b.Limit
	a.Size += b.Size
	a.Room += b.Room
	a.Files += b.Files
	return a
}

// AgainOn is Again for a run that made file systems of its own, which are there again.
// It is an error if one of those that the header has cells of is not among the sites.
func AgainOn(h result.Header, counting trial.Counting, sites []Site) (trial.Matrix, error) {
	whole := result.Run{Header: h}
	m := trial.Matrix{Rounds: h.Plan.Rounds, Seed: h.Seed, Limit: h.Plan.Limit}
	made := map[string]trial.Cell{}
	for _, name := range whole.FileSystems() {
		i := slices.IndexFunc(sites, func(s Site) bool { return s.FileSystem == name })
		if i < 0 {
			return m, fmt.Errorf("the results have cells on %s, which is not there", name)
		}
		part, err := Again(whole.On(name).Header, counting)
		if err != nil {
			return m, fmt.Errorf("%s: %w", name, err)
		}
		for _, c := range part.Cells {
			c = c.On(sites[i].Ground)
			c.Cell = c.Placed(name)
			made[c.Name] = c
		}
	}
	for _, c := range h.Cells {
		m.Cells = append(m.Cells, made[c.Name])
	}
	return m, nil
}

// JudgeOn puts the study's claims to the test of a run on several file systems, on each
// of them. A claim of one file system is judged there alone, or where it is not among
// them, once. Of another run it is Judge.
func (s Study) JudgeOn(run result.Run) []Judged {
	on := EvidenceOn(run)
	if len(on) == 0 {
		return s.Judge(run)
	}
	var all []Judged
	for _, c := range s.Claims {
		only := s
		only.Claims = []Claim{c}
		var some, elsewhere []Judged
		for _, e := range on {
			found := only.judge(e)[0]
			found.FileSystem = e.FileSystem
			if c.Of != "" && c.Of != e.Fact("file system") {
				elsewhere = append(elsewhere, found)
				continue
			}
			some = append(some, found)
		}
		if len(some) == 0 && len(elsewhere) > 0 {
			some = elsewhere[:1]
		}
		all = append(all, some...)
	}
	return all
}

// isUserMode reports whether a file system was one of a kernel in a process.
func isUserMode(fileSystem string) bool { return strings.HasPrefix(fileSystem, userModeLinux) }
