package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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
		Args:          knownCommand,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SuggestionsMinimumDistance = 2
	root.SetHelpFunc(help)
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(&cobra.Command{Use: "help [command]", Short: "show the help of a command", Hidden: true, RunE: helpCommand})
	root.AddCommand(newBench(), newAdvise(), newReport(), newCompare(), newAudit(), newWrite(), newGen(), newCopy(), newTrace(), newSecond(), newVolumes(), newVersion(), newCompletion())
	return root
}

// knownCommand refuses what is left over when no command was found.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "the commands are " + strings.Join(commandNames(cmd), ", ")
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = fmt.Sprintf("did you mean %q?", near[0])
	}
	return misuse(hint, "unknown command %q", args[0])
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

// noArguments refuses arguments of a command that takes none.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return misuse(seeHelp(cmd), "%s takes no argument, and %q was given", cmd.Name(), args[0])
}

func seeHelp(cmd *cobra.Command) string {
	return fmt.Sprintf("%s --help shows the flags", cmd.CommandPath())
}

// flagError says in our words what is wrong with a flag.
func flagError(cmd *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	if errors.As(err, &value) {
		return misuse(seeHelp(cmd), "--%s: %w", value.GetFlag().Name, plain(value))
	}
	return misuse(seeHelp(cmd), "%w", err)
}

// plain returns the cause of a wrong value. That of a duration is the standard
// library's, and says nothing of what to write instead.
func plain(value *pflag.InvalidValueError) error {
	if value.GetFlag().Value.Type() == "duration" {
		return fmt.Errorf("%q is not a duration such as 30s or 2m", value.GetValue())
	}
	return value.Unwrap()
}
