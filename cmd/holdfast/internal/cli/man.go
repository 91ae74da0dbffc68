package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Man writes the manual page of a command, as man(7) has it: the text of its [Help].
func Man(w io.Writer, cmd *cobra.Command) error {
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

// ManName is the name of a command's manual page: holdfast-bench.
func ManName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manText writes paragraphs. Lines that begin with a space are of a table or an example, and stay
// as they are.
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

// roff writes a line so that roff(7) takes no part of it for itself.
func roff(line string) string {
	line = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(line)
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		return `\&` + line
	}
	return line
}

// quoted writes a text as one argument of a macro.
func quoted(text string) string { return `"` + strings.ReplaceAll(roff(text), `"`, `\(dq`) + `"` }
