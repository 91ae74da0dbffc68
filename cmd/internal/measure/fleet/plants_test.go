package fleet

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
)

// A fault is the slowdown of a planted host: factors for its syncs, its bandwidth and its memory.
type fault struct {
	name                    string
	sync, bandwidth, memory float64
	word                    Word
	part                    Part
}

// faults are twenty faults, from ruinous ones to hardly noticeable ones.
func faults() (all []fault) {
	for _, by := range []float64{1.8, 2, 3, 4, 10, 30} {
		all = append(all, fault{fmt.Sprintf("syncs %vx", by), by, 1, 1, Slower, Sync})
	}
	for _, by := range []float64{0.5, 0.3, 0.1, 0.02, 0.005} {
		all = append(all, fault{fmt.Sprintf("a liar, %vx", by), by, 1, 1, FastSync, Sync})
	}
	for _, by := range []float64{1.8, 2, 3, 8} {
		all = append(all, fault{fmt.Sprintf("bandwidth %vx", by), 1, by, 1, Slower, Bandwidth})
	}
	for _, by := range []float64{1.6, 1.8, 2, 3, 5} {
		all = append(all, fault{fmt.Sprintf("memory %vx", by), 1, 1, by, Slower, Memory})
	}
	return all
}

// generated makes up the results of a host with the cells of bench's default run: nine policies, 1 and 64 writers. Hosts differ by 4 %
// in each part, cells by 3 %, and rounds by 8 %; one round in twenty takes up to three times as long.
func generated(name string, f fault, r *rand.Rand) result.Run {
	h := result.Header{
		SchemaVersion: result.SchemaVersion, Program: "holdfast 1", Study: "policy", StartedAt: began, Dir: "/data", Plan: result.Plan{Rounds: 8},
		Machine: []machine.Fact{
			{Name: machine.HostName, Value: name}, {Name: "CPU model", Value: "Fast 9"}, {Name: "CPUs online", Value: "8"}, {Name: "memory", Value: "31.2 GiB"}, {Name: "file system", Value: "ext4"},
		},
	}
	kib := holdfast.KiB
	policies := []holdfast.Policy{
		holdfast.Unbuffered(), holdfast.Buffered(4 * kib), holdfast.Buffered(64 * kib), holdfast.Buffered(256 * kib),
		{Buffer: 64 * kib, FlushEvery: 100 * time.Millisecond, Sync: holdfast.SyncEvery(time.Second)}, {Buffer: 64 * kib, Sync: holdfast.Sync{Mode: holdfast.SyncPeriodic, Bytes: 4 * holdfast.MiB}},
		{Buffer: 64 * kib, Sync: holdfast.Sync{Mode: holdfast.SyncClose}}, holdfast.Durable(), holdfast.EachDurable(),
	}
	about := func(by float64) float64 { return math.Exp(by * r.NormFloat64()) }
	sync, bandwidth, memory := f.sync*about(0.04), f.bandwidth*about(0.04), f.memory*about(0.04)
	run := result.Run{End: &result.End{State: result.Complete, Rounds: 8}}
	const records, rounds = 1000, 8
	for _, writers := range []int{1, 64} {
		for _, p := range policies {
			c := result.Cell{Name: fmt.Sprintf("policy=%v/record=128B/writers=%d", p, writers), Policy: p, RecordBytes: 128, Writers: writers, Records: records, LatencyStride: 31}
			h.Cells = append(h.Cells, c)
			of := about(0.03)
			for round := range rounds {
				x := of * about(0.08)
				if r.Float64() < 0.05 {
					x *= 1 + 2*r.Float64()
				}
				ns := func(perRecord float64) time.Duration { return time.Duration(records * perRecord * x) }
				m := result.Measurement{Records: records, Size: records * 128, Close: 1000}
				switch {
				case p.Sync.Mode == holdfast.SyncGroup && writers > 1:
					m.Write = ns(4000 * sync)
				case p.Sync.Waits():
					m.Write = ns(80_000 * sync)
				case p.Sync.Mode == holdfast.SyncNever:
					m.Write = ns(50 * memory)
				default:
					m.Write, m.Sync = ns(50*memory), ns(90*bandwidth)
				}
				m.Elapsed = m.Write + m.Sync + m.Close
				m.Latency.P50 = m.Write / records
				run.Trials = append(run.Trials, &result.Trial{Cell: c.Name, Round: round + 1, Position: 1, Measurement: m})
			}
		}
	}
	run.Header = h
	return run
}

// fleetOf makes up a fleet of similar hosts; the first ones have the planted faults.
func fleetOf(t *testing.T, hosts int, r *rand.Rand, planted ...fault) Fleet {
	t.Helper()
	var all []Host
	for i := range hosts {
		f := fault{sync: 1, bandwidth: 1, memory: 1}
		if i < len(planted) {
			f = planted[i]
		}
		name := fmt.Sprintf("node%03d", i)
		h, err := NewHost(name+".jsonl", generated(name, f, r))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, h)
	}
	return New(all, nil, nil, DefaultThreshold)
}

// TestPlantedHostsAreFound: each of twenty faults among 49 hosts without faults is found, with its word and its part; no other
// host is.
func TestPlantedHostsAreFound(t *testing.T) {
	for i, f := range faults() {
		fleet := fleetOf(t, 50, rand.New(rand.NewPCG(39, uint64(i))), f)
		if len(fleet.Outliers) != 1 || fleet.Outliers[0].Host != "node000" {
			t.Errorf("%s: %v", f.name, words(fleet))
			continue
		}
		if one := fleet.Outliers[0].Findings; !slices.ContainsFunc(one, func(one Finding) bool { return one.Word == f.word && one.Score.Part == f.part }) {
			t.Errorf("%s: %+v", f.name, one)
		}
	}
	if all := fleetOf(t, 200, rand.New(rand.NewPCG(40, 40)), faults()...); len(all.Outliers) != len(faults()) { // all at once
		t.Errorf("%d of %d: %v", len(all.Outliers), len(faults()), words(all))
	}
}

// TestCleanFleetsHaveNoOutlier: in twenty fleets of 50 hosts and twenty of 200.
func TestCleanFleetsHaveNoOutlier(t *testing.T) {
	fleets := 20
	if testing.Short() {
		fleets = 4
	}
	for _, hosts := range []int{50, 200} {
		for seed := range fleets {
			if f := fleetOf(t, hosts, rand.New(rand.NewPCG(41, uint64(seed)))); len(f.Outliers) > 0 || len(f.Groups) != 1 || len(f.Groups[0].Bounds) != 3 {
				t.Errorf("%d hosts, seed %d: %v, %d groups", hosts, seed, words(f), len(f.Groups))
			}
		}
	}
}
