package main

import (
	"cmp"
	"embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strings"
	"time"
)

const head = `# Programs of others over holdfast

` + "`go run -C dev/programs . -dir DIR`" + ` makes this page. Each program has two arms: *before* is the program as its users have it now, and *after* the same program with
holdfast below it, through the program's public interfaces alone. [` + "`dev/programs`" + `](../dev/programs) has the lines of both; a test holds that
both leave the same records.

- *Lines* counts what a user changes: removed (−) and added (+) lines in the function that sets the program up, and *new* lines elsewhere.
- *Time* and *CPU* are of one record, the final Close included, and what the arm after takes of that: the median of the ratios of the
  same rounds, and their range. Each arm is a process; a time counts only if all records are there.
- *Calls* are the system calls of files that a record takes, by strace, and the syncs among them, before and after.
- *A kill takes* and *a power cut takes*: the worst that was met. A child puts a record each half a millisecond and says when its
  own call has returned. It is killed, or its power is cut: of what no sync covers there is all, nothing or a part, as POSIX allows
  ([prove.md](prove.md#your-own-storage-code-in-its-tests)). *Everything* is
  all that was acknowledged, for more than 0.3 s. Some seconds of crashes are no proof: *may* is the most that a power cut may take by the
  promise of the arm *after*.

Where a log is written, the arm after has the policy ` + "`%v`" + `, and in the crashes a tenth of its
periods, ` + "`%v`" + `, which shows in seconds. A write by pwritev2 counts as a sync, too: ` + "`wal`" + ` makes it with
RWF_DSYNC.
`

// cannot says what was tried and has no place for the library.
const cannot = `
## Where it can't be put

- bbolt: ` + "`Options.OpenFile`" + ` returns an ` + "`*os.File`" + `, whose pages bbolt maps, and which it writes by WriteAt and syncs by its descriptor. There
  is no interface between. pebble has one, its ` + "`vfs.FS`" + `.
- glog: files are its own, and its package of sinks is internal. What is left is the pipe of its row.
- restic: the local backend is internal, so that its row has its steps.
`

// pageOf makes the page of the programs that have results.
func pageOf(all map[string]*measurement) (string, error) {
	changed, err := parseArms()
	if err != nil {
		return "", err
	}
	var times, loss, notes strings.Builder
	times.WriteString("\n| program | lines | time before | after | CPU before | after | calls | syncs |\n|---|---|--:|---|--:|---|--:|--:|\n")
	loss.WriteString("\n| program | a kill takes, before | after | a power cut takes, before | after | may |\n|---|---|---|---|---|---|\n")
	notes.WriteString("\n| program | what is exchanged | gain |\n|---|---|---|\n")
	for _, p := range programs {
		m := all[p.name]
		if m == nil {
			continue
		}
		lines, err := changed.lines(p)
		if err != nil {
			return "", err
		}
		b, a := m.Before, m.After
		fmt.Fprintf(&times, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", p.name, lines, figure(median(b.Time)), ratio(a.Time, b.Time),
			figure(median(b.CPU)), ratio(a.CPU, b.CPU), pair(b.Calls, a.Calls), pair(b.Syncs, a.Syncs))
		fmt.Fprintf(&loss, "| %s | %v | %v | %v | %v | %s |\n", p.name, b.Kill, a.Kill, b.Power, a.Power, p.promise)
		fmt.Fprintf(&notes, "| %s | %s | %s %s |\n", p.name, p.part, timeGained(a.Time, b.Time), p.gain)
	}
	return fmt.Sprintf(head, logPolicy, crashPolicy) + times.String() + loss.String() + notes.String() + slower(all) + cannot + "\n" + conditions(all), nil
}

// slower has the profiles of the rows whose arm after takes more time in all rounds.
func slower(all map[string]*measurement) string {
	var text strings.Builder
	for _, p := range programs {
		m := all[p.name]
		if m == nil || m.After.ByName == nil || ratios(m.After.Time, m.Before.Time)[0] <= 1 {
			continue
		}
		if text.Len() == 0 {
			text.WriteString("\n## Where it takes more\n\nThe system calls of a record, and their time, which strace makes longer:\n")
		}
		names := map[string]bool{}
		longest := func(name string) float64 { return max(m.Before.ByName[name].Time, m.After.ByName[name].Time) }
		for _, by := range []map[string]spent{m.Before.ByName, m.After.ByName} {
			for name, x := range by {
				if x.Calls >= 0.05 {
					names[name] = true
				}
			}
		}
		fmt.Fprintf(&text, "\n| %s: call | before | time | after | time |\n|---|--:|--:|--:|--:|\n", m.Program)
		for _, name := range slices.SortedFunc(maps.Keys(names), func(a, b string) int {
			return cmp.Or(cmp.Compare(longest(b), longest(a)), strings.Compare(a, b))
		}) {
			fmt.Fprintf(&text, "| %s |", name)
			for _, x := range []spent{m.Before.ByName[name], m.After.ByName[name]} {
				if x.Calls == 0 {
					text.WriteString(" – | – |")
				} else {
					fmt.Fprintf(&text, " %s | %s |", short(x.Calls), figure(x.Time))
				}
			}
			text.WriteString("\n")
		}
	}
	return text.String()
}

