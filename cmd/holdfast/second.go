package main

import (
	"context"
	"os"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/internal/study"
)

// secondCommand is the command that the program runs itself as, where a study
// needs another process: one that is killed, or that reads what this one writes.
const secondCommand = "second-process"

// secondProcess is a [trial.Ground]'s.
func secondProcess(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, thisProgram(), append([]string{secondCommand, "--"}, args...)...)
	cmd.Args[0] = os.Args[0]
	return cmd
}

// thisProgram is the file that runs, also if it was replaced or removed meanwhile,
// where the system has a name for that.
func thisProgram() string {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe"
	}
	if path, err := os.Executable(); err == nil {
		return path
	}
	return os.Args[0]
}

func newSecond() *cobra.Command {
	return &cobra.Command{
		Use:    secondCommand,
		Short:  "do the work of a second process, for bench",
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := study.RunSecond(cmd.Context(), args, cmd.InOrStdin(), cmd.OutOrStdout()); err != nil {
				return misuse("bench calls this command itself", "%w", err)
			}
			return nil
		},
	}
}
