// Package crash crashes databases, git and shell scripts, and prints which of them lose what they
// had acknowledged, beside what they document.
//
// Each works in a directory of its own and says "ack N" when its own call for record N has returned.
// It is killed; its system calls fail; its power is cut, which takes away all that it has not synced.
// See docs/prove.md.
//
// Start with programs.
package crash

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
	"github.com/holdfast-go/holdfast/internal/crash"
)

// Kind crashes programs of others.
var Kind = command.Kind{
	Name:  "crash",
	Does:  "what bbolt, badger, pebble, SQLite, git and shell scripts lose of what they acknowledged: kill, faults, power cuts",
	Run:   run,
	Carry: command.Order(serve),
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := flag.NewFlagSet("crash", flag.ContinueOnError)
	within := f.Duration("time", 2*time.Second, "about how long each program takes at each level")
	dir := f.String("dir", "", "where they write (default: the directory for temporary files)")
	pick := f.String("run", "", "only programs that match this regular expression")
	if err := command.Parse(f, args, stderr); err != nil {
		return err
	}
	chosen, err := regexp.Compile(*pick)
	if err != nil {
		return command.Misuse("-run: %w", err)
	}
	if !slices.ContainsFunc(programs, func(p program) bool { return chosen.MatchString(p.name + " " + p.setting) }) {
		return command.Misuse("-run=%s matches no program; names look like %s %s", *pick, programs[0].name, programs[0].setting)
	}
	fmt.Fprintln(stdout, "| program | setting | its documentation | kill | fault | power |")
	fmt.Fprintln(stdout, "|---|---|---|---|---|---|")
	var losses []string
	for _, p := range programs {
		if !chosen.MatchString(p.name + " " + p.setting) {
			continue
		}
		fmt.Fprintf(stdout, "| %s | %s | %s |", p.name, p.setting, p.documented)
		for _, level := range levels {
			v, err := p.crash(ctx, level, *dir, *within)
			switch {
			case errors.Is(err, errNotJudged):
				fmt.Fprint(stdout, " – |")
				fmt.Fprintf(stderr, "%s, %s, level %s: %v\n", p.name, p.setting, level, err)
			case err != nil:
				return fmt.Errorf("%s, %s, level %s: %w", p.name, p.setting, level, err)
			case v.Failure != nil:
				cell := "**does not open**"
				if v.Tally.Lost > 0 {
					cell = "**loses**"
				}
				fmt.Fprintf(stdout, " %s |", cell)
				losses = append(losses, fmt.Sprintf("- %s, %s, level %s: %s", p.name, p.setting, level, firstWords(v.Failure.Words)))
			case v.Tally.Acknowledged < 10:
				fmt.Fprint(stdout, " hardly judged |")
			default:
				fmt.Fprintf(stdout, " held: %d |", v.Tally.Acknowledged)
			}
		}
		fmt.Fprintln(stdout)
	}
	fmt.Fprintf(stdout, "\n%s\n", strings.Join(losses, "\n"))
	return nil
}

// firstWords returns the first line of the findings, shortened if it is long.
func firstWords(words string) string {
	const most = 300
	words, _, _ = strings.Cut(words, "\n")
	if len(words) > most {
		words = words[:most] + "…"
	}
	return words
}

// levels are the levels at which each program is crashed.
var levels = []crash.Level{crash.Kill, crash.Fault, crash.PowerCut}

// errNotJudged says that a level says nothing about a program.
var errNotJudged = errors.New("not judged")

// crash crashes a program at a level.
func (p program) crash(ctx context.Context, level crash.Level, dir string, within time.Duration) (*crash.Verdict, error) {
	if p.mapped && level != crash.Kill {
		return nil, fmt.Errorf("%w: it writes through mapped memory, which no supervisor sees", errNotJudged)
	}
	if p.costly && level == crash.Fault {
		return nil, fmt.Errorf("%w: it would take minutes", errNotJudged)
	}
	if p.needs != "" {
		if _, err := exec.LookPath(p.needs); err != nil {
			return nil, fmt.Errorf("%w: %w", errNotJudged, err)
		}
	}
	if level != crash.Kill {
		if why := crash.CanSupervise(exec.CommandContext(ctx, "true")); why != "" {
			return nil, fmt.Errorf("%w: %s", errNotJudged, why)
		}
	}
	if p.slow {
		within *= 5
	}
	c := crash.Program{Command: p.command, Read: p.read, Dir: dir, Time: within, Seed: rand.Uint64(), Level: level, Naming: true}
	if p.open != nil {
		reader, err := command.Child(ctx, "crash", order{Program: p.name + " " + p.setting, Read: true})
		if err != nil {
			return nil, err
		}
		c.Read = "'" + strings.Join(reader.Args, "' '") + "'"
		c.Start = func(ctx context.Context, dir string) *exec.Cmd {
			cmd, err := command.Child(ctx, "crash", order{Program: p.name + " " + p.setting})
			if err != nil {
				cmd = &exec.Cmd{Err: err}
			}
			cmd.Dir = dir
			cmd.Env = append(cmd.Environ(), "TMPDIR="+dir) // where renameio may put its temporary files: a trace is of one directory
			return cmd
		}
	}
	v, err := c.Prove(ctx)
	if err == nil && v.Unknown != "" {
		return nil, fmt.Errorf("%w: %s", errNotJudged, v.Unknown)
	}
	return v, err
}

// An order is a child process's task in its directory.
type order struct {
	Program string
	Read    bool
}

// serve appends records after the existing ones until it is killed, or prints the numbers of the
// existing ones.
func serve(o order, out io.Writer) (any, error) {
	for _, p := range programs {
		if p.name+" "+p.setting != o.Program {
			continue
		}
		s, err := p.open()
		if err != nil {
			return nil, err
		}
		n, err := s.read(func(n uint64) {
			if o.Read {
				fmt.Fprintln(out, n)
			}
		})
		for !o.Read && err == nil {
			if err = s.put(n + 1); err == nil {
				n++
				fmt.Fprintln(out, "ack", n)
			}
		}
		return nil, err
	}
	return nil, fmt.Errorf("there is no program %q", o.Program)
}
