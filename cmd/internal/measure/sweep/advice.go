package sweep

import (
	"context"
	"math"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// Advice is the sweep that finds the policy for a need: each policy at the needed rate, or else at full
// speed. The choice names the policies, the most wanted first; it has one load unless it names more.
func Advice() Sweep {
	return Sweep{
		Name:     "advice",
		Question: "which policy meets the need and costs least",
		Workloads: func(c study.Choice) []Workload {
			var loads []Workload
			for _, size := range study.Or(c.Records, []holdfast.Size{128}) {
				for _, n := range study.Or(c.Writers, []int{1}) {
					for _, p := range study.Or(c.Policies, Policies()) {
						loads = append(loads, Workload{Policy: p, RecordBytes: int64(size), Writers: n, Setting: study.Setting{Rate: c.Rate}})
					}
				}
			}
			if c.Rate > 0 {
				return withEmpty(loads)
			}
			return withTwins(loads)
		},
		paced: true,
	}
}

const (
	// periodsOfTrial: three periods must have ended before the last record, whenever the first begins.
	// periodsInAll is the number of periods by which the length of a sync is judged.
	periodsOfTrial = 3.3
	periodsInAll   = 22

	leastJudged = 500 * time.Millisecond // least time of a trial at a rate
	warmUpTime  = 300 * time.Millisecond

	// fewJudged is the least number of rounds: before it has fewer, the plan leaves out policies. With
	// six rounds the median has an interval.
	fewJudged, mostJudged = 6, 12

	// tooSlow: if a policy's probe took 1.5 times the interval between two records, the policy can't
	// keep the rate, and a short trial shows it.
	tooSlow = 1.5

	// beyondQuantile is the number of samples beyond the rarest quantile: a tenth more than
	// [stat.Supports] requires.
	beyondQuantile = 11
)

// preparePaced plans trials by which a policy can be judged at the rate. In each trial its period falls
// due three times, and all trials together have the samples for the choice's quantile. If that does not
// fit into the time, it leaves policies out, the last first.
func (s Sweep) preparePaced(ctx context.Context, g *trial.WorkDir, c study.Choice, probed func(done, all int)) (trial.Matrix, result.Plan, error) {
	begun := time.Now()
	loads := s.Workloads(c)
	rates, err := calibrate(ctx, g, loads, probed)
	if err != nil {
		return trial.Matrix{}, result.Plan{}, err
	}
	left := max(0, c.TimeToTake()-time.Since(begun))
	p := pacing{loads: loads, rates: rates, quantile: c.Quantile, most: most(g, c, loads)}
	p.block, _ = blockCost(c, loads, rates)
	p = p.into(left * 9 / 10)
	var cells []trial.Cell
	for i, w := range p.loads {
		short := Cell(w.cell(min(p.records[i], w.recordsIn(warmUpTime))), 0, c.Counting)
		cell := Cell(w.cell(p.records[i]), p.rates[i].estimate(p.records[i]), trial.NotCounting)
		run := cell.Run
		cell.Run = func(ctx context.Context, g *trial.WorkDir, warmUp bool) (result.Measurement, error) {
			if warmUp {
				return short.Run(ctx, g, true)
			}
			return run(ctx, g, false)
		}
		cells = append(cells, cell)
	}
	m, plan := matrix(c, p.loads, cells, p.rounds)
	m.Limit = max(1, left)
	plan.Limit, plan.Width, plan.Words = m.Limit, 0, false
	return m, plan, g.Need(plan.Room)
}

// A pacing is a matrix at a rate that must fit into a time.
type pacing struct {
	loads    []Workload // empty ones last
	rates    []rate
	quantile float64
	most     int64         // bytes of a trial
	block    time.Duration // time of each round beside its trials

	rounds  int
	records []int64
}

// into sets the rounds and the records of each cell.
func (p pacing) into(budget time.Duration) pacing {
	for {
		for p.rounds = mostJudged; p.rounds > 1; p.rounds-- {
			if p.plan(); p.total() <= budget {
				return p
			}
			if p.rounds == fewJudged && p.policies() > 1 {
				break
			}
		}
		if p.policies() < 2 {
			p.plan()
			return p
		}
		p = p.without(p.policies() - 1)
	}
}

// policies is the number of cells that are not empty.
func (p pacing) policies() (n int) {
	for _, w := range p.loads {
		if !w.Empty {
			n++
		}
	}
	return n
}

// without leaves out the cell at i.
func (p pacing) without(i int) pacing {
	p.loads = append(p.loads[:i:i], p.loads[i+1:]...)
	p.rates = append(p.rates[:i:i], p.rates[i+1:]...)
	return p
}

// plan sets the records of each cell for the current number of rounds.
func (p *pacing) plan() {
	p.records = make([]int64, len(p.loads))
	for i, w := range p.loads {
		n := w.recordsIn(leastJudged)
		if p.rates[i].perRecord < tooSlow*float64(time.Second)/w.Rate && !w.Empty {
			s, periods := w.Policy.Sync, max(periodsOfTrial, periodsInAll/float64(p.rounds))
			n = max(n, w.recordsIn(time.Duration(periods*float64(max(w.Policy.FlushEvery, s.Every)))))
			if s.Every == 0 {
				n = max(n, int64(periods*float64(s.Bytes)/float64(w.RecordBytes)))
			}
			if p.quantile > 0 {
				n = max(n, int64(math.Ceil(beyondQuantile/(1-p.quantile)/float64(p.rounds))))
			}
		}
		n = min(n, p.most/w.RecordBytes)
		p.records[i] = max(1, n/int64(w.Writers)) * int64(w.Writers)
	}
}

// recordsIn is the number of records that are due in the time.
func (w Workload) recordsIn(d time.Duration) int64 { return int64(math.Ceil(w.Rate * d.Seconds())) }

// total is the duration of all rounds, with a warm-up of warmUpTime for each cell.
func (p pacing) total() (sum time.Duration) {
	sum = time.Duration(p.rounds) * p.block
	for i, n := range p.records {
		sum += time.Duration(p.rounds)*p.rates[i].estimate(n) + p.rates[i].estimate(min(n, p.loads[i].recordsIn(warmUpTime)))
	}
	return sum
}
