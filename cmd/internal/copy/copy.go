// Package copy is the command copy: it copies files and directories, and reports the result.
package copy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/filecopy"
	"github.com/holdfast-go/holdfast/internal/durable"
)

// A copying holds the flags of copy.
type copying struct {
	options filecopy.Options
	policy  copyPolicy
	buffer  holdfast.Size
	verbose bool
	quiet   bool
	json    bool
	single  bool // only one file is copied
	best    bool
	root    bool // run by root
}

// A copyPolicy is a policy, atomic, or o_sync.
type copyPolicy struct {
	holdfast.Policy
	atomic, synced bool
}

func (p copyPolicy) String() string {
	if p.atomic {
		return "atomic"
	}
	if p.synced {
		return "o_sync"
	}
	return p.Policy.String()
}

func parseCopyPolicy(text string) (p copyPolicy, err error) {
	if text == "atomic" {
		return copyPolicy{atomic: true}, nil
	}
	if text == "o_sync" {
		return copyPolicy{Policy: holdfast.EachDurable(), synced: true}, nil
	}
	if p.Policy, err = cli.ParsePolicy(text); err == nil && (p.FlushEvery > 0 || p.FlushBytes > 0) {
		_, flush, _ := strings.Cut(text, "flush=")
		flush, _, _ = strings.Cut(flush, ",")
		err = fmt.Errorf("flush=%s: a copy lets no byte wait in memory; leave flush out", flush)
	}
	return p, err
}

