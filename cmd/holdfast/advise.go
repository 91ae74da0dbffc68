package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/advise"
	"github.com/holdfast-go/holdfast/internal/figure"
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/study"
	"github.com/holdfast-go/holdfast/internal/trial"
)

// A consultation is what the flags of advise say.
type consultation struct {
	where   benchmark // what measuring needs: the folder, the results file
	need    advise.Need
	program advise.Preset
	record  holdfast.Size
	writers int
	goLine  bool
	export  string
}

// adviceTime is how long advise measures: less than a minute with all that is
// around it.
const adviceTime = 50 * time.Second

func newAdvise() *cobra.Command {
	c := &consultation{where: benchmark{dir: ".", seed: uint64(rand.Uint32()), budget: adviceTime}}
	cmd := &cobra.Command{
		Use:   "advise [results.jsonl] [flags]",
		Short: "choose the cheapest policy that meets a need",
		Long: `Advise says which policy meets a need on this disk and costs least, with its
evidence and its margin; or that none does, which is the nearest, and by how much
it falls short: the exit code is then 1. It judges the results that it is given, or
measures what it needs for it in less than a minute.

A need is terms joined by commas, such as loss<=1s,rate>=50k/s,p99<10ms:
  loss    what a power cut may take: a time, a size, or 0
  crash   what the end of the process may take: likewise
  rate    records (50k/s) or bytes (10MiB/s) a second that are to be written
  p50 p90 p99 p99.9 max   the time of a Write; at a rate, from when it was due
  cpu     the share of one CPU at the rate (5%)
  memory  what a Writer holds in memory`,
		Example: `  holdfast advise --need 'loss<=1s,rate>=50k/s,p99<10ms' --record 200B --writers 8
  holdfast advise --for etcd --dir .`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return misuse("for instance: holdfast advise --need 'loss<=1s' results.jsonl", "advise takes at most one results file, and %d were given", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd, args) },
	}
	c.addFlags(cmd)
	return cmd
}

func (c *consultation) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(once("need", &c.need, advise.ParseNeed), "need", "what the policy has to keep, such as 'loss<=1s,p99<10ms'")
	f.Var(once("program", &c.program, advise.ParsePreset), "for", "is this disk fast enough for etcd, redis-everysec, postgres-commit,\npostgres-async or mongodb-journal; a term of the need replaces one of its")
	f.Var(once("size", &c.record, parseRecord), "record", "size of a record (default: 128B, or what the results hold)")
	f.Var(once("number", &c.writers, parseNumber("writers", maxWriters)), "writers", "goroutines that write to one file (default: 1, or what the results hold)")
	f.Var(once("folder", &c.where.dir, given), "dir", "measure the disk that holds this folder (default: the current folder)")
	f.BoolVar(&c.goLine, "go", false, "print the line of Go to paste, and nothing else")
	f.Var(once("format", &c.export, parseAdviceFormat), "export", "print json instead of words")
	f.VarP(once("file", &c.where.output, newFile), "output", "o", "keep what is measured in this new file (JSON Lines)")
	f.DurationVar(&c.where.budget, "time", adviceTime, "fit the measuring into this time (default: 50s)")
	f.Var(once("number", &c.where.seed, parseSeed), "seed", "repeat the order of an earlier run (default: a new one)")
	f.BoolVar(&c.where.allowTmpfs, "allow-tmpfs", false, "measure a file system in memory too, where nothing is ever durable")
	inGroup(f, "How to measure", "time", "seed", "allow-tmpfs")
}

func parseAdviceFormat(text string) (string, error) {
	if text != "json" {
		return "", fmt.Errorf("%q is not a form of advice; use json, or leave it out for words", text)
	}
	return text, nil
}

func (c *consultation) run(cmd *cobra.Command, args []string) error {
	if err := c.check(cmd, args); err != nil {
		return err
	}
	run, err := c.results(cmd, args)
	if err != nil {
		return err
	}
	if made := run.FileSystems(); len(made) > 0 {
		return misuse("holdfast report on them has the advice for each; or measure one of them with --dir", "%s: the results are of several file systems (%s), and a policy is chosen for one", c.source(args), strings.Join(made, ", "))
	}
	figures, err := figure.Of(run)
	if err != nil {
		return cannotReport(c.source(args), err)
	}
	r, err := advise.Recommend(figures, c.need, c.load())
	if err != nil {
		return misuse("give --record and --writers as the results hold them", "%s: %w", c.source(args), err)
	}
	if err := c.print(cmd.OutOrStdout(), r); err != nil {
		return err
	}
	return c.unmet(r)
}

func (c *consultation) source(args []string) string {
	if len(args) > 0 {
		return args[0]
	}
	return c.where.dir
}

