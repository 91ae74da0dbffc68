package costs

import (
	"fmt"
	"math"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

var costsClaims = []study.Claim{
	rangeClaim("costs-memory", "a memory operation takes 1 to 10 ns", memoryLevel, loadRung, memoryRung),
	rangeClaim("costs-call", "a function call takes 1 to 5 ns", callLevel, callRung),
	rangeClaim("costs-empty", "an empty system call takes 50 to 100 ns", emptyLevel, emptyRung),
	rangeClaim("costs-io", "an I/O system call takes 1 to 5 µs", ioLevel, readByteRung, readPageRung, writeRung),
	{
		Name: "costs-seek", Says: "the disk takes 5 to 10 ms to find a place", Published: seekLevel.printed,
		Arms: []string{coldRung}, Decide: judgeSeek,
	},
	{
		Name: "costs-switch", Says: "the way into the kernel and back takes 1 to 3 µs", Published: switchLevel.printed,
		Arms: []string{emptyRung, threadRung}, Decide: judgeSwitch,
	},
	{
		Name: "costs-call-switches", Says: "a system call is a context switch", Published: switchLevel.name,
		Arms: []string{emptyRung, writeRung, threadRung}, Decide: judgeCallSwitches,
	},
	{
		Name: "costs-middle-layer", Says: "buffering targets the middle layer: it makes system calls fewer",
		Arms: []string{writeRung, bufferedRung}, Decide: judgeMiddleLayer,
	},
	{
		Name: "costs-not-the-disk", Says: "the most expensive operation is not the disk, it is the system call",
		Arms: []string{writeRung, syncRung, coldRung}, Decide: judgeNotTheDisk,
	},
}

// rangeClaim is that some operations are all within a published range.
func rangeClaim(name, says string, l level, rungs ...string) study.Claim {
	return study.Claim{
		Name: name, Says: says, Published: l.printed, Arms: rungs,
		Decide: func(e study.Evidence) study.Finding { return judgeRange(e, l, rungs) },
	}
}

// judgeRange holds if all rungs are wholly within the range, and does not if one is
// wholly beyond it.
func judgeRange(e study.Evidence, l level, rungs []string) study.Finding {
	var f study.Finding
	var texts, beyond []string
	f.Verdict = study.Holds
	for _, name := range rungs {
		one := judgeRung(e, l, name)
		if one.Measured != "" {
			texts = append(texts, labelled(rungs, name)+one.Measured)
		}
		switch {
		case one.Verdict == study.NotHere:
			beyond = append(beyond, one.Why)
			f.Verdict, f.Settle = study.NotHere, ""
		case one.Verdict != study.Holds && f.Verdict == study.Holds:
			f.Verdict, f.Why, f.Settle = one.Verdict, one.Why, one.Settle
		}
	}
	f.Measured = strings.Join(texts, ", ")
	switch f.Verdict {
	case study.NotHere:
		f.Why = strings.Join(beyond, ", ")
	case study.Holds:
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

func judgeRung(e study.Evidence, l level, name string) study.Finding {
	if f, ok := unmeasured(e, name); ok {
		return f
	}
	m := study.Figure(e.Summary(name, study.PerRecord), study.Duration)
	if isBelow(e, name) {
		m.Low = 0
	}
	far := math.Round(10*max(l.Least/m.Value, m.Value/l.Most)) / 10
	side := "less than the range"
	if m.Value > l.Most {
		side = "more than the range"
	}
	f := m.Judge(l.Span, study.NotHere, "the whole interval is within the range",
		fmt.Sprintf("the %s takes %s, by a factor of %s", name, side, study.Digits(far)))
	f.Measured = strings.TrimSuffix(costText(e, name), study.Dash)
	return f
}

// unmeasured is the finding where a rung was not run.
func unmeasured(e study.Evidence, rungs ...string) (study.Finding, bool) {
	for _, name := range rungs {
		if why := e.Missing(name); why != "" {
			return study.Finding{Verdict: study.NotChecked, Why: fmt.Sprintf("%s: %s", name, why)}, true
		}
	}
	return study.Finding{}, false
}

// judgeSeek asks for reads that are proven to have gone to the disk.
func judgeSeek(e study.Evidence) study.Finding {
	if f, ok := unmeasured(e, coldRung); ok {
		return f
	}
	m := study.Figure(e.Summary(coldRung, study.PerRecord), study.Duration)
	if why := whyNotCold(e.Trials(coldRung)); why != "" {
		return study.Finding{Measured: m.String(), Verdict: study.NotChecked, Why: "not proven cold: " + why, Settle: "--dir A_DIRECTORY_ON_A_DISK"}
	}
	kind := "this disk"
	if e.Fact("rotational") == "no" {
		kind = "this disk, which says that it has nothing that turns,"
	}
	side := "less"
	if m.Value > seekLevel.Most {
		side = "more"
	}
	return m.Judge(seekLevel.Span, study.NotHere, "a page from a random place takes as long as on a disk with a moving head",
		fmt.Sprintf("%s brings a page from a random place in %s time than that", kind, side))
}

// judgeSwitch takes the cheapest call there is, so that nothing but the way is timed.
func judgeSwitch(e study.Evidence) study.Finding {
	if f, ok := unmeasured(e, emptyRung); ok {
		return f
	}
	why := "the way into the kernel and back takes another time"
	if threads := e.Median(threadRung, study.PerRecord); !math.IsNaN(threads) {
		why = fmt.Sprintf("a call changes the processor's mode and not the process; two threads that wake each other, which is a context switch, take %s", study.Duration(threads))
	}
	return study.Figure(e.Summary(emptyRung, study.PerRecord), study.Duration).Judge(switchLevel.Span, study.NotHere, "the way into the kernel and back takes as long as that", why)
}

// judgeCallSwitches counts them, where the thread switches show that they are
// counted. A thread of Go's own that sleeps now and then is no call's doing: less
// than one switch in ten calls is none.
func judgeCallSwitches(e study.Evidence) study.Finding {
	if f, ok := unmeasured(e, emptyRung, writeRung, threadRung); ok {
		return f
	}
	if seen := e.Median(threadRung, study.Each(study.AllSwitches)); !(seen > 0.5) {
		return study.Finding{Verdict: study.NotChecked, Why: "the system does not count all context switches"}
	}
	least := study.Figure(e.Summary(emptyRung, study.Each(study.VoluntarySwitches)), study.Digits)
	most := study.Figure(e.Summary(writeRung, study.Each(study.VoluntarySwitches)), study.Digits)
	if least.Value > most.Value {
		least, most = most, least
	}
	f := least.Judge(study.AtLeast(0.9), study.NotChecked, "the kernel counted a context switch for every call", "some calls came with a context switch and some did not")
	if most.High < 0.1 {
		f = study.Finding{Measured: most.String(), Verdict: study.NeverSo, Why: "the kernel counted next to none: a call changes the mode of the processor, and the same thread goes on"}
	}
	if f.Measured != "" {
		f.Measured += " a call"
	}
	return f
}

// judgeMiddleLayer asks that most of a record's cost goes away with its call.
func judgeMiddleLayer(e study.Evidence) study.Finding {
	if f, ok := unmeasured(e, writeRung, bufferedRung); ok {
		return f
	}
	calls := ""
	if n := e.Median(bufferedRung, study.Each(study.Writes)); !math.IsNaN(n) {
		calls = fmt.Sprintf(" and with %s calls instead of 1", study.Digits(n))
	}
	return study.Ratio(e.Ratio(writeRung, bufferedRung, study.PerRecord)).Judge(study.AtLeast(2), study.NotHere,
		fmt.Sprintf("through a buffer a record costs less than half%s: what goes away is the call", calls),
		fmt.Sprintf("through a buffer%s a record costs more than half of what it does without", calls))
}

// judgeNotTheDisk sets the cheaper of the disk's operations against a write call.
func judgeNotTheDisk(e study.Evidence) study.Finding {
	if f, ok := unmeasured(e, writeRung); ok {
		return f
	}
	least := study.Ratio(e.Ratio(syncRung, writeRung, study.PerRecord))
	if cold := study.Ratio(e.Ratio(coldRung, writeRung, study.PerRecord)); whyNotCold(e.Trials(coldRung)) == "" && cold.Value < least.Value {
		least = cold
	}
	return least.Judge(study.AtMost(1), study.NotHere, "what waits for the disk costs no more than a call that does not",
		"one operation that waits for the disk costs as much as this many calls: calls are dear by their number, and none of these waited for the disk")
}
