package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/holdfast-go/holdfast/internal/lab/figure"
)

// contrastHead has the columns of a comparison, which has a row for each cell and one for
// all together.
var contrastHead = []string{
	"cell", "policy", "record_bytes", "writers", "a_ns_per_record", "b_ns_per_record",
	"ratio", "low", "high", "confidence", "verdict", "regressed",
}

func comparisonColumns(c figure.Comparison, regressed bool) []string {
	return []string{number(c.Ratio), number(c.Low), number(c.High), number(c.Confidence), string(c.Verdict), fmt.Sprint(regressed)}
}

// number writes all digits, or nothing for what is absent.
func number(x float64) string {
	if !figure.Number(x).Known() {
		return ""
	}
	return fmt.Sprint(x)
}

// contrastBenchmark writes both runs' benchmark lines. The key run distinguishes
// them: benchstat -col run.
func contrastBenchmark(w io.Writer, c figure.Contrast) error {
	for _, side := range []struct {
		name string
		figure.Side
	}{{"A", c.A}, {"B", c.B}} {
		var b strings.Builder
		if err := writeBenchmark(&b, side.Results()); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "run: %s\n%s", side.name, b.String()); err != nil {
			return err
		}
	}
	return nil
}
