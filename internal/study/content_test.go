package study

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/timing"
	"github.com/holdfast-go/holdfast/internal/trial"
)

// TestWrongBytesAreNoTrialOfAnyStudy spoils what a task has written before its check
// looks at it.
func TestWrongBytesAreNoTrialOfAnyStudy(t *testing.T) {
	g := ground(t)
	check := func(name string, task trial.Task) {
		t.Helper()
		if _, err := task.Run(t.Context(), g, trial.NotCounting, 1, 1); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		do := task.Do
		task.Do = func(ctx context.Context, c *trial.Clock) error { return errors.Join(do(ctx, c), spoil(c.Path)) }
		var wrong *trial.ContentError
		if _, err := task.Run(t.Context(), g, trial.NotCounting, 1, 1); !errors.As(err, &wrong) {
			t.Errorf("%s with a wrong byte: err = %v", name, err)
		}
	}
	check("lines", lineRun{text: lineText{format: bufferedLine}, count: 20, writers: 1, way: goBuffer(512, 0)}.task())
	check("lines as published, buffered", modeRun{true, 20}.task())
	check("lines as published, unbuffered", modeRun{false, 20}.task())
	check("forgotten flush", forgotten{by: ours, buffer: 512, count: 20}.task())
	check("write", recordsTask(false)(50))
	check("buffered write", recordsTask(true)(50))
	check("sync", syncTask(false)(2))
	check("sync of a growing file", syncTask(true)(2))
	check("file of locks", linesTask(20, true))
	check("timed Writes", outlet{by: byFile}.timedWrites(20, 64))
	check("open loop", outlet{byBufio, holdfast.Buffered(512)}.openLoop(20, 64))
	if noSharedClock() == "" {
		check("watched Writes", outlet{by: byFile}.watchedWrites(20, 64))
	}
	source := newCopySource(1)
	check("copy", copyCell{timing.Copy, 5000, 512}.task(Choice{}, 5000, source))
	check("write", copyCell{timing.EachData, 5000, 512}.task(Choice{}, 5000, source))
	check("O_SYNC", armTask(t, Copying(), syncArm(2)))
	check("stream", pointWays()[3].arm(inWriter, "", openOurs).Task())
	check("CreateTemp", armTask(t, Files(), createTemp))
	for _, w := range []fileWay{loopWay(), poolWay(sixtyFour), filesWay(), namesWay(oneWorker), retriesOffWay(), batchesWay()} {
		check(w.name, w.task(3, 2))
	}
	for _, w := range openWays() {
		check(w.name, w.task(3, 2))
	}
	lines := appendLoad{files: 3, lines: 5}
	for _, a := range slices.Concat(apartArms(3), durableArms(3), replaceArms(3), lines.arms()) {
		check(a.Name, a.Task())
	}
}

// armTask is the task of the study's arm of that name.
func armTask(t *testing.T, s Study, name string) trial.Task {
	t.Helper()
	for _, a := range s.Arms(Choice{Preset: Audit()}) {
		if a.Name == name {
			return a.Task()
		}
	}
	t.Fatalf("the study %s has no arm %q", s.Name, name)
	return trial.Task{}
}

// spoil changes the first byte of the last file at path.
func spoil(path string) error {
	last := ""
	err := filepath.WalkDir(path, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			last = path
		}
		return err
	})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(last, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte{0xff}, 0)
	return errors.Join(err, f.Close())
}

// A turning reader changes every byte.
type turning struct{ io.ReadCloser }

func (r turning) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	for i := range p[:n] {
		p[i] ^= 1
	}
	return n, err
}

func TestWrongBytesOfAStreamAreNoTrial(t *testing.T) {
	s := lineStream{lineRun{text: lineText{format: bufferedLine}, count: 20, writers: 1}, func() (holdfast.File, io.ReadCloser, error) {
		to, from, err := connectPipe()
		return to, turning{from}, err
	}}
	var wrong *trial.ContentError
	if _, err := s.task().Run(t.Context(), ground(t), trial.NotCounting, 1, 1); !errors.As(err, &wrong) {
		t.Errorf("err = %v", err)
	}
}

// TestWrongCountsAreNoTrial: a counter and a map that lose what they should not.
func TestWrongCountsAreNoTrial(t *testing.T) {
	all, ten := crew{goroutines: 2}, load{steps: 10, passes: 1}
	deaf := func() sharedMap { return &lossyMap{mutexMap: mutexMap{m: map[int64]int64{}}, deaf: true} }
	for name, task := range map[string]trial.Task{
		"counter": counterWay{name: "mutex", start: idleCounter}.task(all, ten),
		"map":     mapWay{start: deaf}.task(all, mapLoad{load: ten, keys: 10, reads: 100}),
	} {
		if _, err := task.Run(t.Context(), ground(t), trial.NotCounting, 1, 1); err == nil {
			t.Errorf("the %s lost something, and the trial counts", name)
		}
	}
}
