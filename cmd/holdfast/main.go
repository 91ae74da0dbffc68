// Holdfast measures what it costs to keep what a program writes. It shows how fast each policy of
// buffering, flushing and syncing is on this disk, and how much a crash takes.
//
// Run "holdfast bench" in a directory on the disk in question.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/internal/crash/syscallfault"
)

func main() {
	syscallfault.Launch()
	os.Exit(start())
}

// start runs the command with the process's own arguments, streams and signals,
// and returns its exit code. The first signal ends the run in order. Ctrl-C after it
// ends the process at once, see [untilSignal].
func start() int {
	// Output without a reader ends the run too. That signal stays caught: a later write
	// to the pipe must not end the process before the run has cleaned up.
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	unread := untilUnread(context.Background(), pipes, func() bool { return isUnread(os.Stdout) || isUnread(os.Stderr) })
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup(1) makes the process ignore it
		signal.Notify(signals, syscall.SIGHUP)
	}
	ctx, caught := untilSignal(unread, signals, func() { signal.Reset(os.Interrupt) })
	err := runCommand(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	code := cli.Report(os.Stderr, err)
	if s := caught.Load(); code == cli.ExitInterrupted && s != 0 {
		return cli.ExitBySignal + int(s)
	}
	return code
}

// untilUnread returns a context that ends at a SIGPIPE if nobody reads the output. The signal is also of a pipe to a
// process that has ended, as of one that can't be traced, and then says nothing of the run.
func untilUnread(parent context.Context, pipes <-chan os.Signal, outputIsUnread func() bool) context.Context {
	ctx, cancel := context.WithCancel(parent)
	go func() {
		defer cancel()
		for range pipes {
			if outputIsUnread() {
				return
			}
		}
	}()
	return ctx
}

// sameSignal is how soon after a signal another is the same one: timeout(1) sends each to the process
// and to its group.
const sameSignal = 100 * time.Millisecond

// untilSignal returns a context that the first signal ends, and which signal that was. It calls release
// sameSignal later: Ctrl-C ends the process from then on. Another SIGTERM does not, for the run has to
// clean up.
func untilSignal(parent context.Context, signals <-chan os.Signal, release func()) (context.Context, *atomic.Int32) {
	ctx, cancel := context.WithCancel(parent)
	caught := new(atomic.Int32)
	go func() {
		s := <-signals
		if number, ok := s.(syscall.Signal); ok {
			caught.Store(int32(number))
		}
		time.AfterFunc(sameSignal, release)
		cancel()
	}()
	return ctx, caught
}

// runCommand is the whole command. Its error carries the exit code, see [cli.Report].
func runCommand(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	return cli.Run(ctx, rootFor(args), args, stdin, stdout, stderr)
}
