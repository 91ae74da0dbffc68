package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/compare"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/copy"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/fleet"
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

// A subcommand is a command below the root. Its name is known before it is made.
type subcommand struct {
	name string
	new  func() *cobra.Command
}

func subcommands() []subcommand {
	return []subcommand{
		{"bench", func() *cobra.Command { return run.NewBench(usermode.Kernel{}) }},
		{"advise", run.NewAdvise}, {"report", report.New}, {"compare", compare.New}, {"fleet", fleet.New}, {"serve", serve.New}, {"audit", run.NewAudit},
		{"prove", func() *cobra.Command { return prove.New(usermode.Kernel{}) }},
		{"write", write.New}, {"gen", gen.New}, {"copy", copy.New}, {"volumes", volumes.New}, {"wal", wal.New},
		{"version", cli.NewVersion}, {"completion", newCompletion}, {"man", cli.NewMan},
	}
}

// newRoot returns the command with all its subcommands, also those that it starts itself.
func newRoot() *cobra.Command {
	root := bareRoot()
	for _, c := range subcommands() {
		root.AddCommand(c.new())
	}
	root.AddCommand(prove.NewChild(), run.NewTrace(), place.NewSecond())
	root.AddCommand(usermode.Commands()...)
	return root
}

// rootFor returns the command with what the arguments ask for: one subcommand, or all if they begin with
// no name of one. To make all takes longer than to copy a small file.
func rootFor(args []string) *cobra.Command {
	if len(args) > 0 {
		for _, c := range subcommands() {
			if c.name == args[0] && c.name != "completion" && c.name != "man" { // these are of all
				root := bareRoot()
				root.AddCommand(c.new())
				return root
			}
		}
	}
	root := newRoot()
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		completeValues(root)
	}
	return root
}

func bareRoot() *cobra.Command {
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
	}
	root.CompletionOptions.DisableDefaultCmd = true
	version := root.Flags().BoolP("version", "v", false, "show the version")
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if *version { // cobra's own would link text/template, and with it every method of every type
			_, err := fmt.Fprintln(cmd.OutOrStdout(), cli.VersionText())
			return err
		}
		return cmd.Help()
	}
	root.SuggestionsMinimumDistance = 2
	root.SetHelpFunc(cli.Help)
	root.SetFlagErrorFunc(cli.FlagError)
	root.SetHelpCommand(&cobra.Command{Use: "help [command]", Short: "show the help of a command", Hidden: true, RunE: helpCommand})
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
