// Package show writes a fleet: as a table for a terminal, as one HTML page, and for programs.
//
// All forms have the same texts and figures. It computes nothing: see package fleet.
//
// Start with [Text], [HTML] and [Export].
package show

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/fleet"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/humanize"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// summary gives the result in one sentence.
func summary(f fleet.Fleet) string {
	hosts := map[string]bool{}
	small, judged := 0, 0
	for _, h := range f.Hosts {
		hosts[h.Name] = true
	}
	for _, g := range f.Groups {
		if g.Judged() {
			judged += g.Hosts
		} else {
			small += g.Hosts
		}
	}
	text := fmt.Sprintf("%s in %s", count(len(hosts), "host"), count(len(f.Groups), "group"))
	switch n := len(f.Outliers); {
	case n > 0:
		text += ": " + count(n, "outlier") + " (" + outlierNames(f) + ")"
	case judged > 0:
		text += ": no outlier"
	default:
		text += fmt.Sprintf(": none could be judged, because no group has %d hosts", stat.LeastPeers)
	}
	if small > 0 && judged > 0 {
		text += fmt.Sprintf("; %s in groups of fewer than %d, not judged", count(small, "host"), stat.LeastPeers)
	}
	var fast []string
	for _, g := range f.Groups {
		fast = append(fast, g.FastSync...)
	}
	if len(fast) > 0 {
		text += fmt.Sprintf("; syncs too fast to be true on %s: %s", count(len(fast), "host"), names(fast, 3))
	}
	if n := len(f.Silent); n > 0 {
		text += fmt.Sprintf("; %d without results", n)
	}
	return text
}

// outlierNames lists the first outliers with their findings.
func outlierNames(f fleet.Fleet) string {
	const most = 6
	var texts []string
	for _, o := range f.Outliers[:min(most, len(f.Outliers))] {
		var odd []string
		for _, one := range o.Findings {
			odd = append(odd, oddity(one))
		}
		texts = append(texts, o.Host+": "+strings.Join(odd, " and "))
	}
	if n := len(f.Outliers) - most; n > 0 {
		texts = append(texts, fmt.Sprintf("%d more", n))
	}
	return strings.Join(texts, "; ")
}

// oddity describes a finding in a few words.
func oddity(one fleet.Finding) string {
	switch one.Word {
	case fleet.WriteCache:
		return "another write cache"
	case fleet.FastSync:
		return fmt.Sprintf("%s %s, too fast to be true", partName(one.Score.Part), study.Times(float64(one.Score.Ratio)))
	}
	return fmt.Sprintf("%s %s", partName(one.Score.Part), study.Times(float64(one.Score.Ratio)))
}

// partName names the part that a score is about.
func partName(p fleet.Part) string {
	return map[fleet.Part]string{fleet.Sync: "syncs", fleet.Bandwidth: "disk bandwidth", fleet.Memory: "CPU or memory", fleet.Arms: "arms"}[p]
}

func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return humanize.Grouped(int64(n)) + " " + noun
}

// classText lists the common properties of a group's hosts.
func classText(c fleet.Class) string {
	cpus := c.CPUs
	if cpus != "" {
		cpus += " CPUs"
	}
	system := c.FileSystem
	if c.Options != "" {
		system += " (" + c.Options + ")"
	}
	parts := []string{c.Study, c.Processor, cpus, c.Memory, system, c.Device}
	parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
	return strings.Join(parts, ", ")
}

// label names a cell: an arm of a study, or a policy with its load.
func label(k fleet.Key) string {
	l := k.Load
	if l.Group != "" {
		return k.Name
	}
	text := fmt.Sprintf("%v, %v × %d", k.Policy, holdfast.Size(l.RecordBytes), l.Writers)
	if l.Open() {
		text += fmt.Sprintf(", %s/s", study.Digits(l.Rate))
	}
	if l.Cache != "" && l.Cache != "new" {
		text += ", cache " + string(l.Cache)
	}
	if l.FileSystem != "" {
		text = l.FileSystem + ": " + text
	}
	return text
}

// groupsTable has a row for each group, up to `most` rows.
func groupsTable(f fleet.Fleet, most int) study.Table {
	t := study.Table{Head: []string{"group", "hosts", "outliers", "machines"}}
	for _, g := range f.Groups[:min(most, len(f.Groups))] {
		outliers := "not judged"
		if g.Judged() {
			n := 0
			for _, o := range f.Outliers {
				if o.Group == g.Name {
					n++
				}
			}
			outliers = fmt.Sprint(n)
		}
		t.Rows = append(t.Rows, []string{g.Name, humanize.Grouped(int64(g.Hosts)), outliers, classText(g.Class)})
	}
	return t
}

// sideBySide is the largest number of hosts for which each host has a column.
const sideBySide = 6

