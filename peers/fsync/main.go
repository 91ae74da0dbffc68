// Command fsync runs holdfast's cells that wait for the disk, fio and pg_test_fsync interleaved on
// one disk. It prints how their times compare. It shows whether our clock and our way to sync agree
// with theirs.
//
//	go run -C peers ./fsync -dir /directory/on/the/disk
//
// Each trial takes about a second and works on a new file in a new directory, which
// is removed at the end. A tool that is not installed is named and left out.
//
// Start with groups for what is compared.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/lab/stat"
	"github.com/holdfast-go/holdfast/internal/lab/trial"
	"github.com/holdfast-go/holdfast/peers/internal/command"
)

func main() { command.Main("fsync", runCommand) }

// options is what the command line says.
type options struct {
	pick   *regexp.Regexp
	rounds int
	length time.Duration
	seed   uint64
	dir    string
}

// shortest keeps fio's millisecond at 1 %.
const shortest = 100 * time.Millisecond

func parse(args []string, stderr io.Writer) (o options, err error) {
	f := flag.NewFlagSet("fsync", flag.ContinueOnError)
	pick := f.String("run", "", "run only the groups whose name, such as grow-8192, matches the `regexp`")
	f.DurationVar(&o.length, "trial", time.Second, "how long a trial is; pg_test_fsync's are whole seconds")
	f.IntVar(&o.rounds, "rounds", stat.VerdictRounds, "how many times each arm runs; fewer than 10 prove nothing")
	f.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "the seed of the order")
	f.StringVar(&o.dir, "dir", ".", "write in a new directory in `dir`, removed at the end")
	if err := command.Parse(f, args, stderr); err != nil {
		return o, err
	}
	switch {
	case o.rounds < 1:
		return o, command.Misuse("-rounds=%d: give at least 1", o.rounds)
	case o.length < shortest:
		return o, command.Misuse("-trial=%v: give at least %v, fio counts milliseconds", o.length, shortest)
	}
	if o.pick, err = regexp.Compile(*pick); err != nil {
		return o, command.Misuse("-run: %w", err)
	}
	return o, nil
}

// runCommand is main without the process around it.
func runCommand(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	tools := findTools()
	all := picked(groups(tools), o.pick)
	if len(all) == 0 {
		return command.Misuse("-run=%v matches no group; the groups are %s", o.pick, names(groups(tools)))
	}
	ground, err := trial.OpenWorkDir(o.dir, false)
	if err != nil {
		return fmt.Errorf("-dir: %w", err)
	}
	defer func() { err = errors.Join(err, ground.Close()) }()
	s := &site{ground: ground, length: o.length}
	for _, t := range tools {
		if t.path == "" {
			fmt.Fprintf(stderr, "fsync: %s is left out: it is not installed (Debian: apt-get install %s)\n", t.name, t.debian)
		}
	}
	return o.measure(ctx, s, all, tools, stdout, stderr)
}

// room is what a trial may take: a file that grows for a second on a disk that is
// faster than any we know.
const room = 2 << 30

func (o options) measure(ctx context.Context, s *site, all []*group, tools []tool, stdout, stderr io.Writer) error {
	if err := s.ground.Need(room); err != nil {
		return err
	}
	fmt.Fprintf(stderr, "fsync: %d arms of about %v, %d rounds after a warm-up, in %s; seed %d\n", command.Arms(all), s.length, o.rounds, s.ground.Dir(), o.seed)
	r := command.Rounds{Name: "fsync", Count: o.rounds, Seed: o.seed, Warm: true, Talk: stderr}
	rounds, err := run(ctx, s, all, r)
	if rounds > 0 {
		fmt.Fprintf(stdout, "%s\n", conditions(s, r, rounds, tools))
		writeTables(stdout, all)
	}
	if err != nil {
		return err
	}
	return command.Failed(all)
}

// conditions states what the figures were taken under.
func conditions(s *site, r command.Rounds, complete int, tools []tool) string {
	text := fmt.Sprintf("%d rounds of trials of %v in random order (`-seed %d`), on %s", complete, s.length, r.Seed, s.ground.FileSystem)
	text += r.Interrupted(complete)
	for _, t := range tools {
		if t.path != "" {
			text += "; " + t.version()
		}
	}
	return strings.TrimSpace(text) + "."
}
