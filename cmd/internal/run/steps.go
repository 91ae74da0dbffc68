package run

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// stepText is the line for a trial. The arms of a study have names.
func stepText(s trial.Step) string {
	left := s.Left.Round(time.Second).String()
	if s.Open {
		left = "≤" + left
	}
	return fmt.Sprintf("round %d/%d, %s left, %s", s.Round, max(s.Round, s.Rounds), left, cellText(s.Cell))
}

// cellText names a cell in a few words.
func cellText(c result.Cell) string {
	if c.Group != "" {
		return c.Name
	}
	return fmt.Sprintf("%d x %v", c.Writers, c.Policy)
}
