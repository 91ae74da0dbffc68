package main

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/holdfast-go/holdfast"
)

// A distribution is what the flags of write say.
type distribution struct {
	out       pattern
	policy    holdfast.Policy
	separator string
	otherwise string
	split     bool
	mode      holdfast.Mode
	folders   bool
	quiet     bool
	handles   int
	memory    holdfast.Size
	workers   int
	retries   int
	json, ack bool
}

func newWrite() *cobra.Command {
	d := &distribution{policy: holdfast.Periodic(time.Second), folders: true, retries: 3, memory: 64 * holdfast.MiB}
	cmd := &cobra.Command{
		Use:   "write --out pattern [flags] < lines",
		Short: "spread lines from standard input over many files, under a policy",
		Long: `Write appends each line that it reads to the file that the line itself names. The
pattern of --out is the path of a file with placeholders:
  {name} {user.id}   a field of the JSON object that the line is ({.3} is one too)
  {3}                the third column
  {%8}               0 to 7, in turns
  {line}             with --split: the number of the line, from 1
Braces themselves are doubled. What can't stand in a name is written as in a URL
(%2F for a slash, %- for nothing), so no value leaves the folder and no two share
a file; a name of more than 255 bytes ends in a digest.

A line that has no such field is told with its number and not written, but goes on
with the others; the exit code is then 1. Lines stay as they are; a last one without
line feed gets one. The first SIGINT or SIGTERM ends the reading: all lines that
were read are then put in place, and the exit code is 130. A second one ends it at
once.`,
		Example: `  holdfast write --out 'logs/{user.id}.jsonl' --policy buffer=64KiB,sync=1s < events.jsonl
  holdfast write --out 'notes/{line}.json' --split --mode replace < events.jsonl`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return d.run(cmd) },
	}
	d.addFlags(cmd)
	return cmd
}

func (d *distribution) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(flagValue{"pattern", d.setOut, func() string { return d.out.text }}, "out", "the file of each line, such as 'logs/{user.id}.jsonl'")
	f.Var(once("policy", &d.policy, holdfast.ParsePolicy), "policy", "when lines reach the kernel and the disk (default: buffer=64KiB,sync=1s,\nwhich loses at most the last second)")
	f.Var(once("text", &d.separator, parseSeparator), "separator", "what separates columns (default: any white space)")
	f.Var(once("file", &d.otherwise, parseElse), "else", "append lines to this file that have no such field, or are not JSON")
	f.BoolVar(&d.split, "split", false, "make each line a file of its own")
	f.Var(once("mode", &d.mode, parseMode), "mode", "what is done with a whole file that is there: create (fail, the\ndefault), truncate, append or replace")
	f.BoolVar(&d.folders, "folders", true, "make folders that are missing; with =false their lines fail")
	f.BoolVar(&d.quiet, "quiet", false, "tell failures only: neither progress nor totals")
	f.Var(once("number", &d.handles, parseCountOf("handles", 4, 1<<20)), "handles", "open at most so many files and folders at a time (default: a quarter of\nwhat the process may open, at most 1024)")
	f.Var(once("size", &d.memory, parseMemory), "memory", "let at most so many bytes wait in memory, over all files (default: 64MiB)")
	f.Var(once("number", &d.workers, parseCountOf("workers", 1, 1024)), "workers", "write so many files at a time (default: the number of CPUs)")
	f.Var(once("number", &d.retries, parseCountOf("retries", 0, 1000)), "retries", "try again so often what may pass, such as a full disk (default: 3)")
	inGroup(f, "Bounds", "handles", "memory", "workers", "retries")
	f.BoolVar(&d.json, "json", false, "print the totals as one JSON object")
	f.BoolVar(&d.ack, "ack", false, "print, as it goes on, up to which line all is durable or was told to have\nfailed: needs sync=group or sync=each")
	inGroup(f, "For programs", "json", "ack")
}

func (d *distribution) setOut(text string) (err error) {
	d.out, err = parsePattern(text)
	return err
}

