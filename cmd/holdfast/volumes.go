package main

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

	"github.com/holdfast-go/holdfast/internal/trial"
	"github.com/holdfast-go/holdfast/internal/volume"
)

func newVolumes() *cobra.Command {
	var clean bool
	cmd := &cobra.Command{
		Use:   "volumes [folder...] [flags]",
		Short: "list the file systems that can be made here, and what killed runs have left of some",
		Long: `Volumes lists the file systems that a run can be had on with --fs, whether each can
be made here, and if not, what is missing. Making one takes root: an image file, a
loop device and a mount, all in a new folder of the run's own, and removed at its end.

A run that was killed can't remove them. Volumes lists what is left of such runs in
the given folders, also of runs inside User-Mode Linux and of their files; if none is
given, in the current one and wherever a volume is still mounted. What is in use, and
what no run has made, is never touched.`,
		Example: `  holdfast volumes
  holdfast volumes --clean .`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := areFolders(args); err != nil {
				return err
			}
			if clean {
				return cleanVolumes(cmd.Context(), cmd.OutOrStdout(), args)
			}
			return listVolumes(cmd.OutOrStdout(), args)
		},
	}
	cmd.Flags().BoolVar(&clean, "clean", false, "unmount and remove what killed runs have left; the next run beside it does so too")
	return cmd
}

// A remnant is what a killed run has left: a volume, or the folder of its files.
type remnant struct {
	text   string
	remove func() error
}

// remnants are those in the folders; with no folders, those in the current one and the
// volumes that are still mounted.
func remnants(folders []string) (all []remnant, err error) {
	left, err := volume.Leftovers(folders...)
	for _, l := range left {
		all = append(all, remnant{leftoverText(l), func() error { return volume.RemoveLeftover(l.Folder) }})
	}
	if len(folders) == 0 {
		folders = []string{"."}
	}
	for _, parent := range folders {
		names, listErr := trial.Leftovers(parent)
		err = errors.Join(err, listErr)
		for _, name := range names {
			all = append(all, remnant{filepath.Join(parent, name) + " (files of a run)", func() error { return removeGround(parent, name) }})
		}
	}
	return all, err
}

func removeGround(parent, name string) error {
	removed, err := trial.RemoveLeftover(parent, name)
	switch {
	case errors.Is(err, trial.ErrAlive):
		return volume.ErrAlive
	case err == nil && !removed:
		return fs.ErrNotExist
	}
	return err
}

func listVolumes(w io.Writer, folders []string) error {
	if err := listKinds(w); err != nil {
		return err
	}
	left, err := remnants(folders)
	var hidden []error
	if len(folders) == 0 { // mounts of others are not what was asked for
		hidden, err = partHidden(err)
	}
	switch {
	case len(left) > 0:
		fmt.Fprint(w, "\nLeft of killed runs, for holdfast volumes --clean to remove:\n")
	case err == nil:
		fmt.Fprintf(w, "\nLeft of killed runs: nothing %s%s.\n", whereText(folders), asFarAsSeen(hidden))
	}
	for _, l := range left {
		fmt.Fprintf(w, "  %s\n", l.text)
	}
	if len(hidden) > 0 {
		fmt.Fprint(w, "\nNot seen, which root could:\n")
	}
	for _, h := range hidden {
		fmt.Fprintf(w, "  %v\n", h)
	}
	return cannotClean(err)
}

// partHidden parts what this user may not look at from the other errors.
func partHidden(err error) (hidden []error, rest error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			more, other := partHidden(e)
			hidden, rest = append(hidden, more...), errors.Join(rest, other)
		}
		return hidden, rest
	}
	if errors.Is(err, fs.ErrPermission) {
		return []error{err}, nil
	}
	return nil, err
}

func asFarAsSeen(hidden []error) string {
	if len(hidden) == 0 {
		return ""
	}
	return ", as far as can be seen"
}

// listKinds prints a table of what can be made, and what would help against what is
// missing.
func listKinds(w io.Writer) error {
	var hints []string
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "file system\there\tat least\tpackage\twhat is missing")
	for _, k := range volume.Kinds() {
		cells := []string{k.Name, "yes", bytesText(k.Least), cmp.Or(k.Debian, "-")}
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
	if err := t.Flush(); err != nil || hints == nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nWhat would help:\n  %s\n", strings.Join(hints, "\n  "))
	return err
}

// areFolders refuses names of anything else.
func areFolders(names []string) error {
	const hint = "name folders in which runs made their images"
	for _, name := range names {
		info, err := os.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return misuse(hint, "there is no folder %q", name)
		case err != nil:
			return misuse(hint, "%s: %w", name, cause(err))
		case !info.IsDir():
			return misuse(hint, "%s is no folder", name)
		}
	}
	return nil
}

func whereText(folders []string) string {
	if len(folders) == 0 {
		return "in this folder, and nothing mounted"
	}
	return "in " + strings.Join(folders, ", ")
}

// cannotClean is an error with what the user can do.
func cannotClean(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrPermission): // of mount(2) too
		return &refusal{exitCannot, err, "run as root, as the run was"}
	}
	return &refusal{exitCannot, err, ""}
}

// cleanVolumes removes what it can and tells each. It stops between two.
func cleanVolumes(ctx context.Context, w io.Writer, folders []string) error {
	left, err := remnants(folders)
	failed := []error{err}
	removed := 0
	for _, l := range left {
		if ctx.Err() != nil {
			return &refusal{exitInterrupted, errors.New("interrupted before all was removed"), "run it again"}
		}
		switch err := l.remove(); {
		case errors.Is(err, volume.ErrAlive), errors.Is(err, fs.ErrNotExist): // meanwhile
		case err != nil:
			failed = append(failed, err)
		default:
			removed++
			fmt.Fprintf(w, "removed %s\n", l.text)
		}
	}
	if err := errors.Join(failed...); err != nil || removed > 0 {
		return cannotClean(err)
	}
	_, err = fmt.Fprintf(w, "nothing is left of killed runs %s\n", whereText(folders))
	return err
}

func leftoverText(l volume.Leftover) string {
	if l.Kind == "" {
		return l.Folder + " (just begun)"
	}
	text := fmt.Sprintf("%s (%s, %s", l.Folder, l.Kind, bytesText(l.Bytes))
	if l.Mounted {
		text += ", mounted"
	}
	return text + fmt.Sprintf(", of process %d on %s)", l.Process, l.Made.Local().Format("2 January 15:04"))
}
