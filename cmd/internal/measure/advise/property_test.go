package advise_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/advise"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// chance makes random figures and needs of similar size, so that about half of the terms are met.
type chance struct{ *rand.Rand }

// around returns a number within a factor of ten of x, mostly nearer.
func (c chance) around(x float64) float64 { return x * math.Exp(c.NormFloat64()) }

func (c chance) time(d time.Duration) time.Duration { return time.Duration(c.around(float64(d))) }

func (c chance) one(of int) bool { return c.IntN(of) == 0 }

// policies are the policies of the random results.
var policies = []string{
	"buffer=0", "buffer=4KiB", "buffer=64KiB", "buffer=64KiB,sync=close", "buffer=64KiB,flush=50ms", "buffer=0,sync=500ms",
	"buffer=4KiB,sync=500ms", "buffer=64KiB,sync=900ms", "buffer=64KiB,flush=50ms,sync=100ms", "buffer=64KiB,sync=group", "buffer=4KiB,sync=group", "buffer=0,sync=each",
	"buffer=64KiB,sync=256KiB", "buffer=4KiB,sync=200ms/128KiB",
}

func (c chance) row(text string, due float64) figure.Row {
	p := plant{policy: text, cpu: c.around(500), rate: c.around(60000), due: due, p99: c.time(8 * ms), flush: c.time(ms)}
	if due > 0 {
		p.rate = due
	}
	if !c.one(6) {
		p.sync = c.time(30 * ms)
	}
	if c.one(4) {
		p.sync = c.time(600 * ms)
	}
	if c.one(50) {
		p.cpu = 0
	}
	p.change = func(r *figure.Row) {
		if c.one(4) {
			r.Rate.Confidence, r.Served.Confidence, r.Net.CPU.Confidence = 0, 0, 0
		}
		if c.one(5) {
			r.Quantiles = slices.DeleteFunc(r.Quantiles, func(q figure.Quantile) bool { return q.P == 0.99 })
		}
		if due > 0 && c.one(3) {
			r.Behind = c.IntN(13)
		}
		if c.one(8) {
			r.Period = &figure.Period{FellDue: c.IntN(3)}
		}
		if c.one(8) {
			r.Syncs = 1 + c.Int64N(29)
		}
		if c.one(2) {
			r.Net.CPU = summary(c.around(100))
		}
		if c.one(3) {
			r.Cell.LatencyStride = 1
		}
	}
	return p.row()
}

func (c chance) figures() figure.Figures {
	var rows []figure.Row
	for _, due := range []float64{0, 50000, 80000} {
		if due > 0 && c.one(2) {
			continue
		}
		for _, i := range c.Perm(len(policies))[:1+c.IntN(len(policies))] {
			rows = append(rows, c.row(policies[i], due))
		}
	}
	f := planted(rows...)
	f.Noise.Floor = figure.Number(math.Abs(c.NormFloat64()) / 30)
	if c.one(10) {
		f.Noise.Floor = figure.Number(math.NaN())
	}
	return f
}

func (c chance) need(t *testing.T) advise.Need {
	all := []string{
		fmt.Sprintf("loss<=%v", c.time(time.Second)), "loss<=0", "loss<=1MiB", "crash<=0", fmt.Sprintf("crash<=%v", c.time(100*ms)), "crash<=128KiB",
		fmt.Sprintf("rate>=%d/s", int(c.around(30000))), fmt.Sprintf("rate>=%dB/s", int(c.around(4e6))),
		fmt.Sprintf("p50<=%v", c.time(4*ms)), fmt.Sprintf("p90<%v", c.time(8*ms)), fmt.Sprintf("p99<%v", c.time(15*ms)), "p99.9<1h",
		fmt.Sprintf("max<=%v", c.time(40*ms)), "memory<=128KiB", "rate>=50k/s,cpu<=" + fmt.Sprintf("%.2f%%", c.around(4)),
	}
	n := advise.Need{}
	for range 1 + c.IntN(3) {
		both, err := n.With(need(t, all[c.IntN(len(all))]))
		if err == nil {
			n = both
		}
	}
	return n
}

