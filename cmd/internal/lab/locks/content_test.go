package locks

import (
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/studytest"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

func TestWrongBytesAreNoTrialOfLocks(t *testing.T) {
	g := studytest.WorkDir(t)
	studytest.WrongBytesAreNoTrial(t, g, "file of locks", linesTask(20, true))
}

// TestWrongCountsAreNoTrial: a counter and a map that lose what they should not.
func TestWrongCountsAreNoTrial(t *testing.T) {
	all, ten := crew{goroutines: 2}, load{steps: 10, passes: 1}
	deaf := func() sharedMap { return &lossyMap{mutexMap: mutexMap{m: map[int64]int64{}}, deaf: true} }
	for name, task := range map[string]trial.Task{
		"counter": counterWay{name: "mutex", start: idleCounter}.task(all, ten),
		"map":     mapWay{start: deaf}.task(all, mapLoad{load: ten, keys: 10, reads: 100}),
	} {
		if _, err := task.Run(t.Context(), studytest.WorkDir(t), trial.NotCounting, 1, 1); err == nil {
			t.Errorf("the %s lost something, and the trial counts", name)
		}
	}
}
