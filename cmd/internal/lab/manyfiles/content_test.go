package manyfiles

import (
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/studytest"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

func TestWrongBytesAreNoTrialOfFiles(t *testing.T) {
	g := studytest.WorkDir(t)
	check := func(name string, task trial.Task) {
		t.Helper()
		studytest.WrongBytesAreNoTrial(t, g, name, task)
	}
	check("CreateTemp", studytest.ArmTask(t, Study(), createTemp))
	for _, w := range []fileWay{loopWay, poolWay(sixtyFour), filesWay(), workersWay(oneWorker), retriesOffWay(), batchesWay()} {
		check(w.name, w.task(3, 2))
	}
	for _, w := range append(fewerCPUs(), byFileWay, byBufioWay, appendWay) {
		check(w.name, w.task(3, 2))
	}
	lines := appendLoad{files: 3, lines: 5}
	for _, a := range slices.Concat(apartArms(3), durableArms(3), lines.arms()) {
		check(a.Name, a.Task())
	}
}
