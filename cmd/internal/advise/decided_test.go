package advise

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/advise"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
)

// onDisk is a run on a scripted disk, on which each durable append takes the time took.
func onDisk(t *testing.T, c *consultation, took time.Duration, rounds int) result.Run {
	t.Helper()
	run := result.Run{Header: result.Header{SchemaVersion: result.SchemaVersion, Plan: result.Plan{Rounds: rounds}}, End: &result.End{State: result.Complete, Rounds: rounds}}
	for i, p := range c.program.Policies {
		const records = 500
		cell := result.Cell{Name: fmt.Sprint("cell", i), Policy: p, RecordBytes: c.program.Load.RecordBytes, Writers: c.program.Load.Writers, Records: records, LatencyStride: 1}
		run.Header.Cells = append(run.Header.Cells, cell)
		for round := range rounds {
			h := result.NewHistogram()
			for n := range records {
				result.Record(h, took+time.Duration(n%20)*time.Microsecond)
			}
			latency, err := result.NewLatency(h, stat.Supports)
			if err != nil {
				t.Fatal(err)
			}
			all := took * records
			run.Trials = append(run.Trials, &result.Trial{Cell: cell.Name, Round: round + 1, Measurement: result.Measurement{
				Records: records, Size: records * cell.RecordBytes, Elapsed: all, Write: all, Usage: result.Usage{User: all / 10}, Latency: latency,
				Writer: result.WriterCalls{Syncs: records, LongestSync: took},
			}})
		}
	}
	return run
}

// TestForEndsWhereTheAnswerIsClear: etcd asks for 10 ms, and a disk that takes a third of that, or three times as much, is known after
// three rounds.
func TestForEndsWhereTheAnswerIsClear(t *testing.T) {
	etcd, err := advise.ParsePreset("etcd")
	if err != nil {
		t.Fatal(err)
	}
	c := &consultation{program: etcd, need: etcd.Need}
	for _, of := range []struct {
		took   time.Duration
		rounds int
		want   bool
	}{
		{100 * time.Microsecond, 3, true}, {100 * time.Microsecond, 2, false}, {3 * time.Millisecond, 3, true}, {4 * time.Millisecond, 12, false},
		{9900 * time.Microsecond, 12, false}, {25 * time.Millisecond, 12, false}, {31 * time.Millisecond, 3, true},
	} {
		if got := c.decided(onDisk(t, c, of.took, of.rounds)); got != of.want {
			t.Errorf("%v an append, %d rounds: decided is %v", of.took, of.rounds, got)
		}
	}
}
