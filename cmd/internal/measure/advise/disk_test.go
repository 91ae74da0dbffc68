package advise_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/advise"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
)

// A waiting is a policy at 3,000 records a second with Writes of 300 µs. In some of the 12 rounds, some
// of its 1,500 Writes take 20 ms.
type waiting struct {
	policy  string
	writers int
	stalled map[int]int
	behind  time.Duration
}

// simulated returns the figures of a simulated run of the policies.
func simulated(t *testing.T, all ...waiting) figure.Figures {
	t.Helper()
	run := result.Run{Header: result.Header{SchemaVersion: result.SchemaVersion, Study: "advice"}, End: &result.End{State: result.Complete, Rounds: 12}}
	for _, w := range all {
		c := result.Cell{Name: w.policy, Policy: policy(w.policy), RecordBytes: 100, Writers: w.writers, Records: 1500, Rate: 3000, LatencyStride: 1}
		run.Header.Cells = append(run.Header.Cells, c)
		for round := 1; round <= 12; round++ {
			h := result.NewHistogram()
			for i := range 1500 {
				took := 300 * time.Microsecond
				if i < w.stalled[round] {
					took = 20 * ms
				}
				result.Record(h, took)
			}
			l, err := result.NewLatency(h, stat.Supports)
			if err != nil {
				t.Fatal(err)
			}
			m := result.Measurement{Records: 1500, Size: 150_000, Elapsed: ms * 500, Write: ms * 500, Latency: l, Service: &l, Replayed: &l, Behind: w.behind}
			m.User, m.Writer.Syncs, m.Writer.LongestSync = ms*50, 1500, 20*ms
			run.Trials = append(run.Trials, &result.Trial{Cell: c.Name, Round: round, Measurement: m})
		}
	}
	f, err := figure.Of(run)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestStallsAreThoseOfTheDisk: a policy without a stall is judged by the stalls of similar policies in
// the same run.
func TestStallsAreThoseOfTheDisk(t *testing.T) {
	const met, open = advise.Met, advise.NotKnown
	check := func(name, term string, want advise.Verdict, all ...waiting) {
		t.Helper()
		r, err := advise.Recommend(simulated(t, all...), need(t, term), advise.Load{})
		if err != nil {
			t.Fatal(err)
		}
		if f := r.Judged[0].Findings[0]; f.Verdict != want {
			t.Errorf("%s: %v is %s, %s (%s); want %s", name, f.Term, f.Verdict, f.Text(), f.How, want)
		}
	}
	lucky := waiting{policy: "buffer=0,sync=group", writers: 1}
	like := func(policy string, stalled map[int]int) waiting { return waiting{policy, 1, stalled, 0} }
	cluster := map[int]int{10: 240}
	check("calm", "p99<10ms", met, lucky, like("buffer=0,sync=each", nil))
	// Of 36,000 Writes 0.67 % took longer, all in one round of 12: up to 2 % may.
	check("its like met a cluster", "p99<10ms", open, lucky, like("buffer=0,sync=each", cluster))
	check("a limit above the stall", "p99<30ms", met, lucky, like("buffer=0,sync=each", cluster))
	check("a percentile below the stalls", "p90<10ms", met, lucky, like("buffer=0,sync=each", cluster))
	check("the longest", "max<10ms", open, lucky, like("buffer=0,sync=each", map[int]int{10: 1}))
	check("few in a cluster", "p99<10ms", met, lucky, like("buffer=0,sync=each", map[int]int{10: 60}))
	check("as many, spread over the rounds", "p99<10ms", met, lucky,
		like("buffer=0,sync=each", map[int]int{1: 20, 2: 20, 3: 20, 4: 20, 5: 20, 6: 20, 7: 20, 8: 20, 9: 20, 10: 20, 11: 20, 12: 20}))
	check("no like: its Writes do not wait", "p99<10ms", met, lucky, like("buffer=64KiB", cluster))
	check("itself does not wait", "p99<10ms", met, like("buffer=64KiB", nil), like("buffer=0,sync=each", cluster))
	overrun := like("buffer=0,sync=each", map[int]int{1: 1500, 2: 1500, 3: 1500})
	overrun.behind = ms
	check("its like could not keep up", "p99<10ms", met, lucky, overrun)
	lucky.writers = 64
	many := waiting{"buffer=0,sync=each", 64, cluster, 0}
	check("many writers wait for each other's syncs", "p99<10ms", met, lucky, many)
	many.policy = "buffer=4KiB,sync=group"
	check("many writers that share their syncs", "p99<10ms", open, lucky, many)
}

// TestLongestSyncIsThatOfTheDisk: the longest sync of a run is evidence about each policy of the same load that
// writes as much or more between two syncs.
func TestLongestSyncIsThatOfTheDisk(t *testing.T) {
	const met, not, open = advise.Met, advise.NotMet, advise.NotKnown
	check := func(name, term string, want advise.Verdict, found string, all ...plant) {
		t.Helper()
		var rows []figure.Row
		for _, p := range all {
			rows = append(rows, p.row())
		}
		if f := recommend(t, term, rows...).Judged[0].Findings[0]; f.Verdict != want || f.Text() != found {
			t.Errorf("%s: %v is %s, %s (%s); want %s, %s", name, f.Term, f.Verdict, f.Text(), f.How, want, found)
		}
	}
	own := plant{policy: "buffer=0,sync=10ms", cpu: 100, rate: 1000, due: 1000, p99: ms, sync: 4 * ms}
	like := func(policy string, sync time.Duration) plant {
		return plant{policy: policy, cpu: 100, rate: 1000, due: 1000, p99: ms, sync: sync}
	}
	check("alone", "loss<=20ms", met, "14ms", own)
	check("its like's is longer", "loss<=20ms", open, "25ms", own, like("buffer=4KiB,sync=10ms", 15*ms/2), like("buffer=0,sync=group", 25*ms/2))
	check("one that promises less writes more", "loss<=20ms", met, "14ms", own, like("buffer=0,sync=100ms", 15*ms))
	check("by its own", "loss<=13ms", not, "15ms", own, like("buffer=0,sync=group", 5*ms))
	slower := like("buffer=0,sync=group", 15*ms)
	slower.due = 0
	check("under another load", "loss<=20ms,rate>=1k/s", met, "14ms", own, slower)
	burst, paced := like(own.policy, 4*ms), own
	burst.due, burst.change = 0, func(r *figure.Row) { r.Period = &figure.Period{} }
	paced.change = func(r *figure.Row) { r.Cell.Every, r.Period = 2, &figure.Period{FellDue: 3, Reached: true} }
	check("of bursts, for a paced one", "loss<=20ms", met, "14ms", burst, paced, slower)
	check("one twice as long", "loss<=18ms", met, "14ms", own)
	check("one almost twice as long", "loss<=17999us", open, "14ms", own)
	check("nothing to lose", "loss<=0", met, "nothing", like("buffer=0,sync=group", 4*ms), like("buffer=0,sync=each", 400*ms))
}
