// Package write is the command write: lines go to a file, or to one for each value of a column, under a policy.
package write

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/files"
)

// An order holds the flags of write.
type order struct {
	out              target
	policy           holdfast.Policy
	column           int
	separator        string
	appends          bool
	quiet, json, ack bool
}

// New is the command.
func New() *cobra.Command {
	o := &order{policy: holdfast.Periodic(time.Second)}
	cmd := &cobra.Command{
		Use: "write --out file [flags] < lines",
		Long: `Write appends each line of standard input to a file, under a policy. With --split N
each value of the Nth column has a file of its own: the value replaces {} in the
name. Characters that a name can't have are written as in a URL (%2F for a slash, %-
for an empty value), so every file is in the directory, and no two values share one.

A line without that column is reported with its number and not written; all others
are, and the exit code is 1. Lines are not changed; a last line without a line feed
gets one. A file that has bytes already is refused; with -a lines are appended to it,
after its torn last line, if any, has been ended. The first SIGINT or SIGTERM stops
the reading: the lines read so far are written, and the exit code is 130 or 143. A
second one stops write at once.`,
		Example: `  holdfast write -a --out logs/app.log --policy buffer=64KiB,sync=1s < events.log
  holdfast write --out 'logs/{}.csv' --split 2 --separator , < events.csv`,
		Annotations: cli.Exits(map[int]string{cli.ExitNotMet: "lines were not written, or a file could not be synced as the policy says"}),
		Args:        cli.NoArguments,
		RunE:        func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(cli.Target("file", &o.out, parseTarget), "out", "the file to write to; with --split the value replaces {}, as in\n'logs/{}.log'")
	f.Var(cli.Once("policy", &o.policy, cli.ParsePolicy), "policy", "when lines reach the kernel and the disk (default: buffer=64KiB,sync=1s,\nwhich loses at most the last second)")
	f.BoolVarP(&o.appends, "append", "a", false, "append to files that have bytes already")
	f.Var(cli.Once("column", &o.column, cli.ParseBetween(1, mostColumns, "can't be a column")), "split", "make a file for each value of this column, counted from 1")
	f.Var(cli.Once("text", &o.separator, parseSeparator), "separator", "the separator of columns (default: any white space)")
	f.BoolVar(&o.quiet, "quiet", false, "print only failures: neither progress nor totals")
	f.BoolVar(&o.json, "json", false, "print the totals as one JSON object")
	f.BoolVar(&o.ack, "ack", false, "print line numbers as acknowledgements: all lines up to the number are\ndurable or were reported as failed; needs sync=group or sync=each")
	cli.InGroup(f, "For programs", "json", "ack")
	return cmd
}

// mostColumns is more than anybody has.
const mostColumns = 1_000_000

// parseSeparator reads what separates columns.
func parseSeparator(text string) (string, error) {
	switch {
	case text == "":
		return "", errors.New("an empty separator is not possible; leave --separator out for white space")
	case strings.Contains(text, "\n"):
		return "", fmt.Errorf("%q can't be a separator: a line feed ends the line; leave it out", text)
	}
	return text, nil
}

// check refuses flags that are missing, or that contradict each other.
func (o *order) check() error {
	switch {
	case o.out == target{}:
		return cli.Misuse("for instance: holdfast write --out logs/app.log < lines", "--out is missing: it names the file to write to")
	case o.column > 0 && !o.out.varies:
		return cli.Misuse("put {} into the file's name, such as 'logs/{}.log'", "--split %d makes a file for each value, and --out %s names only one", o.column, o.out)
	case o.column == 0 && o.out.varies:
		return cli.Misuse("give --split too, such as --split 1", "--out %s needs --split, which chooses the column for {}", o.out)
	case o.separator != "" && o.column == 0:
		return cli.Misuse("give --split too, or leave --separator out", "--separator %q needs --split: nothing else uses columns", o.separator)
	case o.ack && !o.policy.Sync.Waits():
		return cli.Misuse("give --policy sync=group", "--ack needs sync=group or sync=each: under %v a line is durable only later", o.policy)
	}
	return nil
}

// options have lines whose torn ends the library ends itself.
func (o *order) options() files.Options {
	return files.Options{Policy: o.policy, MkdirAll: true, Lines: true}
}

func (o *order) run(cmd *cobra.Command) error {
	if err := o.check(); err != nil {
		return err
	}
	set, err := files.New(o.options())
	if err != nil {
		return cli.Misuse(cli.SeeHelp(cmd), "%s", cli.PlainText(err))
	}
	show := newPulse(cli.NewProgress(cmd.ErrOrStderr(), o.quiet), set)
	input := cmd.InOrStdin()
	s := o.spread(set, show, input)
	if o.ack {
		s.ack = cmd.OutOrStdout()
	}
	if f, ok := input.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		end := "Ctrl-D"
		if runtime.GOOS == "windows" {
			end = "Ctrl-Z and Enter"
		}
		show.Say("reading lines from the terminal; press %s to end", end)
	} else {
		show.Every(show.text)
	}
	if o.column == 0 { // one file: what is wrong with it is said before a line comes, and if none does
		if f := s.file(nil); errors.Is(f.bad, errNotRegular) {
			s.stop = f.bad
		}
	}
	s.run(cmd.Context(), newIntake(input))
	s.close()
	s.totals.Elapsed = time.Since(show.begun)
	all := o.options().Loss(len(s.files))
	s.totals.losses = losses{all.Process.String(), int64(all.Process.Bytes), all.Power.String()}
	show.End()
	why := s.refusal()
	var cannot *cli.Refusal
	switch {
	case errors.As(why, &cannot) && cannot.Code == cli.ExitCannot:
		return why
	case o.json:
		err = json.NewEncoder(cmd.OutOrStdout()).Encode(&s.totals)
	case !o.quiet:
		err = cli.WriteLocal(cmd.OutOrStdout(), s.totals.print)
	}
	if err != nil && why == nil {
		return &cli.Refusal{Code: cli.ExitNotMet, Err: &cli.OutputFailure{Err: err}, Hint: "all lines are written; only the totals could not be printed"}
	}
	return why
}

