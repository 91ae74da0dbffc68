package run

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/lab/trial"
)

// stepText is the line for a trial. The arms of a study have names.
func stepText(s trial.Step) string {
	left := s.Left.Round(time.Second).String()
	if s.Open {
		left = "≤" + left
	}
	what := s.Cell.Name
	if s.Cell.Group == "" {
		what = fmt.Sprintf("%d x %v", s.Cell.Writers, s.Cell.Policy)
	}
	return fmt.Sprintf("round %d/%d, %s left, %s", s.Round, max(s.Round, s.Rounds), left, what)
}
