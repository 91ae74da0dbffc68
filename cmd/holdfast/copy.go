package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
)

// A copying is what the flags of copy say.
type copying struct {
	options holdfast.CopyOptions
	policy  copyPolicy
	buffer  holdfast.Size
	verbose bool
	quiet   bool
	json    bool
	single  bool // one file is all that is copied
}

// A copyPolicy is a policy, or atomic.
type copyPolicy struct {
	holdfast.Policy
	atomic bool
}

func (p copyPolicy) String() string {
	if p.atomic {
		return "atomic"
	}
	return p.Policy.String()
}

func parseCopyPolicy(text string) (p copyPolicy, err error) {
	if text == "atomic" {
		return copyPolicy{atomic: true}, nil
	}
	if p.Policy, err = holdfast.ParsePolicy(text); err == nil && p.FlushEvery > 0 {
		err = fmt.Errorf("flush=%v: a copy lets no byte wait in memory; leave flush out", p.FlushEvery)
	}
	return p, err
}

func newCopy() *cobra.Command {
	c := &copying{}
	cmd := &cobra.Command{
		Use:   "copy source… destination [flags]",
		Short: "copy files and folders by the fastest way that the kernel offers",
		Long: `Copy copies files, and folders with all that is in them, with their permissions,
times and holes. For each file it takes the fastest way that works here: a reflink,
which shares the bytes, a copy inside a file server, splice in the kernel, or reads
and writes; and tells which it was.

If the destination is a folder that is there, sources go into it under their own
names, a folder too; what it holds under other names stays. Else the only source is
copied to that name. A slash at its end says that it is a folder. The contents of a
folder are given as folder/. like for cp. Symbolic links in folders are copied as
links; a source that is one is followed.

A file that is there is replaced when its copy is whole. Whatever fails, and after
Ctrl-C, each file is the old one or the whole new one. Pipes, devices and sockets
are not copied. Nothing is synced unless --policy says so; atomic survives a power
cut file by file.`,
		Example: `  holdfast copy events.jsonl kept.jsonl --policy atomic --verify
  holdfast copy -a photos events.jsonl backup/ --policy sync=close --keep-going`,
		Args: copyArguments,
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd, args) },
	}
	c.addFlags(cmd)
	return cmd
}

func (c *copying) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVarP(&c.options.Archive, "archive", "a", false, "keep owners, extended attributes, access control lists and hard links too")
	f.Var(once("policy", &c.policy, parseCopyPolicy), "policy", "how durable: sync=never (the default), sync=close (all, at the end),\nsync=each (file by file), or atomic (synced, then renamed, file by file)")
	f.BoolVar(&c.options.Verify, "verify", false, "read each copy back from the disk, past the page cache, and compare")
	f.BoolVar(&c.options.Resume, "resume", false, "keep what an interrupted copy made of a file of 1 MiB or more, and go on\nwith what is proven to equal the source's beginning")
	f.BoolVar(&c.options.KeepGoing, "keep-going", false, "copy the others where one fails; the exit code is then 1")
	f.BoolVarP(&c.verbose, "verbose", "v", false, "print a line for each file")
	f.BoolVar(&c.quiet, "quiet", false, "tell failures only: neither progress nor totals")
	f.BoolVar(&c.json, "json", false, "print a JSON object for each file, and one for the totals")
	f.Var(once("method", &c.options.Method, parseCopyMethod), "method", "try only auto, reflink, copy_file_range, sendfile, splice or readwrite")
	f.Var(once("size", &c.buffer, parseCopyBuffer), "buffer", "read and write with a buffer of this size (default: by the size of the file)")
	f.Var(once("number", &c.options.Workers, parseBetween(1, 1024, "workers can't be")), "workers", "copy so many files at a time (default: the number of CPUs)")
	inGroup(f, "How", "method", "buffer", "workers")
}

