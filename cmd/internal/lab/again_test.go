package lab

import (
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/sweep"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// TestOnlyWhatIsKnownIsRepeated: results may be of another holdfast's study, or
// edited.
func TestOnlyWhatIsKnownIsRepeated(t *testing.T) {
	again := func(c result.Cell) error {
		_, err := sweep.Again(Studies(), result.Header{Study: "others", Cells: []result.Cell{c}}, trial.NotCounting)
		return err
	}
	good := result.Cell{Name: "a", RecordBytes: trial.MinRecord, Writers: 1, Records: 1}
	if err := again(good); err != nil {
		t.Error(err)
	}
	if err := again(result.Cell{Name: "empty", Empty: true}); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*result.Cell){
		"small record": func(c *result.Cell) { c.RecordBytes = trial.MinRecord - 1 },
		"large record": func(c *result.Cell) { c.RecordBytes = int64(study.MaxRecord) + 1 },
		"no writer":    func(c *result.Cell) { c.Writers = 0 },
		"no record":    func(c *result.Cell) { c.Records = -1 },
		"many turns":   func(c *result.Cell) { c.Turns = 101 },
		"few turns":    func(c *result.Cell) { c.Turns = -1 },
	} {
		c := good
		spoil(&c)
		if err := again(c); err == nil {
			t.Error(name + " is repeated")
		}
	}
	of := good
	of.Group = "a study's"
	if err := again(of); !errors.Is(err, study.ErrUnknown) {
		t.Errorf("an unknown study: %v", err)
	}
}
