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

// New sets hosts beside each other. Of the same host, study and mount point the newest results
// count. Expected are names of hosts; those that are in no results are silent.
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

// expect adds the expected hosts that are not known yet to those that are silent. A name without
// a domain stands for one with any domain.
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

// judge finds the outliers. All bounds hold together: of a fleet whose hosts are all alike, no word is
// said with a probability of at least 1 - Chance. For that each bound of each host has its part of
// Chance (Bonferroni). A host has one score for each part and not a word for each cell, because its
// cells share a disk. Many words would also need bounds that are farther out. The worst part of a host counts: no
// other makes up for it.
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

// questions returns how many bounds hosts are held against.
func (b Bound) questions() int {
	if b.Part.disk() {
		return 2 * b.Hosts
	}
	return b.Hosts
}

// score gives the hosts of a group their scores, and the group the bounds that are to be set. A
// cell counts if enough hosts have it.
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

// scores returns the scores of a part of all hosts of a group.
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

// set computes the bounds. Where peers are so far apart that there is none, none is an outlier.
func (b *Bound) set(ratios []float64, chance, threshold float64) {
	peers := stat.PeersOf(ratios)
	reach := min(max(1+threshold, peers.Reach(chance)), 1e150) // a finite number
	b.Slow, b.Fast = figure.Number(peers.Center*reach), figure.Number(math.NaN())
	if b.Part.disk() {
		b.Fast = figure.Number(peers.Center / reach)
	}
}

// judge holds the scores of a host against the bounds of its group. Low or High must lie beyond, so
// that a host whose own rounds are far apart is not judged by chance.
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

// fastOfPeers: syncs that are faster than a disk can be, and take less than half of what they take on their peers, are
// too fast to be true, however far these are apart.
const fastOfPeers = 0.5

// most is the share of the known write caches of a group that must be alike for another to differ.
const most = 0.75

// cacheFinding says that a host has another write cache than nearly all of its peers: a sync may
// then promise another thing.
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

// differences returns the facts of a host that more than half of its peers have otherwise, all
// with the same value.
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

// distance is how far a host is from its peers: the farthest of its findings.
func (o Outlier) distance() float64 {
	far := 0.0
	for _, one := range o.Findings {
		if one.Score != nil {
			far = max(far, math.Abs(math.Log(float64(one.Score.Ratio))))
		}
	}
	return far
}
