package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/internal/lab/figure"
	"github.com/holdfast-go/holdfast/internal/lab/page"
	"github.com/holdfast-go/holdfast/internal/lab/report"
	"github.com/holdfast-go/holdfast/internal/lab/stat"
)

// beside writes a page that sets each of several results beside the first.
func (r *reporting) beside(cmd *cobra.Command, names []string) error {
	var first figure.Side
	var contrasts []figure.Contrast
	var inside []page.Results
	for i, name := range names {
		var read bytes.Buffer
		run, err := cli.ReadResultsTo(&read, name, cmd.InOrStdin())
		if err != nil {
			return err
		}
		side, err := figure.NewSide(resultsName(name), run)
		if err != nil {
			return cli.CannotReport(name, err)
		}
		inside = append(inside, page.Results{Name: side.Name, Bytes: read.Bytes()})
		if i == 0 {
			first = side
			continue
		}
		c, err := figure.Compare(first, side, false, stat.Band)
		if errors.Is(err, figure.ErrNothingInCommon) {
			return &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("%s and %s: %w", names[0], name, err),
				Hint: fmt.Sprintf("measure the same policies, records and writers; holdfast bench --from %s repeats the first", names[0])}
		}
		if err != nil {
			return err
		}
		contrasts = append(contrasts, c)
	}
	return cli.WriteOut(cmd.OutOrStdout(), r.output, func(w io.Writer) error { return report.ContrastHTML(w, contrasts, inside) })
}
