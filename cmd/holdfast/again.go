package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/trial"
)

// withEarlier are the flags that may be given together with --from and --resume:
// all others are decided by the earlier run.
var withEarlier = map[string][]string{
	"from":   {"from", "dir", "output", "allow-tmpfs", "dry-run", "export", "emit-fio", "baseline", "save-baseline", "baseline-dir", "threshold"},
	"resume": {"resume", "allow-tmpfs", "dry-run", "export", "emit-fio", "baseline", "save-baseline", "baseline-dir", "threshold"},
}

// earlier reads the run that --from or --resume names, and takes over its folder,
// and for --resume its file.
func (b *benchmark) earlier(cmd *cobra.Command) (result.Run, error) {
	flag, file := "from", b.from
	if b.resume != "" {
		flag, file = "resume", b.resume
	}
	if file == "" {
		return result.Run{}, nil
	}
	if err := b.resumesFile(); err != nil {
		return result.Run{}, err
	}
	if other := contradicting(cmd, flag); len(other) > 0 {
		return result.Run{}, misuse("an earlier run is repeated as it was; leave them out, or plan a new run",
			"--%s decides what is measured, and %s can't be given with it", flag, strings.Join(other, ", "))
	}
	run, err := readResults(file, cmd.InOrStdin())
	if err != nil {
		return run, err
	}
	if !cmd.Flags().Changed("dir") {
		b.dir = run.Header.Dir
	}
	if flag == "from" {
		return run, b.folderIsThere(file)
	}
	b.output = file
	return run, b.canResume(run)
}

// resumesFile refuses to go on in what is no file. To open a pipe would wait for
// its other end.
func (b *benchmark) resumesFile() error {
	if b.resume == "-" {
		return misuse("name the file", "--resume -: the results go on in a file, and the standard input is none")
	}
	if info, err := os.Stat(b.resume); b.resume != "" && err == nil && !info.Mode().IsRegular() {
		return misuse(hintResults, "--resume %s: the results go on in a file, and this is none", b.resume)
	}
	return nil
}

// contradicting lists the flags given that the earlier run decides.
func contradicting(cmd *cobra.Command, flag string) (names []string) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains(withEarlier[flag], f.Name) {
			names = append(names, "--"+f.Name)
		}
	})
	return names
}

func (b *benchmark) folderIsThere(file string) error {
	if info, err := os.Stat(b.dir); err == nil && info.IsDir() {
		return nil
	}
	return misuse("give a folder on the disk to measure to --dir", "the run of %s was in %s, which is not there", file, b.dir)
}

// canResume refuses a run that has nothing left, or that a new part would make
// into something else.
func (b *benchmark) canResume(run result.Run) error {
	switch {
	case run.Header.SchemaVersion != result.SchemaVersion:
		return misuse("repeat the run with --from instead", "--resume %s: %w", b.resume, result.ErrOlder)
	case run.Complete():
		return misuse(fmt.Sprintf("holdfast report %s shows it, and --from %[1]s repeats it", b.resume), "--resume %s: the run is complete", b.resume)
	}
	return b.folderIsThere(b.resume)
}

// clean removes the folders that the run left when it was killed, and tells of
// them. A run that still goes on is refused.
func clean(stderr io.Writer, file string, run result.Run) error {
	for _, name := range run.Folders() {
		removed, err := trial.RemoveLeftover(run.Header.Dir, name)
		switch {
		case errors.Is(err, trial.ErrAlive):
			return misuse("let it end, or interrupt it first", "--resume %s: it still goes on, in %s", file, filepath.Join(run.Header.Dir, name))
		case err != nil:
			fmt.Fprintf(stderr, "holdfast: %v; remove it by hand, if no other run has it\n", err)
		case removed:
			fmt.Fprintf(stderr, "holdfast: removed %s, which the killed run had left\n", filepath.Join(run.Header.Dir, name))
		}
	}
	return nil
}
