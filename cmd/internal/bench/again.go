package bench

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

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// withEarlier are the flags that may be given together with --from and --resume:
// all others are decided by the earlier run.
func withEarlier() map[string][]string {
	return map[string][]string{
		"from":   {"from", "dir", "output", "allow-tmpfs", "host", "dry-run", "export", "all", "plot", "emit-fio", "baseline", "save-baseline", "baseline-dir", "threshold"},
		"resume": {"resume", "allow-tmpfs", "host", "dry-run", "export", "all", "plot", "emit-fio", "baseline", "save-baseline", "baseline-dir", "threshold"},
	}
}

// earlier reads the run that --from or --resume names, and takes over its directory,
// and for --resume its file.
func (b *benchmark) earlier(cmd *cobra.Command) (result.Run, error) {
	flag, file := "from", b.from
	if b.resume != "" {
		flag, file = "resume", b.resume
	}
	if file == "" {
		return result.Run{}, nil
	}
	if b.resume == "-" {
		return result.Run{}, cli.Misuse("name the file", "--resume - is not possible: new results are appended to a file, and standard input is not a file")
	}
	// To open a pipe would wait for its other end.
	if info, err := os.Stat(b.resume); b.resume != "" && err == nil && !info.Mode().IsRegular() {
		return result.Run{}, cli.Misuse(cli.HintResults, "--resume %s: new results are appended to a file, and this is not a regular file", b.resume)
	}
	if other := contradicting(cmd, flag); len(other) > 0 {
		return result.Run{}, cli.Misuse("leave them out, or start a new run without --"+flag,
			"--%s takes the plan of an earlier run, so %s can't be given with it", flag, strings.Join(other, ", "))
	}
	run, err := cli.ReadResults(cmd.Context(), file, cmd.InOrStdin())
	if err != nil {
		return run, err
	}
	if !cmd.Flags().Changed("dir") {
		b.Dir = run.Header.Dir
	}
	if flag == "from" {
		return run, b.dirIsThere(file)
	}
	b.File = file
	switch {
	case run.Header.SchemaVersion != result.SchemaVersion:
		return run, cli.Misuse("repeat the run with --from instead", "--resume %s: %w", b.resume, result.ErrOlder)
	case run.Complete():
		return run, cli.Misuse(fmt.Sprintf("holdfast report %s prints it, and --from %[1]s repeats it", b.resume), "--resume %s: the run is complete", b.resume)
	}
	return run, b.dirIsThere(b.resume)
}

// contradicting lists the flags given that the earlier run decides.
func contradicting(cmd *cobra.Command, flag string) (names []string) {
	for _, name := range given(cmd) {
		if !slices.Contains(withEarlier()[flag], name) {
			names = append(names, "--"+name)
		}
	}
	return names
}

// given lists the flags that the user gave.
func given(cmd *cobra.Command) (names []string) {
	cmd.Flags().Visit(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

func (b *benchmark) dirIsThere(file string) error {
	if why := cli.NotDir(b.Dir); why != nil {
		return cli.Misuse("name a directory on that disk with --dir", "the run of %s was in %s: %w", file, b.Dir, why)
	}
	return nil
}

// clean removes the directories that the killed run left, and prints their names. It
// refuses a run that still goes on.
func clean(stderr io.Writer, file string, run result.Run) error {
	for _, name := range run.Dirs() {
		removed, err := trial.RemoveLeftover(run.Header.Dir, name)
		switch {
		case errors.Is(err, trial.ErrAlive):
			return cli.Misuse("let it end, or interrupt it first", "--resume %s: the run is still going on, in %s", file, filepath.Join(run.Header.Dir, name))
		case err != nil:
			cli.Say(stderr, "%v; remove it by hand if no other run uses it", err)
		case removed:
			cli.Say(stderr, "removed %s, a leftover of the killed run", filepath.Join(run.Header.Dir, name))
		}
	}
	return nil
}
