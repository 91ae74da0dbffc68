package study

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// TestPlanOfAStudyIsWhatIsRunHoweverShortTheTime: a warm-up and a round always run, and nothing beyond
// the time.
func TestPlanOfAStudyIsWhatIsRunHoweverShortTheTime(t *testing.T) {
	one := func() Study {
		arm := Arm{Cell: result.Cell{Name: "write", Records: 1, RecordBytes: 1}, Time: time.Second / 2, Bytes: 1000}
		arm.Task = func() trial.Task { return trial.Task{} }
		return Study{Name: "plan", Arms: func(Choice) []Arm { return []Arm{arm} }}
	}
	check := func(c Choice, estimate time.Duration, size int64) {
		t.Helper()
		if _, plan := one().Outline(c); plan.Estimate != estimate || plan.Size != size {
			t.Errorf("%v and %d bytes, want %v and %d", plan.Estimate, plan.Size, estimate, size)
		}
	}
	// A round takes a second, with the twin, and 2000 bytes.
	check(Choice{Preset: Default()}, 11*time.Second, 22_000)
	check(Choice{Preset: Default(), Rounds: 30}, 31*time.Second, 62_000)
	check(Choice{Preset: Default(), Budget: time.Millisecond}, 2*time.Second, 4000)
	check(Choice{Preset: Default(), Budget: 5500 * time.Millisecond}, 5500*time.Millisecond, 12_000)
}
