// Package fleet is the command fleet: it compares the results of many hosts.
package fleet

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/fleet"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/fleet/show"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/report"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
)

// A command holds the flags of fleet.
type command struct {
	expect    string // a file of names
	threshold float64
	all       bool
	format    report.Format
	output    string
}

// New returns the command.
func New() *cobra.Command {
	c := &command{threshold: fleet.DefaultThreshold}
	cmd := &cobra.Command{
		Use: "fleet RESULTS.jsonl|DIRECTORY... [flags]",
		Long: `Fleet reads results that holdfast bench -o has kept on many hosts. It groups similar
hosts: with the same study, CPU model, CPUs, memory, file system, mount options and
kind of device. In each group it finds the outliers: hosts with slower syncs, less
disk bandwidth or slower memory than their peers, with syncs too fast to be true, or
with another write cache. For each it lists the facts that differ. In a directory it
reads all files *.jsonl, also in directories below. dev/deploy has scripts that run
bench on each node of Slurm, Kubernetes or Ansible.

If one host, study and mount point has several results, the newest count. Empty and
damaged files, and hosts of --expect without results, are listed; all others are
judged.`,
		Example: `  holdfast fleet results/
  holdfast fleet . --export csv -o fleet.csv`,
		Annotations: cli.Exits(map[int]string{cli.ExitNotMet: "there are outliers", cli.ExitNotKnown: "not known: a host has no results, or its group has fewer than four hosts"}),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Misuse("for instance: holdfast fleet results/", "fleet needs results files, or directories with results")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(cli.Once("file", &c.expect, cli.Given), "expect", "report the hosts in this file that have no results: a list of names,\nseparated by spaces or lines; -: standard input")
	f.Var(cli.Once("percent", &c.threshold, cli.ParseShare("threshold")), "threshold", "the least slowdown of an outlier (default: 25%)")
	f.BoolVar(&c.all, "all", false, "print every host and its scores; without it only the answer, in at\nmost 30 lines")
	f.VarP(cli.Target("file", &c.output, cli.NewFile), "output", "o", "write an HTML page, or the --export, to this new file")
	cli.ExportFlag(f, &c.format, "write a format for programs or pull requests")
	return cmd
}

func (c *command) run(cmd *cobra.Command, args []string) error {
	if c.format == report.Benchmark {
		return cli.Misuse("holdfast report FILE --export bench writes the lines of one host", "--export bench: %w", show.ErrNoBenchmark)
	}
	if c.format == "" {
		if err := cli.IsPage("-o", c.output); err != nil {
			return err
		}
	}
	expected, err := c.expected(cmd.InOrStdin())
	if err != nil {
		return err
	}
	files, err := resultsFiles(args)
	if err != nil {
		return err
	}
	hosts, silent, err := readAll(cmd.Context(), files)
	if err != nil {
		return err
	}
	f := fleet.New(hosts, silent, expected, c.threshold)
	write := func(w io.Writer) error {
		switch {
		case c.format != "":
			return show.Export(w, f, c.format)
		case c.output != "":
			return show.HTML(w, f)
		}
		return cli.WriteLocal(w, func(text io.Writer) error { return show.Text(text, f, c.all, cli.Columns(w)) })
	}
	if err := cli.WriteOut(cmd.OutOrStdout(), c.output, write); err != nil {
		return err
	}
	return verdict(f, c.expect != "")
}

// verdict returns the refusal of a fleet that is not known to be alike, or nil.
func verdict(f fleet.Fleet, expects bool) error {
	var odd []string
	for _, o := range f.Outliers {
		if !slices.Contains(odd, o.Host) {
			odd = append(odd, o.Host)
		}
	}
	switch {
	case len(odd) > 0:
		return &cli.Refusal{Code: cli.ExitNotMet, Err: fmt.Errorf("outliers: %s", names(odd)), Hint: "measure them again, one by one, to see whether they stay outliers"}
	case len(f.Unanswered()) > 0:
		hint := "measure on these hosts, or remove their names from --expect"
		if !expects {
			hint = "results are made by holdfast bench -o results.jsonl; leave out files that hold others"
		}
		return &cli.Refusal{Code: cli.ExitNotKnown, Err: fmt.Errorf("no results of %s", names(f.Unanswered())), Hint: hint}
	case !f.Known():
		return &cli.Refusal{Code: cli.ExitNotKnown, Err: errors.New("not every host could be judged"),
			Hint: "give results of all hosts, with at least four hosts in each group"}
	}
	return nil
}

// names lists the first few names.
func names(all []string) string {
	const most = 10
	if len(all) <= most {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), len(all)-most)
}

