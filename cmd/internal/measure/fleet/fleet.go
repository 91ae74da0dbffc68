// Package fleet compares the results of many hosts. It groups similar machines, and finds in each group
// the hosts that differ from the others.
//
// It reads and writes no files and formats no tables. The same hosts always make the same
// [Fleet], whatever their order.
//
// Start with [NewHost] for a results file, and [New] for all of them.
package fleet

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
)

// A Fleet is many hosts with the findings about them.
type Fleet struct {
	Groups   []Group   `json:"groups"`   // the largest first
	Outliers []Outlier `json:"outliers"` // the farthest from its peers first
	Hosts    []Host    `json:"hosts"`    // by name; the newest results of each
	Older    []Older   `json:"older_results"`
	Silent   []Silent  `json:"silent"`

	// Unexpected are hosts with results that are not in the list of expected hosts.
	Unexpected []string `json:"unexpected,omitempty"`

	Threshold float64 `json:"threshold"` // the least slowdown of an outlier: 0.25 is 25 %
	Chance    float64 `json:"chance"`    // that a finding is false, in a whole fleet of equal hosts
}

// A Silent host has no results that can be used.
type Silent struct {
	Host string `json:"host"`
	File string `json:"file,omitempty"` // empty: there is none
	Why  string `json:"why"`
}

// Older results are left out, because the host has newer results of the same study and file system.
type Older struct {
	Host      string    `json:"host"`
	File      string    `json:"file"`
	StartedAt time.Time `json:"started_at"`
	Newer     string    `json:"newer"` // the file that is taken

	// Overlaps means that these results had not ended when the newer ones began. Perhaps two hosts have
	// one name.
	Overlaps bool `json:"overlaps,omitempty"`
}

// A Group is the hosts of one class.
type Group struct {
	Name   string  `json:"group"` // a number from 1
	Class  Class   `json:"class"`
	Hosts  int     `json:"hosts"`
	Bounds []Bound `json:"bounds"` // of the parts that can be judged: enough hosts have cells of them
	Cells  []Cell  `json:"cells"`

	FastSync []string       `json:"fast_sync,omitempty"` // hosts whose syncs are doubtful, whatever their peers do
	Caches   map[string]int `json:"write_caches,omitempty"`

	members []int
	typical map[string]typicalFact
}

// A Cell is one cell, summarized over all hosts of a group.
type Cell struct {
	Key `json:"-"`

	Cell   string        `json:"cell"`
	Part   Part          `json:"part"`
	Hosts  int           `json:"hosts"`
	Median figure.Number `json:"median_ns"`
	Low    figure.Number `json:"low_ns"` // 5 % of the hosts are faster
	High   figure.Number `json:"high_ns"`
}

// A Score compares a part of a host with its group. For each cell it divides the host's time by the
// group's median time, and takes the median over the cells. Low and High are made likewise from the
// ends of the intervals.
type Score struct {
	Part  Part          `json:"part"`
	Cells int           `json:"cells"`
	Ratio figure.Number `json:"ratio"`
	Low   figure.Number `json:"low"`
	High  figure.Number `json:"high"`
	Word  Word          `json:"word,omitempty"`
}

// A Bound is the scores beyond which a host is an outlier.
type Bound struct {
	Part  Part          `json:"part"`
	Hosts int           `json:"hosts"`
	Slow  figure.Number `json:"slow_from"`
	Fast  figure.Number `json:"fast_up_to"` // of Sync and Bandwidth alone: else to be fast is no fault
}

// An Outlier is a host that differs from its group.
type Outlier struct {
	Host     string    `json:"host"` // as in Hosts
	File     string    `json:"file"`
	Group    string    `json:"group"`
	Findings []Finding `json:"findings"`
	Differs  []Differs `json:"differs"` // the facts that most of its peers have otherwise
}

// A Finding is one difference of an outlier.
type Finding struct {
	Word Word `json:"word"`

	Score *Score        `json:"score,omitempty"`
	Bound figure.Number `json:"bound,omitempty"`
	Time  *Time         `json:"farthest,omitempty"` // of the cells of the score
	Peers figure.Number `json:"peers_ns,omitempty"` // the median of the group in that cell
	Doubt string        `json:"doubt,omitempty"`    // of a fast sync: the doubt, independent of its peers

	Cache  string `json:"write_cache,omitempty"`
	Others string `json:"others,omitempty"` // the write cache of most of its peers
}

// A Word says how a host differs from its peers.
type Word string

const (
	Slower     Word = "slower"
	FastSync   Word = "sync too fast" // to be true: a cache may say that bytes are durable, and they are not
	WriteCache Word = "write cache differs"
)

// Differs is a fact of an outlier for which most others of its group have another value.
type Differs struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Peers string `json:"peers"`
	Share int    `json:"share"` // how many of the others have the value of Peers
	Of    int    `json:"of"`
}

// DefaultThreshold is the least slowdown of an outlier, however equal its peers are.
const DefaultThreshold = 0.25

// Known reports whether every host could be judged: each has results, and no group is too small.
func (f Fleet) Known() bool {
	return len(f.Unanswered()) == 0 && !slices.ContainsFunc(f.Groups, func(g Group) bool { return !g.Judged() })
}

// Unanswered returns the hosts without any results.
func (f Fleet) Unanswered() (names []string) {
	answered := map[string]bool{}
	for _, h := range f.Hosts {
		answered[h.Name] = true
	}
	for _, s := range f.Silent {
		if !answered[s.Host] {
			names = append(names, s.Host)
		}
	}
	return names
}

// Judged reports whether the hosts of a group can be judged by each other.
func (g Group) Judged() bool { return len(g.Bounds) > 0 }

// Members returns the hosts of a group, by name.
func (f Fleet) Members(g Group) []Host {
	members := make([]Host, len(g.members))
	for i, at := range g.members {
		members[i] = f.Hosts[at]
	}
	return members
}