func parseCopyMethod(text string) (holdfast.CopyMethod, error) {
	var names []string
	for m := holdfast.MethodAuto; m <= holdfast.MethodReadWrite; m++ {
		if m.String() == text {
			return m, nil
		}
		names = append(names, m.String())
	}
	return 0, fmt.Errorf("%q is no way to copy; use %s", text, strings.Join(names, ", "))
}

// mostCopyBuffer is the largest that a policy may have.
const mostCopyBuffer = holdfast.GiB

func parseCopyBuffer(text string) (holdfast.Size, error) {
	size, err := holdfast.ParseSize(text)
	switch {
	case err == nil && size == 0:
		return 0, errors.New("nothing can't be read at a time; use for instance 128KiB, or leave --buffer out")
	case err == nil && size > mostCopyBuffer:
		return 0, fmt.Errorf("a buffer of %v can't be had; use 1B to %v", size, mostCopyBuffer)
	}
	return size, err
}

// copyArguments wants sources and a destination.
func copyArguments(cmd *cobra.Command, args []string) error {
	const hint = "for instance: holdfast copy events.jsonl kept.jsonl"
	switch len(args) {
	case 0:
		return misuse(hint, "copy needs a source and a destination")
	case 1:
		return misuse(hint, "copy needs a destination too, and only %q was given", args[0])
	}
	for _, arg := range args {
		switch arg {
		case "":
			return misuse(hint, "one of the names is empty")
		case "-":
			return misuse("use ./- for a file of that name", "-: only files and folders are copied")
		}
	}
	return nil
}

// fill puts together what the flags say, and refuses what contradicts itself.
func (c *copying) fill(cmd *cobra.Command) error {
	o := &c.options
	o.Policy, o.Atomic = c.policy.Policy, c.policy.atomic
	switch {
	case c.buffer > 0 && o.Policy.Buffer > 0 && c.buffer != o.Policy.Buffer:
		return misuse("give only one of them", "--buffer %v and --policy %v differ", c.buffer, c.policy)
	case c.buffer > 0 && o.Method != holdfast.MethodAuto && o.Method != holdfast.MethodReadWrite:
		return misuse("leave --buffer out, or give --method readwrite", "--buffer %v is of read and write, and --method %v has none", c.buffer, o.Method)
	case o.Resume && o.Method == holdfast.MethodReflink:
		return misuse("leave --resume out", "--method reflink copies all at once, and has nothing to resume")
	case c.json && c.verbose:
		return misuse("leave --verbose out", "--json prints a line for each file already")
	case c.quiet && c.verbose:
		return misuse("give only one of them", "--quiet prints nothing, and --verbose a line for each file")
	}
	if c.buffer > 0 {
		o.Policy.Buffer, o.Method = c.buffer, holdfast.MethodReadWrite // the others have no buffer of ours
	}
	if err := o.Validate(); err != nil {
		sentence, hint, _ := strings.Cut(plainText(err), "; ")
		return misuse(hint, "%s", strings.TrimPrefix(sentence, "copy: "))
	}
	return nil
}

func (c *copying) run(cmd *cobra.Command, args []string) error {
	if err := c.fill(cmd); err != nil {
		return err
	}
	plan, err := planCopy(args[:len(args)-1], args[len(args)-1], c.options.KeepGoing)
	if err != nil {
		return err
	}
	c.single = len(plan) == 1 && !isFolder(plan[0].source)
	show := newCopyShow(c, cmd.OutOrStdout(), cmd.ErrOrStderr())
	c.options.Each = show.each
	if show.meter.isOn() { // what nobody sees is not counted ahead
		c.options.Progress = show.progress
	}
	began := time.Now()
	totals, err := holdfast.CopyAll(cmd.Context(), plan.pairs(), c.options)
	totals.Elapsed = time.Since(began)
	totals.Failed -= show.interrupted
	show.end()
	if printErr := show.print(totals, err); printErr != nil && err == nil {
		return &refusal{exitNotMet, &outputFailure{printErr}, "all is copied, only that is not told"}
	}
	return c.refusal(totals, show.held, err)
}

