package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast/internal/result"
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
	if other := contradicting(cmd, flag); len(other) > 0 {
		return result.Run{}, misuse("an earlier run is repeated as it was; leave them out, or plan a new run",
			"--%s decides what is measured, which %s contradict", flag, strings.Join(other, ", "))
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
	case b.resume == "-":
		return misuse("name the file", "--resume -: the results go on in a file, and the standard input is none")
	case run.Header.SchemaVersion != result.SchemaVersion:
		return misuse("repeat the run with --from instead", "--resume %s: %w", b.resume, result.ErrOlder)
	case run.Complete():
		return misuse(fmt.Sprintf("holdfast report %s shows it, and --from %[1]s repeats it", b.resume), "--resume %s: the run is complete", b.resume)
	}
	return b.folderIsThere(b.resume)
}
