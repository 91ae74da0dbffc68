// Command programs puts the library under programs of others, by their public interfaces alone, and says
// what that changes: the lines to change, the time, the CPU time, the system calls, and what a kill and a
// power cut take. docs/programs.md is what it prints.
//
//	go run -C dev/programs . -dir DIR                     all programs that the file of results lacks
//	go run -C dev/programs . -dir DIR -run raft -again    one, once more
//
// Each program has two arms, before and after, which differ in the lines that a user changes. An arm is
// a process. The rounds run both arms in turn. A time counts only if all records are there afterwards.
// A program's results are on disk before the next one begins: an interrupted run goes on behind them.
//
// Start with programs; [arm] says what each one is.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/syscallfault"
)

func main() {
	syscallfault.Launch() // the process of an arm that is crashed
	serve()               // the process of an arm
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "programs:", err)
		os.Exit(1)
	}
}

// A program is one of others, with an arm as it is and an arm with holdfast below it.
type program struct {
	id            string // its arms are the functions idBefore and idAfter
	name, part    string // part is what is exchanged
	before, after arm
	more          []string // names of the declarations that the arm after needs besides
	unit          string   // of count
	count         int      // how many of them a measured run has
	goroutines    int      // that put them; 1, if it is 0
	promise       string   // of the arm after, at a power cut
	gain          string   // what is gained, or why nothing is
}

// A place is where an arm works: its own directory, a tree of files to copy, the policy of a log, and the size of a wal's segments.
type place struct {
	dir, source string
	policy      holdfast.Policy
	segment     holdfast.Size // 0: wal's own
	order       order         // by which its process works
}

// An arm is a program with one way to write. Records are numbered from 1 on, in the words "record N".
type arm struct {
	open func(at place) (*use, error)
	kept func(dir string) ([]string, error) // the records that are there, in their order
}

// A use is an open program. put returns when the program's own call does. Any number of goroutines may call it, if the program permits it.
type use struct {
	put   func(n uint64) error
	close func() error
}

// A measurement has the results of a program.
type measurement struct {
	Program, Day, Load string
	Count              int
	Before, After      figures
}

// figures are an arm's: of each round the time and the CPU time of one record, in ns, the final Close included.
type figures struct {
	Time, CPU    []float64
	Calls, Syncs float64 // system calls of files a record; -1: not counted
	ByName       map[string]spent
	Kill, Power  loss
}

// spent says how often a record calls a system call, and how long that takes, in ns; strace makes each call slower.
type spent struct{ Calls, Time float64 }

func run(ctx context.Context, args []string, out, talk io.Writer) error {
	flags := flag.NewFlagSet("programs", flag.ContinueOnError)
	flags.SetOutput(talk)
	dir := flags.String("dir", os.TempDir(), "the `directory` whose disk is used; what is made there is removed")
	rounds := flags.Int("rounds", 7, "how often each arm is measured")
	within := flags.Duration("crash", 2*time.Second, "how long each arm is killed; its power is cut for twice as long")
	only := flags.String("run", "", "only programs whose names match this regular `expression`")
	again := flags.Bool("again", false, "measure programs that have results already")
	results := flags.String("results", "../../docs/measured/programs.jsonl", "the `file` of results")
	page := flags.String("page", "../../docs/programs.md", "the `file` of the page")
	profile := flags.String("profile", "", "instead of all that: write CPU profiles of both arms, NAME-before and NAME-after, to a `directory`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	if flags.NArg() > 0 || *rounds < 1 {
		return fmt.Errorf("%q, %d rounds: give flags only, and at least one round", flags.Args(), *rounds)
	}
	all, err := readResults(*results)
	if err != nil {
		return err
	}
	met := 0
	for _, p := range programs {
		if !chosen.MatchString(p.name) {
			continue
		}
		met++
		switch {
		case *profile != "":
			if err := p.profile(ctx, *dir, *profile); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			continue
		case all[p.name] != nil && !*again:
			continue
		}
		began := time.Now()
		m, err := p.measure(ctx, *dir, *rounds, *within)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		all[p.name] = m
		if err := writeResults(*results, all); err != nil {
			return err
		}
		fmt.Fprintf(talk, "%s: %v\n", p.name, time.Since(began).Round(time.Second))
	}
	switch {
	case met == 0:
		return fmt.Errorf("-run=%s matches no program; names look like %q", *only, programs[0].name)
	case *profile != "":
		return nil
	}
	text, err := pageOf(all)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, text)
	return errors.Join(err, os.WriteFile(*page, []byte(text), 0o666))
}

func readResults(path string) (map[string]*measurement, error) {
	all := map[string]*measurement{}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		var m measurement
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if slices.ContainsFunc(programs, func(p program) bool { return p.name == m.Program }) {
			all[m.Program] = &m
		}
	}
	return all, nil
}

// writeResults keeps the results in the order of the programs.
func writeResults(path string, all map[string]*measurement) error {
	var text strings.Builder
	lines := json.NewEncoder(&text)
	for _, p := range programs {
		if m := all[p.name]; m != nil {
			if err := lines.Encode(m); err != nil {
				return err
			}
		}
	}
	return os.WriteFile(path, []byte(text.String()), 0o666)
}
