// Package command is the common frame of this module's kinds of comparison:
//   - a process that ends at a signal, with an exit code that says how it went
//   - flags, and groups of arms in rounds of random order, each trial in a process of its own
//     where the kind wants it
//   - the tables that compare the arms
//
// Start with [Kind], and with [Group].
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
)

// The exit codes.
const (
	ExitFailed      = 1 // an arm did not do its work, or did it wrongly
	ExitUsage       = 2
	ExitUnmeasured  = 3
	ExitInterrupted = 130
)

// ErrFailed says that an arm did not do its work, or did it wrongly.
var ErrFailed = errors.New("not every arm did its work: see the tables")

// A UsageError is an error of the command line.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Misuse returns a [UsageError].
func Misuse(format string, args ...any) error {
	return &UsageError{Err: fmt.Errorf(format, args...)}
}

// A Kind is one kind of comparison, chosen by a word of the command line.
type Kind struct {
	Name string
	Does string // a line of the help
	Run  func(ctx context.Context, args []string, stdout, stderr io.Writer) error
	// Carry does what an order says, in a process of its own; see [Order]. It is nil where
	// all trials are in this process.
	Carry func(order []byte, out io.Writer) (any, error)
}

// Main runs the kind that the command line names and ends the process. The context ends at
// the first interrupt or SIGTERM. A process that was started for an order carries it out.
func Main(kinds ...Kind) {
	Serve(kinds...)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := Run(ctx, kinds, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "peers: %v\n", err)
	}
	os.Exit(ExitCode(err))
}

// Run is Main without the process around it.
func Run(ctx context.Context, kinds []Kind, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 || args[0] == "help" || strings.TrimLeft(args[0], "-") == "help" || args[0] == "-h" {
		fmt.Fprint(stdout, help(kinds))
		return nil
	}
	for _, k := range kinds {
		if k.Name == args[0] {
			if err := k.Run(ctx, args[1:], stdout, stderr); err != nil {
				return fmt.Errorf("%s: %w", k.Name, err)
			}
			return nil
		}
	}
	var names []string
	for _, k := range kinds {
		names = append(names, k.Name)
	}
	return Misuse("%q is no kind of comparison; the kinds are %s", args[0], strings.Join(names, ", "))
}

func help(kinds []Kind) string {
	var text strings.Builder
	text.WriteString("Peers does the same work with holdfast and with others, in interleaved rounds, and prints tables.\n\nUsage:\n  go run -C dev/peers . KIND [flags]\n\nKinds:\n")
	for _, k := range kinds {
		fmt.Fprintf(&text, "  %-8s%s\n", k.Name, k.Does)
	}
	text.WriteString("\nThe flags of a kind: go run -C dev/peers . KIND -help\n")
	return text.String()
}

// ExitCode returns the exit code for a command's error.
func ExitCode(err error) int {
	var usage *UsageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, ErrFailed):
		return ExitFailed
	case errors.As(err, &usage):
		return ExitUsage
	case errors.Is(err, context.Canceled):
		return ExitInterrupted
	}
	return ExitUnmeasured
}

// Flags are the flags of a kind that runs arms in rounds.
type Flags struct {
	*flag.FlagSet
	Rounds
	Pick  *regexp.Regexp // of the names of arms, with their group's before
	Dir   string
	Quick bool // fewer rounds, and less work in each
	Bench bool // print a line for each trial in place of tables
}

// NewFlags returns the flags of a kind, with the name of an arm as an example.
func NewFlags(kind, example string) *Flags {
	f := &Flags{FlagSet: flag.NewFlagSet("peers "+kind, flag.ContinueOnError)}
	f.Rounds.Kind, f.Pick = kind, regexp.MustCompile("")
	f.Func("run", "run only the arms whose name, such as "+example+", matches the `regexp`", func(text string) (err error) {
		f.Pick, err = regexp.Compile(text)
		return err
	})
	f.IntVar(&f.Count, "rounds", stat.VerdictRounds, "how many times each arm runs; fewer than 10 prove nothing")
	f.Uint64Var(&f.Seed, "seed", uint64(time.Now().UnixNano()), "the seed of the order")
	f.StringVar(&f.Dir, "dir", ".", "work in a new directory in `dir`, removed at the end")
	f.BoolVar(&f.Quick, "quick", false, "a first look: 3 rounds, and less work in each")
	f.BoolVar(&f.Bench, "benchfmt", false, "print a Go benchmark line for each trial, for benchstat, in place of tables")
	return f
}

// Read reads a command line. Its output, and the rounds', goes to stderr.
func (f *Flags) Read(args []string, stderr io.Writer) error {
	if err := Parse(f.FlagSet, args, stderr); err != nil {
		return err
	}
	rounds := false
	f.Visit(func(set *flag.Flag) { rounds = rounds || set.Name == "rounds" })
	if f.Quick && !rounds {
		f.Count = 3
	}
	f.Talk = stderr
	if f.Count < 1 {
		return Misuse("-rounds=%d: give at least 1", f.Count)
	}
	return nil
}

// Parse reads a command's flags. It prints them if they are asked for, and nothing else:
// [Main] prints the error.
func Parse(f *flag.FlagSet, args []string, stderr io.Writer) error {
	f.SetOutput(io.Discard)
	err := f.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		f.SetOutput(stderr)
		f.Usage()
		return err
	case err != nil:
		return &UsageError{Err: fmt.Errorf("%w; see -help", err)}
	case f.NArg() > 0:
		return &UsageError{Err: fmt.Errorf("%q is not a flag; see -help", f.Arg(0))}
	}
	return nil
}