// refusal gives what CopyAll has returned its exit code and its hint. Failed is the
// only failure, if it was not told.
func (c *copying) refusal(t holdfast.CopyTotals, failed, err error) error {
	not := t.Failed + t.Refused
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return &refusal{exitInterrupted, fmt.Errorf("interrupted after %s, %s", countText(int64(t.Files), "file"), bytesText(t.Size)), c.interruptedHint(err)}
	case not == 0 && failed == nil:
		sentence, hint, _ := strings.Cut(plainText(err), "; ")
		return &refusal{exitCannot, errors.New(sentence), hint}
	case failed != nil:
		return &refusal{exitNotMet, copyError{failed}, c.failedHint(t, failed)}
	case c.options.KeepGoing:
		return &refusal{exitNotMet, fmt.Errorf("%s not copied", wereText(not)), "all others are; give the same again when what is told above is mended"}
	}
	return &refusal{exitNotMet, fmt.Errorf("%s not copied", wereText(not)), c.failedHint(t, err)}
}

// wereText is "1 was", "2 were".
func wereText(n int) string {
	if n == 1 {
		return "1 was"
	}
	return fmt.Sprintf("%d were", n)
}

func (c *copying) interruptedHint(err error) string {
	switch {
	case errors.Is(err, holdfast.ErrLeft):
		return "what was copied is whole; " + leftHint
	case c.options.Resume:
		return "what was copied is whole, no other name has changed, and the same call goes on with the large file that was under way, of which there is .NAME.holdfast-partial beside its destination"
	}
	return "what was copied is whole, and nothing half is left; with --resume a large file goes on where it was interrupted"
}

const leftHint = "remove by hand what it has left: files that begin with .holdfast-, or the destination itself"

// failedHint says what to do about what failed, in the words of the flags.
func (c *copying) failedHint(t holdfast.CopyTotals, err error) string {
	_, advice := copyErrorParts(err)
	hint := cmp.Or(diskHint(err), copyHint(err), advice)
	switch {
	case c.options.Method != holdfast.MethodAuto && isOtherWay(err, c.options.Method):
		return "leave --method out, and what works here is taken"
	case errors.Is(err, holdfast.ErrLeft):
		return leftHint
	case t.Failed == 0: // only pipes and the like were refused
		return "all others are copied"
	case hint == advice && c.options.Resume:
		return "no half file is left; " + strings.ReplaceAll(hint, "leave Resume out", "leave --resume out")
	case hint != "":
		return "no half file is left; " + hint
	case c.single:
		return "no half file is left"
	}
	return "no half file is left; --keep-going copies the others"
}

// isOtherWay reports whether the files can't be copied by the method that was asked for.
func isOtherWay(err error, method holdfast.CopyMethod) bool {
	var failure *holdfast.CopyError
	return errors.Is(err, errors.ErrUnsupported) ||
		errors.As(err, &failure) && failure.Op == method.String() && (errors.Is(err, syscall.EXDEV) || errors.Is(err, syscall.EINVAL))
}

// copyHint is what helps against a call that only some may make, or only some file
// systems have.
func copyHint(err error) string {
	var failure *holdfast.CopyError
	switch {
	case !errors.As(err, &failure):
		return ""
	case failure.Op == "chown" && errors.Is(err, fs.ErrPermission):
		return "run it as root, or leave --archive out"
	case failure.Op == "verify" && failure.Offset < 0:
		return "leave --verify out on this file system"
	}
	return ""
}

// A copyError is an error in the words of copyErrorText, without its advice.
type copyError struct{ error }

func (e copyError) Error() string {
	sentence, _ := copyErrorParts(e.error)
	return sentence
}

func (e copyError) Unwrap() error { return e.error }
