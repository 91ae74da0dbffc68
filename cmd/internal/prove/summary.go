package prove

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/crash/powercut"
)

// mostLines is how many lines a run without --all prints, if nothing is broken or not known.
const mostLines = 30

// A part is the subject of one table of the page: a level, and at level power a file system.
type part struct {
	level crash.Level
	kind  string
}

// partsOf returns the parts of verdicts, in their order.
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

// name is the part's name in the heads of the summary.
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

// A sum counts verdicts, without controls.
type sum struct {
	acknowledged, lost, crashes  int64
	broken, unknown, noTime, all int
	held, correct, caught, liars int
}

func sumOf(verdicts []*crash.Verdict) (s sum) {
	for _, v := range verdicts {
		ok := 0
		if v.Verdict == crash.Held {
			ok = 1
		}
		switch {
		case v.Control == "correct":
			s.correct, s.held = s.correct+1, s.held+ok
		case v.Control != "":
			s.liars, s.caught = s.liars+1, s.caught+ok
		default:
			s.all++
			s.acknowledged += v.Tally.Acknowledged
			s.lost += v.Tally.Lost
			s.crashes += crashesOf(v)
		}
		switch v.Verdict {
		case crash.Broken:
			s.broken++
		case crash.NotKnown:
			s.unknown++
		case crash.NoTime:
			s.noTime++
		}
	}
	return s
}

// crashesOf is how many crashes a verdict is of.
func crashesOf(v *crash.Verdict) int64 {
	switch v.Level {
	case crash.Kill:
		return int64(v.Kills)
	case crash.Fault, crash.Hostile:
		return int64(v.Faults)
	}
	return v.Tally.States
}

// tooBusy reports whether most verdicts are missing for want of time.
func (s sum) tooBusy() bool { return s.noTime > s.all/2 }

// answer is a run's result in a sentence.
func (s sum) answer() string {
	words := fmt.Sprintf("%s of %s lost in %s", cli.Grouped(s.lost), cli.CountText(s.acknowledged, "acknowledged record"), crashText(s.crashes))
	switch {
	case s.broken > 0:
		words = cli.CountText(int64(s.broken), "promise") + " broken: " + words
	case s.unknown > 0 && s.lost > 0:
		words = "not known whether a promise is broken: " + words
	}
	if s.correct+s.liars > 0 {
		words += fmt.Sprintf("; controls %d of %d held, liars %d of %d caught", s.held, s.correct, s.caught, s.liars)
	}
	if s.noTime > 0 {
		words += fmt.Sprintf("; %d of %s skipped: time ran out", s.noTime, cli.CountText(int64(s.all), "verdict"))
	}
	return words
}

func crashText(n int64) string {
	if n == 1 {
		return "1 crash"
	}
	return cli.Grouped(n) + " crashes"
}

// folded breaks a sentence into lines.
func folded(words string, columns int) string {
	var lines []string
	for _, word := range strings.Fields(words) {
		if n := len(lines); n > 0 && utf8.RuneCountInString(lines[n-1]+" "+word) <= columns {
			lines[n-1] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// levelsTable has a line for each level, with the lost part of the bytes in flight.
func levelsTable(verdicts []*crash.Verdict, columns int) string {
	levels := [][]string{{"level", "crashes", "acknowledged", "lost", "controls", "what is crashed"}}
	for _, p := range partsOf(verdicts) {
		s := sumOf(p.of(verdicts, func(*crash.Verdict) bool { return true }))
		controls := "-"
		if s.correct+s.liars > 0 {
			controls = fmt.Sprintf("%d/%d held, %d/%d caught", s.held, s.correct, s.caught, s.liars)
		}
		levels = append(levels, []string{p.name(), cli.Grouped(s.crashes), cli.Grouped(s.acknowledged), cli.Grouped(s.lost), controls, p.crashes()})
	}
	if lines := aligned(levels); widest(lines) > columns {
		for i, row := range levels {
			levels[i] = row[:5]
		}
	}
	return strings.Join(aligned(levels), "\n") + "\n"
}

// matrix is each level's verdict on each workload.
func matrix(verdicts []*crash.Verdict) string {
	rows := [][]string{{"states"}}
	var names []string
	parts, some := partsOf(verdicts), false
	for _, p := range parts {
		rows[0] = append(rows[0], p.name())
		for _, v := range p.of(verdicts, func(v *crash.Verdict) bool { return v.Control == "" }) {
			if !slices.Contains(names, v.Workload) {
				names = append(names, v.Workload)
			}
		}
	}
	for _, name := range names {
		row := []string{name}
		for _, p := range parts {
			text := judged(p.of(verdicts, func(v *crash.Verdict) bool { return v.Control == "" && v.Workload == name }))
			some = some || strings.HasSuffix(text, "*")
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	text := strings.Join(aligned(rows), "\n") + "\n"
	if some {
		text += "* --time ended before all policies were judged\n"
	}
	return text
}

// summary is a run's first output: the answer, a table of the levels, and the losses in flight.
func summary(verdicts []*crash.Verdict, columns int) string {
	text := folded(sumOf(verdicts).answer(), columns) + "\n" + levelsTable(verdicts, columns)
	for _, power := range []bool{false, true} {
		text += losses(verdicts, power, columns)
	}
	return text
}

// judged sums up a workload's verdicts: the worst of them, or the states in which it held.
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

// mostLosses is how many policies of a kind of crash the summary shows: the policies that lost most, one for each bound.
const mostLosses = 3

// losses shows the accepted and unacknowledged records that crashes of one kind took, if any, beside the allowed loss.
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
	head := "lost within the bound when a process ends"
	if power {
		head = "lost within the bound at a power cut"
	}
	rows := [][]string{{head, "most records", "bytes", "age", "allowed"}}
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
