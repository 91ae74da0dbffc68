package zerocopy

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/studytest"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// TestEveryWayMovesTheWholeFile runs all arms, with sizes that are no multiple of
// anything and, the larger, more than a pipe and a socket hold.
func TestEveryWayMovesTheWholeFile(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{1, 3<<20 + 12345} {
		s := Study()
		run := studytest.RunStudy(t, s, study.Choice{Preset: study.Quick(), Count: size, Rounds: 1})
		e := study.EvidenceOf(run)
		for _, c := range run.Header.Cells {
			if calls := e.Median(c.Name, study.Value(toldCalls)); !(calls >= 1) && c.Name != zeroFile(byCopy) {
				t.Errorf("%s: %v calls", c.Name, calls)
			}
			if got := e.Median(c.Name, func(t result.Trial) float64 { return float64(t.Size) }); got != float64(size) {
				t.Errorf("%s: %v bytes, want %d", c.Name, got, size)
			}
		}
		studytest.LooksFilled(t, s.Show(e))
		want := 2 * study.CallsOf(size, 64<<10)
		if got := e.Median(zeroFile(pieces64), study.Value(toldCalls)); got != float64(want) {
			t.Errorf("%d bytes by 64 KiB: %v calls, want %d", size, got, want)
		}
		if got := e.Median(zeroFile(bySendfile), study.Value(toldCalls)); got != 1 {
			t.Errorf("%d bytes by sendfile: %v calls, want 1", size, got)
		}
	}
}

func TestACopyThatIsWrongIsNoTrial(t *testing.T) {
	g := studytest.WorkDir(t)
	source := newZeroSource(1)
	for _, w := range zeroFileWays {
		if w.name == byReflink {
			continue // it spoils its source too, if it can be had
		}
		task := w.fileTask(5000, source)
		do := task.Do
		task.Do = func(ctx context.Context, c *trial.Clock) error {
			return errors.Join(do(ctx, c), studytest.Spoil(c.Path))
		}
		var wrong *trial.ContentError
		if _, err := task.Run(t.Context(), g, trial.NotCounting, 5000, 5000); !errors.As(err, &wrong) {
			t.Errorf("%s with a wrong byte: err = %v", w.name, err)
		}
	}
}

// sending is a way that sends the given content, whatever is in the file.
func sending(content []byte) zeroWay {
	return zeroWay{name: "test", move: func(ctx context.Context, to, _ int, _ int64) (int64, error) {
		return writeWhole(ctx, to, content)
	}}
}

func TestWhatIsReceivedWrongIsNoTrial(t *testing.T) {
	g := studytest.WorkDir(t)
	const size = 100_000
	source := newZeroSource(1)
	right := source.Block(size)
	check := func(name string, content []byte, ok bool) {
		t.Helper()
		_, err := sending(content).socketTask(size, source).Run(t.Context(), g, trial.NotCounting, size, size)
		var wrong *trial.ContentError
		if ok && err != nil || !ok && !errors.As(err, &wrong) {
			t.Errorf("%s: err = %v", name, err)
		}
	}
	check("as it is", right, true)
	check("one byte less", right[:size-1], false)
	check("one byte more", append(slices.Clone(right), 0), false)
	turned := slices.Clone(right)
	turned[size/2] ^= 1
	check("one byte changed", turned, false)
	check("nothing", nil, false)
}

func TestInterruptedSendingLeavesNoReceiver(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := zeroWay{name: "test", move: func(ctx context.Context, _, _ int, _ int64) (int64, error) {
		cancel()
		<-ctx.Done()
		return 0, ctx.Err()
	}}
	_, err := w.socketTask(1000, newZeroSource(1)).Run(ctx, studytest.WorkDir(t), trial.NotCounting, 1000, 1000) // returns when the process has ended
	if !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
}

func TestFailedSendingIsReported(t *testing.T) {
	broken := errors.New("broken")
	w := zeroWay{name: "test", move: func(context.Context, int, int, int64) (int64, error) { return 0, broken }}
	_, err := w.socketTask(1000, newZeroSource(1)).Run(t.Context(), studytest.WorkDir(t), trial.NotCounting, 1000, 1000)
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "test: ") {
		t.Errorf("err = %v", err)
	}
}
