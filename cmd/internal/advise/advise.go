// Package advise is the command advise: it chooses the cheapest policy that meets a need.
package advise

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/advise"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/sweep"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
	"github.com/holdfast-go/holdfast/cmd/internal/place"
	"github.com/holdfast-go/holdfast/cmd/internal/run"
)

// A consultation holds the flags of advise.
type consultation struct {
	where   run.Where
	file    string // of the results
	seed    uint64
	budget  time.Duration
	need    advise.Need
	program advise.Preset
	record  holdfast.Size
	writers int
	goLine  bool
	all     bool
	explain bool
	export  string
}

// adviceTime is how long advise measures: less than a minute with all that is
// around it.
const adviceTime = 45 * time.Second

// usualRate is the rate at which periods are judged where the need names none.
const usualRate = 1000

// New is the command advise.
func New() *cobra.Command {
	c := &consultation{where: run.Where{Dir: "."}, seed: uint64(rand.Uint32()), budget: adviceTime}
	cmd := &cobra.Command{
		Use: "advise [results.jsonl] [flags]",
		Long: `Advise names the cheapest policy that meets a need on this disk, with the evidence
and the margin. If no policy meets it, it names the nearest one and the shortfall, and
the exit code is 1. If that is not known, it says what would decide it, and the exit
code is 4. It judges the given results, or measures for less than a minute.

A need is a list of terms, such as loss<=1s,rate>=50k/s,p99<10ms:
  loss    the largest loss at a power cut: a time, a size, or 0
  crash   the largest loss when the process dies: a time, a size, or 0
  rate    records (50k/s) or bytes (10MiB/s) to write in a second
  p50 p90 p99 p99.9 max   the time of a Write; with a rate, since it was due
  cpu     the share of one CPU at the rate (5%)
  memory  the memory of a Writer`,
		Example: `  holdfast advise --need 'loss<=1s,rate>=50k/s,p99<10ms' --record 200B --writers 8
  holdfast advise --for etcd --dir .`,
		Annotations: cli.Exits(map[int]string{cli.ExitNotMet: "no policy meets the need", cli.ExitNotKnown: "it is not known if one does"}),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Misuse("for instance: holdfast advise --need 'loss<=1s' results.jsonl", "advise takes at most one results file, and %d were given", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.explain {
				return c.explainSettings(cmd, args)
			}
			return c.run(cmd, args)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(cli.Once("need", &c.need, advise.ParseNeed), "need", "what the policy must keep, such as 'loss<=1s,p99<10ms'")
	f.Var(cli.Once("program", &c.program, advise.ParsePreset), "for", "is this disk fast enough for "+forPrograms()+";\na term of --need replaces the same term of the program")
	f.Var(cli.Once("size", &c.record, run.ParseRecord), "record", "size of a record (default: 128B, or the one in the results)")
	f.Var(cli.Once("number", &c.writers, run.ParseWriters), "writers", "goroutines that write to one file (default: 1, or as in the results)")
	c.where.DirFlag(f)
	f.BoolVar(&c.goLine, "go", false, "print only the line of Go to paste")
	f.BoolVar(&c.all, "all", false, "print every policy that was judged, and the evidence")
	f.Var(cli.Once("format", &c.export, parseAdviceFormat), "export", "print this format instead of text: json, openmetrics")
	f.BoolVar(&c.explain, "explain", false, "show the settings of the program of --for: the loss and the cost of each")
	cli.InGroup(f, "Output", "go", "all", "export", "explain")
	f.VarP(cli.Target("file", &c.file, cli.NewLines("results.jsonl")), "output", "o", "keep the results in this new file (JSON Lines)")
	f.Var(cli.Once("duration", &c.budget, cli.ParseTime(time.Second)), "time", "measure for at most this time (default: 45s)")
	run.SeedFlag(f, &c.seed)
	c.where.TmpfsFlag(f)
	cli.InGroup(f, "Measuring", "time", "seed", "allow-tmpfs")
	return cmd
}

// forPrograms lists the presets in lines for the help.
func forPrograms() string {
	names := advise.PresetNames()
	return strings.Join(names[:3], ", ") + ",\n" + strings.Join(names[3:6], ", ") + ",\n" + strings.Join(names[6:], ", ")
}

// openMetrics is the export for the textfile collector of node_exporter.
const openMetrics = "openmetrics"

func parseAdviceFormat(text string) (string, error) {
	if text != "json" && text != openMetrics {
		return "", fmt.Errorf("%q is not a format of advise; use json or openmetrics, or leave --export out for text", text)
	}
	return text, nil
}

func (c *consultation) run(cmd *cobra.Command, args []string) error {
	if err := c.check(cmd, args); err != nil {
		return err
	}
	of, err := c.results(cmd, args)
	if err != nil {
		return err
	}
	if made := of.FileSystems(); len(made) > 0 {
		return cli.Misuse("holdfast report shows the advice for each of them; or measure one with --dir", "%s has results of several file systems (%s), and advise is for one", c.source(args), strings.Join(made, ", "))
	}
	figures, err := figure.Of(of)
	if err != nil {
		return cli.CannotReport(c.source(args), err)
	}
	loads := advise.Loads(figures, c.load())
	if len(loads) < 2 || c.goLine || c.export != "" {
		loads = []advise.Load{c.load()} // which one document has a place for
	}
	var unmet *cli.Refusal
	for i, load := range loads {
		r, err := advise.Recommend(figures, c.need, load)
		if err != nil {
			return cli.Misuse("choose one of these loads with --record and --writers", "%s: %w", c.source(args), err)
		}
		if i > 0 {
			if _, err := io.WriteString(cmd.OutOrStdout(), "\n"); err != nil {
				return err
			}
		}
		if len(loads) > 1 && !c.all { // all says it itself
			if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%v:\n", load); err != nil {
				return err
			}
		}
		if err := c.print(cmd.OutOrStdout(), r); err != nil {
			return err
		}
		if worse := c.refusal(r, len(loads) > 1, args); worse != nil && (unmet == nil || worse.Code < unmet.Code) {
			unmet = worse // not met is worse than not known
		}
	}
	if unmet != nil {
		return unmet
	}
	return nil
}

// refusal says that the need is not met under a load, or that this is not known; nil: it is met.
func (c *consultation) refusal(r advise.Recommendation, several bool, args []string) *cli.Refusal {
	under := ""
	if several {
		under = fmt.Sprintf(" with %v", advise.Load{RecordBytes: r.Load.RecordBytes, Writers: r.Load.Writers})
	}
	subject := fmt.Sprintf("a measured policy meets %v%s", c.need, under)
	if c.program.Name != "" {
		subject = "this disk is fast enough for " + c.program.Name + under
	}
	switch r.Verdict() {
	case advise.Met:
		return nil
	case advise.NotKnown:
		hint := fmt.Sprintf("measure longer, such as with --time %v", (3 * c.budget).Round(time.Second))
		if len(args) > 0 {
			hint = "leave out " + args[0] + " to measure what this need requires"
		}
		return &cli.Refusal{Code: cli.ExitNotKnown, Err: fmt.Errorf("it is not known whether %s", subject), Hint: hint}
	case advise.NotMet:
	}
	refusal := &cli.Refusal{Code: cli.ExitNotMet, Err: fmt.Errorf("no measured policy meets %v%s", c.need, under), Hint: "standard output names the nearest policy and its shortfall"}
	if c.program.Name != "" {
		refusal.Err, refusal.Hint = errors.New("this disk is not fast enough for "+c.program.Name), "standard output shows the measured figures"
	}
	return refusal
}

func (c *consultation) source(args []string) string {
	if len(args) > 0 {
		return args[0]
	}
	return c.where.Dir
}

func missing(file string) bool {
	_, err := os.Stat(file)
	return errors.Is(err, fs.ErrNotExist)
}

// check completes the need and refuses flags that contradict each other.
func (c *consultation) check(cmd *cobra.Command, args []string) (err error) {
	switch {
	case c.need == nil && c.program.Name == "" && len(args) == 1 && args[0] != "-" && missing(args[0]):
		return cli.Misuse(cli.HintResults, "there is no file %s", args[0])
	case c.need == nil && c.program.Name == "":
		return cli.Misuse("for instance: holdfast advise --need 'loss<=1s,rate>=50k/s,p99<10ms'", "a need is missing")
	case c.goLine && c.export != "":
		return cli.Misuse("leave one out", "--go and --export contradict each other")
	}
	for _, flag := range []string{"dir", "output", "time", "seed", "allow-tmpfs"} {
		if len(args) > 0 && cmd.Flags().Changed(flag) {
			return cli.Misuse("leave out "+args[0]+" to measure, or --"+flag+" to judge", "--%s is for a measurement, and %s has been measured already", flag, args[0])
		}
	}
	if c.program.Name != "" {
		if c.need, err = c.program.Need.With(c.need); err != nil {
			return cli.Misuse(cli.SeeHelp(cmd), "--need: %w", err)
		}
	}
	return cli.IsFree("-o", c.file)
}

// load is the requested workload, or the one in the results.
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
func (c *consultation) results(cmd *cobra.Command, args []string) (of result.Run, err error) {
	if len(args) > 0 {
		return cli.ReadResults(cmd.Context(), args[0], cmd.InOrStdin())
	}
	choice, err := c.choice()
	if err != nil {
		return of, err
	}
	ground, err := trial.OpenWorkDir(c.where.Dir, c.where.AllowTmpfs)
	if err != nil {
		return of, place.CannotOpen(c.where.Dir, err)
	}
	defer func() { err = place.CloseWorkDir(ground, err) }()
	s := run.New(cmd.ErrOrStderr(), ground, c.where.Dir, c.file)
	if c.program.Name != "" {
		s.Enough = c.decided
	}
	err = s.Refuse(s.Measure(cmd.Context(), sweep.Advice(), choice))
	var left []string
	for _, p := range choice.Policies {
		if !slices.ContainsFunc(s.Run.Header.Cells, func(c result.Cell) bool { return !c.Empty && c.Policy == p }) {
			left = append(left, p.String())
		}
	}
	if err == nil && len(left) > 0 {
		s.Say("not measured, because %v is too short for useful trials of them: %s", c.budget, strings.Join(left, "; "))
	}
	return s.Run, err
}

// decided reports whether the results say clearly if the disk is fast enough for the program.
func (c *consultation) decided(of result.Run) bool {
	const least = 3 // rounds
	if of.Rounds() < least {
		return false
	}
	figures, err := figure.Of(of)
	if err != nil {
		return false
	}
	r, err := advise.Recommend(figures, c.need, c.load())
	return err == nil && r.Clear()
}

// choice is the measurement for the need.
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
		Preset: study.Default(), Width: stat.Band, // the need decides, and not which policy is the faster one
		Budget: c.budget, Seed: c.seed, Policies: policies,
		Records: []holdfast.Size{holdfast.Size(l.RecordBytes)}, Writers: []int{l.Writers},
		Setting: study.Setting{Rate: c.need.Records(l.RecordBytes)}, Quantile: c.need.Rarest(),
	}
	if choice.Rate == 0 && slices.ContainsFunc(policies, func(p holdfast.Policy) bool { return p.FlushEvery > 0 || p.Sync.Mode == holdfast.SyncPeriodic }) {
		choice.Rate = usualRate // a period falls due in time, not in records
	}
	switch {
	case len(policies) == 0 && c.program.Name != "":
		return choice, &cli.Refusal{Code: cli.ExitNotMet, Err: fmt.Errorf("no policy of %s can keep %v on any disk", c.program.Name, c.need), Hint: "allow a larger loss, or leave out --for"}
	case len(policies) == 0:
		return choice, &cli.Refusal{Code: cli.ExitNotMet, Err: fmt.Errorf("no policy can keep %v on any disk", c.need), Hint: "allow a larger loss or more memory"}
	case choice.Rate > run.MaxRate:
		return choice, cli.Misuse("give a rate up to 1000M/s", "%v needs more records a second than can be measured", c.need)
	}
	cells, _ := sweep.Advice().Outline(choice)
	return choice, run.CheckMemory(cells)
}

func (c *consultation) print(w io.Writer, r advise.Recommendation) error {
	switch {
	case c.goLine && r.Advised == nil:
		return nil
	case c.goLine:
		_, err := fmt.Fprintln(w, "w, err := "+advise.GoLine(r.Advised.Policy))
		return err
	case c.export == openMetrics:
		return r.OpenMetrics(w, c.program.Name)
	case c.export != "":
		return r.JSON(w)
	}
	return cli.WriteLocal(w, func(w io.Writer) error {
		if c.program.Name != "" {
			if _, err := fmt.Fprintln(w, c.program.Verdict(r)); err != nil {
				return err
			}
		}
		return r.Text(w, c.all)
	})
}
