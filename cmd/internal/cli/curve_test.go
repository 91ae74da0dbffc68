package cli

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
)

// sample is a run of two policies that an earlier version measured.
func sample(t *testing.T) result.Run {
	t.Helper()
	f, err := os.Open("../measure/result/testdata/version1.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	run, err := result.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// lines are a picture's lines that have a dot, by the text before it.
func lines(t *testing.T, run result.Run) (title string, rows map[string]int) {
	t.Helper()
	text, err := curves(run, 80)
	if err != nil {
		t.Fatal(err)
	}
	rows = map[string]int{}
	for line := range strings.Lines(text) {
		if label, rest, ok := strings.Cut(line, " "); ok && strings.ContainsRune(rest, '●') && label != "" {
			rows[label] = strings.IndexRune(line, '●')
		}
	}
	title, _, _ = strings.Cut(strings.TrimPrefix(text, "\n"), "\n")
	return title, rows
}

func TestEachPolicyHasALine(t *testing.T) {
	title, rows := lines(t, sample(t))
	if title != "records of 128B a second, by policy" || len(rows) != 2 {
		t.Fatalf("%s: %v", title, rows)
	}
	if rows["buffer=4KiB,sync=never"] <= rows["buffer=0,sync=group"] {
		t.Errorf("what is faster stands no farther to the right: %v", rows)
	}
}

func TestEachArmOfAStudyHasALine(t *testing.T) {
	run := sample(t)
	for i := range run.Header.Cells {
		run.Header.Cells[i].Group = "arms"
	}
	if title, rows := lines(t, run); title != "time of a record, by arm" || len(rows) < 2 {
		t.Errorf("%s: %v", title, rows)
	}
}

func TestARunWithoutARoundHasNoPicture(t *testing.T) {
	run := sample(t)
	run.Trials = nil
	if _, err := curves(run, 80); !errors.Is(err, figure.ErrNoRound) {
		t.Error(err)
	}
}