// verdict decides from the raw figures whether a row keeps a term. It states the rules a second time. A
// shown value is rounded: the worse end becomes worse by the factor worsened, and the better end better
// by bettered.
func verdict(term advise.Term, n advise.Need, r figure.Row, group []figure.Row, worsened, bettered float64) advise.Verdict {
	limit := float64(term.Limit)
	within := func(worse, best float64) advise.Verdict {
		keeps := func(x, more float64) bool {
			if term.Of == advise.Rate {
				return x*(1-more) >= limit
			}
			return x*(1+more) <= limit && (!term.Strict || x*(1+more) < limit)
		}
		switch {
		case keeps(worse, worsened):
			return advise.Met
		case keeps(best, -bettered):
			return advise.NotKnown
		}
		return advise.NotMet
	}
	unseen := !r.Period.Judged()
	ends := func(s figure.Summary) (low, high float64) {
		if s.Confidence == 0 {
			return s.Least, s.Most
		}
		return s.Low, s.High
	}
	loss := func(b holdfast.Bound, own, longest time.Duration, timed int64) advise.Verdict {
		bound := func(longest time.Duration) float64 {
			if term.Unit == advise.Time {
				return float64(max(b.Time, longest) + longest)
			}
			_, high := ends(r.Served)
			meanwhile := high * float64(r.Cell.RecordBytes) * longest.Seconds()
			if meanwhile > float64(b.Bytes) {
				meanwhile *= 2
			}
			return float64(b.Bytes) + meanwhile
		}
		unlimited := b.Time == holdfast.Unlimited
		if term.Unit == advise.Bytes {
			unlimited = b.Bytes == holdfast.Unlimited
		}
		switch {
		case b.None():
			return advise.Met
		case unlimited:
			return advise.NotMet
		case term.Unit == advise.Bytes && !b.InFlight:
			return within(float64(b.Bytes), float64(b.Bytes))
		case term.Unit == advise.Time && longest > 0 && float64(b.Time) <= limit/2 && longest <= min(b.Time, time.Duration(term.Limit)-b.Time):
			return advise.Met
		case (unseen || own <= 0) && term.Unit == advise.Time && float64(b.Time) > limit:
			return advise.NotMet
		case unseen, own <= 0:
			return advise.NotKnown
		}
		v := within(bound(longest), bound(own))
		if term.Of == advise.Loss && v == advise.Met && (timed < 20 || within(bound(2*longest), 0) != advise.Met) {
			return advise.NotKnown
		}
		return v
	}
	quantile := func(p float64) advise.Verdict {
		q, ok := r.Quantile(p)
		switch {
		case unseen || !ok || p == 1 && r.Cell.Rate == 0 && r.Cell.LatencyStride > 1:
			return advise.NotKnown
		case r.Cell.Rate > 0 && r.Behind > 6:
			return advise.NotMet
		}
		return within(float64(q.High), float64(q.Low))
	}
	switch term.Of {
	case advise.Loss:
		longest := r.LongestSync
		for _, other := range group {
			a, b := other.Cell.Policy.Loss().Power, r.Cell.Policy.Loss().Power
			sooner := b.Time == holdfast.Unlimited || a.Time != holdfast.Unlimited && a.Time <= b.Time
			fewer := b.Bytes == holdfast.Unlimited || a.Bytes != holdfast.Unlimited && a.Bytes <= b.Bytes
			if a.None() || sooner && fewer {
				longest = max(longest, other.LongestSync)
			}
		}
		return loss(r.Cell.Policy.Loss().Power, r.LongestSync, longest, r.Syncs)
	case advise.Crash:
		return loss(r.Cell.Policy.Loss().Process, r.LongestFlush, r.LongestFlush, 20)
	case advise.Rate:
		each := 1.0
		if term.Unit == advise.Stream {
			each = float64(r.Cell.RecordBytes)
		}
		switch {
		case r.Cell.Rate > 0 && r.Behind > 6:
			low, _ := ends(r.Served)
			return within(low*each, low*each)
		case r.Cell.Rate > 0 && r.Behind > 0:
			return advise.NotKnown
		case r.Cell.Rate > 0:
			return within(r.Cell.Rate*each, r.Cell.Rate*each)
		}
		low, high := ends(r.Rate)
		return within(low*each, high*each)
	case advise.P50:
		return quantile(0.5)
	case advise.P90:
		return quantile(0.9)
	case advise.P99:
		return quantile(0.99)
	case advise.P999:
		return quantile(0.999)
	case advise.Max:
		return quantile(1)
	case advise.Memory:
		return within(float64(2*r.Cell.Policy.Buffer), float64(2*r.Cell.Policy.Buffer))
	}
	if _, high := ends(r.CPU); !(high > 0) {
		return advise.NotKnown
	}
	low, high := ends(r.Net.CPU)
	share := n.Records(r.Cell.RecordBytes) / 1e9 * 1e4
	up, down := 0.0, 0.0 // hundredths of a percent are whole
	if worsened > 0 {
		up = 1
	}
	if bettered > 0 {
		down = 1
	}
	return within(high*share+up-1e-9, low*share-down-1e-9)
}

