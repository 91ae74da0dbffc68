package sweep

import (
	"fmt"
	"slices"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// Again returns the matrix that a header describes, of a study or of a sweep: the same cells with the
// same records, the same order, rounds, width and limit. A study's cells must all still exist, and be
// able to run here.
func Again(studies study.List, h result.Header, counting trial.Counting) (trial.Matrix, error) {
	if s, ok := studies.Find(h.Study); ok {
		return s.Again(h, counting)
	}
	if err := studies.Known(h); err != nil {
		return trial.Matrix{Rounds: h.Plan.Rounds, Seed: h.Seed, Limit: h.Plan.Limit}, err
	}
	return again(h, counting)
}

// AgainOn is Again for a run that made file systems of its own, which exist again.
// It is an error if a file system of the header's cells is not among the sites.
func AgainOn(studies study.List, h result.Header, counting trial.Counting, sites []study.Site) (trial.Matrix, error) {
	whole := result.Run{Header: h}
	m := trial.Matrix{Rounds: h.Plan.Rounds, Seed: h.Seed, Limit: h.Plan.Limit}
	made := map[string]trial.Cell{}
	for _, name := range whole.FileSystems() {
		i := slices.IndexFunc(sites, func(s study.Site) bool { return s.FileSystem == name })
		if i < 0 {
			return m, fmt.Errorf("the results have cells on %s, which does not exist", name)
		}
		part, err := Again(studies, whole.On(name).Header, counting)
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
