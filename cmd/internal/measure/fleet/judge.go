package fleet

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
)

// New compares hosts. If several results have the same host, study and mount point, the newest count.
// Expected are names of hosts; an expected host without results is silent.
func New(hosts []Host, silent []Silent, expected []string, threshold float64) Fleet {
	f := Fleet{Threshold: threshold, Chance: 1 - stat.Confidence, Silent: slices.Clone(silent)}
	f.takeNewest(hosts)
	f.expect(expected)
	f.group()
	f.judge()
	return f
}

// takeNewest keeps the newest results of each host, study and mount point.
func (f *Fleet) takeNewest(hosts []Host) {
	hosts = slices.Clone(hosts)
	place := func(a, b Host) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Study, b.Study), strings.Compare(a.Mount, b.Mount))
	}
	slices.SortFunc(hosts, func(a, b Host) int {
		return cmp.Or(place(a, b), b.StartedAt.Compare(a.StartedAt), strings.Compare(a.File, b.File))
	})
	for _, h := range hosts {
		if n := len(f.Hosts); n > 0 && place(f.Hosts[n-1], h) == 0 {
			newer := f.Hosts[n-1]
			overlaps := h.StartedAt.Add(h.took).After(newer.StartedAt) && !(h.StartedAt.Equal(newer.StartedAt) && h.seed == newer.seed) // a copy
			f.Older = append(f.Older, Older{Host: h.Name, File: h.File, StartedAt: h.StartedAt, Newer: newer.File, Overlaps: overlaps})
			continue
		}
		f.Hosts = append(f.Hosts, h)
	}
}

// expect adds each expected host without results to the silent ones. A name without a domain matches
// that name in any domain.
func (f *Fleet) expect(expected []string) {
	if len(expected) == 0 {
		return
	}
	full, short := map[string]bool{}, map[string]bool{}
	note := func(name string) {
		full[name] = true
		first, _, _ := strings.Cut(name, ".")
		short[first] = true
	}
	has := func(name string) bool {
		first, _, qualified := strings.Cut(name, ".")
		return full[name] || full[first] || !qualified && short[name]
	}
	for _, h := range f.Hosts {
		note(h.Name)
	}
	for _, s := range f.Silent {
		note(s.Host)
	}
	for _, name := range expected {
		if !has(name) {
			f.Silent = append(f.Silent, Silent{Host: name, Why: "no results"})
			note(name)
		}
	}
	full, short = map[string]bool{}, map[string]bool{}
	for _, name := range expected {
		note(name)
	}
	for _, h := range f.Hosts {
		if !has(h.Name) && !slices.Contains(f.Unexpected, h.Name) {
			f.Unexpected = append(f.Unexpected, h.Name)
		}
	}
}

// judge finds the outliers. All bounds together hold: a fleet of equal hosts has no finding with a probability of
// at least 1 - Chance. So each bound of each host gets its part of Chance (Bonferroni). A host has one score for
// each part and not a finding for each cell: its cells share a disk, and more findings would need wider bounds.
// The worst part of a host counts; a good part does not make up for it.
func (f *Fleet) judge() {
	questions := 0
	for i := range f.Groups {
		g := &f.Groups[i]
		g.score(f.Hosts)
		for _, b := range g.Bounds {
			questions += b.questions()
		}
	}
	chance := f.Chance / float64(max(1, questions))
	for i := range f.Groups {
		g := &f.Groups[i]
		for n := range g.Bounds {
			g.Bounds[n].set(f.scores(*g, g.Bounds[n].Part), chance, f.Threshold)
		}
		for _, m := range g.members {
			h := &f.Hosts[m]
			o := Outlier{Host: h.Name, File: h.File, Group: g.Name, Findings: append(g.judge(h), g.cacheFinding(*h)...)}
			if len(o.Findings) > 0 {
				o.Differs = g.differences(*h)
				f.Outliers = append(f.Outliers, o)
			}
		}
	}
	slices.SortStableFunc(f.Outliers, func(a, b Outlier) int { return cmp.Compare(b.distance(), a.distance()) })
}

// questions returns the number of comparisons of hosts with bounds.
func (b Bound) questions() int {
	if b.Part.disk() {
		return 2 * b.Hosts
	}
	return b.Hosts
}