func newPulse(line *cli.Progress, files *files.Set) *pulse {
	return &pulse{Progress: line, files: files, begun: time.Now()}
}

func (o *order) spread(set *files.Set, show *pulse, input io.Reader) *spread {
	s := &spread{
		target: o.out, column: o.column, separator: []byte(o.separator), appends: o.appends, policy: o.policy,
		set: set, workers: o.workers(), least: leastBatch, show: show, files: map[string]*file{},
		totals: totals{Kind: "write", End: cli.EndComplete, Policy: o.policy},
	}
	if o.column == 0 || o.policy.Sync.Waits() { // a larger batch shares more
		s.least = mostBatch
	}
	if f, ok := input.(*os.File); ok {
		if is, err := f.Stat(); err == nil && is.Mode().IsRegular() {
			s.input = is
		}
	}
	s.splitter = splitter{most: maxLine, lines: s.takeLines, tooLong: s.takeTooLong}
	return s
}

// workers is how many goroutines append: many where each waits for the disk, and
// one where a call only copies.
func (o *order) workers() int {
	switch {
	case o.policy.Sync.Waits():
		return 64
	case o.policy.Buffer > 0:
		return 1
	}
	return runtime.GOMAXPROCS(0)
}

// refusal says why the exit code is not 0.
func (s *spread) refusal() error {
	t := &s.totals
	lost := t.Failures.sum()
	var unread *inputError
	switch {
	case errors.As(s.stop, &unread) && t.Lines == 0:
		return &cli.Refusal{Code: cli.ExitCannot, Err: unread, Hint: "pass the lines on standard input, as in holdfast write … < events.jsonl"}
	case unread != nil:
		return &cli.Refusal{Code: cli.ExitNotMet, Err: unread, Hint: fmt.Sprintf("the lines before are written; pass the rest again, from line %d on", t.Lines+1)}
	case errors.Is(s.stop, errIsInput):
		return &cli.Refusal{Code: cli.ExitNotMet, Err: s.stop, Hint: "write to another file, and rename it at the end"}
	case errors.Is(s.stop, errExists):
		return &cli.Refusal{Code: cli.ExitNotMet, Err: s.stop, Hint: "-a appends to it"}
	case errors.Is(s.stop, errNotRegular):
		return &cli.Refusal{Code: cli.ExitNotMet, Err: s.stop, Hint: "no line was read; name a file"}
	case s.stop != nil && t.Failures[refused]+t.Failures[uncertain] > 0:
		hint := cli.CountText(lost, "line") + " of the input are not written; make room, then pass the lines of the failed files and the rest again"
		if t.FirstLost > 0 {
			hint = fmt.Sprintf("%s of the input are not written, the first is line %d; make room, then pass these and the rest again", cli.CountText(lost, "line"), t.FirstLost)
		}
		return &cli.Refusal{Code: cli.ExitNotMet, Err: fmt.Errorf("stopped at line %d: %s", t.Lines, textOf(s.stop)), Hint: hint}
	case errors.Is(s.stop, errNoReader):
		return &cli.Refusal{Code: cli.ExitUnread, Err: s.stop, Hint: fmt.Sprintf("the lines up to line %d are durable, and later ones were not accepted", t.Lines)}
	case s.stop != nil:
		return &cli.Refusal{Code: cli.ExitNotMet, Err: s.stop, Hint: fmt.Sprintf("the lines up to line %d are written", t.Lines)}
	case lost > 0:
		were := "were"
		if lost == 1 {
			were = "was"
		}
		return &cli.Refusal{Code: cli.ExitNotMet, Err: fmt.Errorf("%s of %s %s not written", cli.Grouped(lost), cli.CountText(t.Lines, "line"), were), Hint: s.failedHint()}
	case t.FailedFiles > 0:
		return &cli.Refusal{Code: cli.ExitNotMet, Err: fmt.Errorf("%s could not be synced as the policy says", cli.CountText(int64(t.FailedFiles), "file")), Hint: "the messages above name the lines that may be missing"}
	case t.End == cli.EndInterrupted:
		hint := "all lines until then are written"
		if s.input != nil {
			hint += fmt.Sprintf("; tail -n +%d of the input file has the rest", t.Lines+1)
		}
		return &cli.Refusal{Code: cli.ExitInterrupted, Err: fmt.Errorf("interrupted after line %d", t.Lines), Hint: hint}
	}
	return nil
}

func (s *spread) failedHint() string {
	switch f := &s.totals.Failures; {
	case f[missing] > 0:
		return fmt.Sprintf("--split %d needs this column in each line; --separator sets the separator", s.column)
	case s.totals.FailedLate > 0:
		return "the messages above name the lines that may be missing"
	case s.totals.Written == 0:
		return "fix the failures above, and pass the lines again"
	}
	return "all other lines are written; fix the failures above, and pass these again"
}
