package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
)

func newCompletion() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "print a script that completes holdfast's commands in a shell",
		Long: `Completion prints a script for a shell that completes holdfast's commands and
flags when Tab is pressed. Load it where your shell loads such scripts.`,
		Example: `  holdfast completion bash > holdfast.bash
  holdfast completion fish > holdfast.fish`,
		ValidArgs: shells,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Misuse("for instance: holdfast completion bash", "completion takes one shell, and %d were given", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root, w := cmd.Root(), cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(w, true)
			case "zsh":
				return root.GenZshCompletion(w)
			case "fish":
				return root.GenFishCompletion(w, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(w)
			}
			return cli.Misuse("the shells are "+strings.Join(shells, ", "), "unknown shell %q", args[0])
		},
	}
}
