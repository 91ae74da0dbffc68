package latency

import (
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/studytest"
)

func TestWrongBytesAreNoTrialOfLatency(t *testing.T) {
	g := studytest.WorkDir(t)
	studytest.WrongBytesAreNoTrial(t, g, "timed Writes", sink{by: byFile}.timedWrites(20, 64))
	studytest.WrongBytesAreNoTrial(t, g, "open loop", sink{byBufio, holdfast.Buffered(512)}.openLoop(20, 64))
	if noSharedClock() == "" {
		studytest.WrongBytesAreNoTrial(t, g, "watched Writes", sink{by: byFile}.watchedWrites(20, 64))
	}
}
