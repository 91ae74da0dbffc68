// Command read reads the same file with holdfast's Reader, with other libraries, with C's
// stdio and by system calls, in one interleaved run. It prints how their times compare.
//
//	go run -C peers ./read -dir /directory/on/the/disk
//
// A time counts only if the bytes that were read were right, by a sum over all of them.
// Warm is a file that was read just before. Cold is a file without a page in the page cache,
// as the kernel reports before the clock starts. Opening and closing are in the clock.
//
// Start with groups for what is compared.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/lab/stat"
	"github.com/holdfast-go/holdfast/peers/internal/command"
)

func main() { command.Main("read", runCommand) }

// options is what the command line says.
type options struct {
	pick   *regexp.Regexp
	rounds int
	size   holdfast.Size
	seed   uint64
	dir    string
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	f := flag.NewFlagSet("read", flag.ContinueOnError)
	pick := f.String("run", "", "run only the arms whose name, such as bytes/warm/bufio 4KiB, matches the `regexp`")
	f.IntVar(&o.rounds, "rounds", stat.VerdictRounds, "how many times each arm runs; fewer than 10 prove nothing")
	f.TextVar(&o.size, "size", 64*holdfast.MiB, "the `size` of the file")
	f.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "the seed of the order")
	f.StringVar(&o.dir, "dir", ".", "make the file in a new directory in `dir`, removed at the end")
	if err := command.Parse(f, args, stderr); err != nil {
		return o, err
	}
	switch {
	case o.rounds < 1:
		return o, command.Misuse("-rounds=%d: give at least 1", o.rounds)
	case o.size < 1 || o.size > holdfast.GiB:
		return o, command.Misuse("-size=%v: give at least 1 and at most %v", o.size, holdfast.GiB)
	}
	if o.pick, err = regexp.Compile(*pick); err != nil {
		return o, command.Misuse("-run: %w", err)
	}
	return o, nil
}

// runCommand is main without the process around it.
func runCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	all := picked(groups(), o.pick)
	if len(all) == 0 {
		return command.Misuse("-run=%v matches no arm; names look like lines/cold/bufio.Scanner", o.pick)
	}
	dir, err := os.MkdirTemp(o.dir, "peers-")
	if err != nil {
		return fmt.Errorf("-dir: %w", err)
	}
	defer os.RemoveAll(dir)
	s, err := newSite(dir, int(o.size))
	if err != nil {
		return err
	}
	fmt.Fprintf(stderr, "read: %d arms, %d rounds after a warm-up, of a file of %v in %s; seed %d\n", command.Arms(all), o.rounds, o.size, dir, o.seed)
	r := command.Rounds{Name: "read", Count: o.rounds, Seed: o.seed, Warm: true, Talk: stderr}
	rounds, err := run(ctx, s, all, r)
	if rounds > 0 {
		fmt.Fprintf(stdout, "%s\n", o.conditions(r.Rounded(rounds)))
		writeTables(stdout, all, s.size)
	}
	if err != nil {
		return err
	}
	return command.Failed(all, errors.ErrUnsupported)
}

// conditions states what the figures were taken under.
func (o options) conditions(rounds string) string {
	text := fmt.Sprintf("A file of %v, %s; %s", o.size, rounds, command.Platform())
	for _, version := range command.Versions("github.com/klauspost/readahead") {
		text += "; " + version
	}
	return text + "."
}
