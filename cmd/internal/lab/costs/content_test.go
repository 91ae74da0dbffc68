package costs

import (
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/studytest"
)

func TestWrongBytesAreNoTrialOfCosts(t *testing.T) {
	g := studytest.WorkDir(t)
	studytest.WrongBytesAreNoTrial(t, g, "write", recordsTask(false)(50))
	studytest.WrongBytesAreNoTrial(t, g, "buffered write", recordsTask(true)(50))
	studytest.WrongBytesAreNoTrial(t, g, "sync", syncTask(false)(2))
	studytest.WrongBytesAreNoTrial(t, g, "sync of a growing file", syncTask(true)(2))
}
