package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"testing"
)

func TestExitCodeSaysHowItWent(t *testing.T) {
	check := func(err error, want int) {
		t.Helper()
		if got := ExitCode(err); got != want {
			t.Errorf("%v: exit %d, want %d", err, got, want)
		}
	}
	check(nil, 0)
	check(flag.ErrHelp, 0)
	check(fmt.Errorf("the run: %w", ErrFailed), ExitFailed)
	check(fmt.Errorf("here: %w", &UsageError{errors.New("no such flag")}), ExitUsage)
	check(fmt.Errorf("the run: %w", context.Canceled), ExitInterrupted)
	check(errors.New("no room"), ExitUnmeasured)
}
