package recorded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
	activity "github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
)

// longest is how long a check takes.
const longest = 90 * time.Second

// Kind returns the kind that runs, in short, what the pages claim, by the kinds that are given.
func Kind(kinds ...command.Kind) command.Kind {
	return command.Kind{
		Name: "check", Does: fmt.Sprintf("what the pages claim, in at most %v: fails where a claim is refuted here", longest),
		Run: func(ctx context.Context, args []string, stdout, stderr io.Writer) error {
			f := command.NewFlags("check", "bufio")
			if err := f.Read(args, stderr); err != nil {
				return err
			}
			return check(ctx, f, claims(tables()), kinds, watchOthers(), stdout, stderr)
		},
	}
}

func claims(all []table) (list []claim) {
	for _, t := range all {
		list = append(list, t.claims...)
	}
	return list
}

// check runs what the claims need. Others returns which share of the CPUs other programs have had.
func check(ctx context.Context, f *command.Flags, list []claim, kinds []command.Kind, others func() float64, stdout, stderr io.Writer) error {
	list = slices.DeleteFunc(slices.Clone(list), func(c claim) bool {
		return !f.Pick.MatchString(c.says + " " + strings.Join(c.groups, " ") + " " + c.arm)
	})
	if len(list) == 0 {
		return command.Misuse("-run=%v matches no claim; leave it out for all", f.Pick)
	}
	recorded, err := readAll(measured)
	if err != nil {
		return err
	}
	here := machine{name: "this machine", groups: map[string]group{}}
	deadline := time.Now().Add(longest)
	// Few groups get rounds enough for an interval. The others follow while there is time.
	worst, rest := apart(list, recorded)
	for _, part := range [][]claim{worst, rest} {
		var ran []command.Kind
		for _, k := range kinds {
			if pattern(part, k.Name) != "" {
				ran = append(ran, k)
			}
		}
		for i, k := range ran {
			share := time.Until(deadline) / time.Duration(len(ran)-i)
			if err := here.measure(ctx, k, f, pattern(part, k.Name), share, stderr); err != nil {
				return err
			}
		}
	}
	return judge(list, here, others(), stdout)
}

// calm is the share of the CPUs that other programs may have where a claim is refuted. A kernel that writes back takes a few percent.
const calm = 0.15

// watchOthers returns a function that returns which share of the CPUs others have had since then, or 0 where that is not known.
func watchOthers() func() float64 {
	all := activity.Observe(".")
	used := func() (time.Duration, bool) {
		a := all.Read()
		if a.CPUBusy == nil || a.CPUSteal == nil {
			return 0, false
		}
		return *a.CPUBusy + *a.CPUSteal - command.CPUTime(), true
	}
	begun := time.Now()
	before, known := used()
	return func() float64 {
		after, still := used()
		if !known || !still {
			return 0
		}
		return max(0, (after-before).Seconds()/time.Since(begun).Seconds()/float64(runtime.NumCPU()))
	}
}

// measured has the recorded runs, from this module's directory.
const measured = "../../docs/measured/peers"

// apart divides the groups of each claim into the one that was worst in the recorded runs, and the others.
func apart(list []claim, recorded []machine) (worst, others []claim) {
	for _, c := range list {
		least, _, ok := c.lowest(recorded)
		if !ok {
			least.group = c.groups[0]
		}
		first, rest := c, c
		first.groups = []string{least.group}
		rest.groups = slices.DeleteFunc(slices.Clone(c.groups), func(g string) bool { return g == least.group })
		worst, others = append(worst, first), append(others, rest)
	}
	return worst, others
}

// pattern matches the arms of a kind that the claims need.
func pattern(list []claim, kind string) string {
	var arms []string
	for _, c := range list {
		for _, g := range c.groups {
			if c.kind == kind {
				arms = append(arms, strings.ReplaceAll(regexp.QuoteMeta(g+"/"+c.arm), `\*`, ".*"))
			}
		}
	}
	if len(arms) == 0 {
		return ""
	}
	return "^(" + strings.Join(arms, "|") + ")$"
}

// measure runs a kind for a time, in short trials. What it has complete rounds of counts.
func (m *machine) measure(ctx context.Context, k command.Kind, f *command.Flags, arms string, most time.Duration, stderr io.Writer) error {
	if most <= 0 {
		return nil
	}
	short, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	var printed bytes.Buffer
	err := k.Run(short, []string{"-quick", "-rounds", fmt.Sprint(f.Count), "-seed", fmt.Sprint(f.Seed), "-dir", f.Dir, "-run", arms}, &printed, stderr)
	if err != nil && (ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded)) {
		return fmt.Errorf("%s: %w", k.Name, err)
	}
	return m.read(&printed)
}

// judge prints what came of each claim, and fails where one is refuted. Where others had a share of the CPUs nothing is: two
// arms that differ by what they wait for do not lose the same by that.
func judge(list []claim, here machine, others float64, stdout io.Writer) error {
	fmt.Fprintf(stdout, "%s; other programs had %.0f %% of the CPUs meanwhile.\n\n# What the pages claim, here\n\n| claim | at least | here | |\n|---|--:|--:|---|\n", command.Machine(), others*100)
	refuted, held, open := 0, 0, 0
	for _, c := range list {
		found := c.in(here)
		for _, f := range found {
			word := "not proven"
			switch {
			case c.refutes(f) && others > calm:
				word = "below, beside load"
				refuted++
			case c.refutes(f):
				word = "**refuted**"
				refuted++
			case c.supports(f):
				word = "holds"
				held++
			default:
				open++
			}
			fmt.Fprintf(stdout, "| %s: `%s/%s` | %.2f | %v | %s |\n", c.says, f.group, c.arm, c.least, f.ratio, word)
		}
		if len(found) < len(c.groups) {
			fmt.Fprintf(stdout, "| %s | %.2f | %d of %d groups not measured in time | |\n", c.says, c.least, len(c.groups)-len(found), len(c.groups))
		}
	}
	fmt.Fprintf(stdout, "\nRatios of time to ours with 95 %% intervals. *Refuted*: the whole interval is below the claim, by more than the same code twice differs by.\n\n%d hold, %d are below, %d are not proven.\n", held, refuted, open)
	switch {
	case refuted+held == 0:
		return fmt.Errorf("nothing is proven here, beside other programs that had %.0f %% of the CPUs: repeat it while they rest", others*100)
	case refuted > 0 && others > calm:
		return fmt.Errorf("%d claims are below here, beside other programs that had %.0f %% of the CPUs: repeat it while they rest", refuted, others*100)
	case refuted > 0:
		return fmt.Errorf("%d claims are refuted here: correct the page, or mend what is slower (%w)", refuted, command.ErrFailed)
	}
	return nil
}
