package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/peers/internal/command"
)

// TestEveryArmReadsWhatTheFileHolds runs each arm once on a file whose size is no
// multiple of anything.
func TestEveryArmReadsWhatTheFileHolds(t *testing.T) {
	s, err := newSite(t.TempDir(), 1<<20+4321)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups() {
		for _, a := range g.arms {
			t.Run(g.name+"/"+a.name, func(t *testing.T) {
				if err := s.prepare(g.cold); err != nil {
					t.Skipf("there is no cold file here: %v", err)
				}
				took, err := g.try(s, a)
				if errors.Is(err, errors.ErrUnsupported) {
					t.Skip(err)
				}
				if err != nil || took <= 0 {
					t.Errorf("took %v, %v", took, err)
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
	g := groups()[0]
	lies := &arm{name: "lies", read: func(string, int) (result, error) { return result{1, 2}, nil }}
	if _, err := g.try(s, lies); err == nil || !strings.Contains(err.Error(), "is not what the file holds") {
		t.Errorf("try = %v", err)
	}
}

func TestCommandPrintsATableOfThePickedArms(t *testing.T) {
	dir := t.TempDir()
	var out, talk bytes.Buffer
	err := runCommand(context.Background(), []string{"-dir", dir, "-rounds", "1", "-size", "100KiB", "-run", "lines/warm/bufio.Scanner$"}, &out, &talk)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| holdfast Lines |", "| bufio.Scanner |", "Noise floor", "A file of 100KiB, 1 rounds"} {
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
		err := runCommand(context.Background(), args, &bytes.Buffer{}, &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), want) || command.ExitCode(err) != command.ExitUsage {
			t.Errorf("%q: %v (exit %d), want %q", args, err, command.ExitCode(err), want)
		}
	}
	check("matches no arm", "-run", "nobody")
	check("give at least 1", "-rounds", "0")
	check("give at least 1", "-size", "0")
	check("is not a flag", "file")
	check("-run:", "-run", "(")
}

// planted returns an arm with so many samples.
func planted(samples int) *arm {
	return &arm{Runs: command.Runs[time.Duration]{Samples: make([]time.Duration, samples)}}
}

func TestInterruptedRunKeepsWholeRounds(t *testing.T) {
	g := &group{arms: []*arm{planted(3), planted(2)}}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if rounds, err := run(ctx, &site{}, []*group{g}, command.Rounds{Count: 5, Warm: true, Talk: &bytes.Buffer{}}); rounds != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("run = %d, %v; want 0, canceled", rounds, err)
	}
	if len(g.arms[0].Samples) != 0 {
		t.Errorf("%d samples are left of no whole round", len(g.arms[0].Samples))
	}
}
