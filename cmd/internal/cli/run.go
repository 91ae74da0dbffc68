package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"
)

// Run runs a command. Its error has the exit code, see Report; Run does not print it. A failed
// write to stdout is an error too, from any code.
func Run(ctx context.Context, cmd *cobra.Command, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetArgs(args)
	cmd.SetIn(stdin)
	out := &output{Writer: stdout}
	cmd.SetOut(out)
	cmd.SetErr(&output{Writer: stderr})
	if err := cmd.ExecuteContext(ctx); err != nil {
		return err
	}
	return out.End()
}
