package run

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// TestProgressNamesTheArm names a study's arm by its name, and a policy by its text.
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

// TestFirstFiguresAreTheWarmUps: of the first load, without the cells that write nothing or show the noise.
func TestFirstFiguresAreTheWarmUps(t *testing.T) {
	t.Parallel()
	run := result.Run{Header: result.Header{Cells: []result.Cell{
		{Name: "empty", Writers: 1, Empty: true},
		{Name: "each", Policy: holdfast.EachDurable(), Writers: 1},
		{Name: "none", Policy: holdfast.Unbuffered(), Writers: 1},
		{Name: "paced", Policy: holdfast.Unbuffered(), Writers: 1, Rate: 10},
		{Name: "many", Policy: holdfast.Unbuffered(), Writers: 64},
	}}}
	add := func(cell string, round int, ns time.Duration) {
		run.Trials = append(run.Trials, &result.Trial{Cell: cell, Round: round, Measurement: result.Measurement{Records: 10, Write: 10 * ns}})
	}
	add("many", 0, 1)
	add("paced", 0, 2)
	add("empty", 0, 3)
	add("none", 0, 1230)
	if got := firstFigures(run); got != "" {
		t.Errorf("of one policy: %q", got)
	}
	add("each", 0, 138*time.Microsecond)
	add("none", 1, 4)
	const want = "first figures, from one short trial each: 1.23µs (buffer=0,sync=never) to 138µs (buffer=0,sync=each) a record, 1 writer"
	if got := firstFigures(run); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
