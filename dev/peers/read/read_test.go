package read

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
)

// TestEveryArmReadsWhatTheFileHolds runs each arm once on a file whose size is no
// multiple of anything.
func TestEveryArmReadsWhatTheFileHolds(t *testing.T) {
	s, err := newSite(t.TempDir(), 1<<20+4321)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups() {
		for _, a := range g.Arms {
			t.Run(g.Name+"/"+a.Name, func(t *testing.T) {
				if err := s.prepare(g.Job.cold); err != nil {
					t.Skipf("there is no cold file here: %v", err)
				}
				took, err := s.try(g.Job, a.Do)
				if errors.Is(err, errors.ErrUnsupported) {
					t.Skip(err)
				}
				if err != nil || took.Elapsed <= 0 {
					t.Errorf("took %+v, %v", took, err)
				}
			})
		}
	}
}

func TestWrongResultDoesNotCount(t *testing.T) {
	s, err := newSite(t.TempDir(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	lies := func(string, int) (result, error) { return result{1, 2}, nil }
	if _, err := s.try(groups()[0].Job, lies); err == nil || !strings.Contains(err.Error(), "is not what the file holds") {
		t.Errorf("try = %v", err)
	}
}

func TestCommandPrintsATableOfThePickedArms(t *testing.T) {
	dir := t.TempDir()
	var out, talk bytes.Buffer
	err := run(context.Background(), []string{"-dir", dir, "-rounds", "1", "-size", "100KiB", "-run", "lines/warm/bufio.Scanner$"}, &out, &talk)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| holdfast Lines |", "| bufio.Scanner |", "Noise floor", "1 rounds", "on a file of 100KiB", "MiB/s"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "mmap") {
		t.Error("an arm that was not picked is in the table")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it left %v, %v", left, err)
	}
}

func TestCommandRefuses(t *testing.T) {
	check := func(want string, args ...string) {
		t.Helper()
		err := run(context.Background(), args, &bytes.Buffer{}, &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), want) || command.ExitCode(err) != command.ExitUsage {
			t.Errorf("%q: %v (exit %d), want %q", args, err, command.ExitCode(err), want)
		}
	}
	check("matches no arm", "-run", "nobody")
	check("give at least 1", "-size", "0")
}
