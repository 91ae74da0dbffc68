package study

import (
	"fmt"
	"math"
	"strings"
)

func costsClaims() []Claim {
	return []Claim{
		rangeClaim("costs-memory", "a memory operation takes 1 to 10 ns", memoryLevel, loadRung, memoryRung),
		rangeClaim("costs-call", "a function call takes 1 to 5 ns", callLevel, callRung),
		rangeClaim("costs-empty", "an empty system call takes 50 to 100 ns", emptyLevel, emptyRung),
		rangeClaim("costs-io", "an I/O system call takes 1 to 5 µs", ioLevel, readByteRung, readPageRung, writeRung),
		{
			Name: "costs-seek", Source: fileIOExperiment, Says: "the disk takes 5 to 10 ms to find a place", Published: seekLevel.printed,
			Arms: []string{coldRung}, Judge: judgeSeek,
		},
		{
			Name: "costs-switch", Source: fileIOExperiment, Says: "the way into the kernel and back takes 1 to 3 µs", Published: switchLevel.printed,
			Arms: []string{emptyRung, threadRung}, Judge: judgeSwitch,
		},
		{
			Name: "costs-call-switches", Source: fileIOExperiment, Says: "a system call is a context switch", Published: switchLevel.name,
			Arms: []string{emptyRung, writeRung, threadRung}, Judge: judgeCallSwitches,
		},
		{
			Name: "costs-middle-layer", Source: fileIOExperiment, Says: "buffering targets the middle layer: it makes system calls fewer",
			Arms: []string{writeRung, bufferedRung}, Judge: judgeMiddleLayer,
		},
		{
			Name: "costs-not-the-disk", Source: fileIOExperiment, Says: "the most expensive operation is not the disk, it is the system call",
			Arms: []string{writeRung, syncRung, coldRung}, Judge: judgeNotTheDisk,
		},
	}
}

// rangeClaim is that some operations are all within a published range.
func rangeClaim(name, says string, l level, rungs ...string) Claim {
	return Claim{
		Name: name, Source: fileIOExperiment, Says: says, Published: l.printed, Arms: rungs,
		Judge: func(e Evidence) Finding { return e.judgeRange(l, rungs) },
	}
}

// judgeRange holds if all rungs are wholly within the range, and does not if one is
// wholly beyond it.
func (e Evidence) judgeRange(l level, rungs []string) Finding {
	var f Finding
	var texts, beyond []string
	f.Verdict = Holds
	for _, name := range rungs {
		one := e.judgeRung(l, name)
		if one.Measured != "" {
			texts = append(texts, labelled(rungs, name)+one.Measured)
		}
		switch {
		case one.Verdict == NotHere:
			beyond = append(beyond, one.Why)
			f.Verdict, f.Settle = NotHere, ""
		case one.Verdict == NotChecked && f.Verdict == Holds:
			f.Verdict, f.Why, f.Settle = NotChecked, one.Why, one.Settle
		}
	}
	f.Measured = strings.Join(texts, ", ")
	switch f.Verdict {
	case NotHere:
		f.Why = strings.Join(beyond, ", ")
	case Holds:
		f.Why = "the whole interval is within the range"
	}
	return f
}

// labelled names the rung where there are several.
func labelled(rungs []string, name string) string {
	if len(rungs) == 1 {
		return ""
	}
	return name + " "
}

func (e Evidence) judgeRung(l level, name string) Finding {
	if f, ok := e.unmeasured(name); ok {
		return f
	}
	m := figure(e.Summary(name, PerRecord), duration)
	if e.below(name) {
		m.low = 0
	}
	far := math.Round(10*max(l.least/m.value, m.value/l.most)) / 10
	side := "less than the range"
	if m.value > l.most {
		side = "more than the range"
	}
	f := m.judge(l.span, NotHere, "the whole interval is within the range",
		fmt.Sprintf("the %s takes %s, by a factor of %s", name, side, digits(far)))
	f.Measured = strings.TrimSuffix(e.costText(name), dash)
	return f
}

// unmeasured is the finding where a rung was not run.
func (e Evidence) unmeasured(rungs ...string) (Finding, bool) {
	for _, name := range rungs {
		if why := e.Missing(name); why != "" {
			return Finding{Verdict: NotChecked, Why: fmt.Sprintf("%s: %s", name, why)}, true
		}
	}
	return Finding{}, false
}