// cellsTable has a row for each cell of a group: the time of each host with its interval, or the spread
// if there are many hosts. The last rows are the scores and the bounds of the group.
func cellsTable(f fleet.Fleet, g fleet.Group) study.Table {
	hosts := f.Members(g)
	if len(hosts) > sideBySide {
		t := study.Table{Head: []string{"policy, record × writers", "part", "hosts", "median", "nine hosts in ten"}}
		for _, c := range g.Cells {
			t.Rows = append(t.Rows, []string{
				label(c.Key), string(c.Part), humanize.Grouped(int64(c.Hosts)), study.Duration(float64(c.Median)),
				study.Duration(float64(c.Low)) + "…" + study.Duration(float64(c.High)),
			})
		}
		return t
	}
	t := study.Table{Head: []string{"policy, record × writers"}}
	for _, h := range hosts {
		t.Head = append(t.Head, h.Name)
	}
	for _, c := range g.Cells {
		row := []string{label(c.Key)}
		for _, h := range hosts {
			cell := study.Dash
			if i := slices.IndexFunc(h.Times, func(t fleet.Time) bool { return t.Key == c.Key }); i >= 0 {
				cell = timeText(h.Times[i].Record)
			}
			row = append(row, cell)
		}
		t.Rows = append(t.Rows, row)
	}
	for _, b := range g.Bounds {
		row := []string{fmt.Sprintf("%s, of the group", b.Part)}
		for _, h := range hosts {
			cell := study.Dash
			if i := slices.IndexFunc(h.Scores, func(s fleet.Score) bool { return s.Part == b.Part }); i >= 0 {
				cell = study.Times(float64(h.Scores[i].Ratio))
			}
			row = append(row, cell)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// boundsText names the scores from which on a host of the group is an outlier.
func boundsText(g fleet.Group) string {
	var parts []string
	for _, b := range g.Bounds {
		text := fmt.Sprintf("%s slower from %s", b.Part, study.Times(float64(b.Slow)))
		if b.Fast.Known() {
			text += fmt.Sprintf(", too fast up to %s", study.Times(float64(b.Fast)))
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return fmt.Sprintf("not judged: fewer than %d hosts", stat.LeastPeers)
	}
	return "outliers: " + strings.Join(parts, "; ")
}

// timeText is a time and the half-width of its interval.
func timeText(s figure.Summary) string {
	text := study.Duration(s.Median)
	if s.HasInterval() && s.Low > 0 {
		text += fmt.Sprintf(" ±%.0f%%", math.Ceil(100*(max(s.High/s.Median, s.Median/s.Low)-1)))
	}
	return text
}

// scoresTable has a row for each host of a group: the comparison of each of its parts with its peers.
func scoresTable(f fleet.Fleet, g fleet.Group) study.Table {
	t := study.Table{Title: "hosts", Head: []string{"host", "begun", "rounds"}}
	for _, b := range g.Bounds {
		t.Head = append(t.Head, string(b.Part), "interval", "")
	}
	for _, h := range f.Members(g) {
		row := []string{h.Name, h.StartedAt.Format(time.DateTime), fmt.Sprint(h.Rounds)}
		for _, b := range g.Bounds {
			cells := []string{study.Dash, study.Dash, ""}
			if i := slices.IndexFunc(h.Scores, func(s fleet.Score) bool { return s.Part == b.Part }); i >= 0 {
				s := h.Scores[i]
				cells = []string{study.Times(float64(s.Ratio)), study.Times(float64(s.Low)) + "…" + study.Times(float64(s.High)), string(s.Word)}
			}
			row = append(row, cells...)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func interval(s figure.Summary) string {
	if !s.HasInterval() {
		return study.Dash
	}
	return study.Duration(s.Low) + "…" + study.Duration(s.High)
}

// findings describes how an outlier differs from its group, one sentence each.
func findings(o fleet.Outlier) (lines []string) {
	for _, one := range o.Findings {
		if one.Word == fleet.WriteCache {
			lines = append(lines, fmt.Sprintf("write cache is %s, but %s on nearly all of its peers", one.Cache, one.Others))
			continue
		}
		how := partName(one.Score.Part) + " slower"
		if one.Word == fleet.FastSync {
			how = partName(one.Score.Part) + " too fast to be true"
		}
		line := fmt.Sprintf("%s: %s the time of its peers (%s…%s over %s, bound %s), most with %s: %s",
			how, study.Times(float64(one.Score.Ratio)), study.Times(float64(one.Score.Low)), study.Times(float64(one.Score.High)), count(one.Score.Cells, "cell"),
			study.Times(float64(one.Bound)), label(one.Time.Key), study.Duration(one.Time.Record.Median))
		if one.Time.Record.HasInterval() {
			line += fmt.Sprintf(" (%s)", interval(one.Time.Record))
		}
		line += fmt.Sprintf("; %s in its group", study.Duration(float64(one.Peers)))
		if one.Doubt != "" {
			line += "; " + one.Doubt
		}
		lines = append(lines, line)
	}
	return lines
}

// differences lists the first few facts for which most peers of an outlier have another value.
func differences(o fleet.Outlier, most int) string {
	if len(o.Differs) == 0 {
		return "it differs from its peers in none of the known facts"
	}
	var parts []string
	for _, d := range o.Differs[:min(most, len(o.Differs))] {
		share := fmt.Sprintf("%d of %d", d.Share, d.Of)
		if d.Share == d.Of {
			share = "its peers"
		}
		parts = append(parts, fmt.Sprintf("%s %s (%s: %s)", d.Name, d.Value, share, d.Peers))
	}
	text := "differs: " + strings.Join(parts, "; ")
	if n := len(o.Differs) - most; n > 0 {
		text += fmt.Sprintf("; %d more", n)
	}
	return text
}

// names lists the first few names.
func names(all []string, most int) string {
	if len(all) <= most {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %s more (--all)", strings.Join(all[:most], ", "), humanize.Grouped(int64(len(all)-most)))
}

// notes lists missing and doubtful hosts and results, each with at most `most` names.
func notes(f fleet.Fleet, most int) (lines []string) {
	var none []string
	for _, s := range f.Silent {
		if s.File == "" {
			none = append(none, s.Host)
		}
	}
	if len(none) > 0 {
		lines = append(lines, fmt.Sprintf("%s never answered: %s", count(len(none), "host"), names(none, most)))
	}
	var bad []string
	for _, s := range f.Silent {
		if s.File != "" {
			bad = append(bad, fmt.Sprintf("%s (%s: %s)", s.Host, s.File, s.Why))
		}
	}
	if len(bad) > 0 {
		lines = append(lines, fmt.Sprintf("%s can't be used: %s", count(len(bad), "file"), names(bad, max(1, most/3))))
	}
	if len(f.Unexpected) > 0 {
		lines = append(lines, fmt.Sprintf("%s answered and %s not expected: %s", count(len(f.Unexpected), "host"), isAre(len(f.Unexpected)), names(f.Unexpected, most)))
	}
	var older, overlap []string
	for _, o := range f.Older {
		text := fmt.Sprintf("%s (%s, not %s)", o.Host, o.Newer, o.File)
		if older = append(older, text); o.Overlaps {
			overlap = append(overlap, o.Host)
		}
	}
	if len(older) > 0 {
		lines = append(lines, fmt.Sprintf("%s not used, because the host has newer results: %s", count(len(older), "file"), names(older, max(1, most/3))))
	}
	if len(overlap) > 0 {
		lines = append(lines, fmt.Sprintf("doubtful: results under the same host name overlap in time, so perhaps several hosts share it: %s", names(slices.Compact(overlap), most)))
	}
	if programs := tally(f.Hosts, func(h fleet.Host) string { return h.Program }); len(programs) > 1 {
		lines = append(lines, "doubtful: the results are from several versions of holdfast, which may measure differently: "+names(programs, max(2, most/3)))
	}
	if unfinished := tally(f.Hosts, func(h fleet.Host) string {
		if h.Missing == "" {
			return ""
		}
		return h.Name
	}); len(unfinished) > 0 {
		lines = append(lines, fmt.Sprintf("incomplete runs, used as far as they go: %s", names(unfinished, most)))
	}
	for _, g := range f.Groups {
		if len(g.FastSync) > 0 {
			lines = append(lines, fmt.Sprintf("doubtful: syncs are faster than any disk can store data, on %d of %s of group %s: %s", len(g.FastSync), count(g.Hosts, "host"), g.Name, names(g.FastSync, most)))
		}
		if len(g.Caches) > 1 {
			var caches []string
			for value, n := range g.Caches {
				caches = append(caches, fmt.Sprintf("%s on %d", value, n))
			}
			slices.Sort(caches)
			lines = append(lines, fmt.Sprintf("write caches of group %s: %s", g.Name, strings.Join(caches, ", ")))
		}
	}
	return lines
}

func isAre(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// tally counts the values of hosts, the most frequent first. An empty value is not counted.
func tally(hosts []fleet.Host, of func(fleet.Host) string) (texts []string) {
	counts := map[string]int{}
	for _, h := range hosts {
		if value := of(h); value != "" {
			counts[value]++
		}
	}
	values := make([]string, 0, len(counts))
	for value := range counts {
		values = append(values, value)
	}
	slices.SortFunc(values, func(a, b string) int { return cmp.Or(counts[b]-counts[a], strings.Compare(a, b)) })
	for _, value := range values {
		if counts[value] > 1 {
			value = fmt.Sprintf("%s (%d hosts)", value, counts[value])
		}
		texts = append(texts, value)
	}
	return texts
}

// method explains the words.
func method(f fleet.Fleet) string {
	return fmt.Sprintf("A host has three scores: for syncs (policies whose Writes wait for a sync), disk bandwidth (other policies that sync, until all is durable) and memory (all others). A score is the median of the host's times divided by its group's; the worst score counts. "+
		"A host is an outlier if a score is at least %.0f %% off, and its interval is beyond the group's bound. "+
		"A fleet of equal hosts has an outlier with a probability of at most %.0f %%. "+
		"Groups of fewer than %d hosts are not judged. Times are for one record; ± is the 95 %% interval.",
		f.Threshold*100, f.Chance*100, stat.LeastPeers)
}
