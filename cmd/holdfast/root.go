package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/cmd/internal/advise"
	benchcommand "github.com/holdfast-go/holdfast/cmd/internal/bench"
	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/compare"
	"github.com/holdfast-go/holdfast/cmd/internal/copy"
	"github.com/holdfast-go/holdfast/cmd/internal/fleet"
	"github.com/holdfast-go/holdfast/cmd/internal/gen"
	"github.com/holdfast-go/holdfast/cmd/internal/lab"
	"github.com/holdfast-go/holdfast/cmd/internal/place"
	"github.com/holdfast-go/holdfast/cmd/internal/prove"
	"github.com/holdfast-go/holdfast/cmd/internal/report"
	"github.com/holdfast-go/holdfast/cmd/internal/run"
	"github.com/holdfast-go/holdfast/cmd/internal/serve"
	"github.com/holdfast-go/holdfast/cmd/internal/study"
	"github.com/holdfast-go/holdfast/cmd/internal/usermode"
	"github.com/holdfast-go/holdfast/cmd/internal/volumes"
	"github.com/holdfast-go/holdfast/cmd/internal/wal"
	"github.com/holdfast-go/holdfast/cmd/internal/write"
)

// The list of commands is in the order of subcommands, not of the alphabet.
func init() { cobra.EnableCommandSorting = false }

// A subcommand is a command below the root. Its entry in a list of commands is known before it is made.
type subcommand struct {
	name, short string
	build       func() *cobra.Command
	group       string // of the list; "" is the first
}

// tools is the group of the commands that do not measure, choose or prove.
const tools = "tools"

func (c subcommand) new() *cobra.Command {
	cmd := c.build()
	cmd.Short, cmd.GroupID = c.short, c.group
	return cmd
}

func subcommands() []subcommand {
	return []subcommand{
		{"bench", "measure what each policy costs on this disk", func() *cobra.Command { return benchcommand.New(lab.Studies(), usermode.Kernel{}) }, ""},
		{"advise", "choose the cheapest policy that meets a need", advise.New, ""},
		{"prove", "crash a writer again and again, and compare the loss with the promise", func() *cobra.Command { return prove.New(usermode.Kernel{}) }, ""},
		{"report", "print the results of a run again, or make a page or an export of them", func() *cobra.Command { return report.New(lab.Studies()) }, ""},
		{"compare", "compare two runs: what got slower, what got faster", compare.New, ""},
		{"fleet", "compare the results of many hosts, and find the outliers", fleet.New, ""},
		{"audit", "test the claims of published experiments on this machine", func() *cobra.Command { return study.NewAudit(lab.Studies()) }, ""},
		{"study", "repeat a published experiment, and compare its figures with yours", func() *cobra.Command { return study.New(lab.Studies(), usermode.Kernel{}) }, tools},
		{"serve", "show the results in a directory as pages in a browser", func() *cobra.Command { return serve.New(lab.Studies()) }, tools},
		{"write", "write standard input to a file, or to a file for each value of a column", write.New, tools},
		{"copy", "copy files and directories by the fastest way that the kernel offers", copy.New, tools},
		{"gen", "make a test file of a given size: random bytes, text, zeros or a hole", gen.New, tools},
		{"wal", "check a write-ahead log, print its records, or copy its intact part", wal.New, tools},
		{"volumes", "list the file systems that can be made here, and the leftovers of killed runs", volumes.New, tools},
		{"version", "show the version of holdfast", cli.NewVersion, tools},
		{"completion", "print a completion script for a shell", newCompletion, tools},
		{"man", "write the manual pages", cli.NewMan, tools},
	}
}

// newRoot returns the command with all its subcommands, also the ones that it starts itself.
func newRoot() *cobra.Command {
	root := bareRoot()
	for _, c := range subcommands() {
		root.AddCommand(c.new())
	}
	root.AddCommand(prove.NewChild(), run.NewTrace(), place.NewSecond(lab.Roles()))
	root.AddCommand(usermode.Commands()...)
	return root
}

// rootFor returns the command with the subcommand that the arguments name. That is one subcommand, or the names of
// all for a list of them. Otherwise it is all, which takes longer than to copy a small file.
func rootFor(args []string) *cobra.Command {
	root := bareRoot()
	if len(args) == 0 || len(args) == 1 && slices.Contains([]string{"-h", "--help", "help", "-v", "--version"}, args[0]) {
		for _, c := range subcommands() {
			// A command that can't run is in no list.
			root.AddCommand(&cobra.Command{Use: c.name, Short: c.short, GroupID: c.group, Run: func(*cobra.Command, []string) {}})
		}
		return root
	}
	for _, c := range subcommands() {
		if c.name == args[0] && c.name != "completion" && c.name != "man" { // these are of all
			root.AddCommand(c.new())
			return root
		}
	}
	root = newRoot()
	if args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd {
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
	root.AddGroup(&cobra.Group{ID: tools, Title: "Tools:"})
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
		Use: "completion bash|zsh|fish|powershell",
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
