package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/study"
)

// nameStudy takes the argument of bench.
func (b *benchmark) nameStudy(args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case len(args) > 1:
		return misuse("run them one after the other", "bench takes one study, and %d were given", len(args))
	case args[0] == study.Policy().Name:
		return nil // what bench does without a name
	}
	found, ok := study.Find(args[0])
	if !ok {
		return misuse("the studies are "+strings.Join(studyNames(), ", ")+"; holdfast bench --list says what they ask", "there is no study %q", args[0])
	}
	b.named, b.study = found.Name, found
	return nil
}

func studyNames() []string {
	var names []string
	for _, s := range study.Studies() {
		names = append(names, s.Name)
	}
	return names
}

// ofEveryStudy are the flags that go with any study; what else one takes it says.
var ofEveryStudy = []string{"dir", "quick", "full", "time", "dry-run", "output", "rounds", "seed", "fs", "allow-tmpfs", "export", "save-baseline", "baseline-dir"}

// notOfStudy refuses flags that the study named does not take.
func (b *benchmark) notOfStudy(cmd *cobra.Command) error {
	if b.named == "" {
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
	return misuse(hint, "the study %s does not take %s", b.named, strings.Join(wrong, ", "))
}

// checkStudy refuses a choice of which nothing can run: by its own flags, or because
// this build or system has no arm at all.
func (b *benchmark) checkStudy(cmd *cobra.Command, c study.Choice) error {
	if b.named == "" {
		return nil
	}
	err := b.study.Check(c)
	if err != nil && slices.ContainsFunc(b.study.Takes, cmd.Flags().Changed) {
		return misuse("the study's own flags decide what its arms do; leave them out for the published numbers", "%w", err)
	}
	return err
}

// outline is what would be run, as far as that is known before; of several file
// systems what would be on each.
func (b *benchmark) outline(c study.Choice) ([]result.Cell, result.Plan) {
	if b.named != "" {
		return b.study.OutlineOn(c)
	}
	return study.Policy().OutlineOn(c)
}

// isStudy reports whether a run is of a study.
func isStudy(h result.Header) bool {
	_, ok := study.Find(h.Study)
	return ok
}

// listStudies shows what can be run by name.
func listStudies(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "study\tquick\tdefault\tfull\tquestion")
	fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s?\n", study.Policy().Name, "10s", "45s", "5m0s", study.Policy().Question)
	for _, s := range study.Studies() {
		row := []string{s.Name}
		for _, preset := range []study.Preset{study.Quick(), study.Default(), study.Full()} {
			_, plan := s.Outline(study.Choice{Preset: preset})
			row = append(row, fmt.Sprintf("%v, %s", max(time.Second, plan.Estimate.Round(time.Second)), bytesText(plan.Size)))
		}
		fmt.Fprintf(t, "%s\t%s?\n", strings.Join(row, "\t"), s.Question)
	}
	return t.Flush()
}

// The bounds of what a study may be given.
const (
	maxCount  = 1_000_000_000
	maxBuffer = 1 * holdfast.GiB
)

// parseCount reads a number of records: 100000, 100k, 1M.
func parseCount(text string) (int64, error) {
	number, factor := text, int64(1)
	for suffix, f := range map[string]int64{"k": 1e3, "K": 1e3, "M": 1e6} {
		if rest, ok := strings.CutSuffix(number, suffix); ok {
			number, factor = rest, f
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number of records, such as 100000, 100k or 1M", text)
	}
	if n < 1 || n > maxCount/factor {
		return 0, fmt.Errorf("%s records can't be measured; use 1 to %d", text, int64(maxCount))
	}
	return n * factor, nil
}

// parseBuffer reads the size of a buffer.
func parseBuffer(text string) (holdfast.Size, error) {
	size, err := holdfast.ParseSize(text)
	if err == nil && (size < 1 || size > maxBuffer) {
		err = fmt.Errorf("a buffer of %v can't be measured; use 1B to %v", size, maxBuffer)
	}
	return size, err
}
