package copying

import (
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/lab/copysource"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/cstdio"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/timing"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/studytest"
)

func TestWrongBytesAreNoTrialOfCopying(t *testing.T) {
	g := studytest.WorkDir(t)
	source := copysource.New(1)
	studytest.WrongBytesAreNoTrial(t, g, "copy", copyCell{timing.Copy, 5000, 512}.task(study.Choice{}, 5000, source))
	studytest.WrongBytesAreNoTrial(t, g, "write", copyCell{timing.EachData, 5000, 512}.task(study.Choice{}, 5000, source))
	if cstdio.Missing() == "" {
		studytest.WrongBytesAreNoTrial(t, g, "in C", copyCell{timing.InC, 5000, 512}.task(study.Choice{}, 5000, source))
	}
	studytest.WrongBytesAreNoTrial(t, g, "O_SYNC", studytest.ArmTask(t, Study(), syncArm(2)))
	studytest.WrongBytesAreNoTrial(t, g, "stream", pointWays()[3].arm(inWriter, "", openOurs).Task())
}
