// Package write is the command write: it spreads lines over many files, under a policy.
package write

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/readahead"
)

// A distribution is what the flags of write say.
type distribution struct {
	out       pattern
	policy    holdfast.Policy
	separator string
	otherwise string
	split     bool
	mode      files.Mode
	dirs      bool
	bounds
	quiet, json, ack bool
}

// Bounds are what a run may use at most.
type bounds struct {
	handles int
	memory  holdfast.Size
	workers int
	retries int
}

// New is the command.
func New() *cobra.Command {
	d := &distribution{policy: holdfast.Periodic(time.Second), dirs: true, bounds: bounds{retries: 3, memory: 64 * holdfast.MiB}}
	cmd := &cobra.Command{
		Use: "write --out pattern [flags] < lines",
		Long: `Write appends each line that it reads to the file that the line itself names. The
pattern of --out is the path of a file with placeholders:
  {name} {user.id}   a field of the JSON object that the line is ({.3} is one too)
  {3}                the third column
  {%8}               0 to 7, in turns
  {line}             with --split: the number of the line, from 1
Braces themselves are doubled. What can't stand in a name is written as in a URL
(%2F for a slash, %- for nothing), so no value leaves the directory and no two share
a file; a name of more than 255 bytes ends in a digest.

A line that has no such field is reported with its number and not written; the others
are. The exit code is then 1. Lines stay as they are; a last one without
line feed gets one. The first SIGINT or SIGTERM ends the reading: all lines that
were read are then put in place, and the exit code is 130 or 143. A second one ends
it at once.`,
		Example: `  holdfast write --out 'logs/{user.id}.jsonl' --policy buffer=64KiB,sync=1s < events.jsonl
  holdfast write --out 'notes/{line}.json' --split --mode replace < events.jsonl`,
		Annotations: cli.Exits(map[int]string{cli.ExitNotMet: "lines were not written, or their files not ended as the policy says"}),
		Args:        cli.NoArguments,
		RunE:        func(cmd *cobra.Command, _ []string) error { return d.run(cmd) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(cli.FlagValue{Kind: "pattern", Parse: func(text string) (err error) { d.out, err = parsePattern(text); return err }, Text: func() string { return d.out.text }}, "out", "the file of each line, such as 'logs/{user.id}.jsonl'")
	f.Var(cli.Once("policy", &d.policy, holdfast.ParsePolicy), "policy", "when lines reach the kernel and the disk (default: buffer=64KiB,sync=1s,\nwhich loses at most the last second)")
	f.Var(cli.Once("text", &d.separator, parseSeparator), "separator", "what separates columns (default: any white space)")
	f.Var(cli.Once("file", &d.otherwise, parseElse), "else", "append lines to this file that have no such field, or are not JSON")
	f.BoolVar(&d.split, "split", false, "make each line a file of its own")
	f.Var(cli.Once("mode", &d.mode, parseMode), "mode", "what is done with a whole file that exists: create (fail, the\ndefault), truncate, append or replace")
	f.BoolVar(&d.dirs, "mkdir", true, "make directories that are missing; with =false their lines fail")
	f.BoolVar(&d.quiet, "quiet", false, "print failures only: neither progress nor totals")
	f.Var(cli.Once("number", &d.handles, cli.ParseBetween(4, 1<<20, "handles can't be")), "handles", "open at most so many files and directories at a time (default: a quarter of\nwhat the process may open, at most 1024)")
	f.Var(cli.Once("size", &d.memory, parseMemory), "memory", "let at most so many bytes wait in memory, over all files (default: 64MiB)")
	f.Var(cli.Once("number", &d.workers, cli.ParseBetween(1, 1024, "workers can't be")), "workers", "write so many files at a time (default: the number of CPUs)")
	f.Var(cli.Once("number", &d.retries, cli.ParseBetween(0, 1000, "retries can't be")), "retries", "try again so often what may pass, such as a full disk (default: 3)")
	cli.InGroup(f, "Bounds", "handles", "memory", "workers", "retries")
	f.BoolVar(&d.json, "json", false, "print the totals as one JSON object")
	f.BoolVar(&d.ack, "ack", false, "print, as it goes on, up to which line all is durable or was reported as\nfailed: needs sync=group or sync=each")
	cli.InGroup(f, "For programs", "json", "ack")
	return cmd
}

// parseElse reads the file for lines that have no other.
func parseElse(text string) (string, error) {
	if text == "" {
		return "", errors.New("a name is missing; leave --else out, and such lines are reported and not written")
	}
	if err := checkFile(text); err != nil {
		return "", fmt.Errorf("%q: %w", text, err)
	}
	return filepath.Clean(text), nil
}

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

func parseMode(text string) (m files.Mode, err error) {
	err = m.UnmarshalText([]byte(text))
	return m, err
}

// parseMemory reads a size that is not 0, which would stand for the default.
func parseMemory(text string) (holdfast.Size, error) {
	size, err := holdfast.ParseSize(text)
	if err == nil && size == 0 {
		return 0, errors.New("lines need some memory to wait in; use for instance 1MiB")
	}
	return size, err
}

// check refuses flags that are missing, or that contradict each other.
func (d *distribution) check(cmd *cobra.Command) error {
	switch {
	case d.out.text == "":
		return cli.Misuse("for instance: holdfast write --out 'logs/{name}.jsonl' < events.jsonl", "--out is missing: the files that the lines go to")
	case cmd.Flags().Changed("mode") && !d.split:
		return cli.Misuse("give --split too, or leave --mode out", "--mode is of whole files, and without --split lines are appended")
	case d.out.has(lineNumber) && !d.split:
		return cli.Misuse("give --split for a file of each line, or write {.line} for a field of that name", "--out %s: {line} without --split", d.out.text)
	case d.split && !slices.ContainsFunc(d.out.elements, element.varies):
		return cli.Misuse("put a placeholder into --out, such as {line}", "--split makes a file of each line, and --out %s names only one", d.out.text)
	case d.separator != "" && !d.out.has(column):
		return cli.Misuse("use a column such as {1} in --out, or leave --separator out", "--separator is of columns, and --out %s has none", d.out.text)
	case d.otherwise != "" && !d.out.has(jsonField) && !d.out.has(column):
		return cli.Misuse("leave --else out", "--else %s: every line has a file, --out %s asks for no field", d.otherwise, d.out.text)
	case d.ack && !d.waits():
		return cli.Misuse("give --policy sync=group", "--ack prints what is durable, which %v makes known only later", d.policy)
	}
	return nil
}

// waits reports whether a call returns only when its lines are durable.
func (d *distribution) waits() bool {
	return d.policy.Sync.Waits()
}

func (d *distribution) options() files.Options {
	return files.Options{
		Policy: d.policy, Workers: d.workers, Handles: d.handles, Memory: d.memory, MkdirAll: d.dirs,
		Retry: files.Retry{Attempts: d.retries + 1},
	}
}

func (d *distribution) run(cmd *cobra.Command) error {
	if err := d.check(cmd); err != nil {
		return err
	}
	files, err := files.New(d.options())
	if err != nil {
		return cli.Misuse(cli.SeeHelp(cmd), "%s", cli.PlainText(err))
	}
	show := newPulse(cli.NewProgress(cmd.ErrOrStderr(), d.quiet), files)
	input := cmd.InOrStdin()
	s := d.spread(files, show, input)
	if d.ack {
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
	s.totals = totals{Kind: "write", End: cli.EndComplete, Policy: d.policy}
	s.run(cmd.Context(), newIntake(input))
	s.close()
	s.totals.Elapsed = time.Since(show.begun)
	if !d.split {
		all := d.options().Loss(len(s.paths))
		s.totals.losses = &losses{all.Process.String(), int64(all.Process.Bytes), all.Power.String()}
	}
	show.End()
	why := s.refusal(input)
	var cannot *cli.Refusal
	switch {
	case errors.As(why, &cannot) && cannot.Code == cli.ExitCannot:
		return why
	case d.json:
		err = json.NewEncoder(cmd.OutOrStdout()).Encode(&s.totals)
	case !d.quiet:
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

func newIntake(r io.Reader) *intake {
	in := &intake{blocks: make(chan block, mostBlocks), free: make(chan []byte, mostBlocks+2), gone: make(chan struct{})}
	go in.run(r)
	return in
}

func (in *intake) run(input io.Reader) {
	r := readahead.NewReader(input, readahead.Options{Buffer: blockSize})
	for {
		var b []byte
		select {
		case b = <-in.free:
			b = b[:cap(b)]
		default:
			b = make([]byte, blockSize)
		}
		n, err := r.Read(b)
		if err != nil {
			if closeErr := r.Close(); errors.Is(err, io.EOF) && closeErr != nil {
				err = closeErr
			}
		}
		if !in.pass(block{b[:n], err}) || err != nil {
			return
		}
	}
}

// pass hands a block on. It reports false if no more blocks are taken and there is no room.
func (in *intake) pass(b block) bool {
	select {
	case in.blocks <- b:
		return true
	default:
	}
	select {
	case in.blocks <- b:
		return true
	case <-in.gone:
		return false
	}
}

func (d *distribution) spread(files *files.Set, show *pulse, input io.Reader) *spread {
	s := &spread{
		destination: destination{files: files, policy: d.policy, pattern: d.out, mode: d.mode, otherwise: d.otherwise, dirs: d.dirs, workers: d.appenders()},
		outcome:     outcome{seed: maphash.MakeSeed(), paths: map[uint64]tally{}, failed: map[string]bool{}},
		tails:       newTails(input), show: show,
	}
	s.line.separator = []byte(d.separator)
	s.splitter.most = maxLine
	s.batch.apart = d.split
	s.batch.byKey = map[string]*pile{}
	return s
}

func newTails(input io.Reader) *tails {
	t := &tails{paths: map[uint64]bool{}, files: map[fileID]struct{}{}}
	if f, ok := input.(*os.File); ok && isRegular(f) {
		t.input, _ = f.Stat() // isRegular has asked it too
	}
	return t
}

// mostWaiting is how many calls wait for the disk together.
const mostWaiting = 64

// appenders is how many goroutines append: many where each waits for the disk, and
// one where a call only copies.
func (d *distribution) appenders() int {
	switch {
	case d.waits():
		return mostWaiting
	case d.policy.Buffer > 0:
		return 1
	case d.workers > 0:
		return d.workers
	}
	return runtime.GOMAXPROCS(0)
}

// refusal says why the exit code is not 0.
func (s *spread) refusal(input io.Reader) error {
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
	case s.stop != nil && t.Failures[refused]+t.Failures[uncertain] > 0:
		hint := cli.CountText(lost, "line") + " that were read are not written; make room, and give again those of the files that failed, and the rest"
		if t.FirstLost > 0 {
			hint = fmt.Sprintf("%s that were read are not written, the first is line %d; make room, and give these and the rest again", cli.CountText(lost, "line"), t.FirstLost)
		}
		return &cli.Refusal{Code: cli.ExitNotMet, Err: fmt.Errorf("stopped at line %d: %s", t.Lines, cli.PlainText(s.stop)), Hint: hint}
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
		if f, ok := input.(*os.File); ok && isRegular(f) && !s.pattern.has(lineNumber) { // else the lines would get other numbers
			hint += fmt.Sprintf("; tail -n +%d of the same file has the rest", t.Lines+1)
		}
		return &cli.Refusal{Code: cli.ExitInterrupted, Err: fmt.Errorf("interrupted after line %d", t.Lines), Hint: hint}
	}
	return nil
}

func (s *spread) failedHint() string {
	f := &s.totals.Failures
	if f[missing]+f[notJSON]+f[noValue] > 0 && s.otherwise == "" {
		return "--else FILE takes the lines that have no such field"
	}
	switch {
	case errors.Is(s.first, fs.ErrExist):
		return "--mode truncate or --mode replace writes existing files anew"
	case errors.Is(s.first, fs.ErrNotExist) && !s.dirs:
		return "without --mkdir=false directories that are missing are made"
	case s.totals.FailedLate > 0:
		return "the report of each file above says what may be missing"
	case s.totals.Written == 0:
		return "give the lines again when what is reported above is mended"
	}
	return "all other lines are in place; give these again when what is reported above is mended"
}

func isRegular(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}