func parseMode(text string) (m holdfast.Mode, err error) {
	err = m.UnmarshalText([]byte(text))
	return m, err
}

// parseCountOf returns a parser of whole numbers between bounds.
func parseCountOf(noun string, least, most int) func(string) (int, error) {
	return func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil {
			return 0, fmt.Errorf("%q is not a whole number", text)
		}
		if n < least || n > most {
			return 0, fmt.Errorf("%d %s can't be; use %d to %d", n, noun, least, most)
		}
		return n, nil
	}
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
		return misuse("for instance: holdfast write --out 'logs/{name}.jsonl' < events.jsonl", "--out is missing: the files that the lines go to")
	case cmd.Flags().Changed("mode") && !d.split:
		return misuse("give --split too, or leave --mode out", "--mode is of whole files, and without --split lines are appended")
	case d.out.has(lineNumber) && !d.split:
		return misuse("give --split for a file of each line, or write {.line} for a field of that name", "--out %s: {line} without --split", d.out.text)
	case d.split && !d.out.varies():
		return misuse("put a placeholder into --out, such as {line}", "--split makes a file of each line, and --out %s names only one", d.out.text)
	case d.separator != "" && !d.out.has(column):
		return misuse("use a column such as {1} in --out, or leave --separator out", "--separator is of columns, and --out %s has none", d.out.text)
	case d.otherwise != "" && !d.out.has(jsonField) && !d.out.has(column):
		return misuse("leave --else out", "--else %s: every line has a file, --out %s asks for no field", d.otherwise, d.out.text)
	case d.ack && !d.waits():
		return misuse("give --policy sync=group", "--ack tells what is durable, which %v makes known only later", d.policy)
	}
	return nil
}

// waits reports whether a call returns only when its lines are durable.
func (d *distribution) waits() bool {
	return d.policy.Sync == holdfast.SyncGroup || d.policy.Sync == holdfast.SyncEach
}

func (d *distribution) options() holdfast.FilesOptions {
	return holdfast.FilesOptions{
		Policy: d.policy, Workers: d.workers, Handles: d.handles, Memory: d.memory, Folders: d.folders,
		Retry: holdfast.Retry{Attempts: d.retries + 1},
	}
}

func (d *distribution) run(cmd *cobra.Command) error {
	if err := d.check(cmd); err != nil {
		return err
	}
	files, err := holdfast.NewFiles(d.options())
	if err != nil {
		return misuse(seeHelp(cmd), "%s", plainText(err))
	}
	show := newPulse(cmd.ErrOrStderr(), d.quiet, files)
	s := d.spread(files, show)
	if d.ack {
		s.ack = cmd.OutOrStdout()
	}
	input := cmd.InOrStdin()
	if isKeyboard(input) {
		show.say("reading lines from the terminal; end them with %s", endOfInput())
	} else {
		show.start()
	}
	s.totals = totals{Kind: "write", End: endComplete, Policy: d.policy}
	s.run(cmd.Context(), newIntake(input))
	s.close()
	s.totals.Elapsed = time.Since(show.begun)
	show.stop()
	why := s.refusal(input)
	if isRefusal(why, exitCannot) {
		return why
	}
	if err := d.print(cmd.OutOrStdout(), &s.totals); err != nil && why == nil {
		return &refusal{exitNotMet, &outputFailure{err}, "all lines are in place, only the totals are not told"}
	}
	return why
}

func (d *distribution) spread(files *holdfast.Files, show *pulse) *spread {
	s := &spread{
		files: files, policy: d.policy, pattern: d.out, mode: d.mode, otherwise: d.otherwise, folders: d.folders, workers: d.appenders(), show: show,
		seed: maphash.MakeSeed(), paths: map[uint64]tally{}, failed: map[string]bool{},
	}
	s.line.separator = []byte(d.separator)
	s.splitter.most = maxLine
	s.batch.apart = d.split
	s.batch.byKey = map[string]*pile{}
	return s
}

// mostWaiting is how many calls wait for the disk together.
const mostWaiting = 64

