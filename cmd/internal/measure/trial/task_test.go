package trial_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

func openWorkDir(t *testing.T) *trial.WorkDir {
	t.Helper()
	g, err := trial.OpenWorkDir(t.TempDir(), true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

func TestTaskElapsedIsTheSumOfItsStages(t *testing.T) {
	task := trial.Task{Do: func(_ context.Context, c *trial.Clock) error {
		c.Took(trial.Open, time.Second)
		c.Took(trial.Write, 2*time.Second)
		c.Took(trial.Write, 3*time.Second)
		c.Took(trial.Close, 4*time.Second)
		c.Took(trial.Read, 5*time.Second)
		c.Tell("lost_lines", 7)
		c.Done(40, 400)
		return nil
	}}
	m, err := task.Run(t.Context(), openWorkDir(t), trial.NotCounting, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	if m.Open != time.Second || m.Write != 5*time.Second || m.Close != 4*time.Second || m.Read != 5*time.Second || m.Elapsed != 15*time.Second {
		t.Errorf("%+v", m)
	}
	if m.Values["lost_lines"] != 7 || m.Records != 40 || m.Size != 400 {
		t.Errorf("values %v, %d records, %d bytes", m.Values, m.Records, m.Size)
	}
}

func TestTaskTimesNothingBeforeStart(t *testing.T) {
	g := openWorkDir(t)
	trial.InFakeTime(t, func(t *testing.T) {
		task := trial.Task{Do: func(_ context.Context, c *trial.Clock) error {
			time.Sleep(time.Hour)
			c.Start()
			time.Sleep(time.Second)
			c.Lap(trial.Work)
			time.Sleep(time.Hour)
			return nil
		}}
		m, err := task.Run(t.Context(), g, trial.NotCounting, 1, 1)
		if err != nil || m.Elapsed != time.Second || m.Work != time.Second {
			t.Errorf("%v elapsed, %v of it work, want 1s; err = %v", m.Elapsed, m.Work, err)
		}
	})
}

func TestTaskMakesChecksAndRemovesItsFile(t *testing.T) {
	var path string
	var steps []string
	step := func(name string) { steps = append(steps, name) }
	task := trial.Task{
		Make:  func(p string) error { step("make"); path = p; return os.WriteFile(p, []byte("abc"), 0o666) },
		Do:    func(_ context.Context, c *trial.Clock) error { step("do"); _, err := os.ReadFile(c.Path); return err },
		Check: func(string) error { step("check"); return nil },
	}
	if _, err := task.Run(t.Context(), openWorkDir(t), trial.NotCounting, 1, 1); err != nil {
		t.Fatal(err)
	}
	if want := []string{"make", "do", "check"}; !slices.Equal(steps, want) {
		t.Errorf("the steps were %q, want %q", steps, want)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
}

func TestTaskWithWrongBytesFails(t *testing.T) {
	wrong := &trial.ContentError{Offset: 3, Reason: "a byte is wrong"}
	task := trial.Task{
		Do:    func(context.Context, *trial.Clock) error { return nil },
		Check: func(string) error { return wrong },
	}
	if _, err := task.Run(t.Context(), openWorkDir(t), trial.NotCounting, 1, 1); !errors.Is(err, error(wrong)) {
		t.Errorf("err = %v, want the check's", err)
	}
}

func TestTaskEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	task := trial.Task{Do: func(context.Context, *trial.Clock) error { cancel(); return nil }}
	if _, err := task.Run(ctx, openWorkDir(t), trial.NotCounting, 1, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want context.Canceled", err)
	}
}

func TestTaskWithoutASecondProcessSaysSo(t *testing.T) {
	task := trial.Task{Do: func(ctx context.Context, c *trial.Clock) error { _, err := c.Second(ctx, "wait"); return err }}
	if _, err := task.Run(t.Context(), openWorkDir(t), trial.NotCounting, 1, 1); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("err = %v, want ErrUnsupported", err)
	}
}

func TestTaskCountsItsOwnCalls(t *testing.T) {
	const writes = 1000
	task := trial.Task{Do: func(_ context.Context, c *trial.Clock) error {
		f, err := os.Create(c.Path)
		if err != nil {
			return err
		}
		for range writes {
			if _, err := f.Write([]byte("x")); err != nil {
				return err
			}
		}
		c.Lap(trial.Write)
		return f.Close()
	}}
	m, err := task.Run(t.Context(), openWorkDir(t), trial.NotCounting, writes, writes)
	if err != nil {
		t.Fatal(err)
	}
	if m.IO == nil {
		t.Skip("this system does not count the process's reads and writes")
	}
	// The runtime and other tests of this process may write now and then.
	if m.IO.Writes < writes || m.IO.Writes > writes+100 {
		t.Errorf("%d write calls were counted, want %d or a few more", m.IO.Writes, writes)
	}
}

func TestTaskBeginsColdOrNotAtAll(t *testing.T) {
	task := trial.Task{
		Cache: result.Cold,
		Make:  func(path string) error { return trial.NewFile(path, 1<<20, func([]byte) {}) },
		Do:    func(context.Context, *trial.Clock) error { return nil },
	}
	m, err := task.Run(t.Context(), openWorkDir(t), trial.NotCounting, 1, 1)
	var cache *trial.CacheError
	switch {
	case errors.As(err, &cache): // in memory, or no system call reports it
	case err != nil:
		t.Fatal(err)
	case m.Before == nil || m.Before.Resident != 0 || m.Before.Pages == 0:
		t.Errorf("before the trial: %+v", m.Before)
	}
}

// TestKeptFilesAreTheLastOfEachTask: also for tasks that make a directory, or nothing.
func TestKeptFilesAreTheLastOfEachTask(t *testing.T) {
	parent := t.TempDir()
	g, err := trial.OpenWorkDir(parent, true)
	if err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(parent, "kept")
	if err := os.Mkdir(kept, 0o777); err != nil {
		t.Fatal(err)
	}
	g.Kept = kept
	run := func(name string, do func(path string) error) {
		task := trial.Task{Name: name, Do: func(_ context.Context, c *trial.Clock) error { return do(c.Path) }}
		if _, err := task.Run(t.Context(), g, trial.NotCounting, 1, 1); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, text := range []string{"first", "last"} {
		run("group/file", func(path string) error { return os.WriteFile(path, []byte(text), 0o666) })
	}
	for range 2 {
		run("many", func(path string) error { return os.MkdirAll(filepath.Join(path, "one"), 0o777) })
		run("none", func(string) error { return nil })
	}
	// A removed directory, and a file in its place, are an error, and no trial.
	task := trial.Task{Name: "file", Do: func(_ context.Context, c *trial.Clock) error { return os.Mkdir(c.Path, 0o777) }}
	file := filepath.Join(parent, "instead")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, g.Kept = range []string{filepath.Join(parent, "gone"), file} {
		if _, err := task.Run(t.Context(), g, trial.NotCounting, 1, 1); err == nil {
			t.Errorf("what can't be kept in %s is kept", g.Kept)
		}
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	got, err := os.ReadFile(filepath.Join(kept, "group-file"))
	if err != nil || string(got) != "last" {
		t.Errorf("%q, %v", got, err)
	}
	if all, err := os.ReadDir(kept); err != nil || len(all) != 2 {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := os.Stat(filepath.Join(kept, "many", "one")); err != nil {
		t.Error(err)
	}
}
