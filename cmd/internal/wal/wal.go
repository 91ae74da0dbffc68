// Package wal is the command wal: it checks the write-ahead logs of package wal, prints their
// records and copies their whole records.
package wal

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
	"unicode/utf8"

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
		Long: `Wal checks, prints and repairs logs of the Go package wal. A log can be verified and
printed while a program has it open. No command changes the log.

A crash may leave a torn end: a part of the last appends, which were not durable yet.
That is no damage, and the next Open cuts it. Damage is a durable record that is no
longer complete.`,
		Example: `  holdfast wal verify log
  holdfast wal repair log log.repaired`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.Misuse("the commands are wal cat, wal repair, wal verify", "unknown command %q of wal", args[0])
			}
			return cli.Misuse("for instance: holdfast wal verify log", "wal needs a command: verify, cat or repair")
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var p printer
	cat := &cobra.Command{
		Use:   "cat directory [flags]",
		Short: "print the records of a log, one line each",
		Long: `Cat prints the data of each intact record, followed by a line feed. It reports damage
on standard error, and goes on with the records behind it.

With --json each line is an object: {"index": 7, "text": "..."}, or "base64" if the
data is not valid UTF-8. With --follow, cat waits for new records until you end it.`,
		Example:     `  holdfast wal cat log --json --from 1`,
		Annotations: cli.Exits(map[int]string{cli.ExitNotMet: "the log is damaged"}),
		Args:        arguments(1, "wal cat needs the directory of one log"),
		RunE:        func(cmd *cobra.Command, args []string) error { return p.print(cmd, args[0]) },
	}
	cat.Flags().Var(cli.Once("index", &p.from, cli.ParseSeed), "from", "begin with the record at this index")
	cat.Flags().BoolVar(&p.json, "json", false, "print each record as a JSON object with its index")
	cat.Flags().BoolVar(&p.follow, "follow", false, "wait for new records")
	var renumber bool
	repair := &cobra.Command{
		Use:   "repair directory new-directory [flags]",
		Short: "copy the intact part of a log to a new directory",
		Long: `Repair copies the records before the first missing one to a new log, with their
indices, and makes it durable. The copy never has more permissions than the damaged
log, which stays unchanged. The exit code is 1 if intact records were not copied,
because they can't keep their indices in the copy.`,
		Example:     `  holdfast wal repair log log.repaired`,
		Annotations: cli.Exits(map[int]string{cli.ExitNotMet: "intact records were not copied"}),
		Args:        arguments(2, "wal repair needs the directory of a log and a new directory"),
		RunE:        func(cmd *cobra.Command, args []string) error { return repairTo(cmd, args[0], args[1], renumber) },
	}
	repair.Flags().BoolVar(&renumber, "renumber", false, "copy intact records behind damage too, with new indices")
	cmd.AddCommand(&cobra.Command{
		Use:         "verify directory",
		Short:       "read and check a whole log",
		Long:        `Verify reads and checks a whole log. The exit code is 1 if it is damaged.`,
		Example:     `  holdfast wal verify log`,
		Annotations: cli.Exits(map[int]string{cli.ExitNotMet: "the log is damaged"}),
		Args:        arguments(1, "wal verify needs the directory of one log"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := scan(cmd, args[0], 0, true, func(wal.Record) error { return nil })
			if err != nil {
				return err
			}
			s.say(cmd.OutOrStdout())
			return verdict(s.damaged)
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

// A survey counts a log's contents.
type survey struct {
	wal.Recovery
	first, last uint64 // of the whole records
	largest     int
	damaged     int
	open        bool // a program has it open
}

// say prints a summary of a log.
func (s *survey) say(w io.Writer) {
	switch {
	case s.Records == 0:
		fmt.Fprintf(w, "no records; the next index is %d\n", s.Last+1)
	default:
		fmt.Fprintf(w, "%s from %d to %d are intact: %s of data in %s\n", cli.CountText(s.Records, "record"),
			s.first, s.last, cli.BytesText(s.Bytes), cli.CountText(int64(s.Segments), "segment"))
	}
	switch {
	case s.open:
		fmt.Fprintln(w, "a program has the log open: this was its state while it was read")
	case s.Torn > 0:
		fmt.Fprintf(w, "torn end: at least %d bytes of appends that were not durable; the next Open cuts them\n", s.Torn)
	}
}

// verdict returns the error of a damaged log, or nil.
func verdict(damaged int) error {
	if damaged == 0 {
		return nil
	}
	return &cli.Refusal{Code: cli.ExitNotMet, Err: fmt.Errorf("the log is damaged in %s", cli.CountText(int64(damaged), "place")),
		Hint: "holdfast wal repair copies the records before the first missing one to a new directory"}
}

// scan calls each with every whole record from an index on, and reports damage on standard error. A
// log that is open is read only if it may be.
func scan(cmd *cobra.Command, dir string, from uint64, mayBeOpen bool, each func(wal.Record) error) (s survey, err error) {
	switch info, err := os.Stat(dir); {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return s, cli.Misuse("name the directory of a log", "%q: %w", dir, cli.Cause(err))
	case err != nil:
		return s, cli.Misuse("name the directory of a log", "there is no directory %q", dir)
	case !info.IsDir():
		return s, cli.Misuse("name the directory that the file is in", "%q is a file, and a log is a directory", dir)
	}
	var failed error
	one := func(r wal.Record, damage *wal.DamageError) bool {
		if damage != nil {
			s.damaged++
			cli.Say(cmd.ErrOrStderr(), "%v", damage)
			return true
		}
		if s.last = r.Index; s.first == 0 {
			s.first = r.Index
		}
		s.largest = max(s.largest, len(r.Data))
		if failed = cmd.Context().Err(); failed == nil && r.Index >= from {
			failed = each(r)
		}
		return failed == nil
	}
	s.Recovery, err = wal.Scan(dir, one)
	if s.open = errors.Is(err, wal.ErrLocked) && mayBeOpen; s.open {
		s.Recovery, err = wal.ScanOpen(dir, from, one)
	}
	switch {
	case failed != nil:
		err = failed
	case errors.Is(err, wal.ErrLocked):
		err = &cli.Refusal{Code: cli.ExitCannot, Err: err, Hint: "end the program that writes the log"}
	case err == nil && s.Segments == 0 && s.damaged == 0 && !s.open:
		err = cli.Misuse("name the directory that was given to wal.Open", "there is no log in %q", dir)
	}
	return s, interrupted(err)
}

func interrupted(err error) error {
	if errors.Is(err, context.Canceled) {
		return &cli.Refusal{Code: cli.ExitInterrupted, Err: errors.New("interrupted")}
	}
	return err
}

// A printer prints records.
type printer struct {
	from         uint64
	json, follow bool
}

// followPause is the time between two looks at a log.
const followPause = 100 * time.Millisecond

func (p *printer) print(cmd *cobra.Command, dir string) error {
	stdout := cmd.OutOrStdout()
	if !cli.IsTerminal(stdout) {
		stdout = cli.Bare(stdout) // records may be binary
	}
	w := bufio.NewWriterSize(stdout, 64<<10)
	from := p.from
	each := func(r wal.Record) error {
		from = r.Index + 1
		return p.write(w, r) // w keeps the first failure
	}
	s, err := scan(cmd, dir, from, true, each)
	if flushed := w.Flush(); flushed != nil {
		return &cli.OutputFailure{Err: flushed}
	}
	for p.follow && err == nil {
		select {
		case <-cmd.Context().Done():
			return interrupted(cmd.Context().Err())
		case <-time.After(followPause):
		}
		_, err = wal.ScanOpen(dir, from, func(r wal.Record, damage *wal.DamageError) bool {
			return damage == nil && each(r) == nil // a damaged record may be whole at the next look
		})
		if flushed := w.Flush(); flushed != nil {
			return &cli.OutputFailure{Err: flushed}
		}
	}
	if err != nil {
		return err
	}
	return verdict(s.damaged)
}

// write prints a record.
func (p *printer) write(w *bufio.Writer, r wal.Record) error {
	if !p.json {
		_, _ = w.Write(r.Data)
		return w.WriteByte('\n')
	}
	line := struct {
		Index  uint64  `json:"index"`
		Text   *string `json:"text,omitempty"`
		Base64 []byte  `json:"base64,omitempty"`
	}{Index: r.Index, Base64: r.Data}
	if utf8.Valid(r.Data) {
		text := string(r.Data)
		line.Text, line.Base64 = &text, nil
	}
	return json.NewEncoder(w).Encode(line)
}

// mostSegment is the largest that wal.Options takes.
const mostSegment = 256 * holdfast.MiB

// segmentFor returns the size of a copy's segments: the one of the log's, or more if a record has no
// room.
func segmentFor(has int64, largest int) holdfast.Size {
	const unit = 4 * holdfast.KiB
	size := max(2*unit, holdfast.Size(has)/unit*unit, (holdfast.Size(largest)+3*unit)/unit*unit)
	return min(size, mostSegment)
}

// repairTo copies records to a new log. It reads the old one twice: first for the sizes of the
// records.
func repairTo(cmd *cobra.Command, dir, to string, renumber bool) (err error) {
	all, err := scan(cmd, dir, 0, false, func(wal.Record) error { return nil })
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
	copied := int64(0)
	err = func() (err error) {
		o := wal.Options{Policy: holdfast.Policy{Buffer: holdfast.MiB, Sync: holdfast.Sync{Mode: holdfast.SyncClose}},
			SegmentSize: segmentFor(file.Size, all.largest), Perm: 0o600}
		l, _, err := wal.Open(to, o)
		if err != nil {
			return err
		}
		defer func() { err = cmp.Or(err, l.Close()) }()
		if err := l.TruncateBefore(max(1, all.First, all.first)); err != nil {
			return err
		}
		var failed error
		_, err = wal.Scan(dir, func(r wal.Record, damage *wal.DamageError) bool {
			if damage != nil {
				return true
			}
			if !renumber && r.Index != l.Last()+1 {
				return false
			}
			if failed = cmd.Context().Err(); failed == nil {
				_, failed = l.Append(r.Data)
				copied++
			}
			return failed == nil
		})
		return cmp.Or(interrupted(failed), err)
	}()
	if err == nil {
		err = permitAll(to, file, directory)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(to)) // it was made here
	}
	if copied == 0 {
		fmt.Fprintf(cmd.OutOrStdout(), "%s has 0 of %s\n", to, cli.CountText(all.Records, "intact record"))
	} else {
		first := max(1, all.First, all.first)
		fmt.Fprintf(cmd.OutOrStdout(), "%s has %s of %s, from %d to %d\n", to, cli.Grouped(copied), cli.CountText(all.Records, "intact record"), first, first+uint64(copied)-1)
	}
	if left := all.Records - copied; left > 0 {
		return &cli.Refusal{Code: cli.ExitNotMet, Err: fmt.Errorf("%s not copied, because an earlier record is missing", cli.CountText(left, "intact record")),
			Hint: "--renumber copies these too, with new indices"}
	}
	return nil
}

// modesOf returns the permissions of a log's files and directory, and the size of the largest file.
// If segments differ, it returns the permissions that all of them have.
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
		size := max(file.Size, is.Size)
		switch {
		case file.Mode == 0:
			file = is
		case file.GID != is.GID:
			file.Mode &= permission.WithoutGroup(is.Mode)
		default:
			file.Mode &= is.Mode
		}
		file.Size = size
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
