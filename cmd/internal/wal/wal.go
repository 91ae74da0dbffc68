// Package wal is the command wal: it checks the write-ahead logs of package wal, prints their
// records and copies their whole records.
package wal

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/internal/permission"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/wal"
)

// New is the command.
func New() *cobra.Command {
	cmd := &cobra.Command{
		Use: "wal verify|cat|repair",
		Long: `Wal is for the logs of the Go package wal. The program that writes the log must
have closed it. No command changes the log.

A torn end is what a crash may leave of the last appends, before they were durable: it
is no damage, and the next Open cuts it. Damage is what was durable and is not whole.`,
		Example: `  holdfast wal verify log
  holdfast wal repair log log.repaired`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.Misuse("the commands are wal cat, wal repair, wal verify", "unknown command %q of wal", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var from uint64
	cat := &cobra.Command{
		Use:   "cat directory [flags]",
		Short: "print the records of a log, a line each",
		Long: `Cat prints the data of each whole record, and a line feed. It goes on behind damage,
which it reports on standard error.`,
		Example:     `  holdfast wal cat log --from 1`,
		Annotations: cli.Exits(map[int]string{cli.ExitNotMet: "the log is damaged"}),
		Args:        arguments(1, "wal cat needs the directory of one log"),
		RunE:        func(cmd *cobra.Command, args []string) error { return printRecords(cmd, args[0], from) },
	}
	cat.Flags().Uint64Var(&from, "from", 0, "begin with the record of this `index`")
	var renumber bool
	repair := &cobra.Command{
		Use:   "repair directory new-directory [flags]",
		Short: "copy what is whole of a log to a new directory",
		Long: `Repair copies the records before the first damage to a new log, with their indices,
and makes it durable. Nobody may read the copy who may not read the damaged log, which
stays as it is.`,
		Example: `  holdfast wal repair log log.repaired`,
		Args:    arguments(2, "wal repair needs the directory of a log and a new directory"),
		RunE:    func(cmd *cobra.Command, args []string) error { return repairTo(cmd, args[0], args[1], renumber) },
	}
	repair.Flags().BoolVar(&renumber, "renumber", false, "copy what is whole behind damage too: these records get new indices")
	cmd.AddCommand(&cobra.Command{
		Use:         "verify directory",
		Short:       "read and check all of a log",
		Long:        `Verify reads and checks all of a log. The exit code is 1 if something is damaged.`,
		Example:     `  holdfast wal verify log`,
		Annotations: cli.Exits(map[int]string{cli.ExitNotMet: "the log is damaged"}),
		Args:        arguments(1, "wal verify needs the directory of one log"),
		RunE: func(cmd *cobra.Command, args []string) error {
			found, damaged, err := scan(cmd, args[0], func(wal.Record) error { return nil })
			if err != nil {
				return err
			}
			say(cmd.OutOrStdout(), found)
			return verdict(damaged)
		},
	}, cat, repair)
	return cmd
}

func arguments(n int, needs string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return cli.Misuse("for instance:"+cmd.Example[1:], "%s, not %s", needs, cli.CountText(int64(len(args)), "argument"))
		}
		return nil
	}
}

// say prints a summary of a log.
func say(w io.Writer, found wal.Recovery) {
	switch {
	case found.Records == 0:
		fmt.Fprintf(w, "no record; the next is %d\n", found.Last+1)
	default:
		fmt.Fprintf(w, "%d records from %d to %d are whole: %s of data in %d segments\n",
			found.Records, found.First, found.Last, cli.BytesText(int64(found.Bytes)), found.Segments)
	}
	if found.Torn > 0 {
		fmt.Fprintf(w, "torn end: at least %d bytes of appends that were not durable; the next Open cuts them\n", found.Torn)
	}
}

// verdict returns the error of a damaged log, or nil.
func verdict(damaged int) error {
	if damaged == 0 {
		return nil
	}
	return &cli.Refusal{Code: cli.ExitNotMet, Err: fmt.Errorf("the log is damaged in %d places", damaged),
		Hint: "holdfast wal repair copies what is whole before the first of them to a new directory"}
}

// scan calls each with every whole record, and reports damage on standard error.
func scan(cmd *cobra.Command, dir string, each func(wal.Record) error) (found wal.Recovery, damaged int, err error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return found, 0, cli.Misuse("name the directory of a log", "there is no directory %q", dir)
	}
	var failed error
	found, err = wal.Scan(dir, func(r wal.Record, damage *wal.DamageError) bool {
		if damage != nil {
			damaged++
			cli.Say(cmd.ErrOrStderr(), "%v", damage)
			return true
		}
		if failed = cmd.Context().Err(); failed == nil {
			failed = each(r)
		}
		return failed == nil
	})
	switch {
	case failed != nil:
		err = failed
	case errors.Is(err, wal.ErrLocked):
		err = &cli.Refusal{Code: cli.ExitCannot, Err: err, Hint: "end the program that writes the log"}
	case err == nil && found.Segments == 0 && damaged == 0:
		err = cli.Misuse("name the directory that was given to wal.Open", "%q holds no log", dir)
	}
	if errors.Is(err, context.Canceled) {
		err = &cli.Refusal{Code: cli.ExitInterrupted, Err: errors.New("interrupted")}
	}
	return found, damaged, err
}

