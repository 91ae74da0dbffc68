// Package command is what the commands of this module are around their work:
//   - a process that ends at a signal, with an exit code that says how it went
//   - rounds of trials in random order, each in a process of its own where the command
//     wants it
//   - the columns that compare the arms
//
// Start with [Main], and with [Race].
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
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

// Main runs a command under its name and ends the process. The context ends at the
// first interrupt or SIGTERM.
func Main(name string, run func(ctx context.Context, args []string, stdout, stderr io.Writer) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	}
	os.Exit(ExitCode(err))
}

// ExitCode returns the exit code of what a command returned.
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
		return &UsageError{Err: err}
	case f.NArg() > 0:
		return &UsageError{Err: fmt.Errorf("%q is not a flag; see -help", f.Arg(0))}
	}
	return nil
}
