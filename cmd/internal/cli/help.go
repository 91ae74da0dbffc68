package cli

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// groupKey is the annotation of a flag that few users need: its group in the help.
const groupKey = "holdfast_group"

// InGroup moves flags to a named group of the help.
func InGroup(flags *pflag.FlagSet, group string, names ...string) {
	for _, name := range names {
		flags.Lookup(name).Annotations = map[string][]string{groupKey: {group}}
	}
}

// mostFirst is the number of flags that a help shows before all others.
const mostFirst = 8

// exitKey is the prefix of the annotation of an exit code.
const exitKey = "holdfast_exit_"

// Exits returns the annotations of a command with its own meanings of exit codes; an empty meaning
// removes a code. The other codes mean the same for all commands.
func Exits(meanings map[int]string) map[string]string {
	notes := map[string]string{}
	for code, meaning := range meanings {
		notes[exitKey+strconv.Itoa(code)] = meaning
	}
	return notes
}

// exits returns the meaning of each exit code of a command.
func exits(cmd *cobra.Command) map[int]string {
	all := map[int]string{
		ExitOK: "done", ExitUsage: "wrong input: nothing was done", ExitCannot: "it failed: the error says why",
		ExitInterrupted: "interrupted (143: by SIGTERM; 129: by SIGHUP; 141: nobody reads the output)",
	}
	for key, meaning := range cmd.Annotations {
		if code, ok := strings.CutPrefix(key, exitKey); ok {
			n, _ := strconv.Atoi(code) // Exits wrote it
			all[n] = meaning
		}
	}
	maps.DeleteFunc(all, func(_ int, meaning string) bool { return meaning == "" })
	return all
}

// Help prints a command's help: its purpose, the flags most users need, two examples, the other
// flags in groups, the exit codes.
func Help(cmd *cobra.Command, _ []string) {
	columns := Columns(cmd.OutOrStdout())
	_ = WriteLocal(cmd.OutOrStdout(), func(w io.Writer) error { help(w, cmd, columns); return nil }) // a failure is reported at the end
}

func help(w io.Writer, cmd *cobra.Command, columns int) {
	narrow := columns < 100 // usage lines have up to 100 columns
	fmt.Fprintf(w, "%s\n\nUsage:\n  %s\n", filled(cmp.Or(cmd.Long, cmd.Short), columns), useLine(cmd))
	helpCommands(w, cmd)
	groups, order := flagGroups(cmd)
	wide := widest(groups)
	helpFlags(w, wide, narrow, "Flags", groups[""])
	if cmd.Example != "" {
		fmt.Fprintf(w, "\nExamples:\n%s\n", cmd.Example)
	}
	for _, name := range order {
		helpFlags(w, wide, narrow, name, groups[name])
	}
	fmt.Fprint(w, "\nExit codes:\n")
	codes := exits(cmd)
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		fmt.Fprintf(w, "  %3d  %s\n", code, codes[code])
	}
}

// filled breaks the paragraphs of a text again if its lines, of up to 80 columns, do not fit. It
// joins an indented line with the lines below it that are indented more, and does not break it.
func filled(text string, columns int) string {
	if columns >= 80 {
		return text
	}
	var lines []string
	indent := 0 // of the last joined line
	for line := range strings.SplitSeq(text, "\n") {
		words := strings.TrimLeft(line, " ")
		more := len(line) - len(words) - indent
		if last := len(lines) - 1; last >= 0 && words != "" && lines[last] != "" && (more == 0 && indent == 0 || more > 0 && indent > 0) {
			lines[last] += " " + words
			continue
		}
		lines, indent = append(lines, line), indent+more
	}
	for i, line := range lines {
		if strings.HasPrefix(line, " ") {
			continue
		}
		filled, at := "", 0
		for _, word := range strings.Fields(line) {
			gap := " "
			if at == 0 {
				gap = ""
			} else if at += 1 + len(word); at > columns {
				gap, at = "\n", 0
			}
			filled, at = filled+gap+word, max(at, len(word))
		}
		lines[i] = filled
	}
	return strings.Join(lines, "\n")
}

func useLine(cmd *cobra.Command) string {
	if cmd.HasAvailableSubCommands() {
		return cmd.CommandPath() + " command [flags]"
	}
	return cmd.UseLine()
}

func helpCommands(w io.Writer, cmd *cobra.Command) {
	if !cmd.HasAvailableSubCommands() {
		return
	}
	for _, group := range append([]*cobra.Group{{Title: "Commands:"}}, cmd.Groups()...) {
		fmt.Fprintf(w, "\n%s\n", group.Title)
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() && c.GroupID == group.ID {
				fmt.Fprintf(w, "  %-12s %s\n", c.Name(), c.Short)
			}
		}
	}
}

// more is the group of flags beyond the first mostFirst.
const more = "More flags"

// flagGroups returns the flags by group, and the names of the groups in the order of their flags.
// The group without a name has the flags that most users need: the first mostFirst flags without a
// group.
func flagGroups(cmd *cobra.Command) (groups map[string][]*pflag.Flag, order []string) {
	groups = map[string][]*pflag.Flag{}
	cmd.LocalFlags().SortFlags = false
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" || f.Hidden {
			return
		}
		name := ""
		if g := f.Annotations[groupKey]; len(g) > 0 {
			name = g[0]
		} else if len(groups[""]) == mostFirst {
			name = more
		}
		if name != "" && groups[name] == nil {
			order = append(order, name)
		}
		groups[name] = append(groups[name], f)
	})
	return groups, order
}

// widest returns the length of the longest name of a flag.
func widest(groups map[string][]*pflag.Flag) int {
	wide := 0
	for _, flags := range groups {
		for _, f := range flags {
			wide = max(wide, len(flagName(f)))
		}
	}
	return wide
}

func helpFlags(w io.Writer, wide int, narrow bool, title string, flags []*pflag.Flag) {
	if len(flags) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s:\n", title)
	for _, f := range flags {
		lines := strings.Split(f.Usage, "\n")
		if narrow { // narrow lines are broken elsewhere
			lines = []string{strings.Join(lines, " ")}
		}
		fmt.Fprintf(w, "  %-*s  %s\n", wide, flagName(f), lines[0])
		for _, more := range lines[1:] {
			fmt.Fprintf(w, "  %-*s  %s\n", wide, "", more)
		}
	}
}

func flagName(f *pflag.Flag) string {
	name := "    --" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", --" + f.Name
	}
	if kind := f.Value.Type(); kind != "bool" {
		name += " " + strings.ToUpper(kind)
	}
	return name
}
