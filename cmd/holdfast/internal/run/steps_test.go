package run

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/lab/result"
	"github.com/holdfast-go/holdfast/internal/lab/trial"
)

// TestProgressNamesTheArm tells of an arm of a study by its name, and of a policy by
// what it is.
func TestProgressNamesTheArm(t *testing.T) {
	t.Parallel()
	step := trial.Step{Round: 1, Rounds: 2, Left: time.Second, Cell: result.Cell{Name: "copy, 1MiB by 1B", Group: "copy", Writers: 1}}
	if got := stepText(step); got != "round 1/2, 1s left, copy, 1MiB by 1B" {
		t.Error(got)
	}
	step.Cell = result.Cell{Name: "each", Policy: holdfast.EachDurable(), Writers: 4}
	if got := stepText(step); got != "round 1/2, 1s left, 4 x buffer=0,sync=each" {
		t.Error(got)
	}
}
