package run

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/lab/trial"
)

// showStep shows the next trial: on a terminal each, else the first one of each round. It
// writes between trials, off the clock.
func (s *session) showStep(step trial.Step) {
	if s.show.IsTerminal {
		s.show.Steps(stepText(step), step.Trial-1, max(step.Trials, step.Trial))
		return
	}
	if step.Round == s.shown {
		return
	}
	s.shown = step.Round
	round, left := fmt.Sprintf("round %d of %d", step.Round, step.Rounds), step.Left.Round(time.Second).String()
	if step.Open { // both are the most that it may take
		round, left = fmt.Sprintf("round %d of about %d", step.Round, max(step.Round, step.Rounds)), "at most "+left
	}
	if step.Round == 0 {
		round = "warm-up"
	}
	s.show.Show(fmt.Sprintf("%s, %s left", round, left))
}

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
