package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/internal/lab/figure"
	"github.com/holdfast-go/holdfast/internal/lab/machine"
	"github.com/holdfast-go/holdfast/internal/lab/stat"
)

// group makes groups of like machines. Mount options make a group of their own only if enough
// hosts have them to be judged by each other. Else these hosts join the most of their class, and
// the options are a fact that differs.
func (f *Fleet) group() {
	members := map[Class][]int{}
	for i, h := range f.Hosts {
		class := h.class()
		members[class] = append(members[class], i)
	}
	largest := map[Class]Class{} // by the class without options
	bare := func(c Class) Class { c.Options = ""; return c }
	for class, of := range members {
		best, ok := largest[bare(class)]
		if n := len(members[best]); !ok || len(of) > n || len(of) == n && class.Options < best.Options {
			largest[bare(class)] = class
		}
	}
	joined := map[Class][]int{}
	for class, of := range members {
		to := class
		if len(of) < stat.LeastPeers {
			to = largest[bare(class)]
		}
		joined[to] = append(joined[to], of...)
	}
	for class, of := range joined {
		slices.Sort(of)
		f.Groups = append(f.Groups, Group{Class: class, Hosts: len(of), members: of})
	}
	slices.SortFunc(f.Groups, func(a, b Group) int {
		return cmp.Or(b.Hosts-a.Hosts, strings.Compare(fmt.Sprint(a.Class), fmt.Sprint(b.Class)))
	})
	for i := range f.Groups {
		g := &f.Groups[i]
		g.Name = strconv.Itoa(i + 1)
		for _, at := range g.members {
			h := &f.Hosts[at]
			h.Group = g.Name
			if h.FastSync != "" {
				g.FastSync = append(g.FastSync, h.Name)
			}
		}
		g.findTypical(f.Hosts)
		g.addCells(f.Hosts)
	}
}

// A typicalFact is how many hosts of a group have each value of a fact.
type typicalFact struct {
	count map[string]int
	most  string
}

// findTypical counts the values of each fact.
func (g *Group) findTypical(hosts []Host) {
	g.typical = map[string]typicalFact{}
	add := func(name, value string) {
		t, ok := g.typical[name]
		if !ok {
			t.count = map[string]int{}
		}
		t.count[value]++
		if n, m := t.count[value], t.count[t.most]; n > m || n == m && value < t.most {
			t.most = value
		}
		g.typical[name] = t
	}
	for _, at := range g.members {
		for _, fact := range hosts[at].facts() {
			add(fact.Name, fact.Value)
		}
	}
	for value, n := range g.typical[writeCache].count {
		if value != machine.Unknown {
			if g.Caches == nil {
				g.Caches = map[string]int{}
			}
			g.Caches[value] = n
		}
	}
}

const writeCache = "write cache"

// facts returns the facts of a host, and the program that measured it. Mount options are without
// those that are each host's own.
func (h Host) facts() []machine.Fact {
	facts := append(slices.Clone(h.Machine), machine.Fact{Name: "program", Value: h.Program, Source: "holdfast version"})
	for i := range facts {
		if facts[i].Name == "mount options" && facts[i].Value != machine.Unknown {
			facts[i].Value = mountOptions(facts[i].Value)
		}
	}
	return facts
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

// addCells summarizes each cell over the hosts of the group.
func (g *Group) addCells(hosts []Host) {
	times := map[Key][]float64{}
	var keys []Key
	for _, at := range g.members {
		for _, t := range hosts[at].Times {
			if times[t.Key] == nil {
				keys = append(keys, t.Key)
			}
			if t.Record.Median > 0 { // what is net may be nothing
				times[t.Key] = append(times[t.Key], t.Record.Median)
			}
		}
	}
	for _, key := range keys {
		of := times[key]
		quantile := func(p float64) figure.Number { return figure.Number(stat.Quantile(of, p)) }
		g.Cells = append(g.Cells, Cell{Key: key, Cell: key.Name, Part: key.part(), Hosts: len(of), Median: quantile(0.5), Low: quantile(0.05), High: quantile(0.95)})
	}
}
