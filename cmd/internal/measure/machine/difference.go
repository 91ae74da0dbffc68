package machine

import (
	"cmp"
	"slices"
)

// A Difference is a fact whose values differ on two computers, or on one at two times.
type Difference struct {
	Name string `json:"name"`
	A    string `json:"a"` // may be Unknown, as may B; not both
	B    string `json:"b"`
}

// weighty lists the facts that matter most for writing files, the most important first. The other facts
// follow in their usual order.
var weighty = []string{
	"device model", "device stack", "device", "device size", "file system", "overlay upper file system", "mount options", "write cache", "FUA",
	"rotational", "I/O scheduler", "cgroup I/O limit", "virtualisation", "kernel", "CPU model",
	"CPUs", "CPUs online", "cgroup CPU limit", "cgroup CPU set", "GOMAXPROCS",
}

// passing lists the facts that tell nothing about a computer's speed. They change by themselves from
// minute to minute, or name a container that is new in each run.
var passing = []string{"memory available", "free space", HostName}

// Differences returns the facts whose values differ, the ones that matter most for writing files first.
// A fact that only one side knows differs. It leaves out the facts in passing.
func Differences(a, b []Fact) []Difference {
	var all []Difference
	seen := map[string]bool{}
	for _, fact := range slices.Concat(a, b) {
		name := fact.Name
		d := Difference{Name: name, A: Get(a, name).Value, B: Get(b, name).Value}
		if !seen[name] && d.A != d.B && !slices.Contains(passing, name) {
			all = append(all, d)
		}
		seen[name] = true
	}
	slices.SortStableFunc(all, func(x, y Difference) int { return cmp.Compare(weight(x.Name), weight(y.Name)) })
	return all
}

// weight returns a fact's place in the order of weighty.
func weight(name string) int {
	if i := slices.Index(weighty, name); i >= 0 {
		return i
	}
	return len(weighty)
}
