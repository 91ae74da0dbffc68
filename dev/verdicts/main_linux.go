// Command verdicts asks the judge of prove about some forty small programs whose truth is known, and prints what it said of each.
//
//	go -C dev run ./verdicts                    all, 10 s a cell
//	go -C dev run ./verdicts -time 1s -run uring
//
// A program stores the records 1, 2, 3 and so on below the working directory, and prints "ack N". It is judged at levels kill, fault
// and power (the model of POSIX), as prove --cmd does it. Exit code 1 is a wrong verdict: *not known* is none.
//
// The programs are in programs.go. To add one, write it there and say what is true of it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/crash/syscallfault"
)

var levels = [...]crash.Level{crash.Kill, crash.Fault, crash.PowerCut}

// atOnce is how many cells are judged at a time: they wait for processes.
const atOnce = 4

func main() {
	syscallfault.Launch()
	serve()
	within := flag.Duration("time", 10*time.Second, "about how long each program takes at each level")
	pick := flag.String("run", "", "only programs whose name matches this regular expression")
	flag.Parse()
	right, err := judgeAll(context.Background(), os.Stdout, *pick, *within)
	if err != nil {
		fmt.Fprintln(os.Stderr, "verdicts:", err)
		os.Exit(2)
	}
	if !right {
		os.Exit(1)
	}
}

// serve does the work of a program, or of its reader, and ends this process, if it was started for that.
func serve() {
	if len(os.Args) != 3 || os.Args[1] != "run" && os.Args[1] != "read" {
		return
	}
	p := find(os.Args[2])
	do := func() error { return p.run(func(n int) { fmt.Println("ack", n) }) }
	if os.Args[1] == "read" {
		do = func() error { return p.reads(func(n int) { fmt.Println(n) }) }
	}
	if err := do(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// judgeAll prints the table, and reports whether no verdict was wrong.
func judgeAll(ctx context.Context, out io.Writer, pick string, within time.Duration) (right bool, err error) {
	chosen, err := regexp.Compile(pick)
	if err != nil {
		return false, err
	}
	table := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	fmt.Fprintln(table, "| program |\ttruth |\tkill |\tfault |\tpower |\n|---|\t---|\t---|\t---|\t---|")
	verdicts := make([][len(levels)]*crash.Verdict, len(programs))
	errs := make([]error, len(programs)*len(levels))
	crash.Share(slices.Repeat([]int{1}, len(errs)), atOnce, time.Time{}, func(n int, _ time.Duration) bool {
		p, i := programs[n/len(levels)], n%len(levels)
		if chosen.MatchString(p.name) {
			if verdicts[n/len(levels)][i], errs[n] = p.judge(ctx, levels[i], within); errs[n] != nil {
				errs[n] = fmt.Errorf("%s, level %s: %w", p.name, levels[i], errs[n])
			}
		}
		return true
	})
	count, wrong, unknown := 0, 0, 0
	for at, p := range programs {
		if verdicts[at][0] == nil {
			continue
		}
		count++
		fmt.Fprintf(table, "| %s |\t%s |", p.name, p.truth)
		for i, v := range verdicts[at] {
			mark := ""
			switch {
			case v == nil: // its error is told
				continue
			case v.Verdict == crash.NotKnown:
				unknown++
				mark = ": " + v.Unknown
			case p.wrong(i, v):
				wrong++
				mark = " (WRONG)"
				if v.Failure != nil {
					mark = fmt.Sprintf(" (WRONG: %s)", v.Failure.Words)
				}
			}
			fmt.Fprintf(table, "\t%s%s |", v.Verdict, mark)
		}
		fmt.Fprintln(table)
	}
	fmt.Fprintf(table, "\n%d programs, %d verdicts: %d wrong, %d not known\n", count, count*len(levels), wrong, unknown)
	return wrong == 0, errors.Join(errors.Join(errs...), table.Flush())
}

// judge makes a verdict, as prove --cmd does.
func (p program) judge(ctx context.Context, level crash.Level, within time.Duration) (*crash.Verdict, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := crash.Program{Command: fmt.Sprintf("exec '%s' run '%s'", self, p.name), Read: fmt.Sprintf("exec '%s' read '%s'", self, p.name),
		Time: within, Seed: rand.Uint64(), Level: level}
	return c.Prove(ctx)
}

// wrong reports whether a verdict contradicts what is true.
func (p program) wrong(level int, v *crash.Verdict) bool {
	keeps := p.keeps[level]
	return v.Verdict == crash.Held && keeps == no || v.Verdict == crash.Broken && keeps == yes
}
