package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/compare"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/copy"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/gen"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/place"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/prove"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/report"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/run"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/serve"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/usermode"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/volumes"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/wal"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/write"
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "holdfast",
		Short: "measure what it costs to keep what a program writes",
		Long: `Holdfast measures what it costs to keep what a program writes.

Bytes that a program writes wait in its own memory, then in the kernel's, before
they are on the disk. A policy says how long they may wait, and so decides how
fast the program writes and what a crash takes. Holdfast measures policies on
your own disk and says which one to use.`,
		Example: `  holdfast bench
  holdfast bench --quick --dir . -o results.jsonl`,
		Args: knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.Version = cli.VersionText()
	root.Flags().BoolP("version", "v", false, "show the version")
	root.SetVersionTemplate("{{.Version}}\n")
	root.SuggestionsMinimumDistance = 2
	root.SetHelpFunc(cli.Help)
	root.SetFlagErrorFunc(cli.FlagError)
	root.SetHelpCommand(&cobra.Command{Use: "help [command]", Short: "show the help of a command", Hidden: true, RunE: helpCommand})
	root.AddCommand(run.NewBench(usermode.Kernel{}), run.NewAdvise(), report.New(), compare.New(), serve.New(), run.NewAudit(), prove.New(), prove.NewChild(), write.New(), gen.New(), copy.New(), run.NewTrace(), place.NewSecond(), volumes.New(), wal.New(), cli.NewVersion(), newCompletion(), cli.NewMan())
	root.AddCommand(usermode.Commands()...)
	completeValues(root)
	return root
}

// knownCommand refuses the arguments that are left when no command was found.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "the commands are " + strings.Join(commandNames(cmd), ", ")
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = fmt.Sprintf("did you mean %q?", near[0])
	}
	return cli.Misuse(hint, "unknown command %q", args[0])
}

func commandNames(cmd *cobra.Command) []string {
	var names []string
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	return names
}

func helpCommand(cmd *cobra.Command, args []string) error {
	found, rest, err := cmd.Root().Find(args)
	if err != nil || found == nil {
		return err
	}
	if len(rest) > 0 {
		return knownCommand(found, rest)
	}
	return found.Help()
}

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
