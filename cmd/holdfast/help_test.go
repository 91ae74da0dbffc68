package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
)

// everyCommand is the root and all that a user can call.
func everyCommand() []*cobra.Command {
	all := []*cobra.Command{newRoot()}
	for i := 0; i < len(all); i++ {
		for _, c := range all[i].Commands() {
			if c.IsAvailableCommand() {
				all = append(all, c)
			}
		}
	}
	return all
}

var flagLine = regexp.MustCompile(`(?m)^  (-., |    )--`)

// TestHelpsBeginWithAFewFlags: the most wanted come before the examples, the others behind. Each help
// has the exit codes, and fits into 100 columns.
func TestHelpsBeginWithAFewFlags(t *testing.T) {
	t.Parallel()
	for _, c := range everyCommand() {
		var help strings.Builder
		c.SetOut(&help)
		cli.Help(c, nil)
		first, rest, _ := strings.Cut(help.String(), "\nExamples:\n")
		if n := len(flagLine.FindAllString(first, -1)); n > 8 {
			t.Errorf("%s begins with %d flags", c.CommandPath(), n)
		}
		for line := range strings.Lines(help.String()) {
			if len(line) > 101 {
				t.Errorf("%s has a line wider than 100 columns: %s", c.CommandPath(), line)
			}
		}
		flags := 0
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && !f.Hidden {
				flags++
			}
		})
		if n := len(flagLine.FindAllString(help.String(), -1)); n != flags {
			t.Errorf("%s shows %d flags of %d", c.CommandPath(), n, flags)
		}
		_, codes, _ := strings.Cut(rest, "\nExit codes:\n    0  ")
		if !strings.Contains(codes, "\n    2  wrong input") || !strings.Contains(codes, "\n    3  ") {
			t.Errorf("%s has the exit codes %q", c.CommandPath(), codes)
		}
	}
	// A ninth flag comes later by itself.
	many := &cobra.Command{Use: "many", Example: "  many", Run: func(*cobra.Command, []string) {}}
	for _, name := range strings.Split("abcdefghij", "") {
		many.Flags().Bool("flag-"+name, false, "one")
	}
	var help strings.Builder
	many.SetOut(&help)
	cli.Help(many, nil)
	first, rest, _ := strings.Cut(help.String(), "\nExamples:\n")
	_, rest, _ = strings.Cut(rest, "\nMore flags:\n")
	if len(flagLine.FindAllString(first, -1)) != 8 || len(flagLine.FindAllString(rest, -1)) != 2 {
		t.Errorf("of ten flags:\n%s", help.String())
	}
}

// TestManualPagesSayWhatTheHelpsSay writes them all: each flag and exit code, and nothing that roff(7)
// would take for itself.
func TestManualPagesSayWhatTheHelpsSay(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "man1")
	if err := runCommand(t.Context(), []string{"man", dir}, nil, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	request := regexp.MustCompile(`^\.(TH|SH|SS|TP|PP|B|BR|nf|fi)( |$)`)
	for _, c := range everyCommand() {
		data, err := os.ReadFile(filepath.Join(dir, cli.ManName(c)+".1"))
		if err != nil {
			t.Error(err)
			continue
		}
		page := string(data)
		for line := range strings.Lines(page) {
			line = strings.TrimSuffix(line, "\n")
			if strings.HasPrefix(line, "'") || strings.HasPrefix(line, ".") && !request.MatchString(line) || line == "" {
				t.Errorf("%s has the line %q", cli.ManName(c), line)
			}
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if name := `\-\-` + strings.ReplaceAll(f.Name, "-", `\-`); f.Name != "help" && !f.Hidden && !strings.Contains(page, name) {
				t.Errorf("%s lacks --%s", cli.ManName(c), f.Name)
			}
		})
		for _, want := range []string{".SH NAME\nholdfast", ".SH EXAMPLES\n.PP\n.nf\n  holdfast", ".SH EXIT STATUS\n.TP\n.B 0\n"} {
			if !strings.Contains(page, want) {
				t.Errorf("%s lacks %q", cli.ManName(c), want)
			}
		}
	}
	pages, err := os.ReadDir(dir)
	if err != nil || len(pages) != len(everyCommand()) {
		t.Errorf("%d pages, %v", len(pages), err)
	}
	// A mistyped path makes no tree.
	missing := filepath.Join(t.TempDir(), "man")
	err = runCommand(t.Context(), []string{"man", filepath.Join(missing, "man1")}, nil, io.Discard, io.Discard)
	if _, there := os.Stat(missing); err == nil || !strings.HasSuffix(err.Error(), "there is no directory "+missing) || !os.IsNotExist(there) {
		t.Errorf("below what does not exist: %v; %v", err, there)
	}
	// Nothing is overwritten, and where one can't be made none is left.
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "holdfast-copy.1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := runCommand(t.Context(), []string{"man", other}, nil, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "nothing is overwritten") {
		t.Errorf("over a page: %v", err)
	}
	left, err := os.ReadDir(other)
	if err != nil || len(left) != 1 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// TestALongFlagWithOneDashIsNamed is about what users of other programs write.
func TestALongFlagWithOneDashIsNamed(t *testing.T) {
	t.Parallel()
	check := func(hint string, args ...string) {
		t.Helper()
		var stderr strings.Builder
		cli.Report(&stderr, runCommand(t.Context(), args, nil, io.Discard, io.Discard))
		if !strings.Contains(stderr.String(), "hint: "+hint) {
			t.Errorf("%q: %s", slices.Clip(args), stderr.String())
		}
	}
	check("did you mean --policy?", "bench", "-policy", "durable")
	check("did you mean --policy?", "bench", "-polcy=durable")
	check("did you mean --quick?", "bench", "--quikc")
	check("did you mean --time?", "prove", "--tiem", "1s")
	check("did you mean --listen?", "serve", "--lisen", "127.0.0.1:1")
	check("holdfast bench --help shows the flags", "bench", "-x")
	check("holdfast copy --help shows the flags", "copy", "-r", "a", "b")
}
