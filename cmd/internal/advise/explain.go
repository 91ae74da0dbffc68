package advise

import (
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/sweep"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
	"github.com/holdfast-go/holdfast/cmd/internal/place"
	"github.com/holdfast-go/holdfast/cmd/internal/run"
)

// explainTime is the default --time of --explain: appends need no paced trials.
const explainTime = 15 * time.Second

// explainSettings measures an append under each setting of the program, and prints the table.
func (c *consultation) explainSettings(cmd *cobra.Command, args []string) (err error) {
	switch {
	case c.program.Name == "":
		return cli.Misuse("for instance: holdfast advise --for postgres --explain", "--explain shows the settings of a program, and --for is missing")
	case len(args) > 0 || c.goLine || c.export != "" || cmd.Flags().Changed("need"):
		return cli.Misuse("give it with --for, --dir, --time, --seed and -o", "--explain measures the program's own settings, and judges no need and no results")
	}
	if err := cli.IsFree("-o", c.file); err != nil {
		return err
	}
	choice := study.Choice{Preset: study.Default(), Budget: c.budget, Seed: c.seed, Records: []holdfast.Size{holdfast.Size(c.program.Load.RecordBytes)}, Writers: []int{c.program.Load.Writers}}
	if !cmd.Flags().Changed("time") {
		choice.Budget = explainTime
	}
	for _, s := range c.program.Settings() {
		if !slices.Contains(choice.Policies, s.Policy) {
			choice.Policies = append(choice.Policies, s.Policy)
		}
	}
	ground, err := trial.OpenWorkDir(c.where.Dir, c.where.AllowTmpfs)
	if err != nil {
		return place.CannotOpen(c.where.Dir, err)
	}
	defer func() { err = place.CloseWorkDir(ground, err) }()
	s := run.New(cmd.ErrOrStderr(), ground, c.where.Dir, c.file)
	if err := s.Refuse(s.Measure(cmd.Context(), sweep.Policy(), choice)); err != nil {
		return err
	}
	figures, err := figure.Of(s.Run)
	if err != nil {
		return cli.CannotReport(c.where.Dir, err)
	}
	return cli.WriteLocal(cmd.OutOrStdout(), func(w io.Writer) error { return c.program.Explain(w, figures) })
}