// score computes the scores of a group's hosts, and the bounds that set fills in later. A cell counts
// if enough hosts have it.
func (g *Group) score(hosts []Host) {
	medians := map[Key]figure.Number{}
	for _, c := range g.Cells {
		if c.Hosts >= stat.LeastPeers {
			medians[c.Key] = c.Median
		}
	}
	for _, part := range []Part{Sync, Bandwidth, Memory, Arms} {
		scored := 0
		for _, m := range g.members {
			h := &hosts[m]
			var ratios, lows, highs []float64
			for i := range h.Times {
				t := &h.Times[i]
				median, ok := medians[t.Key]
				if !ok || t.Part != part || !(t.Record.Median > 0) {
					continue
				}
				t.Ratio = figure.Number(t.Record.Median) / median
				ratios = append(ratios, float64(t.Ratio))
				lows = append(lows, t.Record.Lower()/float64(median))
				highs = append(highs, t.Record.Upper()/float64(median))
			}
			if len(ratios) > 0 {
				scored++
				middle := func(of []float64) figure.Number { return figure.Number(stat.Quantile(of, 0.5)) }
				h.Scores = append(h.Scores, Score{Part: part, Cells: len(ratios), Ratio: middle(ratios), Low: middle(lows), High: middle(highs)})
			}
		}
		if scored >= stat.LeastPeers {
			g.Bounds = append(g.Bounds, Bound{Part: part, Hosts: scored})
		}
	}
}

// scores returns the scores of a part, of all hosts of a group.
func (f *Fleet) scores(g Group, part Part) (ratios []float64) {
	for _, m := range g.members {
		for _, s := range f.Hosts[m].Scores {
			if s.Part == part {
				ratios = append(ratios, float64(s.Ratio))
			}
		}
	}
	return ratios
}

// set computes the bounds. If peers differ so much that no bound exists, no host is an outlier.
func (b *Bound) set(ratios []float64, chance, threshold float64) {
	peers := stat.PeersOf(ratios)
	reach := min(max(1+threshold, peers.Reach(chance)), 1e150) // a finite number
	b.Slow, b.Fast = figure.Number(peers.Center*reach), figure.Number(math.NaN())
	if b.Part.disk() {
		b.Fast = figure.Number(peers.Center / reach)
	}
}

// judge compares the scores of a host with the bounds of its group. Low or High must be beyond a bound,
// so that a host whose own rounds differ much gets no finding by chance.
func (g Group) judge(h *Host) (found []Finding) {
	for _, b := range g.Bounds {
		i := slices.IndexFunc(h.Scores, func(s Score) bool { return s.Part == b.Part })
		if i < 0 {
			continue
		}
		s := &h.Scores[i]
		one := Finding{Score: s}
		switch {
		case s.Low > b.Slow:
			one.Word, one.Bound = Slower, b.Slow
		case s.High < b.Fast, b.Part == Sync && h.FastSync != "" && s.High < fastOfPeers:
			one.Word, one.Bound, one.Doubt = FastSync, b.Fast, h.FastSync
		default:
			continue
		}
		s.Word = one.Word
		for _, t := range h.Times {
			if t.Part == b.Part && t.Ratio.Known() && (one.Time == nil || (t.Ratio > one.Time.Ratio) == (one.Word == Slower)) {
				one.Time = &t
			}
		}
		at := slices.IndexFunc(g.Cells, func(c Cell) bool { return c.Key == one.Time.Key })
		one.Peers = g.Cells[at].Median
		found = append(found, one)
	}
	return found
}

// fastOfPeers: a sync that is faster than a disk can be, and takes less than half of its peers' time, is too fast to
// be true, even if the peers differ much.
const fastOfPeers = 0.5

// most is the share of a group's known write caches that must be equal, so that another one counts as
// different.
const most = 0.75

// cacheFinding reports a host whose write cache differs from nearly all of its peers': its syncs may
// then promise something else.
func (g Group) cacheFinding(h Host) []Finding {
	all, usual := 0, ""
	for value, n := range g.Caches {
		all += n
		if n > g.Caches[usual] || n == g.Caches[usual] && value < usual {
			usual = value
		}
	}
	own := known(h.Machine, writeCache)
	if all < stat.LeastPeers || own == "" || own == usual || float64(g.Caches[usual]) < most*float64(all) {
		return nil
	}
	return []Finding{{Word: WriteCache, Cache: own, Others: usual}}
}

// differences returns the facts of a host for which more than half of its peers share another value.
func (g Group) differences(h Host) (found []Differs) {
	facts, others := h.facts(), g.Hosts-1
	peers := make([]machine.Fact, len(facts))
	for i, fact := range facts {
		peers[i] = machine.Fact{Name: fact.Name, Value: g.typical[fact.Name].most}
	}
	for _, d := range machine.Differences(facts, peers) {
		if n := g.typical[d.Name].count[d.B]; 2*n > others {
			found = append(found, Differs{Name: d.Name, Value: d.A, Peers: d.B, Share: n, Of: others})
		}
	}
	return found
}

// distance is an outlier's distance from its peers: the largest of its findings.
func (o Outlier) distance() float64 {
	far := 0.0
	for _, one := range o.Findings {
		if one.Score != nil {
			far = max(far, math.Abs(math.Log(float64(one.Score.Ratio))))
		}
	}
	return far
}
