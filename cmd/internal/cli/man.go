package cli

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// NewMan returns the command man.
func NewMan() *cobra.Command {
	return &cobra.Command{
		Use: "man directory",
		Long: `Man writes the manual page of each command into a directory: holdfast.1,
holdfast-bench.1 and so on. It makes the directory if it does not exist, but none
above it. For man(1) to find them, name the directory man1 and put its parent into
MANPATH.`,
		Example: `  holdfast man man1
  holdfast man --help`,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 && args[0] == "" {
				return Misuse("for instance: holdfast man man1", "the name of the directory is empty")
			}
			if len(args) != 1 {
				return Misuse("for instance: holdfast man man1", "man takes one directory, and %d were given", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := writeMan(cmd.Root(), args[0]); err != nil {
				return err
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s has the manual pages\n", OneLine(args[0]))
			return err
		},
	}
}

// writeMan writes all pages or none, and overwrites no file.
func writeMan(root *cobra.Command, dir string) (err error) {
	held, err := HoldDir(dir, 0o755)
	if err != nil {
		return CannotHold("man", dir, err)
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
		name := ManName(c) + ".1"
		err := WriteIn(held.Root, name, "man", filepath.Join(dir, name), func(w io.Writer) error { return man(w, c) })
		if err != nil {
			return err
		}
		made = append(made, name)
	}
	return nil
}

// man writes the manual page of a command in the format of man(7), from the text of its [Help].
func man(w io.Writer, cmd *cobra.Command) error {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" %s\n", roff(strings.ToUpper(ManName(cmd))), quoted(Program()))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(ManName(cmd)), roff(cmd.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n.SH DESCRIPTION\n", roff(useLine(cmd)))
	manText(&b, cmd.Long)
	var related []string
	if cmd.HasAvailableSubCommands() {
		b.WriteString(".SH COMMANDS\n")
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(c.Name()), roff(c.Short))
				related = append(related, ManName(c))
			}
		}
	} else if cmd.HasParent() {
		related = append(related, ManName(cmd.Parent()))
	}
	groups, order := flagGroups(cmd)
	for i, name := range append([]string{""}, order...) {
		if i == 0 && len(groups[name])+len(order) > 0 {
			b.WriteString(".SH OPTIONS\n")
		} else if i > 0 {
			fmt.Fprintf(&b, ".SS %s\n", quoted(name))
		}
		for _, f := range groups[name] {
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(strings.TrimSpace(flagName(f))), roff(strings.ReplaceAll(f.Usage, "\n", " ")))
		}
	}
	if cmd.Example != "" {
		b.WriteString(".SH EXAMPLES\n")
		manText(&b, cmd.Example)
	}
	b.WriteString(".SH EXIT STATUS\n")
	codes := exits(cmd)
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		fmt.Fprintf(&b, ".TP\n.B %d\n%s\n", code, roff(codes[code]))
	}
	if len(related) > 0 {
		fmt.Fprintf(&b, ".SH SEE ALSO\n.BR %s (1)\n", strings.Join(related, " (1),\n.BR "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// ManName returns the name of a command's manual page: holdfast-bench.
func ManName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manText writes paragraphs. Lines that begin with a space belong to a table or an example, and
// stay as they are.
func manText(b *strings.Builder, text string) {
	asIs := false
	for line := range strings.SplitSeq(text, "\n") {
		if is := strings.HasPrefix(line, " "); is != asIs {
			asIs = is
			b.WriteString(map[bool]string{true: ".PP\n.nf\n", false: ".fi\n.PP\n"}[is])
		}
		if line == "" {
			b.WriteString(".PP\n")
			continue
		}
		b.WriteString(roff(line) + "\n")
	}
	if asIs {
		b.WriteString(".fi\n")
	}
}

// roff escapes a line for roff(7).
func roff(line string) string {
	line = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(line)
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		return `\&` + line
	}
	return line
}

// quoted returns a text as one argument of a macro.
func quoted(text string) string { return `"` + strings.ReplaceAll(roff(text), `"`, `\(dq`) + `"` }
