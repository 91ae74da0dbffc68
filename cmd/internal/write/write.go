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
		Long: `Write puts each line that it reads into a file, under a policy. With --split N each
value of the Nth column has a file of its own: it stands for {} in the name. What
can't stand there is written as in a URL (%2F for a slash, %- for nothing), so no
value leaves the directory and no two share a file.

A line that has no such column is reported with its number and not written; the
others are. The exit code is then 1. Lines stay as they are; a last one without line
feed gets one. A file that has bytes already is refused, or with -a gets more: a last
line that is torn there is ended first. The first SIGINT or SIGTERM ends the reading:
all lines that were read are then put in place, and the exit code is 130 or 143. A
second one ends it at once.`,
		Example: `  holdfast write -a --out logs/app.log --policy buffer=64KiB,sync=1s < events.log
  holdfast write --out 'logs/{}.csv' --split 2 --separator , < events.csv`,
		Annotations: cli.Exits(map[int]string{cli.ExitNotMet: "lines were not written, or their files not ended as the policy says"}),
		Args:        cli.NoArguments,
		RunE:        func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(cli.Once("file", &o.out, parseTarget), "out", "the file of the lines; with --split {} stands for the value, as in\n'logs/{}.log'")
	f.Var(cli.Once("policy", &o.policy, cli.ParsePolicy), "policy", "when lines reach the kernel and the disk (default: buffer=64KiB,sync=1s,\nwhich loses at most the last second)")
	f.BoolVarP(&o.appends, "append", "a", false, "append to files that have bytes already")
	f.Var(cli.Once("column", &o.column, cli.ParseBetween(1, mostColumns, "can't be a column")), "split", "make a file of each value of this column, from 1")
	f.Var(cli.Once("text", &o.separator, parseSeparator), "separator", "what separates columns (default: any white space)")
	f.BoolVar(&o.quiet, "quiet", false, "print failures only: neither progress nor totals")
	f.BoolVar(&o.json, "json", false, "print the totals as one JSON object")
	f.BoolVar(&o.ack, "ack", false, "print, as it goes on, up to which line all is durable or was reported as\nfailed: needs sync=group or sync=each")
	cli.InGroup(f, "For programs", "json", "ack")
	return cmd
}

// mostColumns is more than anybody has.
const mostColumns = 1_000_000

// parseSeparator reads what separates columns.
func parseSeparator(text string) (string, error) {
	switch {
	case text == "":
		return "", errors.New("nothing can't separate columns; leave --separator out for white space")
	case strings.Contains(text, "\n"):
		return "", fmt.Errorf("%q can't separate columns: a line feed ends the line; leave it out", text)
	}
	return text, nil
}

// check refuses flags that are missing, or that contradict each other.
func (o *order) check() error {
	switch {
	case o.out == target{}:
		return cli.Misuse("for instance: holdfast write --out logs/app.log < lines", "--out is missing: the file that the lines go to")
	case o.column > 0 && !o.out.varies:
		return cli.Misuse("put {} into the file's name, such as 'logs/{}.log'", "--split %d makes a file of each value, and --out %s names only one", o.column, o.out)
	case o.column == 0 && o.out.varies:
		return cli.Misuse("give --split too, such as --split 1", "--out %s: {} stands for the value of a column, and no --split says which", o.out)
	case o.separator != "" && o.column == 0:
		return cli.Misuse("give --split too, or leave --separator out", "--separator %q is of columns, and without --split none is looked at", o.separator)
	case o.ack && !o.policy.Sync.Waits():
		return cli.Misuse("give --policy sync=group", "--ack prints what is durable, which %v makes known only later", o.policy)
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
		show.Say("reading lines from the terminal; end them with %s", end)
	} else {
		show.Every(show.text)
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
		return &cli.Refusal{Code: cli.ExitNotMet, Err: &cli.OutputFailure{Err: err}, Hint: "all lines are in place; only the totals are not printed"}
	}
	return why
}

func newPulse(line *cli.Progress, files *files.Set) *pulse {
	return &pulse{Progress: line, files: files, begun: time.Now()}
}

func (o *order) spread(set *files.Set, show *pulse, input io.Reader) *spread {
	s := &spread{
		target: o.out, column: o.column, separator: []byte(o.separator), appends: o.appends, policy: o.policy,
		set: set, workers: o.workers(), show: show, files: map[string]*file{},
		totals: totals{Kind: "write", End: cli.EndComplete, Policy: o.policy},
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
		return &cli.Refusal{Code: cli.ExitCannot, Err: unread, Hint: "give it lines on standard input, as in holdfast write … < events.jsonl"}
	case unread != nil:
		return &cli.Refusal{Code: cli.ExitNotMet, Err: unread, Hint: fmt.Sprintf("the lines before are in place; give the rest from line %d on again", t.Lines+1)}
	case errors.Is(s.stop, errIsInput):
		return &cli.Refusal{Code: cli.ExitNotMet, Err: s.stop, Hint: "write to another file, and give it this name at the end"}
	case errors.Is(s.stop, errExists):
		return &cli.Refusal{Code: cli.ExitNotMet, Err: s.stop, Hint: "-a appends to it"}
	case s.stop != nil && t.Failures[refused]+t.Failures[uncertain] > 0:
		hint := cli.CountText(lost, "line") + " that were read are not written; make room, and give again those of the files that failed, and the rest"
		if t.FirstLost > 0 {
			hint = fmt.Sprintf("%s that were read are not written, the first is line %d; make room, and give these and the rest again", cli.CountText(lost, "line"), t.FirstLost)
		}
		return &cli.Refusal{Code: cli.ExitNotMet, Err: fmt.Errorf("stopped at line %d: %s", t.Lines, cli.PlainText(s.stop)), Hint: hint}
	case errors.Is(s.stop, errNoReader):
		return &cli.Refusal{Code: cli.ExitUnread, Err: s.stop, Hint: fmt.Sprintf("the lines up to line %d are durable, and later ones were not taken", t.Lines)}
	case s.stop != nil:
		return &cli.Refusal{Code: cli.ExitNotMet, Err: s.stop, Hint: fmt.Sprintf("the lines up to line %d are in place", t.Lines)}
	case lost > 0:
		were := "were"
		if lost == 1 {
			were = "was"
		}
		return &cli.Refusal{Code: cli.ExitNotMet, Err: fmt.Errorf("%s of %s %s not written", cli.Grouped(lost), cli.CountText(t.Lines, "line"), were), Hint: s.failedHint()}
	case t.FailedFiles > 0:
		return &cli.Refusal{Code: cli.ExitNotMet, Err: fmt.Errorf("%s could not be ended as the policy says", cli.CountText(int64(t.FailedFiles), "file")), Hint: "the report of each above says what may be missing"}
	case t.End == cli.EndInterrupted:
		hint := "all lines until then are in place"
		if s.input != nil {
			hint += fmt.Sprintf("; tail -n +%d of the same file has the rest", t.Lines+1)
		}
		return &cli.Refusal{Code: cli.ExitInterrupted, Err: fmt.Errorf("interrupted after line %d", t.Lines), Hint: hint}
	}
	return nil
}

func (s *spread) failedHint() string {
	switch f := &s.totals.Failures; {
	case f[missing] > 0:
		return fmt.Sprintf("--split %d needs as many columns in each line; --separator says what is between them", s.column)
	case s.totals.FailedLate > 0:
		return "the report of each file above says what may be missing"
	case s.totals.Written == 0:
		return "give the lines again when what is reported above is mended"
	}
	return "all other lines are in place; give these again when what is reported above is mended"
}
