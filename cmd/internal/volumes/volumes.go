// Package volumes is the command volumes: it lists the file systems that can be made here, and
// removes what killed runs have left.
package volumes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
	"github.com/holdfast-go/holdfast/internal/volume"
	"github.com/holdfast-go/holdfast/internal/workdir"
)

// New is the command.
func New() *cobra.Command {
	var clean bool
	cmd := &cobra.Command{
		Use: "volumes [directory...] [flags]",
		Long: `Volumes lists the file systems for --fs, whether each can be made here, and if not,
what is missing. Making one needs root: an image file, a loop device and a mount, all
in a new directory of the run, which are removed at its end.

A killed run can't remove them. Volumes lists the leftovers of killed runs in the given
directories, also of runs inside User-Mode Linux; without arguments, in the current
directory and wherever such a volume is still mounted. It never touches files in use, or
files that no run made. It does not remove temporary files (.holdfast-…) of a killed
write, copy or gen either: these are removed by the next write that replaces a file in
that directory, the next copy to that destination, and the next gen of that file.`,
		Example: `  holdfast volumes
  holdfast volumes --clean .`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := areDirs(args); err != nil {
				return err
			}
			if clean {
				return cleanVolumes(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), args)
			}
			var missed error
			err := cli.WriteLocal(cmd.OutOrStdout(), func(w io.Writer) error {
				missed = listVolumes(w, cmd.ErrOrStderr(), args)
				return nil
			})
			return errors.Join(err, missed)
		},
	}
	cmd.Flags().BoolVar(&clean, "clean", false, "unmount and remove the leftovers of killed runs")
	return cmd
}

// A remnant is a killed run's volume, or the directory of its files.
type remnant struct {
	text   string
	remove func() error
}

// remnants returns the remnants in the directories; with no directories, in the current one, and
// the volumes that are still mounted.
func remnants(dirs []string) (all []remnant, err error) {
	left, err := volume.Leftovers(dirs...)
	for _, l := range left {
		all = append(all, remnant{leftoverText(l), func() error { return volume.RemoveLeftover(l.Dir) }})
	}
	if len(dirs) == 0 {
		dirs = []string{"."}
	}
	for _, parent := range dirs {
		names, listErr := trial.Leftovers(parent)
		err = errors.Join(err, listErr)
		for _, name := range names {
			all = append(all, remnant{filepath.Join(parent, name) + " (files of a run)", func() error {
				removed, err := trial.RemoveLeftover(parent, name)
				switch {
				case errors.Is(err, trial.ErrAlive):
					return volume.ErrAlive
				case err == nil && !removed:
					return fs.ErrNotExist
				}
				return err
			}})
		}
	}
	return all, err
}

// sayForeign prints the directories that are not this user's alone, in one line: there may
// be any number. It returns the other errors.
func sayForeign(stderr io.Writer, err error) error {
	foreign, err := splitErrors(err, func(err error) bool { return errors.As(err, new(*workdir.ForeignError)) })
	var dirs []string
	for _, e := range foreign {
		var f *workdir.ForeignError
		if errors.As(e, &f) {
			dirs = append(dirs, f.Dir)
		}
	}
	if len(dirs) > 0 {
		cli.Say(stderr, "not removed, because other users own it or may write to it: %s; its owner can remove it with holdfast volumes --clean", cli.FirstOf(dirs))
	}
	return err
}

