// Holdfast measures what it costs to keep what a program writes: how fast each
// policy of buffering, flushing and syncing is on this disk, and what a crash
// takes under it.
//
// Run "holdfast bench" in a folder on the disk in question.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(start()) }

// start runs the command with the process's own arguments, streams and signals,
// and returns its exit code. The first signal ends the run in order; a second one
// ends the process at once.
func start() int {
	// A pipe that nobody reads any more ends the run too. That signal stays caught:
	// what is told to the pipe after it must not end the process before the run has
	// cleaned up.
	unread, forget := signal.NotifyContext(context.Background(), syscall.SIGPIPE)
	defer forget()
	ctx, stop := signal.NotifyContext(unread, heeded()...)
	defer stop()
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	return tell(os.Stderr, err)
}

// heeded are the signals that end a run: a hangup too, unless nohup(1) has made
// the process ignore it.
func heeded() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// run is the whole command. What it returns carries the exit code, see tell; it
// prints no error itself. What did not get to stdout is an error, whoever wrote it.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	out := &output{Writer: stdout}
	root.SetOut(out)
	root.SetErr(stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		return err
	}
	return out.failure()
}
