package study

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/trial"
)

// Again returns the matrix that a header describes: the same cells with the same
// records, the same order, rounds, width and limit. A study's cells must all be
// there still, and be able to run here.
func Again(h result.Header, counting trial.Counting) (trial.Matrix, error) {
	m := trial.Matrix{Rounds: h.Plan.Rounds, Seed: h.Seed, Limit: h.Plan.Limit}
	if s, ok := Find(h.Study); ok {
		cells, err := s.again(h, counting)
		m.Cells = cells
		return m, err
	}
	each := h.Plan.Estimate / time.Duration(max(1, len(h.Cells)*(h.Plan.Rounds+1)))
	for _, c := range h.Cells {
		m.Cells = append(m.Cells, Cell(c, each, counting))
	}
	return m, nil
}

// again finds the cells of a header among the arms.
func (s Study) again(h result.Header, counting trial.Counting) ([]trial.Cell, error) {
	c, err := choiceOf(h)
	if err != nil {
		return nil, err
	}
	c.Counting = counting
	now, _, missing := s.matrix(c)
	var cells []trial.Cell
	for _, want := range h.Cells {
		i := slices.IndexFunc(now.Cells, func(c trial.Cell) bool { return c.Cell == want })
		if i < 0 {
			return nil, fmt.Errorf("the study %s has no such arm here as %s%s", s.Name, want.Name, because(missing, want.Name))
		}
		cells = append(cells, now.Cells[i])
	}
	return cells, nil
}

func because(missing []result.Missing, cell string) string {
	for _, m := range missing {
		if m.Cell == cell {
			return ": " + m.Why
		}
	}
	return ""
}