// conditions says when and beside what load the results were measured.
func conditions(all map[string]*measurement) string {
	var days, loads []string
	rounds := 0
	for _, m := range all {
		days, loads, rounds = append(days, m.Day), append(loads, m.Load), max(rounds, len(m.Before.Time))
	}
	if len(days) == 0 {
		return "Nothing was measured yet.\n"
	}
	slices.Sort(days)
	slices.SortFunc(loads, func(a, b string) int {
		var x, y float64
		_, _ = fmt.Sscan(a, &x)
		_, _ = fmt.Sscan(b, &y)
		return int(1000 * (x - y))
	})
	when := days[0]
	if last := days[len(days)-1]; last != when {
		when += " to " + last
	}
	return fmt.Sprintf("Measured %s in up to %d rounds, beside loads of %s to %s; 2 virtual CPUs, Linux, ext4.\n", when, rounds, loads[0], loads[len(loads)-1])
}

func figure(ns float64) string {
	d := time.Duration(ns)
	digits := time.Duration(1)
	for d/digits >= 1000 {
		digits *= 10
	}
	return d.Round(digits).String()
}

func ratio(a, b []float64) string {
	all := ratios(a, b)
	return fmt.Sprintf("%.2f (%.2f–%.2f)", median(all), all[0], all[len(all)-1])
}

// timeGained says whether all rounds agree that the arm after takes less time.
func timeGained(after, before []float64) string {
	switch all := ratios(after, before); {
	case all[len(all)-1] < 1:
		return "Less time."
	case all[0] > 1:
		return "**No gain in time:** it takes more."
	}
	return "**No gain in time** was shown."
}

func pair(before, after float64) string {
	if before < 0 {
		return "–"
	}
	return short(before) + " → " + short(after)
}

func short(x float64) string {
	switch {
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 1:
		return fmt.Sprintf("%.1f", x)
	case x < 0.0005:
		return "0"
	}
	return fmt.Sprintf("%.1g", x)
}

//go:embed *.go
var source embed.FS

// declarations are the lines of those of this package, by their names.
type declarations map[string][]string

// parseArms returns the lines of all functions and types. A type has its methods with it.
func parseArms() (declarations, error) {
	all := declarations{}
	names, err := source.ReadDir(".")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := source.ReadFile(name.Name())
		if err != nil {
			return nil, err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name.Name(), text, 0)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			lines := strings.Split(string(text[set.Position(d.Pos()).Offset:set.Position(d.End()).Offset]), "\n")
			all[nameOf(d)] = append(all[nameOf(d)], lines...)
		}
	}
	return all, nil
}

// nameOf is a function's name, that of a method's type, or that of a group's first type.
func nameOf(d ast.Decl) string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return d.Name.Name
		}
		of := d.Recv.List[0].Type
		if star, ok := of.(*ast.StarExpr); ok {
			of = star.X
		}
		if name, ok := of.(*ast.Ident); ok {
			return name.Name
		}
	case *ast.GenDecl:
		if t, ok := d.Specs[0].(*ast.TypeSpec); ok {
			return t.Name.Name
		}
	}
	return ""
}

// lines says how a program's arms differ.
func (all declarations) lines(p program) (string, error) {
	before, after := all[p.id+"Before"], all[p.id+"After"]
	if before == nil || after == nil {
		return "", fmt.Errorf("%s: there are no functions %sBefore and %sAfter", p.name, p.id, p.id)
	}
	same := common(before[1:], after[1:]) // but their names
	text := fmt.Sprintf("−%d +%d", len(before)-1-same, len(after)-1-same)
	more := 0
	for _, name := range p.more {
		if all[name] == nil {
			return "", fmt.Errorf("%s: there is no declaration %s", p.name, name)
		}
		more += len(all[name])
	}
	if more > 0 {
		text += fmt.Sprintf(", %d new", more)
	}
	return text, nil
}

// common is how many lines the longest common subsequence has.
func common(a, b []string) int {
	row := make([]int, len(b)+1)
	for _, x := range a {
		before := 0
		for j, y := range b {
			above := row[j+1]
			switch {
			case strings.TrimSpace(x) == strings.TrimSpace(y):
				row[j+1] = before + 1
			default:
				row[j+1] = max(row[j+1], row[j])
			}
			before = above
		}
	}
	return row[len(b)]
}
