// Command raft runs clusters of hashicorp/raft, of three processes each, over adapters/raft and over
// the stores that its users have now.
//
//	go run -C dev/raft . bench                     a table: commands a second, latency, catching up
//	go run -C dev/raft . crash                     kills and stops processes, and looks for what was acknowledged
//	go run -C dev/raft . crash -behind 1000000     also with a follower a million entries behind
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "raft:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	name := ""
	if len(args) > 0 {
		name = args[0]
	}
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	dir := flags.String("dir", ".", "the `directory` whose disk is used; what is made there is removed")
	switch name {
	case nodeWord:
		return node(args[1:])
	case "bench":
		var b bench
		flags.DurationVar(&b.time, "time", 5*time.Second, "how long each number of clients is measured")
		flags.IntVar(&b.rounds, "rounds", 5, "how many rounds")
		flags.IntVar(&b.size, "size", 128, "the bytes of a command")
		flags.IntVar(&b.behind, "behind", 100_000, "how many entries a follower is behind")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return b.run(ctx, *dir, os.Stdout)
	case "crash":
		var c crash
		flags.StringVar(&c.store, "store", "holdfast", "the `store`: holdfast, raft-wal or boltdb")
		flags.DurationVar(&c.time, "time", time.Minute, "how long processes are killed")
		flags.IntVar(&c.behind, "behind", 100_000, "how many entries a follower is behind; 0: it is not tried")
		flags.Uint64Var(&c.seed, "seed", uint64(time.Now().UnixNano()), "of the kills")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return c.run(ctx, *dir, os.Stdout)
	}
	return fmt.Errorf("a command %q; use bench or crash", name)
}