func printRecords(cmd *cobra.Command, dir string, from uint64) error {
	stdout := cmd.OutOrStdout()
	if !cli.IsTerminal(stdout) {
		stdout = cli.Bare(stdout) // records may be binary
	}
	w := bufio.NewWriterSize(stdout, 64<<10)
	_, damaged, err := scan(cmd, dir, func(r wal.Record) error {
		if r.Index < from {
			return nil
		}
		_, _ = w.Write(r.Data)
		return w.WriteByte('\n') // w keeps the first failure
	})
	if flushed := w.Flush(); flushed != nil {
		return &cli.OutputFailure{Err: flushed}
	}
	if err != nil {
		return err
	}
	return verdict(damaged)
}

// repairTo copies records to a new log. It reads the old one twice: first for the sizes of the
// records.
func repairTo(cmd *cobra.Command, dir, to string, renumber bool) (err error) {
	largest := 0
	all, _, err := scan(cmd, dir, func(r wal.Record) error {
		largest = max(largest, len(r.Data))
		return nil
	})
	if err != nil {
		return err
	}
	file, directory, err := modesOf(dir)
	if err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o700); errors.Is(err, fs.ErrExist) {
		return cli.Misuse("name a directory that does not exist yet", "%q exists", to)
	} else if err != nil {
		return err
	}
	const slack = 8 * holdfast.KiB
	o := wal.Options{Policy: holdfast.Policy{Buffer: holdfast.MiB, Sync: holdfast.Sync{Mode: holdfast.SyncClose}},
		SegmentSize: max(16*holdfast.MiB, (holdfast.Size(largest)+2*slack)/slack*slack), Perm: 0o600}
	l, _, err := wal.Open(to, o)
	if err != nil {
		return err
	}
	defer func() {
		if closed := l.Close(); err == nil {
			err = closed
		}
		if err == nil {
			err = permitAll(to, file, directory)
		}
		if err == nil {
			first, last := l.First(), l.Last()
			fmt.Fprintf(cmd.OutOrStdout(), "%s has %d of %d whole records, from %d to %d\n", to, last+1-first, all.Records, first, last)
		}
	}()
	if err := l.TruncateBefore(max(1, all.First)); err != nil {
		return err
	}
	var failed error
	_, err = wal.Scan(dir, func(r wal.Record, damage *wal.DamageError) bool {
		if damage != nil {
			return renumber
		}
		if failed = cmd.Context().Err(); failed == nil {
			_, failed = l.Append(r.Data)
		}
		return failed == nil
	})
	return cmp.Or(failed, err)
}

// modesOf returns the permissions of a log's files and directory. If segments differ, it returns
// the permissions that all of them have.
func modesOf(dir string) (file, directory sys.Stat, err error) {
	if directory, err = statOf(dir); err != nil {
		return file, directory, err
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if err != nil || filepath.Ext(e.Name()) != ".wal" {
			continue
		}
		var is sys.Stat
		is, err = statOf(filepath.Join(dir, e.Name()))
		switch {
		case file.Mode == 0:
			file = is
		case file.GID != is.GID:
			file.Mode &= permission.WithoutGroup(is.Mode)
		default:
			file.Mode &= is.Mode
		}
	}
	return file, directory, err
}

func statOf(path string) (sys.Stat, error) {
	name, err := sys.NewName(path)
	if err != nil {
		return sys.Stat{}, err
	}
	return sys.Disk{}.StatPath(name)
}

// permit gives a new file or directory the permissions of another. Its owner may always write.
func permit(path string, like sys.Stat) error {
	is, err := statOf(path)
	if err != nil {
		return err
	}
	perm := like.Mode&0o777 | 0o600
	if is.GID != like.GID {
		perm = permission.WithoutGroup(perm)
	}
	if is.Mode&0o777 == perm {
		return nil
	}
	return os.Chmod(path, fs.FileMode(perm))
}

// permitAll calls permit for all files of a new log.
func permitAll(dir string, file, directory sys.Stat) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, permit(filepath.Join(dir, e.Name()), file))
	}
	return errors.Join(err, permit(dir, directory))
}
