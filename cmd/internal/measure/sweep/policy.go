package sweep

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// Policy is the sweep that finds the cost of each policy here: records of one size, appended to one
// file by one goroutine and by many.
func Policy() Sweep {
	return Sweep{
		Name:     "policy",
		Question: "what does each policy cost on this disk, and which one is worth it",
		Workloads: func(c study.Choice) []Workload {
			policies := study.Or(c.Policies, Policies())
			sizes, writers := []holdfast.Size{128}, []int{1, 64}
			switch {
			case c.Steady:
				writers = []int{1}
			case c.Preset.Full:
				sizes, writers = []holdfast.Size{128, 4 * holdfast.KiB}, []int{1, 8, 64}
			}
			var loads []Workload
			for _, size := range study.Or(c.Records, sizes) {
				for _, n := range study.Or(c.Writers, writers) {
					for _, p := range policies {
						loads = append(loads, Workload{Policy: p, RecordBytes: int64(size), Writers: n, Setting: c.Setting})
					}
				}
			}
			if c.Steady {
				return loads
			}
			return append(inTurns(c, withEmpty(withTwins(loads))), paced(c, loads)...)
		},
	}
}

// Policies are the policies that the sweep compares by default, from one without buffer and sync to
// ones that sync before a Write returns.
func Policies() []holdfast.Policy {
	return []holdfast.Policy{
		holdfast.Unbuffered(),
		holdfast.Buffered(4 * holdfast.KiB),
		holdfast.Buffered(64 * holdfast.KiB),
		holdfast.Buffered(256 * holdfast.KiB),
		{Buffer: 64 * holdfast.KiB, FlushEvery: 100 * time.Millisecond, Sync: holdfast.SyncEvery(time.Second)},
		{Buffer: 64 * holdfast.KiB, Sync: holdfast.Sync{Mode: holdfast.SyncPeriodic, Bytes: 4 * holdfast.MiB}},
		{Buffer: 64 * holdfast.KiB, Sync: holdfast.Sync{Mode: holdfast.SyncClose}},
		holdfast.Durable(),
		holdfast.EachDurable(),
	}
}

// burstTurns is the number of turns in a burst, see [result.Cell.Turns]: of five short turns in a row,
// a busy machine leaves one undisturbed. If the machine is so busy or slow that the rounds for a
// verdict don't fit, a burst has fewTurns, or none. docs/design/measuring.md shows how the numbers were
// chosen.
const (
	burstTurns = 5
	fewTurns   = 3
)

// inTurns gives turns to the workloads whose Writes don't wait for the disk, and to the empty ones, because these are
// compared with each other. A sync takes longer than a disturbance, and turns with syncs would take too long.
func inTurns(c study.Choice, loads []Workload) []Workload {
	if c.Rate > 0 || !inBlocks(c, loads) {
		return loads
	}
	loads = slices.Clone(loads) // paced ones have no turns
	for i := range loads {
		loads[i].Controlled = !loads[i].Empty
		if !loads[i].durable() {
			loads[i].Turns = burstTurns
		}
	}
	return loads
}

// withTwins repeats two workloads of the first group under second names. One works in
// memory: the fixed buffer of 64 KiB if there is one, because most others are similar to it, else the
// first that never waits for the disk. The other waits for the disk: a group commit if there is one,
// else the first that waits.
func withTwins(loads []Workload) []Workload {
	first := func(is ...func(Workload) bool) int {
		for _, is := range is {
			if at := slices.IndexFunc(loads, is); at >= 0 {
				return at
			}
		}
		return -1
	}
	twinned := loads
	for _, at := range []int{
		first(func(w Workload) bool { return w.Policy == holdfast.Buffered(64*holdfast.KiB) }, func(w Workload) bool { return w.Policy.Sync.Mode <= holdfast.SyncClose }),
		first(func(w Workload) bool { return w.Policy.Sync.Mode == holdfast.SyncGroup }, func(w Workload) bool { return w.Policy.Sync.Waits() },
			func(w Workload) bool { return w.Policy.Sync.Mode == holdfast.SyncPeriodic }),
	} {
		if at >= 0 {
			twin := loads[at]
			twin.Twin = true
			twinned = append(twinned, twin)
		}
	}
	return twinned
}

// withEmpty adds a workload that writes nothing for each load.
func withEmpty(loads []Workload) []Workload {
	seen := map[string]bool{}
	for _, w := range slices.Clone(loads) {
		w.Twin, w.Empty, w.Policy, w.Cache = false, true, holdfast.Unbuffered(), ""
		if !seen[w.Name()] {
			seen[w.Name()] = true
			loads = append(loads, w)
		}
	}
	return loads
}