// expected reads the names of --expect, if it is given.
func (c *command) expected(stdin io.Reader) ([]string, error) {
	const hint = "the file must list names of hosts, separated by spaces or lines"
	if c.expect == "" {
		return nil, nil
	}
	text := stdin
	if c.expect != "-" {
		f, err := os.Open(c.expect)
		if err != nil {
			return nil, cli.Misuse(hint, "--expect %s: %w", c.expect, cli.Cause(err))
		}
		defer f.Close()
		text = f
	}
	var names []string
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		line, _, _ := strings.Cut(lines.Text(), "#")
		names = append(names, strings.Fields(line)...)
	}
	if err := lines.Err(); err != nil {
		return nil, cli.Misuse(hint, "--expect %s: %w", c.expect, cli.Cause(err))
	}
	if len(names) == 0 {
		return nil, cli.Misuse(hint, "--expect %s: the file has no names", c.expect)
	}
	return names, nil
}

// resultsFiles returns the files that the arguments name, each once.
func resultsFiles(args []string) (files []string, err error) {
	seen := map[string]bool{}
	add := func(file string) {
		if file = filepath.Clean(file); !seen[file] {
			seen[file] = true
			files = append(files, file)
		}
	}
	for _, arg := range args {
		info, err := os.Stat(arg)
		switch {
		case arg == "":
			return nil, cli.Misuse(cli.HintResults, "the name of the results is empty")
		case errors.Is(err, fs.ErrNotExist):
			return nil, cli.Misuse(cli.HintResults, "there is no file or directory %s", arg)
		case err != nil:
			return nil, cli.Misuse("choose files that you may read", "%s: %w", arg, cli.Cause(err))
		case !info.IsDir():
			add(arg)
			continue
		}
		before := len(files)
		err = filepath.WalkDir(arg+string(filepath.Separator), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".jsonl") {
				return err
			}
			if info, err := os.Stat(path); err != nil || info.Mode().IsRegular() { // skip a pipe, which has no end
				add(path)
			}
			return nil
		})
		if err != nil {
			return nil, cli.Misuse("choose a directory that you may read", "%s: %w", arg, cli.Cause(err))
		}
		if len(files) == before && len(args) == 1 {
			return nil, cli.Misuse(cli.HintResults, "there is no file *.jsonl in %s", arg)
		}
	}
	return files, nil
}

// readAll reads the files, a few at a time, and keeps only the figures of each in memory. An
// unusable file makes its host silent.
func readAll(ctx context.Context, files []string) (hosts []fleet.Host, silent []fleet.Silent, err error) {
	type answer struct {
		host fleet.Host
		why  error
	}
	answers := make([]answer, len(files))
	next := make(chan int)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range next {
				answers[i].host, answers[i].why = read(ctx, files[i])
			}
		})
	}
	for i := range files {
		next <- i
	}
	close(next)
	workers.Wait()
	for i, a := range answers {
		switch {
		case a.why != nil && ctx.Err() != nil:
			return nil, nil, a.why
		case a.why != nil:
			silent = append(silent, fleet.Silent{Host: a.host.Name, File: cli.OneLine(files[i]), Why: cli.OneLine(a.why.Error())})
		default:
			hosts = append(hosts, a.host)
		}
	}
	return hosts, silent, nil
}

// read returns the figures of a file. On an error the host has only a name.
func read(ctx context.Context, file string) (fleet.Host, error) {
	name := cli.OneLine(file)
	run, err := cli.ReadFile(ctx, file, result.ReadTimes)
	if err != nil && ctx.Err() != nil {
		return fleet.Host{}, err
	}
	if err != nil {
		if info, statErr := os.Stat(file); statErr == nil && info.Size() == 0 {
			err = errors.New("is empty: bench did not start, or could not write")
		}
		first, _ := header(file)
		return fleet.Host{Name: fleet.NameOf(name, first)}, cli.Cause(err)
	}
	h, err := fleet.NewHost(name, run)
	if err != nil {
		h.Name = fleet.NameOf(name, run.Header)
	}
	return h, err
}

// header reads the first line of results that have damage in a later one.
func header(file string) (result.Header, error) {
	f, err := os.Open(file)
	if err != nil {
		return result.Header{}, err
	}
	defer f.Close()
	line, err := bufio.NewReader(io.LimitReader(f, 1<<20)).ReadBytes('\n')
	if err != nil {
		return result.Header{}, err
	}
	run, err := result.Read(bytes.NewReader(line))
	return cli.PlainRun(run).Header, err
}
