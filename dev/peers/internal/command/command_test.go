package command

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
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

func TestKindsAreListedAndCalled(t *testing.T) {
	kinds := []Kind{
		{Name: "one", Does: "what one does", Run: func(_ context.Context, args []string, _, _ io.Writer) error {
			return fmt.Errorf("one got %q", args)
		}},
		{Name: "two", Does: "what two does", Run: func(context.Context, []string, io.Writer, io.Writer) error { return nil }},
	}
	for _, args := range [][]string{nil, {"help"}, {"-h"}, {"-help"}, {"--help"}} {
		var out bytes.Buffer
		err := Run(t.Context(), kinds, args, &out, io.Discard)
		if err != nil || !strings.Contains(out.String(), "one     what one does") || !strings.Contains(out.String(), "two     what two does") {
			t.Errorf("%q: %v\n%s", args, err, &out)
		}
	}
	if err := Run(t.Context(), kinds, []string{"one", "-x"}, io.Discard, io.Discard); err == nil || err.Error() != `one: one got ["-x"]` {
		t.Errorf("one: %v", err)
	}
	if err := Run(t.Context(), kinds, []string{"two"}, io.Discard, io.Discard); err != nil {
		t.Errorf("two: %v", err)
	}
	err := Run(t.Context(), kinds, []string{"tow"}, io.Discard, io.Discard)
	if ExitCode(err) != ExitUsage || !strings.Contains(err.Error(), `"tow" is no kind of comparison; the kinds are one, two`) {
		t.Errorf("tow: %v", err)
	}
}

func TestFlagsAreRead(t *testing.T) {
	read := func(args ...string) (*Flags, error) {
		f := NewFlags("kind", "group/arm")
		return f, f.Read(args, io.Discard)
	}
	check := func(rounds int, args ...string) {
		t.Helper()
		if f, err := read(args...); err != nil || f.Count != rounds {
			t.Errorf("%q: %d rounds, %v, want %d", args, f.Count, err, rounds)
		}
	}
	check(10)
	check(3, "-quick")
	check(12, "-quick", "-rounds=12")
	check(12, "-rounds=12")
	refuse := func(want string, args ...string) {
		t.Helper()
		if _, err := read(args...); ExitCode(err) != ExitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
	refuse("-rounds=0: give at least 1", "-rounds=0")
	refuse("-rounds=-1: give at least 1", "-rounds=-1")
	refuse("error parsing regexp", "-run=(")
	refuse(`"more" is not a flag; see -help`, "more")
	refuse("not defined: -nosuch; see -help", "-nosuch")
	if _, err := read("-help"); ExitCode(err) != 0 {
		t.Errorf("-help: %v", err)
	}
}
