// Command peers does the same work with holdfast and with other libraries, in
// one interleaved run, and prints how long each took.
//
//	go run -C peers .
//
// A time counts only if the file holds the right bytes: every trial is read back
// and verified after its clock has stopped. Every round runs each arm once, in a
// new order, so that a change of the machine hits all of them.
//
// Start with appending and durable for what is compared, and with clock for what
// is timed.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"time"

	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/peers/internal/command"
)

func main() { command.Main("peers", runCommand) }

// options is what the command line says.
type options struct {
	pick     *regexp.Regexp
	rounds   int
	seed     uint64
	dir      string
	benchfmt bool
	quick    bool
	full     bool
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	f := flag.NewFlagSet("peers", flag.ContinueOnError)
	pick := f.String("run", "", "run only the arms whose name, such as append/arm=zap/goroutines=8, matches the `regexp`")
	f.IntVar(&o.rounds, "rounds", 0, "how many times each arm runs (default 10, with -quick 3)")
	f.Uint64Var(&o.seed, "seed", 0, "the seed of the order (default: from the time)")
	f.StringVar(&o.dir, "dir", ".", "write in a new directory in `dir`, removed at the end")
	f.BoolVar(&o.benchfmt, "benchfmt", false, "print a Go benchmark line for each trial, for benchstat, instead of tables")
	f.BoolVar(&o.quick, "quick", false, "a tenth of the records, for a first look")
	f.BoolVar(&o.full, "full", false, "with 512 goroutines too")
	if err := command.Parse(f, args, stderr); err != nil {
		return o, err
	}
	if o.pick, err = regexp.Compile(*pick); err != nil {
		return o, command.Misuse("-run: %w", err)
	}
	if o.rounds < 0 {
		return o, command.Misuse("-rounds=%d is negative; give at least 1", o.rounds)
	}
	o.defaults()
	return o, nil
}

func (o *options) defaults() {
	if o.rounds == 0 {
		o.rounds = 10
		if o.quick {
			o.rounds = 3
		}
	}
	if o.seed == 0 {
		o.seed = uint64(time.Now().UnixNano())
	}
}

// comparisons returns all that is compared, at the size that is asked for.
func (o options) comparisons() []comparison {
	all := []comparison{appending(), durable(o.full), windows(), logs(o.full), largeLogs(o.full), rotating()}
	if o.quick {
		for _, c := range all {
			for i := range c.loads {
				c.loads[i].records /= 10
			}
		}
	}
	return all
}

// runCommand is main without the process around it.
func runCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	all := blocks(o.comparisons(), o.pick)
	if len(all) == 0 {
		return command.Misuse("-run=%v matches no arm; names look like append/arm=zap/goroutines=8", o.pick)
	}
	root, err := os.MkdirTemp(o.dir, "peers-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	return o.measure(ctx, root, all, stdout, stderr)
}

func (o options) measure(ctx context.Context, root string, all []*block, stdout, stderr io.Writer) error {
	if err := o.plan(root, all, stderr); err != nil {
		return err
	}
	did := func(*cell, sample) {}
	if o.benchfmt {
		fmt.Fprintf(stdout, "goos: %s\ngoarch: %s\npkg: github.com/holdfast-go/holdfast/peers\n", runtime.GOOS, runtime.GOARCH)
		did = func(c *cell, s sample) { writeBench(stdout, c, s) }
	}
	r := command.Rounds{Name: "peers", Count: o.rounds, Seed: o.seed, Talk: stderr}
	rounds, err := run(ctx, root, all, r, did)
	if rounds > 0 && !o.benchfmt {
		writeTables(stdout, all, conditions(r.Rounded(rounds)))
	}
	if err != nil {
		return err
	}
	return command.Failed(all)
}

// plan prints what is about to be done and refuses what the disk has no room for.
func (o options) plan(root string, all []*block, stderr io.Writer) error {
	var cells int
	var most, total int64
	for _, b := range all {
		for _, c := range b.cells {
			cells++
			most = max(most, c.work.bytes())
			total += c.work.bytes() * int64(o.rounds)
		}
	}
	fmt.Fprintf(stderr, "peers: %d arms, %d rounds, %.1f GB in files of at most %.0f MB, one at a time, in %s; seed %d\n",
		cells, o.rounds, float64(total)/1e9, float64(most)/1e6, root, o.seed)
	if inMemory(root) {
		fmt.Fprintf(stderr, "peers: %s is in memory: nothing there is durable, and syncs cost nothing; choose a disk with -dir\n", root)
	}
	const extra = 1 << 30 // what the peers preallocate and what the file system needs
	free, err := sys.FreeSpace(root)
	if err == nil && free < 2*most+extra {
		return fmt.Errorf("%s has %.1f GB free, and a trial may take %.1f GB; choose another disk with -dir", root, float64(free)/1e9, float64(2*most+extra)/1e9)
	}
	return nil
}

// conditions states what the figures were taken under.
func conditions(rounds string) string {
	return fmt.Sprintf("%s, %s/%s, GOMAXPROCS %d.\nVersions: %s; holdfast is the one of this directory.",
		rounds, runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), versions())
}