// judgeSeek asks for reads that are proven to have gone to the disk.
func judgeSeek(e Evidence) Finding {
	if f, ok := e.unmeasured(coldRung); ok {
		return f
	}
	m := figure(e.Summary(coldRung, PerRecord), duration)
	if why := whyNotCold(e.Trials(coldRung)); why != "" {
		return Finding{Measured: m.String(), Verdict: NotChecked, Why: "not proven cold: " + why, Settle: "--dir A_FOLDER_ON_A_DISK"}
	}
	kind := "this disk"
	if e.Fact("rotational") == "no" {
		kind = "this disk, which says that it has nothing that turns,"
	}
	side := "less"
	if m.value > seekLevel.most {
		side = "more"
	}
	return m.judge(seekLevel.span, NotHere, "a page from a random place takes as long as on a disk with a moving head",
		fmt.Sprintf("%s brings a page from a random place in %s time than that", kind, side))
}

// judgeSwitch takes the cheapest call there is, so that nothing but the way is timed.
func judgeSwitch(e Evidence) Finding {
	if f, ok := e.unmeasured(emptyRung); ok {
		return f
	}
	why := "the way into the kernel and back takes something else"
	if threads := e.Median(threadRung, PerRecord); !math.IsNaN(threads) {
		why = fmt.Sprintf("a call changes the processor's mode and not the process; two threads that wake each other, which is a context switch, take %s", duration(threads))
	}
	return figure(e.Summary(emptyRung, PerRecord), duration).judge(switchLevel.span, NotHere, "the way into the kernel and back takes as long as that", why)
}

// judgeCallSwitches counts them, where the thread switches show that they are
// counted. A thread of Go's own that sleeps now and then is no call's doing: less
// than one switch in ten calls is none.
func judgeCallSwitches(e Evidence) Finding {
	if f, ok := e.unmeasured(emptyRung, writeRung, threadRung); ok {
		return f
	}
	if seen := e.Median(threadRung, each(allSwitches)); !(seen > 0.5) {
		return Finding{Verdict: NotChecked, Why: "the system does not count all context switches"}
	}
	least := figure(e.Summary(emptyRung, each(voluntarySwitches)), digits)
	most := figure(e.Summary(writeRung, each(voluntarySwitches)), digits)
	if least.value > most.value {
		least, most = most, least
	}
	f := least.judge(atLeast(0.9), NotChecked, "the kernel counted a context switch for every call", "some calls came with a context switch and some did not")
	if most.high < 0.1 {
		f = Finding{Measured: most.String(), Verdict: NeverSo, Why: "the kernel counted next to none: a call changes the mode of the processor, and the same thread goes on"}
	}
	if f.Measured != "" {
		f.Measured += " a call"
	}
	return f
}

// judgeMiddleLayer asks that most of a record's cost goes away with its call.
func judgeMiddleLayer(e Evidence) Finding {
	if f, ok := e.unmeasured(writeRung, bufferedRung); ok {
		return f
	}
	calls := ""
	if n := e.Median(bufferedRung, each(Writes)); !math.IsNaN(n) {
		calls = fmt.Sprintf(" and with %s calls instead of 1", digits(n))
	}
	return ratio(e.Ratio(writeRung, bufferedRung, PerRecord)).judge(atLeast(2), NotHere,
		fmt.Sprintf("through a buffer a record costs less than half%s: what goes away is the call", calls),
		fmt.Sprintf("through a buffer%s a record costs more than half of what it does without", calls))
}

// judgeNotTheDisk sets the cheaper of the disk's operations against a write call.
func judgeNotTheDisk(e Evidence) Finding {
	if f, ok := e.unmeasured(writeRung); ok {
		return f
	}
	least := ratio(e.Ratio(syncRung, writeRung, PerRecord))
	if cold := ratio(e.Ratio(coldRung, writeRung, PerRecord)); whyNotCold(e.Trials(coldRung)) == "" && cold.value < least.value {
		least = cold
	}
	return least.judge(atMost(1), NotHere, "what waits for the disk costs no more than a call that does not",
		"one operation that waits for the disk costs as much as so many calls: it is the number of calls that made them dear, and none of them waited for the disk")
}