// check completes the need and refuses flags that say two things.
func (c *consultation) check(cmd *cobra.Command, args []string) (err error) {
	switch {
	case c.need == nil && c.program.Name == "":
		return misuse("for instance: holdfast advise --need 'loss<=1s,rate>=50k/s,p99<10ms'", "a need is missing")
	case c.where.budget < time.Second:
		return misuse("give at least 1s", "--time %v is too short to measure anything", c.where.budget)
	case c.goLine && c.export != "":
		return misuse("give one of the two", "--go and --export contradict each other")
	}
	for _, flag := range []string{"dir", "output", "time", "seed", "allow-tmpfs"} {
		if len(args) > 0 && cmd.Flags().Changed(flag) {
			return misuse("leave out "+args[0]+" to measure, or --"+flag+" to judge", "--%s is for measuring, and %s is measured already", flag, args[0])
		}
	}
	if c.program.Name != "" {
		if c.need, err = c.program.Need.With(c.need); err != nil {
			return misuse(seeHelp(cmd), "--need: %w", err)
		}
	}
	return isFree("-o", c.where.output)
}

// load is what the records are like; of the results it is what they hold, unless
// it was given.
func (c *consultation) load() advise.Load {
	l := advise.Load{RecordBytes: int64(c.record), Writers: c.writers}
	if l.RecordBytes == 0 {
		l.RecordBytes = c.program.Load.RecordBytes
	}
	if l.Writers == 0 {
		l.Writers = c.program.Load.Writers
	}
	return l
}

// results reads the results, or measures them.
func (c *consultation) results(cmd *cobra.Command, args []string) (run result.Run, err error) {
	if len(args) > 0 {
		return readResults(args[0], cmd.InOrStdin())
	}
	choice, err := c.choice()
	if err != nil {
		return run, err
	}
	ground, err := trial.OpenGround(c.where.dir, c.where.allowTmpfs)
	if err != nil {
		return run, c.where.cannotOpen(err)
	}
	defer func() { err = closeGround(ground, err) }()
	s := newSession(cmd.ErrOrStderr(), ground, c.where.dir, c.where.output)
	err = s.refuse(s.measure(cmd.Context(), study.Advice(), choice))
	return s.run, err
}

// choice is what has to be measured for the need.
func (c *consultation) choice() (study.Choice, error) {
	l := c.load()
	if l.RecordBytes == 0 {
		l.RecordBytes = 128
	}
	if l.Writers == 0 {
		l.Writers = 1
	}
	policies := advise.Candidates(c.need)
	if c.program.Name != "" {
		policies = slices.DeleteFunc(slices.Clone(c.program.Policies), func(p holdfast.Policy) bool { return !c.need.Covers(p) })
	}
	choice := study.Choice{
		Preset: study.Default(), Budget: c.where.budget, Seed: c.where.seed, Policies: policies,
		Records: []holdfast.Size{holdfast.Size(l.RecordBytes)}, Writers: []int{l.Writers},
		Setting: study.Setting{Rate: c.need.Records(l.RecordBytes)},
	}
	switch {
	case len(policies) == 0 && c.program.Name != "":
		return choice, &refusal{exitNotMet, fmt.Errorf("no policy of %s can keep %v, whatever the disk", c.program.Name, c.need), "allow a larger loss, or leave out --for"}
	case len(policies) == 0:
		return choice, &refusal{exitNotMet, fmt.Errorf("no policy can keep %v, whatever the disk", c.need), "allow a larger loss or more memory"}
	case choice.Rate > maxRate:
		return choice, misuse("give a rate up to 1000M/s", "%v is more records a second than can be measured", c.need)
	}
	cells, _ := study.Advice().Outline(choice)
	return choice, checkMemory(cells)
}

func (c *consultation) print(w io.Writer, r advise.Recommendation) error {
	switch {
	case c.goLine && r.Advised == nil:
		return nil
	case c.goLine:
		_, err := fmt.Fprintln(w, "w, err := "+advise.GoLine(r.Advised.Policy))
		return err
	case c.export != "":
		return r.JSON(w)
	case c.program.Name != "":
		if _, err := fmt.Fprintln(w, c.program.Verdict(r)); err != nil {
			return err
		}
	}
	return r.Text(w)
}

// unmet is the refusal where no policy meets the need.
func (c *consultation) unmet(r advise.Recommendation) error {
	if r.Advised != nil {
		return nil
	}
	if c.program.Name != "" {
		return &refusal{exitNotMet, errors.New("this disk is not fast enough for " + c.program.Name), "what was found is on the standard output"}
	}
	return &refusal{exitNotMet, fmt.Errorf("no policy that was measured meets %v", c.need), "the nearest, and by how much it falls short, is on the standard output"}
}