// appenders is how many goroutines append: many where each waits for the disk, and
// one where a call only copies.
func (d *distribution) appenders() int {
	switch {
	case d.policy.Sync == holdfast.SyncGroup || d.policy.Sync == holdfast.SyncEach:
		return mostWaiting
	case d.policy.Buffer > 0:
		return 1
	case d.workers > 0:
		return d.workers
	}
	return runtime.GOMAXPROCS(0)
}

func (d *distribution) print(w io.Writer, t *totals) error {
	switch {
	case d.json:
		return t.printJSON(w)
	case d.quiet:
		return nil
	}
	return t.print(w, d.split)
}

// refusal says why the exit code is not 0.
func (s *spread) refusal(input io.Reader) error {
	t := &s.totals
	var unread *inputError
	switch {
	case errors.As(s.stop, &unread) && t.Lines == 0:
		return &refusal{exitCannot, unread, "give it lines on standard input, as in holdfast write … < events.jsonl"}
	case unread != nil:
		return &refusal{exitNotMet, unread, fmt.Sprintf("the lines before are in place; give the rest from line %d on again", t.Lines+1)}
	case s.stop != nil && t.FirstLost > 0:
		return &refusal{exitNotMet, fmt.Errorf("stopped at line %d: %s", t.Lines, plainText(s.stop)),
			fmt.Sprintf("%s that were read are not written, the first is line %d; make room, and give these and the rest again", countText(t.Failures.sum(), "line"), t.FirstLost)}
	case s.stop != nil:
		return &refusal{exitNotMet, s.stop, fmt.Sprintf("the lines up to line %d are in place", t.Lines)}
	case t.Failures.sum() > 0:
		return &refusal{exitNotMet, notWritten(t), s.failedHint()}
	case t.failed():
		return &refusal{exitNotMet, fmt.Errorf("%s could not be ended as the policy says", countText(int64(t.FailedFiles), "file")), "what is told of each above says what may be missing"}
	case t.End == endInterrupted:
		return &refusal{exitInterrupted, fmt.Errorf("interrupted after line %d", t.Lines), s.interruptedHint(input)}
	}
	return nil
}

// isRefusal reports whether an error has this exit code.
func isRefusal(err error, code int) bool {
	var r *refusal
	return errors.As(err, &r) && r.code == code
}

func (s *spread) failedHint() string {
	f := &s.totals.Failures
	if f[missing]+f[notJSON]+f[noValue] > 0 && s.otherwise == "" {
		return "--else FILE takes the lines that have no such field"
	}
	switch {
	case errors.Is(s.first, fs.ErrExist):
		return "--mode truncate or --mode replace writes files anew that are there"
	case errors.Is(s.first, fs.ErrNotExist) && !s.folders:
		return "without --folders=false folders that are missing are made"
	case s.totals.FailedLate > 0:
		return "what is told of each file above says what may be missing"
	case s.totals.Written == 0:
		return "give the lines again when what is told above is mended"
	}
	return "all other lines are in place; give these again when what is told above is mended"
}

func notWritten(t *totals) error {
	n, verb := t.Failures.sum(), "were"
	if n == 1 {
		verb = "was"
	}
	return fmt.Errorf("%s of %s %s not written", humanize.Comma(n), countText(t.Lines, "line"), verb)
}

// interruptedHint says how to go on, unless the numbers of the lines would be others.
func (s *spread) interruptedHint(input io.Reader) string {
	hint := "all lines until then are in place"
	if f, ok := input.(*os.File); ok && isRegular(f) && !s.pattern.has(lineNumber) {
		hint += fmt.Sprintf("; tail -n +%d of the same file has the rest", s.totals.Lines+1)
	}
	return hint
}

func isRegular(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}

// isKeyboard reports whether somebody would have to type the input.
func isKeyboard(r io.Reader) bool {
	f, ok := r.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func endOfInput() string {
	if runtime.GOOS == "windows" {
		return "Ctrl-Z and Enter"
	}
	return "Ctrl-D"
}