// New returns the command.
func New() *cobra.Command {
	c := &copying{}
	cmd := &cobra.Command{
		Use: "copy source… destination [flags]",
		Long: `Copy copies files, and directories with all that is in them, with their permissions,
times and holes. For each file it takes the fastest way that works here: a reflink,
which shares the bytes, a copy inside a file server, splice in the kernel, or reads
and writes. It reports which way it was.

If the destination is an existing directory, sources go into it under their own
names, a directory too; what it holds under other names stays. Else the only source is
copied to that name. A slash at its end says that it is a directory. The contents of a
directory are given as directory/. like for cp. Symbolic links in directories are copied as
links; a source that is one is followed.

An existing file is replaced when its copy is whole. Whatever fails, and after
Ctrl-C, each file is the old one or the whole new one. Pipes, devices and sockets
are not copied unless --special says so. Nothing is synced unless --policy says
so; atomic survives a power cut file by file.`,
		Example: `  holdfast copy events.jsonl kept.jsonl --policy atomic --verify
  holdfast copy -a photos events.jsonl backup/ --policy sync=close --keep-going`,
		Annotations: cli.Exits(map[int]string{cli.ExitNotMet: "something was not copied"}),
		Args:        copyArguments,
		RunE:        func(cmd *cobra.Command, args []string) error { return c.run(cmd, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVarP(&c.options.Archive, "archive", "a", false, "keep owners, extended attributes, access control lists and hard links too")
	f.Var(cli.Once("policy", &c.policy, parseCopyPolicy), "policy", "how durable: sync=never (the default), sync=close (all, at the end;\nsync=group and periodic=1s are the same to a copy),\nsync=each (file by file), atomic (synced, then renamed, file by file),\nor o_sync (each write synced before the next, as with O_SYNC)")
	f.BoolVar(&c.options.Verify, "verify", false, "read each copy back from the disk, past the page cache, and compare")
	f.BoolVar(&c.options.Resume, "resume", false, "keep what an interrupted copy made of a file of 1 MiB or more, and go on\nwith what is proven to equal the source's beginning")
	f.BoolVar(&c.best, "best", false, "go on where the file system refuses what --archive or --policy asks for,\nand say what was not kept; without it that is a failure")
	f.BoolVar(&c.options.KeepGoing, "keep-going", false, "copy the others where one fails; the exit code is then 1")
	f.BoolVarP(&c.verbose, "verbose", "v", false, "print a line for each file")
	f.BoolVar(&c.quiet, "quiet", false, "print failures only: neither progress nor totals")
	f.BoolVar(&c.json, "json", false, "print a JSON object for each file, and one for the totals")
	f.Var(cli.Once("what", &c.options.Special, parseSpecial), "special", "pipes, sockets and devices in a directory: refuse (the default),\nskip, or keep, which makes them anew")
	f.Var(cli.Once("method", &c.options.Method, parseCopyMethod), "method", "try only auto, reflink, copy_file_range, splice or readwrite")
	f.Var(cli.Once("size", &c.buffer, parseCopyBuffer), "buffer", "read and write with a buffer of this size (default: by the size of the file)")
	f.Var(cli.Once("number", &c.options.Workers, cli.ParseBetween(1, 1024, "workers can't copy")), "workers", "copy so many files at a time (default: the number of CPUs)")
	cli.InGroup(f, "How", "method", "buffer", "workers", "best", "special")
	return cmd
}

func parseCopyMethod(text string) (filecopy.Method, error) {
	var names []string
	for m := filecopy.Auto; m <= filecopy.ReadWrite; m++ {
		if m.String() == text {
			return m, nil
		}
		names = append(names, m.String())
	}
	return 0, fmt.Errorf("%q is not a way to copy; use %s", text, strings.Join(names, ", "))
}

func parseSpecial(text string) (filecopy.Special, error) {
	switch text {
	case "refuse":
		return filecopy.RefuseSpecial, nil
	case "skip":
		return filecopy.SkipSpecial, nil
	case "keep":
		return filecopy.KeepSpecial, nil
	}
	return 0, fmt.Errorf("%q is not what to do with a pipe; use refuse, skip or keep", text)
}

// mostCopyBuffer is the largest buffer of a policy.
const mostCopyBuffer = holdfast.GiB

func parseCopyBuffer(text string) (holdfast.Size, error) {
	size, err := holdfast.ParseSize(text)
	switch {
	case err == nil && size == 0:
		return 0, errors.New("a buffer of 0 reads nothing; use for instance 128KiB, or leave --buffer out")
	case err == nil && size > mostCopyBuffer:
		return 0, fmt.Errorf("a buffer of %v is not possible; use 1B to %v", size, mostCopyBuffer)
	}
	return size, err
}

// copyArguments requires sources and a destination.
func copyArguments(cmd *cobra.Command, args []string) error {
	const hint = "for instance: holdfast copy events.jsonl kept.jsonl"
	switch len(args) {
	case 0:
		return cli.Misuse(hint, "copy needs a source and a destination")
	case 1:
		return cli.Misuse(hint, "copy needs a destination too, and only %q was given", args[0])
	}
	for _, arg := range args {
		switch arg {
		case "":
			return cli.Misuse(hint, "one of the names is empty")
		case "-":
			return cli.Misuse("use ./- for a file of that name", "-: only files and directories are copied")
		}
	}
	return nil
}

func (c *copying) run(cmd *cobra.Command, args []string) error {
	o := &c.options
	o.Policy, o.Atomic, o.SyncWrites = c.policy.Policy, c.policy.atomic, c.policy.synced
	switch {
	case o.SyncWrites && o.Method != filecopy.Auto && o.Method != filecopy.ReadWrite:
		return cli.Misuse("leave one out", "--policy o_sync is of read and write, and --method %v has no writes", o.Method)
	case c.buffer > 0 && o.Policy.Buffer > 0 && c.buffer != o.Policy.Buffer:
		return cli.Misuse("give only one of them", "--buffer %v and --policy %v differ", c.buffer, c.policy)
	case c.buffer > 0 && o.Method != filecopy.Auto && o.Method != filecopy.ReadWrite:
		return cli.Misuse("leave --buffer out, or give --method readwrite", "--buffer %v is of read and write, and --method %v has none", c.buffer, o.Method)
	case o.Resume && o.Method == filecopy.Reflink:
		return cli.Misuse("leave --resume out", "--method reflink copies all at once, and has nothing to resume")
	case c.json && c.verbose:
		return cli.Misuse("leave --verbose out", "--json prints a line for each file already")
	case c.quiet && c.verbose:
		return cli.Misuse("give only one of them", "--quiet prints nothing, and --verbose a line for each file")
	}
	if c.best {
		o.Effort = holdfast.Best
	}
	if c.buffer > 0 {
		o.Policy.Buffer, o.Method = c.buffer, filecopy.ReadWrite // the other methods use no buffer
	}
	if o.SyncWrites {
		o.Method = filecopy.ReadWrite
	}
	if err := o.Validate(); err != nil {
		sentence, hint, _ := strings.Cut(cli.PlainText(err), "; ")
		return cli.Misuse(hint, "%s", strings.TrimPrefix(sentence, "copy: "))
	}
	plan, err := planCopy(args[:len(args)-1], args[len(args)-1], c.options.KeepGoing)
	if err != nil {
		return err
	}
	c.root = os.Geteuid() == 0
	c.single = len(plan) == 1 && !isDir(plan[0].source)
	show := newCopyShow(c, cmd.OutOrStdout(), cmd.ErrOrStderr())
	c.options.Each = show.each
	if show.line.HasBar() { // without a bar no files are counted ahead
		c.options.Progress = show.progress
	}
	began := time.Now()
	totals, err := filecopy.All(cmd.Context(), func(yield func(destination, source string) bool) {
		for _, pair := range plan {
			if !yield(pair.destination, pair.source) {
				return
			}
		}
	}, c.options)
	totals.Elapsed = time.Since(began)
	totals.Failed -= show.interrupted
	show.line.End()
	if printErr := show.print(totals, err); printErr != nil && err == nil {
		return &cli.Refusal{Code: cli.ExitNotMet, Err: &cli.OutputFailure{Err: printErr}, Hint: "all is copied; only the totals are not printed"}
	}
	return c.refusal(totals, show.held, err)
}

func newCopyShow(c *copying, stdout, stderr io.Writer) *copyShow {
	return &copyShow{copying: c, stdout: stdout, line: cli.NewProgress(stderr, c.quiet).OfBytes(1)}
}

// refusal adds an exit code and a hint to the error of filecopy.All. failed is the only failure, if
// it was not reported yet.
func (c *copying) refusal(t filecopy.Totals, failed, err error) error {
	not := t.Failed + t.Refused
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		hint := "no partial file is left; with --resume a large file goes on where it was interrupted"
		switch {
		case errors.Is(err, filecopy.ErrLeftover):
			hint = leftHint
		case c.options.Resume:
			hint = "no other name has changed, and the same call goes on with the large file that was under way: its part is in .NAME.holdfast-partial beside its destination"
		}
		return &cli.Refusal{Code: cli.ExitInterrupted, Err: fmt.Errorf("interrupted after %s, %s", cli.CountText(int64(t.Files), "file"), cli.BytesText(t.Size)), Hint: "what was copied is whole; " + hint}
	case not == 0 && failed == nil:
		sentence, hint, _ := strings.Cut(cli.PlainText(err), "; ")
		return &cli.Refusal{Code: cli.ExitCannot, Err: errors.New(sentence), Hint: hint}
	case failed != nil:
		return &cli.Refusal{Code: cli.ExitNotMet, Err: copyError{failed}, Hint: c.failedHint(t, failed)}
	}
	were := "were"
	if not == 1 {
		were = "was"
	}
	hint := "all others are; give the same again once the failures above are fixed"
	if !c.options.KeepGoing {
		hint = c.failedHint(t, err)
	}
	return &cli.Refusal{Code: cli.ExitNotMet, Err: fmt.Errorf("%d %s not copied", not, were), Hint: hint}
}

const leftHint = "remove by hand what it has left: files that begin with .holdfast-, or the destination itself"

// failedHint returns advice about the failures, in the words of the flags.
func (c *copying) failedHint(t filecopy.Totals, err error) string {
	_, advice := copyErrorParts(err)
	hint := cmp.Or(cli.DiskHint(err), advice)
	var failure *filecopy.Error
	if errors.As(err, &failure) && cli.DiskHint(err) == "" {
		switch { // calls that need rights, or that some file systems lack
		case failure.Op == "chown" && errors.Is(err, fs.ErrPermission) && !c.root:
			hint = "run it as root, leave --archive out, or give --best, which goes on"
		case c.options.Archive && notKept(failure.Op) && !c.best:
			hint = "the file system, or its mount, does not permit that: leave --archive out, or give --best, which goes on"
		case failure.Op == "verify" && failure.Offset < 0:
			hint = "leave --verify out on this file system"
		}
	}
	if failure != nil && failure.Op == "sync directory" || hasRefusedDir(err) {
		hint := "the whole file is there; only its name may be lost in a power cut"
		if hasRefusedDir(err) {
			return hint + "; give --best, which goes on, or --policy sync=never"
		}
		return hint + ": the kernel's log (dmesg) says why"
	}
	method := c.options.Method
	cannot := errors.Is(err, errors.ErrUnsupported) ||
		failure != nil && failure.Op == method.String() && (errors.Is(err, syscall.EXDEV) || errors.Is(err, syscall.EINVAL))
	switch {
	case method != filecopy.Auto && cannot:
		return "leave --method out, and what works here is taken"
	case errors.Is(err, filecopy.ErrLeftover):
		return leftHint
	case t.Failed == 0: // only pipes and the like were refused
		return "all others are copied; --special=skip leaves these out, and --special=keep makes them anew"
	case hint == advice && c.options.Resume: // it may be about what another copy has left
		return strings.ReplaceAll(hint, "leave Resume out", "leave --resume out")
	case hint != "":
		return "no half file is left; " + hint
	case c.single:
		return "no half file is left"
	}
	return "no half file is left; --keep-going copies the others"
}

// notKept reports whether a call gives a copy what its source has beside its bytes.
func notKept(op string) bool {
	return slices.Contains([]string{"chown", "chmod", "set times", "utimens", "list attributes", "set attribute"}, op)
}

// hasRefusedDir reports whether an error says that the file system syncs no directories.
func hasRefusedDir(err error) bool {
	refused := (*durable.RefusedError)(nil)
	return errors.As(err, &refused)
}

// A copyError is an error in the words of copyErrorText, without its advice.
type copyError struct{ error }

func (e copyError) Error() string {
	sentence, _ := copyErrorParts(e.error)
	return sentence
}

func (e copyError) Unwrap() error { return e.error }
