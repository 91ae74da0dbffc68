package study

import (
	"errors"
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
	if err := isSweep(h); err != nil {
		return m, err
	}
	each := h.Plan.Estimate / time.Duration(max(1, len(h.Cells)*(h.Plan.Rounds+1)))
	for _, c := range h.Cells {
		m.Cells = append(m.Cells, Cell(c, each, counting))
	}
	return m, nil
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

// isSweep refuses cells that no sweep has.
func isSweep(h result.Header) error {
	if err := Known(h); err != nil {
		return err
	}
	for _, c := range h.Cells {
		if !c.Empty && (c.RecordBytes < trial.MinRecord || c.RecordBytes > int64(MaxRecord) || c.Writers < 1 || c.Records < 0) {
			return fmt.Errorf("%s can't be repeated with %d records of %d bytes by %d writers", c.Name, c.Records, c.RecordBytes, c.Writers)
		}
	}
	return nil
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
