package place

import (
	"context"
	"os"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// secondCommand is the command that the program runs itself as, where a study
// needs another process. That one is killed, or reads what this one writes.
const secondCommand = "second-process"

// SecondProcess is a [trial.WorkDir]'s.
func SecondProcess(ctx context.Context, args ...string) *exec.Cmd {
	return ThisProgram(ctx, append([]string{secondCommand, "--"}, args...)...)
}

// ThisProgram is a command that runs this program. Where the system can, it works even if
// the program's file was replaced or removed meanwhile.
func ThisProgram(ctx context.Context, args ...string) *exec.Cmd {
	file := os.Args[0]
	if self := "/proc/self/exe"; runtime.GOOS == "linux" && isThere(self) { // /proc is not mounted in a bare chroot
		file = self
	} else if path, err := os.Executable(); err == nil {
		file = path
	}
	cmd := exec.CommandContext(ctx, file, args...)
	cmd.Args[0] = os.Args[0]
	return cmd
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// NewSecond is that command, which knows these works.
func NewSecond(roles map[string]study.Role) *cobra.Command {
	return &cobra.Command{
		Use:    secondCommand,
		Short:  "do the work of a second process, for bench",
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			// Its report to the first process is bytes, and no text.
			if err := study.RunRole(cmd.Context(), roles, args, cmd.InOrStdin(), cli.Bare(cmd.OutOrStdout())); err != nil {
				return cli.Misuse("bench calls this command itself", "%w", err)
			}
			return nil
		},
	}
}
