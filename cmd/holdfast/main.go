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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	return tell(os.Stderr, err)
}

// run is the whole command. What it returns carries the exit code, see tell; it
// prints no error itself.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return root.ExecuteContext(ctx)
}
