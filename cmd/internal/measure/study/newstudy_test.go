package study_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/studytest"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// Pieces asks whether a file that is written in large pieces costs less.
func Pieces() study.Study {
	arm := func(name string, piece int) study.Arm {
		const size = 4 << 20
		content := make([]byte, size)
		do := func(_ context.Context, c *trial.Clock) error {
			f, err := os.Create(c.Path)
			c.Lap(trial.Open)
			for at := 0; at < size && err == nil; at += piece {
				_, err = f.Write(content[at : at+piece])
			}
			c.Lap(trial.Write)
			return errors.Join(err, f.Close())
		}
		cell := result.Cell{Name: name, Group: "pieces", Does: "write(2) in pieces of " + name, Records: size, RecordBytes: 1}
		task := func() trial.Task { return trial.Task{Writes: size, Do: do, Check: holds(size)} }
		return study.Arm{Cell: cell, Time: 20 * time.Millisecond, Bytes: size, Task: task}
	}
	return study.Study{
		Name: "pieces", Question: "does a file that is written in large pieces cost less",
		Arms: func(study.Choice) []study.Arm { return []study.Arm{arm("1KiB", 1<<10), arm("64KiB", 64<<10)} },
		Show: func(e study.Evidence) study.Shown {
			return study.Shown{Learnt: "small pieces cost " + study.SpeedUp(e, "1KiB", "64KiB")}
		},
		Claims: []study.Claim{{
			Name: "pieces-half", Source: "a talk", Says: "large pieces take half",
			Over: "1KiB", Under: "64KiB", Allows: study.AtLeast(2), Holds: "calls cost", Not: "calls cost little here",
		}},
	}
}

// holds checks that a file has size bytes.
func holds(size int64) func(path string) error {
	return func(path string) error {
		info, err := os.Stat(path)
		if err == nil && info.Size() != size {
			err = &trial.ContentError{Offset: info.Size(), Reason: "the file ends"}
		}
		return err
	}
}

// TestNewStudyIsDocumented compares docs/design/new-study.md with the study above, which this file
// compiles and the next test runs.
func TestNewStudyIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../../../docs/design/new-study.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("newstudy_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, example, ok := strings.Cut(string(doc), "```go\n")
	example, _, closed := strings.Cut(example, "```\n")
	if !ok || !closed {
		t.Fatal("docs/design/new-study.md has no example")
	}
	if !strings.Contains(string(code), example) {
		t.Errorf("docs/design/new-study.md shows a study that is not the one of newstudy_test.go:\n%s", example)
	}
}

func TestNewStudyRuns(t *testing.T) {
	run := studytest.RunStudy(t, Pieces(), study.Choice{Preset: study.Quick(), Rounds: 2, Seed: 1})
	if got := run.Rounds(); got != 2 {
		t.Errorf("%d rounds are complete, want 2", got)
	}
	names := []string{}
	for _, c := range run.Header.Cells {
		names = append(names, c.Name)
	}
	if want := []string{"1KiB", "64KiB", "1KiB/again"}; !slices.Equal(names, want) {
		t.Errorf("the cells are %q, want %q", names, want)
	}
	for _, trial := range run.Trials {
		if trial.Open <= 0 || trial.Write <= 0 || trial.Elapsed != trial.Open+trial.Write || trial.Records != 4<<20 {
			t.Errorf("%s took %v: open %v, write %v of %d records", trial.Cell, trial.Elapsed, trial.Open, trial.Write, trial.Records)
		}
	}
	if learnt := Pieces().Show(study.EvidenceOf(run)).Learnt; !strings.HasPrefix(learnt, "small pieces cost ") || !strings.HasSuffix(learnt, "x") {
		t.Errorf("learnt: %q", learnt)
	}
}
