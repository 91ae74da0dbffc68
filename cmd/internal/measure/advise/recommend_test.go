package advise_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/advise"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
)

const ms = time.Millisecond

// A plant is the figures of one policy.
type plant struct {
	policy string
	cpu    float64 // nanoseconds a record
	rate   float64 // records a second that were written
	due    float64 // 0 is a closed loop
	p99    time.Duration
	sync   time.Duration // the longest
	flush  time.Duration // likewise
	change func(*figure.Row)
}

// summary is a figure with an interval of ±1 %.
func summary(x float64) figure.Summary {
	return figure.Summary{Summary: stat.Summary{N: 12, Median: x, Low: x * 0.99, High: x * 1.01, Confidence: 0.96}, Least: x * 0.9, Most: x * 1.1}
}

func (p plant) row() figure.Row {
	r := figure.Row{
		Cell: result.Cell{Name: p.policy, Policy: policy(p.policy), RecordBytes: 100, Writers: 2, Rate: p.due, LatencyStride: 31},
		Rate: summary(p.rate), Served: summary(p.rate), CPU: summary(p.cpu), Time: summary(p.cpu),
		Latency:     figure.Latency{Count: 10000, P50: p.p99 / 4, P90: p.p99 / 2, P99: p.p99, Max: 2 * p.p99},
		LongestSync: p.sync, LongestFlush: p.flush, Memory: 2 * policy(p.policy).Buffer,
		Net: figure.Net{CPU: summary(p.cpu)}, Replayed: p.due > 0, Syncs: 100,
	}
	r.PerRecord.CPU = figure.Number(p.cpu)
	for q, x := range map[float64]time.Duration{0.5: p.p99 / 4, 0.9: p.p99 / 2, 0.99: p.p99, 1: 2 * p.p99} {
		if x > 0 {
			r.Quantiles = append(r.Quantiles, figure.Quantile{P: q, Value: x, Low: x - x/10, High: x})
		}
	}
	if p.change != nil {
		p.change(&r)
	}
	return r
}

// planted makes figures of rows, each in the group of its load.
func planted(rows ...figure.Row) figure.Figures {
	f := figure.Figures{Rounds: 12, Noise: figure.Noise{Floor: 0.02}}
	for _, r := range rows {
		load := figure.LoadOf(r.Cell)
		at := -1
		for i, g := range f.Groups {
			if g.Load == load {
				at = i
			}
		}
		if at < 0 {
			at = len(f.Groups)
			f.Groups = append(f.Groups, figure.Group{Load: load})
		}
		f.Groups[at].Rows = append(f.Groups[at].Rows, r)
	}
	return f
}

