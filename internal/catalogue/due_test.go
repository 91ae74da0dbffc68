//go:build go1.25

package catalogue

import (
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/policies"
)

// TestSeedsInARowTakeAllPolicies holds that runs meet each case that is generated: the ones of a Writer in the shape that it has.
func TestSeedsInARowTakeAllPolicies(t *testing.T) {
	for level, each := range map[crash.Level]int{crash.Memory: 4, crash.Kill: 3, crash.Fault: 2} { // of each workload in a run
		seeds, met := 36/each, map[policies.Case]bool{}
		whole := crash.Options{Workloads: Workloads(), Levels: crash.Levels, Time: 45 * time.Second}
		some, cells := map[string]int{}, map[crash.Cell]bool{}
		for whole.Seed = range uint64(seeds) {
			for _, c := range whole.Cells(level) {
				cells[c] = true
				if c.Workload.Policies == nil && !slices.Contains(c.Workload.Also, c.Policy) { // these are in every run
					some[c.Workload.Name]++
				}
				met[policies.Case{Policy: c.Policy, Shape: c.Workload.Shape}] = true
				if c.Workload.Name == "writer-mixed" { // it is under all policies
					met[policies.Case{Policy: c.Policy, Shape: policies.Mixed}] = true
				}
			}
		}
		for name, n := range some {
			if n > each*seeds {
				t.Errorf("level %s: %d policies of %s in %d runs", level, n, name, seeds)
			}
		}
		for _, c := range policies.Pairs() {
			if !met[c] {
				t.Errorf("level %s does not meet %v", level, c)
			}
		}
		whole.All = true
		if want := whole.Cells(level); len(want) != len(cells) || slices.ContainsFunc(want, func(c crash.Cell) bool { return !cells[c] }) {
			t.Errorf("level %s: %d runs have %d cells, and there are %d", level, seeds, len(cells), len(want))
		}
	}
}

// TestWhatIsDueIsAcknowledged lets a Writer keep another policy than the one by which it is judged, in fake time.
func TestWhatIsDueIsAcknowledged(t *testing.T) {
	const size = 100
	check := func(judged, kept string, full bool, flushed, durable uint64) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			parse := func(text string) holdfast.Policy {
				p, err := holdfast.ParsePolicy(text)
				if err != nil {
					t.Fatal(err)
				}
				return p
			}
			f := fault.New()
			if full {
				f.Add(fault.Fault{Op: fault.Write, Err: syscall.ENOSPC})
			}
			w, err := holdfast.New(f, parse(kept))
			if err != nil {
				t.Fatal(err)
			}
			got := map[crash.NoteKind]uint64{}
			r := &crash.Run{Policy: parse(judged), Tell: func(n crash.Note) { got[n.Kind] = n.N }}
			s := &stream{run: r}
			for range 3 {
				if _, err := w.Write(make([]byte, size)); err != nil {
					t.Fatal(err)
				}
				s.next++
				s.ends = append(s.ends, w.Written())
			}
			awaitDue(r, w, []*stream{s})
			if got[crash.Flushed] != flushed || got[crash.Durable] != durable {
				t.Errorf("judged by %s, kept %s: %d and %d are acknowledged, want %d and %d", judged, kept, got[crash.Flushed], got[crash.Durable], flushed, durable)
			}
			if err := w.Close(); err != nil && !full {
				t.Error(err)
			}
		})
	}
	check("buffer=4KiB,flush=3ms", "buffer=4KiB,flush=3ms", false, 3, 0)
	check("buffer=4KiB,flush=3ms", "buffer=4KiB", false, 3, 0)
	check("buffer=4KiB,flush=3ms", "buffer=4KiB,flush=3ms", true, 0, 0) // it tries again and again
	check("buffer=4KiB", "buffer=4KiB", false, 0, 0)
	check("buffer=0,sync=10ms", "buffer=0,sync=10ms", false, 3, 3)
	check("buffer=0,sync=10ms", "buffer=0", false, 3, 3)
	check("buffer=0,sync=200B", "buffer=0", false, 3, 1) // 199 bytes may wait
	check("buffer=0,sync=1s", "buffer=0", false, 0, 0)   // for tests in fake time
}
