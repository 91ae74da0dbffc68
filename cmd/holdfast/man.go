package main

import (
	"errors"
	"io"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
)

func newMan() *cobra.Command {
	return &cobra.Command{
		Use:   "man directory",
		Short: "write the manual pages",
		Long: `Man writes the manual page of each command into a directory, which it makes if it
is missing: holdfast.1, holdfast-bench.1 and so on. man(1) finds them where
MANPATH has a directory man1 with them.`,
		Example: `  holdfast man man1
  holdfast man --help`,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return cli.Misuse("for instance: holdfast man man1", "man takes one directory, and %d were given", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return writeMan(cmd.Root(), args[0]) },
	}
}

// writeMan makes all pages or none: nothing is overwritten.
func writeMan(root *cobra.Command, dir string) (err error) {
	held, err := cli.HoldDir(dir, 0o755)
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		return cli.Misuse("choose a directory, or a name that is not taken", "%s: there is a file of that name, or above it", dir)
	case err != nil:
		return cli.Misuse("choose a directory that you may write to", "%s: %w", dir, cli.Cause(err))
	}
	var made []string
	defer func() {
		if err == nil {
			err = held.Close()
			return
		}
		for _, name := range made {
			err = errors.Join(err, held.Remove(name))
		}
		err = errors.Join(err, held.Undo())
	}()
	commands := []*cobra.Command{root}
	for len(commands) > 0 {
		c := commands[0]
		commands = commands[1:]
		for _, below := range c.Commands() {
			if below.IsAvailableCommand() {
				commands = append(commands, below)
			}
		}
		name := cli.ManName(c) + ".1"
		err := cli.WriteIn(held.Root, name, "man", filepath.Join(dir, name), func(w io.Writer) error { return cli.Man(w, c) })
		if err != nil {
			return err
		}
		made = append(made, name)
	}
	return nil
}
