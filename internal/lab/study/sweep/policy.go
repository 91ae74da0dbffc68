package sweep

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/lab/study"
)

// Policy is the study of what each policy costs here: records of one size,
// appended to one file by one goroutine and by many.
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
			return withEmpty(withTwin(loads))
		},
	}
}

// Policies are the ones that the study compares by default: from the one that keeps
// nothing back in memory to those that keep nothing from the disk.
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

// withTwin repeats one workload of the first group under a second name: the
// fixed buffer of 64 KiB if it is there, because most others are compared with
// its like, else the first.
func withTwin(loads []Workload) []Workload {
	at := 0
	for i, w := range loads {
		if w.Policy == holdfast.Buffered(64*holdfast.KiB) {
			at = i
			break
		}
	}
	twin := loads[at]
	twin.Twin = true
	return append(loads, twin)
}

// withEmpty adds one workload for each load that writes nothing.
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