func listVolumes(w, stderr io.Writer, dirs []string) error {
	var hints []string // against what is missing
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "file system\there\tat least\tpackage\tmissing")
	for _, k := range volume.Kinds() {
		cells := []string{k.Name, "yes", cli.BytesText(k.Least), cmp.Or(k.Debian, "-")}
		var missing *volume.MissingError
		if errors.As(k.Can(), &missing) {
			cells[1] = "no"
			cells = append(cells, missing.Why)
			if hint := missing.Hint(); !slices.Contains(hints, hint) {
				hints = append(hints, hint)
			}
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if hints != nil {
		if _, err := fmt.Fprintf(w, "\nHow to get the others:\n  %s\n", strings.Join(hints, "\n  ")); err != nil {
			return err
		}
	}
	left, err := remnants(dirs)
	err = sayForeign(stderr, err)
	var hidden []error
	if len(dirs) == 0 { // mounts of others are not what was asked for
		hidden, err = splitErrors(err, func(err error) bool { return errors.Is(err, fs.ErrPermission) })
	}
	switch {
	case len(left) > 0:
		fmt.Fprint(w, "\nLeftovers of killed runs, which holdfast volumes --clean removes:\n")
	case err == nil:
		seen := ""
		if len(hidden) > 0 {
			seen = ", as far as this user can see"
		}
		fmt.Fprintf(w, "\nNo leftovers of killed runs %s%s.\n", whereText(dirs), seen)
	}
	for _, l := range left {
		fmt.Fprintf(w, "  %s\n", cli.OneLine(l.text))
	}
	if len(hidden) > 0 {
		fmt.Fprint(w, "\nOnly root can see:\n")
	}
	for _, h := range hidden {
		fmt.Fprintf(w, "  %s\n", cli.OneLine(h.Error()))
	}
	return cannotClean(err)
}

// splitErrors separates the errors of a kind from the others.
func splitErrors(err error, isOf func(error) bool) (of []error, rest error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			more, other := splitErrors(e, isOf)
			of, rest = append(of, more...), errors.Join(rest, other)
		}
		return of, rest
	}
	if isOf(err) {
		return []error{err}, nil
	}
	return nil, err
}

// areDirs refuses names of anything else.
func areDirs(names []string) error {
	const hint = "name directories in which runs made their images"
	for _, name := range names {
		info, err := os.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return cli.Misuse(hint, "there is no directory %q", name)
		case err != nil:
			return cli.Misuse(hint, "%s: %w", name, cli.Cause(err))
		case !info.IsDir():
			return cli.Misuse(hint, "%s is not a directory", name)
		}
	}
	return nil
}

func whereText(dirs []string) string {
	if len(dirs) == 0 {
		return "in this directory, and none mounted"
	}
	return "in " + cli.OneLine(strings.Join(dirs, ", "))
}

// cannotClean is an error with a hint.
func cannotClean(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrPermission): // of mount(2) too
		return &cli.Refusal{Code: cli.ExitCannot, Err: err, Hint: "run it as root, like the run that made it"}
	}
	return &cli.Refusal{Code: cli.ExitCannot, Err: err, Hint: cli.DiskHint(err)}
}

// cleanVolumes removes what it can and prints each. An interrupt stops it between two.
func cleanVolumes(ctx context.Context, w, stderr io.Writer, dirs []string) error {
	left, err := remnants(dirs)
	failed := []error{sayForeign(stderr, err)}
	removed := 0
	for _, l := range left {
		if ctx.Err() != nil {
			return &cli.Refusal{Code: cli.ExitInterrupted, Err: errors.New("interrupted before everything was removed"), Hint: "run it again"}
		}
		switch err := l.remove(); {
		case errors.Is(err, volume.ErrAlive), errors.Is(err, fs.ErrNotExist): // meanwhile
		case err != nil:
			failed = append(failed, err)
		default:
			removed++
			fmt.Fprintf(w, "removed %s\n", cli.OneLine(l.text))
		}
	}
	if err := errors.Join(failed...); err != nil || removed > 0 {
		return cannotClean(err)
	}
	_, err = fmt.Fprintf(w, "no leftovers of killed runs %s\n", whereText(dirs))
	return err
}

func leftoverText(l volume.Leftover) string {
	if l.Kind == "" {
		return l.Dir + " (just begun)"
	}
	text := fmt.Sprintf("%s (%s, %s", l.Dir, l.Kind, cli.BytesText(l.Bytes))
	if l.Mounted {
		text += ", mounted"
	}
	return text + fmt.Sprintf(", of process %d on %s)", l.Process, l.Made.Local().Format("2 January 15:04"))
}
