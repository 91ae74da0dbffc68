// Command fsync sets holdfast's cells that wait for the disk beside fio and
// pg_test_fsync on the same disk, in one interleaved run, and prints how their
// times compare. It shows whether our clock and our way to sync say what other
// people's do.
//
//	go run -C peers ./fsync -dir /folder/on/the/disk
//
// Each trial takes about a second and works on a new file in a new folder, which
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
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/internal/stat"
	"github.com/holdfast-go/holdfast/internal/trial"
)

const (
	exitFailed      = 1 // an arm did not do its work
	exitUsage       = 2
	exitUnmeasured  = 3
	exitInterrupted = 130
)

var errFailed = errors.New("not every arm did its work: see the tables")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "fsync: %v\n", err)
	}
	os.Exit(exitCode(err))
}

func exitCode(err error) int {
	var usage *usageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errFailed):
		return exitFailed
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	return exitUnmeasured
}

// usageError is an error of the command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// options is what the command line says.
type options struct {
	rounds int
	seed   uint64
	dir    string
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	f := flag.NewFlagSet("fsync", flag.ContinueOnError)
	f.SetOutput(io.Discard) // main prints the error; the flags only when asked for
	f.IntVar(&o.rounds, "rounds", stat.VerdictRounds, "how many times each arm runs; fewer than 10 prove nothing")
	f.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "the seed of the order")
	f.StringVar(&o.dir, "dir", ".", "write in a new folder in `dir`, removed at the end")
	err = f.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		f.SetOutput(stderr)
		f.Usage()
		return o, err
	case err != nil:
		return o, &usageError{err}
	case f.NArg() > 0:
		return o, &usageError{fmt.Errorf("%q is not a flag; see -help", f.Arg(0))}
	case o.rounds < 1:
		return o, &usageError{fmt.Errorf("-rounds=%d: give at least 1", o.rounds)}
	}
	return o, nil
}

// command is main without the process around it.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	ground, err := trial.OpenGround(o.dir, false)
	if err != nil {
		return fmt.Errorf("-dir: %w", err)
	}
	defer func() { err = errors.Join(err, ground.Close()) }()
	s := &site{ground: ground, length: time.Second}
	tools := findTools()
	for _, t := range tools {
		if t.path == "" {
			fmt.Fprintf(stderr, "fsync: %s is left out: it is not installed (Debian: apt-get install %s)\n", t.name, t.debian)
		}
	}
	return o.measure(ctx, s, groups(tools), tools, stdout, stderr)
}

// room is what a trial may take: a file that grows for a second on a disk that is
// faster than any we know.
const room = 2 << 30

func (o options) measure(ctx context.Context, s *site, all []*group, tools []tool, stdout, stderr io.Writer) error {
	if err := s.ground.Need(room); err != nil {
		return err
	}
	fmt.Fprintf(stderr, "fsync: %d arms of about %v, %d rounds after a warm-up, in %s; seed %d\n", arms(all), s.length, o.rounds, s.ground.Dir(), o.seed)
	rounds, err := run(ctx, s, all, o.rounds, o.seed, stderr)
	if rounds > 0 {
		fmt.Fprintf(stdout, "%s\n", o.conditions(s, rounds, tools))
		writeTables(stdout, all)
	}
	if err != nil {
		return err
	}
	return failed(all)
}

// conditions states what the figures were taken under.
func (o options) conditions(s *site, rounds int, tools []tool) string {
	text := fmt.Sprintf("%d rounds in random order (`-seed %d`), on %s", rounds, o.seed, s.ground.FileSystem)
	if rounds < o.rounds {
		text += fmt.Sprintf(", interrupted before %d more", o.rounds-rounds)
	}
	for _, t := range tools {
		if t.path != "" {
			text += "; " + t.version()
		}
	}
	return strings.TrimSpace(text) + "."
}
