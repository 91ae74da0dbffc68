package prove

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/crash/powercut"
)

// mostLines is how many lines the rows of all verdicts may take. Where they take more, a summary
// stands in their place, unless --all is given.
const mostLines = 60

// A part is what a table of the page is of: a level, and at level power a file system.
type part struct {
	level crash.Level
	kind  string
}

// partsOf are those of verdicts, in their order.
func partsOf(verdicts []*crash.Verdict) (parts []part) {
	for _, v := range verdicts {
		if p := (part{v.Level, v.FS}); !slices.Contains(parts, p) {
			parts = append(parts, p)
		}
	}
	return parts
}

// of returns the verdicts of a part for which want returns true.
func (p part) of(verdicts []*crash.Verdict, want func(*crash.Verdict) bool) (found []*crash.Verdict) {
	for _, v := range verdicts {
		if v.Level == p.level && v.FS == p.kind && want(v) {
			found = append(found, v)
		}
	}
	return found
}

// name is what the heads of the summary say.
func (p part) name() string {
	if p.kind != "" {
		return p.kind
	}
	return string(p.level)
}

// crashes says what a level crashes.
func (p part) crashes() string {
	switch {
	case p.kind == powercut.Model:
		return "a model of what POSIX promises"
	case p.level == crash.PowerCut:
		return "its disk, by power cuts"
	}
	return map[crash.Level]string{
		crash.Memory: "a disk in memory", crash.Kill: "processes, by SIGKILL",
		crash.Fault: "system calls of processes", crash.Hostile: "the directory, by strangers",
	}[p.level]
}

// summary is one page of many verdicts: what each level judged, what of each workload, and what each
// policy lost beside what it allows.
func summary(verdicts []*crash.Verdict, columns int) string {
	levels := [][]string{{"level", "states", "acknowledged", "lost", "controls", "what is crashed"}}
	matrix := [][]string{{"states"}}
	var names []string
	parts, some := partsOf(verdicts), false
	for _, p := range parts {
		matrix[0] = append(matrix[0], p.name())
		var all crash.Tally
		for _, v := range p.of(verdicts, func(v *crash.Verdict) bool { return v.Control == "" }) {
			all.Add(v.Tally)
			if !slices.Contains(names, v.Workload) {
				names = append(names, v.Workload)
			}
		}
		correct := p.of(verdicts, func(v *crash.Verdict) bool { return v.Control == "correct" })
		liars := p.of(verdicts, func(v *crash.Verdict) bool { return v.Control != "" && v.Control != "correct" })
		levels = append(levels, []string{p.name(), cli.Grouped(all.States), cli.Grouped(all.Acknowledged), cli.Grouped(all.Lost),
			held(correct) + " held, " + held(liars) + " caught", p.crashes()})
	}
	for _, name := range names {
		row := []string{name}
		for _, p := range parts {
			text := judged(p.of(verdicts, func(v *crash.Verdict) bool { return v.Control == "" && v.Workload == name }))
			some = some || strings.HasSuffix(text, "*")
			row = append(row, text)
		}
		matrix = append(matrix, row)
	}
	var b strings.Builder
	if lines := aligned(levels); widest(lines) > columns {
		for i, row := range levels {
			levels[i] = row[:5]
		}
	}
	b.WriteString(strings.Join(aligned(levels), "\n") + "\n\n" + strings.Join(aligned(matrix), "\n") + "\n")
	if some {
		b.WriteString("* --time was over before all policies had been judged\n")
	}
	for _, power := range []bool{false, true} {
		b.WriteString(losses(verdicts, power, columns))
	}
	return b.String() + "\na row for each verdict: --all, or -o FILE\n"
}

// held counts the verdicts that are as they must be, of how many.
func held(verdicts []*crash.Verdict) string {
	n := 0
	for _, v := range verdicts {
		if v.Verdict == crash.Held {
			n++
		}
	}
	return fmt.Sprintf("%d/%d", n, len(verdicts))
}

// judged is what verdicts of a workload come to: the worst of them, or the states in which it held.
func judged(verdicts []*crash.Verdict) string {
	var states int64
	count := map[crash.Known]int{}
	for _, v := range verdicts {
		states += v.Tally.States
		count[v.Verdict]++
	}
	switch {
	case len(verdicts) == 0:
		return "-"
	case count[crash.Broken] > 0:
		return "BROKEN"
	case count[crash.NotKnown] > 0:
		return "not known"
	case count[crash.NoTime] == len(verdicts):
		return "no time"
	}
	text := cli.Grouped(states)
	if states >= 10_000 {
		text = cli.Grouped(states/1000) + "k"
	}
	if count[crash.NoTime] > 0 {
		text += "*"
	}
	return text
}

// mostLosses is how many policies of a kind of crash the summary shows: those that lost most, one for each bound.
const mostLosses = 4

// losses shows what crashes of one kind took of what had been accepted, where they took something, beside what is allowed.
func losses(verdicts []*crash.Verdict, power bool, columns int) string {
	type kind struct{ policy, allowed string }
	var kinds []kind
	lost := map[kind]crash.Extent{}
	for _, v := range verdicts {
		if v.Control != "" || v.Tally.Most.Records == 0 || power != (v.Level == crash.Memory || v.Level == crash.PowerCut) {
			continue
		}
		k := kind{policyText(v), v.Allowed}
		if !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
		x, more := lost[k], v.Tally.Most
		lost[k] = crash.Extent{Records: max(x.Records, more.Records), Bytes: max(x.Bytes, more.Bytes), Age: max(x.Age, more.Age)}
	}
	if len(kinds) == 0 {
		return ""
	}
	slices.SortStableFunc(kinds, func(a, b kind) int { return cmp.Compare(lost[b].Bytes, lost[a].Bytes) })
	var shown []kind
	for _, k := range kinds {
		if len(shown) < mostLosses && !slices.ContainsFunc(shown, func(s kind) bool { return s.allowed == k.allowed }) {
			shown = append(shown, k)
		}
	}
	slices.SortStableFunc(shown, func(a, b kind) int { return strings.Compare(a.policy, b.policy) })
	head := "most lost when a process ended"
	if power {
		head = "most lost at a power cut"
	}
	rows := [][]string{{head, "records", "bytes", "age", "allowed"}}
	for _, k := range shown {
		x := lost[k]
		rows = append(rows, []string{k.policy, cli.Grouped(x.Records), cli.BytesText(x.Bytes), x.Age.Round(time.Millisecond).String(), k.allowed})
	}
	lines := aligned(rows)
	if widest(lines) > columns {
		var short [][]string
		for _, row := range rows {
			short = append(short, row[:4])
		}
		if widest(aligned(short)) > columns {
			for i, row := range short {
				short[i] = slices.Concat(row[:1], row[2:])
			}
		}
		lines = nil
		for i, line := range aligned(short) {
			if lines = append(lines, line); i > 0 {
				lines = append(lines, "  allowed: "+rows[i][4])
			}
		}
	}
	return "\n" + strings.Join(lines, "\n") + "\n"
}
