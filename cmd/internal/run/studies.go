package run

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/all"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/sweep"
)

// nameStudy takes the argument of bench.
func (a *arms) nameStudy(args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case len(args) > 1:
		return cli.Misuse("run them one after the other", "bench takes one study, and %d were given", len(args))
	case args[0] == sweep.Policy().Name:
		return nil // what bench does without a name
	}
	found, ok := all.Find(args[0])
	if !ok {
		return cli.Misuse("the studies are "+strings.Join(StudyNames(), ", ")+"; holdfast bench --list says what they ask", "there is no study %q", args[0])
	}
	a.study = found
	return nil
}

// StudyNames are those that bench can name.
func StudyNames() []string {
	var names []string
	for _, s := range all.Studies() {
		names = append(names, s.Name)
	}
	return names
}

// ofEveryStudy are the flags that go with any study; what else one takes it says.
var ofEveryStudy = []string{"dir", "quick", "full", "time", "dry-run", "output", "rounds", "seed", "fs", "kernel", "install", "allow-tmpfs", "all", "live", "plot", "keep", "export", "save-baseline", "baseline-dir"}

// notOfStudy refuses flags that the study named does not take.
func (b *benchmark) notOfStudy(cmd *cobra.Command) error {
	if b.study.Name == "" {
		return nil
	}
	var wrong []string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains(ofEveryStudy, f.Name) && !slices.Contains(b.study.Takes, f.Name) {
			wrong = append(wrong, "--"+f.Name)
		}
	})
	if len(wrong) == 0 {
		return nil
	}
	hint := "it has no flags of its own"
	if len(b.study.Takes) > 0 {
		hint = "of its own it takes --" + strings.Join(b.study.Takes, ", --")
	}
	if slices.Contains(wrong, "--from") || slices.Contains(wrong, "--resume") {
		hint = "the results say which study it was: leave its name out"
	}
	return cli.Misuse(hint, "the study %s does not take %s", b.study.Name, strings.Join(wrong, ", "))
}

// listStudies shows what can be run by name.
func listStudies(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "study\tquick\tdefault\tfull\tquestion")
	fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s?\n", sweep.Policy().Name, "10s", "50s", "5m0s", sweep.Policy().Question)
	for _, s := range all.Studies() {
		row := []string{s.Name}
		for _, preset := range []study.Preset{study.Quick(), study.Default(), study.Full()} {
			_, plan := s.Outline(study.Choice{Preset: preset})
			row = append(row, fmt.Sprintf("%v, %s", max(time.Second, plan.Estimate.Round(time.Second)), cli.BytesText(plan.Size)))
		}
		fmt.Fprintf(t, "%s\t%s?\n", strings.Join(row, "\t"), s.Question)
	}
	return t.Flush()
}