func recommend(t *testing.T, text string, rows ...figure.Row) advise.Recommendation {
	t.Helper()
	r, err := advise.Recommend(planted(rows...), need(t, text), advise.Load{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func words(t *testing.T, r advise.Recommendation) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.Text(&b, true); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestJudgement plants one policy and looks at one term.
func TestJudgement(t *testing.T) {
	const met, not, open = advise.Met, advise.NotMet, advise.NotKnown
	check := func(name, term string, p plant, want advise.Verdict, found string) {
		t.Helper()
		j := recommend(t, term, p.row()).Judged[0]
		if f := j.Findings[0]; f.Verdict != want || f.Text() != found || j.Verdict() != want {
			t.Errorf("%s: %v is %s (%s), %s; want %s, %s", name, f.Term, f.Text(), f.How, f.Verdict, found, want)
		}
	}
	second := plant{policy: "buffer=64KiB,sync=900ms", cpu: 100, rate: 1000, p99: ms, sync: 100 * ms, flush: ms}
	check("period and sync", "loss<=1100ms", second, met, "1s")
	check("a sync twice as long is too long", "loss<=1s", second, open, "1s")
	second.sync++
	check("rounded to the worse side", "loss<=1s", second, not, "1.01s")
	second.sync = 0
	check("no sync was timed", "loss<=1s", second, open, "not measured")
	second.sync = 950 * ms
	check("a sync longer than the period", "loss<=3800ms", second, met, "1.9s")
	check("a sync longer than the period, and twice", "loss<=1900ms", second, open, "1.9s")
	check("a size", "loss<=1GiB", second, not, "unlimited")
	check("the process", "crash<=1s", second, met, "901ms")
	check("the process, a size", "crash<=128KiB", second, met, "128KiB")
	check("the process, a smaller size", "crash<=131071B", second, not, "128KiB")

	check("never", "loss<=1h", plant{policy: "buffer=64KiB", cpu: 1, rate: 1}, not, "unlimited")
	check("durable", "loss<=0", plant{policy: "sync=group", cpu: 1, rate: 1}, met, "nothing")
	check("durable for a size", "loss<=1B", plant{policy: "sync=each", cpu: 1, rate: 1}, met, "nothing")

	// 100 bytes a record at most 10,100 times a second: 10,100 bytes in a sync of 10 ms.
	bytes := plant{policy: "buffer=0,sync=100kB", cpu: 100, rate: 10000, sync: 10 * ms}
	check("bytes and what is in flight", "loss<=121000B", bytes, met, "111000B")
	check("bytes and what is in flight twice", "loss<=111000B", bytes, open, "111000B")
	check("bytes and what is in flight, a smaller size", "loss<=110999B", bytes, not, "111000B")
	check("by bytes, no time", "loss<=1h", bytes, not, "unlimited")
	bytes.sync = 100 * ms
	check("more in flight than starts a sync", "loss<=301999B", bytes, not, "302000B")
	bytes.sync = 0
	check("no sync by bytes was timed", "loss<=1GiB", bytes, open, "not measured")

	full := plant{policy: "buffer=64KiB", cpu: 100, rate: 50000, p99: 10 * ms}
	check("between the ends", "rate>=50k/s", full, open, "49.5k/s")
	check("the upper end", "rate>=50501/s", full, not, "49.5k/s")
	check("the lower end, met", "rate>=49500/s", full, met, "49.5k/s")
	check("bytes", "rate>=4MB/s", full, met, "4833KiB/s")
	full.change = func(r *figure.Row) { r.Rate.Confidence = 0 }
	check("the slowest of few rounds", "rate>=45k/s", full, met, "45k/s")
	check("strict", "p99<10ms", full, open, "10ms")
	check("the better end", "p99<9ms", full, not, "10ms")
	check("not strict", "p99<=10ms", full, met, "10ms")
	check("p90", "p90<=5ms", full, met, "5ms")
	check("no samples for it", "p99.9<1h", full, open, "not measured")
	check("max of a part", "max<1h", full, open, "not measured")
	full.change = func(r *figure.Row) { r.Cell.LatencyStride = 1 }
	check("max of all", "max<=20ms", full, met, "20ms")
	check("memory", "memory<=128KiB", full, met, "128KiB")
	check("less memory", "memory<=128kB", full, not, "128KiB")

	due := plant{policy: "buffer=64KiB", cpu: 100, rate: 50000, due: 50000, p99: 10 * ms}
	check("served", "rate>=50k/s", due, met, "50k/s")
	check("served bytes", "rate>=5000000B/s", due, met, "5000000B/s")
	check("more is due than is needed", "rate>=40k/s", due, met, "50k/s")
	check("max in an open loop", "max<=20ms", due, met, "20ms")
	due.rate = 44000
	check("late, and caught up in each round", "rate>=50k/s", due, met, "50k/s")
	due.change = func(r *figure.Row) { r.Behind = 6 }
	check("behind in half of the rounds", "rate>=50k/s", due, open, "not measured")
	due.change = func(r *figure.Row) { r.Behind = 7 }
	check("behind in most of the rounds", "rate>=50k/s", due, not, "43.5k/s")
	check("the wait grows", "p99<1h", due, not, "unlimited")
	due.change = func(r *figure.Row) { r.Replayed = false }
	check("an older holdfast", "rate>=50k/s", due, open, "not measured")
}

// TestIntervalsDecide judges a term by both ends of the interval.
func TestIntervalsDecide(t *testing.T) {
	check := func(term string, p plant, want advise.Verdict) {
		t.Helper()
		if f := recommend(t, term, p.row()).Judged[0].Findings[0]; f.Verdict != want {
			t.Errorf("%v: %s (%s)", f.Term, f.Verdict, f.How)
		}
	}
	p := plant{policy: "buffer=64KiB,sync=500ms", cpu: 100, rate: 50000, due: 50000, p99: 10 * ms, sync: 20 * ms}
	check("p99<10ms", p, advise.NotKnown) // 9 ms to 10 ms
	check("p99<=10ms", p, advise.Met)
	check("p99<9ms", p, advise.NotMet)
	check("p99<9001us", p, advise.NotKnown)
	check("loss<=540ms", p, advise.Met)
	check("loss<=539ms", p, advise.NotKnown)
	check("loss<=520ms", p, advise.NotKnown)
	check("loss<=519ms", p, advise.NotMet)
	p.change = func(r *figure.Row) { r.Syncs = 19 }
	check("loss<=540ms", p, advise.NotKnown)
	check("loss<=519ms", p, advise.NotMet)
	p.change = func(r *figure.Row) { r.Period = &figure.Period{FellDue: 2} }
	check("loss<=999ms", p, advise.NotKnown)
	check("loss<=1s", p, advise.Met) // half of it is the sync's
	check("p99<1h", p, advise.NotKnown)
}

func TestShareOfACPUIsAtTheNeededRate(t *testing.T) {
	p := plant{policy: "buffer=64KiB", cpu: 1000, rate: 50000, due: 50000}
	check := func(term string, want advise.Verdict, found string) {
		t.Helper()
		f := recommend(t, "rate>=50k/s,"+term, p.row()).Judged[0].Findings[1]
		if f.Verdict != want || f.Text() != found {
			t.Errorf("%s: %s, %s (%s)", term, f.Text(), f.Verdict, f.How)
		}
	}
	check("cpu<=5.05%", advise.Met, "5.05%") // 1.01 µs × 50k/s
	check("cpu<=5.04%", advise.NotKnown, "5.05%")
	check("cpu<=4.94%", advise.NotMet, "5.05%")
	p.change = func(r *figure.Row) { r.Net.CPU = summary(300) } // all other CPU time is the harness's
	check("cpu<=1.52%", advise.Met, "1.52%")
	p.cpu = 0
	check("cpu<=100%", advise.NotKnown, "not measured")
}

func TestRecommendTakesTheSafestOfThoseThatCostTheSame(t *testing.T) {
	rows := []figure.Row{
		plant{policy: "buffer=256KiB,sync=500ms", cpu: 100, rate: 2e6, p99: ms, sync: ms}.row(),
		plant{policy: "buffer=64KiB,sync=500ms", cpu: 104, rate: 2e6, p99: ms, sync: ms}.row(),
		plant{policy: "buffer=4KiB,sync=500ms", cpu: 112, rate: 2e6, p99: ms, sync: ms}.row(),
		plant{policy: "buffer=64KiB", cpu: 50, rate: 2e6, p99: ms}.row(),
		plant{policy: "buffer=64KiB,sync=100ms", cpu: 208, rate: 2e6, p99: ms, sync: ms}.row(),
		plant{policy: "buffer=64KiB,sync=group", cpu: 1456, rate: 3e3, p99: 12 * ms}.row(),
	}
	r := recommend(t, "loss<=1s,rate>=50k/s,p99<10ms", rows...)
	if r.Advised == nil || r.Advised.Policy != policy("buffer=64KiB,sync=500ms") || r.Nearest != nil {
		t.Fatalf("advised %+v, nearest %+v", r.Advised, r.Nearest)
	}
	text := words(t, r)
	for _, want := range []string{
		"advice: `buffer=64KiB,sync=500ms` meets it, with 104ns of CPU time a record the same cost, within 10 %: `buffer=256KiB,sync=500ms`; the safest of these ",
		"  loss<=1s     501ms    50 %    the last 500ms + the longest sync, 1ms; a sync may take as long as the period",
		"  rate>=50k/s  1.98M/s  39 times  ",
		"  p99<10ms     1ms      90 %    ",
		"  w, err := holdfast.Create(path, holdfast.Periodic(500 * time.Millisecond))\n",
		"safer: to lose at most the last 100ms + one sync costs 2.00x: `buffer=64KiB,sync=100ms`\n" +
			"safer: to lose nothing costs 14.0x: `buffer=64KiB,sync=group`, which fails rate>=50k/s (2.97k/s, 94 % too little), p99<10ms (12ms, 20 % too much)\n",
		"would change with: a sync that takes longer than 500ms (",
		"would change with: less than 50k/s written (here 1.98M/s)\n",
		"would change with: p99 of a Write not below 10ms (here 1ms)\n",
		"caution: these results were measured at full speed, not at this rate",
	} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

func TestNearestIsTheOneThatFallsShortLeast(t *testing.T) {
	r := recommend(t, "loss<=0,rate>=10k/s,p99<10ms",
		plant{policy: "buffer=64KiB", cpu: 50, rate: 2e6, p99: ms}.row(),
		plant{policy: "buffer=64KiB,sync=group", cpu: 1456, rate: 8e3, p99: 12 * ms}.row(),
		plant{policy: "buffer=0,sync=each", cpu: 1456, rate: 3e3, p99: 2 * ms}.row())
	if r.Advised != nil || r.Nearest == nil || r.Nearest.Policy != policy("buffer=64KiB,sync=group") {
		t.Fatalf("advised %+v, nearest %+v", r.Advised, r.Nearest)
	}
	want := "no policy meets it; the nearest is `buffer=64KiB,sync=group`, which fails rate>=10k/s (7.92k/s, 21 % too little), p99<10ms (12ms, 20 % too much)\n"
	if text := words(t, r); !strings.Contains(text, want) || strings.Contains(text, "holdfast.Create") {
		t.Errorf("%s", text)
	}
}

func TestTieGoesToLessMemoryThenToLessLoss(t *testing.T) {
	row := func(p string, cpu float64) figure.Row {
		return plant{policy: p, cpu: cpu, rate: 1e6, p99: ms, sync: ms}.row()
	}
	check := func(want string, rows ...figure.Row) {
		t.Helper()
		if r := recommend(t, "p99<1s", rows...); r.Advised == nil || r.Advised.Policy != policy(want) {
			t.Errorf("%+v, want %s", r.Advised, want)
		}
	}
	check("buffer=4KiB,sync=1s", row("buffer=64KiB", 100), row("buffer=4KiB", 101), row("buffer=4KiB,sync=1s", 104))
	check("buffer=4KiB,sync=100ms", row("buffer=4KiB,sync=1s", 100), row("buffer=4KiB,sync=100ms", 104), row("buffer=4KiB,sync=group", 112))
	check("buffer=4KiB,flush=10ms", row("buffer=4KiB", 100), row("buffer=4KiB,flush=10ms", 104))
	check("buffer=64KiB", row("buffer=64KiB", 100), row("buffer=4KiB", 112))
}

// TestOpenLoopIsJudgedBeforeTheClosedOne: the open loop with the lowest rate that is high enough is
// judged; the throughput at full speed comes from the closed loop.
func TestOpenLoopIsJudgedBeforeTheClosedOne(t *testing.T) {
	at := func(due float64) figure.Row {
		p := plant{policy: "buffer=64KiB", cpu: 100 + due/1000, rate: 2e6, due: due, p99: ms}
		if due > 0 {
			p.rate = due
		}
		return p.row()
	}
	rows := []figure.Row{at(0), at(90000), at(60000), at(10000)}
	check := func(text string, due float64) {
		t.Helper()
		r := recommend(t, text, rows...)
		if r.Load.Rate != due || !near(float64(r.Capacity), 2e6*0.99) {
			t.Errorf("%s: judged at %v, capacity %v", text, r.Load.Rate, r.Capacity)
		}
	}
	check("rate>=50k/s", 60000)
	check("rate>=60k/s", 60000)
	check("rate>=60001/s", 90000)
	check("rate>=90001/s", 0)
	check("rate>=6MB/s", 60000)
	check("p99<1s", 0)
}

// TestPeriodIsJudgedByPacedTrials: in default results the bursts are too short for a period.
func TestPeriodIsJudgedByPacedTrials(t *testing.T) {
	check := func(need string, due float64, fellDue int, want advise.Verdict) {
		t.Helper()
		burst := plant{policy: "buffer=64KiB,sync=500ms", cpu: 60, rate: 1e6, p99: ms, sync: 20 * ms, flush: ms, change: func(r *figure.Row) { r.Period = &figure.Period{Longest: 500 * ms} }}
		paced := plant{policy: burst.policy, cpu: 300, rate: due, due: due, p99: 5 * ms, sync: 30 * ms, flush: ms, change: func(r *figure.Row) {
			r.Cell.Every, r.Period = 2, &figure.Period{Longest: 500 * ms, FellDue: fellDue, Reached: fellDue >= figure.LeastDue}
		}}
		never := plant{policy: "buffer=64KiB,sync=never", cpu: 50, rate: 2e6, p99: ms}
		r := recommend(t, need, never.row(), burst.row(), paced.row())
		if r.Verdict() != want || len(r.Judged) != 2 || r.Load.Paced {
			t.Errorf("%s at %v/s: %s", need, due, words(t, r))
		}
		if want == advise.Met && (r.Advised.Policy != policy(burst.policy) || r.Advised.Findings[0].Text() != "530ms") {
			t.Errorf("%s at %v/s: %s", need, due, words(t, r))
		}
	}
	check("loss<=1s,rate>=50k/s,p99<10ms", 50_000, 3, advise.Met)
	check("loss<=1s", 50_000, 3, advise.Met)
	check("loss<=1s,p99<3ms", 50_000, 3, advise.NotMet)
	check("loss<=900ms,rate>=60k/s", 50_000, 3, advise.NotKnown)
	check("loss<=900ms", 50_000, 2, advise.NotKnown)
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-6*b }

func TestLoadMustBeOne(t *testing.T) {
	small := plant{policy: "buffer=64KiB", cpu: 100, rate: 1e6, p99: ms}.row()
	large := small
	large.Cell.RecordBytes, large.Cell.Writers = 4096, 1
	f := planted(small, large)
	check := func(l advise.Load, record int64, refusal string) {
		t.Helper()
		r, err := advise.Recommend(f, need(t, "p99<1s"), l)
		switch {
		case refusal == "" && (err != nil || r.Load.RecordBytes != record):
			t.Errorf("%v: judged %+v, %v", l, r.Load, err)
		case refusal != "" && (!errors.Is(err, advise.ErrLoad) || !strings.HasSuffix(err.Error(), refusal)):
			t.Errorf("%v: %v", l, err)
		}
	}
	check(advise.Load{RecordBytes: 4096}, 4096, "")
	check(advise.Load{Writers: 2}, 100, "")
	check(advise.Load{RecordBytes: 100, Writers: 2}, 100, "")
	check(advise.Load{}, 0, "the results contain 2 loads: records of 100B, 2 writers; records of 4KiB, 1 writer")
	check(advise.Load{RecordBytes: 100, Writers: 1}, 0, "no load with records of 100B, 1 writer, but records of 100B, 2 writers; records of 4KiB, 1 writer")
}

func TestWithoutCPUTimeTheClockDecides(t *testing.T) {
	slow := plant{policy: "buffer=4KiB", rate: 1e6, p99: ms, change: func(r *figure.Row) { r.Time = summary(200) }}
	quick := plant{policy: "buffer=64KiB", rate: 1e6, p99: ms, change: func(r *figure.Row) { r.Time = summary(100) }}
	r := recommend(t, "p99<1s", slow.row(), quick.row())
	if !r.ByClock || r.Advised == nil || r.Advised.Policy != policy("buffer=64KiB") || !strings.Contains(words(t, r), "with 100ns of elapsed time a record") {
		t.Errorf("%s", words(t, r))
	}
}

func TestJSONHoldsWhatTheWordsShow(t *testing.T) {
	r := recommend(t, "loss<=1s,rate>=10MB/s,cpu<=50%,p99.9<1s,memory<=1MiB", plant{policy: "buffer=64KiB,sync=500ms", cpu: 100, rate: 2e6, p99: ms, sync: ms}.row())
	var b bytes.Buffer
	if err := r.JSON(&b); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Verdict advise.Verdict
		Need    string
		Nearest struct {
			Policy   holdfast.Policy
			Findings []map[string]any
		}
		Capacity float64 `json:"full_speed_per_s"`
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Verdict != advise.NotKnown || got.Need != r.Need.String() || got.Nearest.Policy != policy("buffer=64KiB,sync=500ms") || !near(got.Capacity, 1.98e6) {
		t.Errorf("%s", b.String())
	}
	check := func(i int, key string, value any) {
		t.Helper()
		if f := got.Nearest.Findings[i]; f[key] != value {
			t.Errorf("finding %d: %v, want %s %v", i, f, key, value)
		}
	}
	check(0, "value_ns", 501e6)
	check(0, "term", "loss<=1s")
	check(1, "value_bytes_per_s", float64(188*holdfast.MiB))
	check(2, "verdict", "not known")
	check(3, "value_cpu_percent", 1.01)
	check(3, "verdict", "met")
	check(4, "value_bytes", float64(128*holdfast.KiB))
	check(4, "verdict", "met")
}

// TestClearIsThreeTimesInsideOrOutside: inside or outside of the limits.
func TestClearIsThreeTimesInsideOrOutside(t *testing.T) {
	check := func(need string, want bool) {
		t.Helper()
		r := recommend(t, need, plant{policy: "buffer=64KiB,sync=group", cpu: 100, rate: 90e3, p99: 3 * ms, sync: ms}.row())
		if r.Clear() != want {
			t.Errorf("%s: %s, clear %v", need, words(t, r), r.Clear())
		}
	}
	check("loss<=0,p99<=9ms", true)
	check("loss<=0,p99<=8900us", false)
	check("loss<=0,p99<=900us", true)
	check("loss<=0,p99<=1000us", false)
	check("loss<=0,p99<=2800us", false) // not known
	check("rate>=29k/s", true)
	check("rate>=31k/s", false)
	check("rate>=280k/s", true)
	check("rate>=200k/s", false)
	check("loss<=0,p99<=9ms,rate>=200k/s", false)

	// A period is exact, so only the sync needs a margin.
	for limit, want := range map[string]bool{"2s": true, "2200ms": true, "1850ms": false} {
		r := recommend(t, "loss<="+limit, plant{policy: "buffer=0,sync=1s", cpu: 100, rate: 1000, sync: 300 * ms}.row())
		if r.Clear() != want {
			t.Errorf("loss<=%s: %s, clear %v", limit, words(t, r), r.Clear())
		}
	}
	if r := recommend(t, "loss<=2s", plant{policy: "buffer=0,sync=1s", cpu: 100, rate: 1000, sync: 400 * ms}.row()); r.Clear() {
		t.Errorf("a sync of 0.4 s: %s", words(t, r))
	}
}