// A line is one of the table of all policies, read back from the words.
type line struct {
	policy  string
	cost    time.Duration
	memory  holdfast.Size
	verdict string
}

var (
	adviceLine = regexp.MustCompile("(?m)^advice: (?:`(.*)` meets it|no policy meets it; the nearest is `(.*)`, which fails |not known if a policy meets it; the nearest is `(.*)`, where it is not known for )")
	termLine   = regexp.MustCompile(`(?m)^  ([a-z0-9.]+)([<>=]+)(\S+)  +(\S+|not measured)  +(not met\S*|not known|exact|[0-9.]+ %|[0-9]+ times)`)
	policyLine = regexp.MustCompile(`(?m)^  (buffer=\S+)  +(\S+)  +(\S+)  +(advised|meets it|fails .*|not known for .*)$`)
)

func readLines(t *testing.T, text string) []line {
	t.Helper()
	var lines []line
	for _, m := range policyLine.FindAllStringSubmatch(text, -1) {
		cost, err := time.ParseDuration(strings.Replace(m[2], "nothing", "0", 1))
		if err != nil {
			t.Fatal(err)
		}
		memory, err := holdfast.ParseSize(m[3])
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line{m[1], cost, memory, m[4]})
	}
	return lines
}

// shownIsMet judges a line of the table of terms by its text alone.
func shownIsMet(t *testing.T, name, sign, limit, found string) bool {
	t.Helper()
	if found == "not" || found == "not measured" || found == "unlimited" {
		return false
	}
	found = strings.Replace(found, "nothing", "0", 1)
	value := func(text string) int64 {
		suffix := ""
		if name == "cpu" {
			suffix = ",rate>=1/s"
		}
		n := need(t, name+sign+text+suffix)
		for _, term := range n {
			if term.Of.String() == name {
				return term.Limit
			}
		}
		t.Fatalf("%s is not in %v", name, n)
		return 0
	}
	switch a, b := value(found), value(limit); sign {
	case "<":
		return a < b
	case "<=":
		return a <= b
	default:
		return a >= b
	}
}

