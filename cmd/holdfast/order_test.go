package main

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// order returns the cells of each round in the order of the file.
func order(run result.Run) map[int][]string {
	rounds := map[int][]string{}
	for _, trial := range run.Trials {
		rounds[trial.Round] = append(rounds[trial.Round], trial.Cell)
	}
	return rounds
}

// TestOrderOfExecutionIsAContract reads it from the results: a warm-up first, then
// each round with every cell once, by its positions. Each round has an order of
// its own that the seed decides. System calls are counted in the warm-up alone.
func TestOrderOfExecutionIsAContract(t *testing.T) {
	isolate.Once(t)
	t.Parallel()
	dir := t.TempDir()
	measured := func(name string, args ...string) result.Run {
		t.Helper()
		file := filepath.Join(dir, name)
		bench(t, append(args, "-o", file)...)
		return readFile(t, file)
	}
	flags := small(t.TempDir(), "--time", "1s", "--rounds", "4", "--record", "1KiB", "--policy", "buffer=64KiB", "--policy", "buffer=64KiB,sync=close", "--seed")
	first := measured("first.jsonl", append(flags, "7")...)
	checkOrder(t, first, 4)

	again := measured("again.jsonl", append(flags, "7")...)
	if !reflect.DeepEqual(order(again), order(first)) {
		t.Errorf("seed 7 gives %v and %v", order(first), order(again))
	}
	if other := measured("other.jsonl", append(flags, "8")...); reflect.DeepEqual(order(other), order(first)) {
		t.Error("seeds 7 and 8 give one order")
	}
	from := measured("from.jsonl", "bench", "--from", filepath.Join(dir, "first.jsonl"), "--allow-tmpfs")
	if !reflect.DeepEqual(order(from), order(first)) || from.Header.Seed != 7 {
		t.Errorf("--from gives seed %d and %v", from.Header.Seed, order(from))
	}
	if !reflect.DeepEqual(from.Header.Cells, first.Header.Cells) || from.Header.Plan != first.Header.Plan {
		t.Errorf("--from gives %+v %+v, want %+v %+v", from.Header.Plan, from.Header.Cells, first.Header.Plan, first.Header.Cells)
	}
	for i, trial := range from.Trials {
		if trial.Records != first.Trials[i].Records {
			t.Errorf("--from: %s has %d records in round %d, want %d", trial.Cell, trial.Records, trial.Round, first.Trials[i].Records)
		}
	}
}

func checkOrder(t *testing.T, run result.Run, rounds int) {
	t.Helper()
	var names []string
	for _, c := range run.Header.Cells {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	orders := map[string]bool{}
	for i, trial := range run.Trials {
		if trial.Round != i/len(names) || trial.Position != i%len(names)+1 {
			t.Errorf("trial %d is at position %d of round %d", i, trial.Position, trial.Round)
		}
		if trial.Round > 0 && trial.SystemCalls != nil {
			t.Errorf("round %d counts system calls", trial.Round)
		}
		if i > 0 && trial.StartNs < run.Trials[i-1].StartNs+run.Trials[i-1].Elapsed {
			t.Errorf("trial %d began before the one before had ended", i)
		}
	}
	for round, cells := range order(run) {
		orders[fmt.Sprint(cells)] = true
		if sorted := slices.Sorted(slices.Values(cells)); !slices.Equal(sorted, names) {
			t.Errorf("round %d ran %q", round, cells)
		}
	}
	if len(run.Trials) != (rounds+1)*len(names) || len(orders) < 2 {
		t.Errorf("%d trials in %d different orders", len(run.Trials), len(orders))
	}
}