// TestAdvisedPolicyMeetsTheNeedByTheNumbersShown recommends from random results
// and reads the words back. The advised policy keeps every term by the figures in the table, and no
// cheaper policy does. If no policy is advised, none meets the need. The raw figures give the same
// verdicts except for rounding.
func TestAdvisedPolicyMeetsTheNeedByTheNumbersShown(t *testing.T) {
	isolate.Once(t)
	advised, none := 0, 0
	for seed := range uint64(5000) {
		c := chance{rand.New(rand.NewPCG(seed, 7))}
		f, n := c.figures(), c.need(t)
		r, err := advise.Recommend(f, n, advise.Load{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		text := words(t, r)
		fail := func(format string, args ...any) {
			t.Helper()
			t.Fatalf("seed %d: %s\n%s", seed, fmt.Sprintf(format, args...), text)
		}
		m := adviceLine.FindStringSubmatch(text)
		terms, lines := termLine.FindAllStringSubmatch(text, -1), readLines(t, text)
		if m == nil || len(terms) != len(n) || len(lines) != len(r.Judged) {
			fail("advice %q, %d of %d terms, %d of %d policies", m, len(terms), len(n), len(lines), len(r.Judged))
		}
		all := true
		for _, term := range terms {
			keeps := shownIsMet(t, term[1], term[2], term[3], term[4])
			all = all && keeps && term[5] != string(advise.NotKnown)
			if keeps == strings.HasPrefix(term[5], "not met") && term[5] != string(advise.NotKnown) {
				fail("%s is found to be %s", term[1]+term[2]+term[3], term[4])
			}
		}
		checkRaw(fail, r, f)
		if m[1] == "" {
			none++
			for _, l := range lines {
				if all || l.verdict == "meets it" || l.verdict == "advised" {
					fail("no policy is advised, and %s %s", l.policy, l.verdict)
				}
			}
			continue
		}
		advised++
		if !all {
			fail("%s is advised and does not meet the need", m[1])
		}
		checkCheapest(fail, m[1], lines, r)
		for _, j := range r.Judged {
			first, _, _ := strings.Cut(text, "advice: ")
			if j.Verdict() == advise.NotKnown && r.Load.Rate == 0 && float64(j.Cost)*2 < float64(r.Advised.Cost) && !strings.Contains(first, "not decided: ") {
				fail("%v may meet the need for half of the cost, and no undecided one is named first", j.Policy)
			}
		}
	}
	if advised < 1000 || none < 1000 {
		t.Errorf("%d times a policy was advised, %d times none: the chances are bad", advised, none)
	}
}

// checkCheapest looks for a cheaper policy that meets the need, and for one that
// costs the same and loses less. Shown costs are rounded by up to 1 %.
func checkCheapest(fail func(string, ...any), text string, lines []line, r advise.Recommendation) {
	var own line
	least := time.Duration(math.MaxInt64)
	for _, l := range lines {
		if l.policy == policyText(text) {
			own = l
		}
		if l.verdict == "meets it" || l.verdict == "advised" {
			least = min(least, l.cost)
		}
	}
	if own.verdict != "advised" {
		fail("%s is advised, and in the table it %s", text, own.verdict)
	}
	same := float64(least) * (1 + r.Tolerance)
	if r.Load.Rate > 0 {
		same = max(same, float64(least)+1e7/r.Load.Rate) // 1 % of a CPU
	}
	if float64(own.cost) > same*1.011+1 {
		fail("%s is advised at %v, and there is one at %v", text, own.cost, least)
	}
	for _, l := range lines {
		mine, other := policy(text).Loss().Power, policy(l.policy).Loss().Power
		less := other.Time != holdfast.Unlimited && (mine.Time == holdfast.Unlimited || other.Time < mine.Time)
		if l.verdict == "meets it" && less && float64(l.cost)*1.035+1 < same*0.98 {
			fail("%s costs the same as %s, and loses less", l.policy, text)
		}
	}
}

func policyText(text string) string { return policy(text).String() }

// checkRaw compares each verdict with the verdict of the raw figures.
func checkRaw(fail func(string, ...any), r advise.Recommendation, f figure.Figures) {
	for _, g := range f.Groups {
		if g.Load != r.Load {
			continue
		}
		for i, row := range g.Rows {
			for _, found := range r.Judged[i].Findings {
				var right []advise.Verdict
				for _, worsened := range []float64{0, 0.011} {
					for _, bettered := range []float64{-0.011, 0, 0.011} {
						right = append(right, verdict(found.Term, r.Need, row, g.Rows, worsened, bettered))
					}
				}
				if !slices.Contains(right, found.Verdict) {
					fail("%v of %v is %s, and by the figures it is %s: %s", found.Term, row.Cell.Policy, found.Verdict, right[0], found.How)
				}
			}
		}
	}
}
