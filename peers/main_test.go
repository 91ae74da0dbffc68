package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/peers/internal/command"
)

// TestEveryArmWritesWhatItIsGiven runs each arm of each comparison with a few
// records, a number that fills no window and no buffer exactly.
func TestEveryArmWritesWhatItIsGiven(t *testing.T) {
	root := t.TempDir()
	for _, c := range []comparison{appending(), durable(true), windows(), logs(true), largeLogs(true), rotating()} {
		for _, a := range c.arms {
			for _, goroutines := range []int{1, 3} {
				if a.alone && goroutines > 1 {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/goroutines=%d", c.name, a.name, goroutines), func(t *testing.T) {
					s := try(root, c, a, work{goroutines, 150, c.size})
					if s.err != nil {
						t.Fatal(s.err)
					}
					if s.elapsed <= 0 || s.open <= 0 {
						t.Errorf("nothing was timed: %+v", s)
					}
				})
			}
		}
	}
	left, err := os.ReadDir(root)
	if err != nil || len(left) > 0 {
		t.Errorf("trials left %v, %v", left, err)
	}
}

// TestAppendersCrossTheirBuffers writes more than every buffer holds.
func TestAppendersCrossTheirBuffers(t *testing.T) {
	c := appending()
	for _, a := range c.arms {
		if s := try(t.TempDir(), c, a, work{1, 20_000, c.size}); s.err != nil {
			t.Errorf("%s: %v", a.name, s.err)
		}
	}
}

// lossy is an arm that drops the last record of each goroutine.
func lossy() arm {
	return arm{name: "lossy", open: func(dir string, w work) (*sink, error) {
		k, err := openFile(dir, w)
		if err != nil {
			return nil, err
		}
		to, _ := k.writer()
		k.writer = func() (io.Writer, func() error) {
			return &dropping{to, w.each - 1}, func() error { return nil }
		}
		return k, nil
	}}
}

type dropping struct {
	io.Writer
	left int
}

func (d *dropping) Write(p []byte) (int, error) {
	if d.left--; d.left < 0 {
		return len(p), nil
	}
	return d.Writer.Write(p)
}

func TestWrongBytesDoNotCount(t *testing.T) {
	c := comparison{name: "planted", size: 40, loads: []load{{2, 20}}, arms: []arm{{name: baseline, open: openFile}, lossy()}}
	all := blocks([]comparison{c}, regexp.MustCompile(""))
	counted := 0
	var talk, table bytes.Buffer
	if _, err := run(t.Context(), t.TempDir(), all, command.Rounds{Count: 2, Seed: 1, Talk: &talk}, func(*cell, sample) { counted++ }); err != nil {
		t.Fatal(err)
	}
	if counted != 2 {
		t.Errorf("%d trials counted, want the 2 of the arm that is right", counted)
	}
	if command.Failed(all) != command.ErrFailed {
		t.Error("the run does not fail")
	}
	writeTables(&table, all, "")
	if !strings.Contains(table.String(), "| lossy | does not count: goroutine 0 wrote 10 records, the file has 9 |") {
		t.Errorf("the table does not say that lossy lost records:\n%s", &table)
	}
}

func TestEachRoundRunsEachArmOnce(t *testing.T) {
	c := appending()
	c.loads = []load{{1, 10}, {2, 10}}
	all := blocks([]comparison{c}, regexp.MustCompile("os.File|bufio|limit"))
	order := map[uint64][]string{}
	for _, seed := range []uint64{1, 1, 2} {
		order[seed] = nil
		did := func(c *cell, _ sample) { order[seed] = append(order[seed], c.name) }
		if _, err := run(t.Context(), t.TempDir(), all, command.Rounds{Count: 3, Seed: seed, Talk: io.Discard}, did); err != nil {
			t.Fatal(err)
		}
		if got, want := len(order[seed]), 3*(5+4); got != want {
			t.Fatalf("%d trials, want %d", got, want)
		}
	}
	if fmt.Sprint(order[1]) == fmt.Sprint(order[2]) {
		t.Error("another seed gave the same order")
	}
	for _, b := range all {
		for _, c := range b.cells {
			if len(c.samples) != 9 { // three runs of three rounds
				t.Errorf("%s has %d samples, want 9", c.name, len(c.samples))
			}
		}
	}
}

func TestInterruptedRunKeepsItsWholeRounds(t *testing.T) {
	c := appending()
	c.loads = []load{{1, 10}}
	all := blocks([]comparison{c}, regexp.MustCompile("os.File|bufio"))
	ctx, stop := context.WithCancel(t.Context())
	trials := 0
	did := func(*cell, sample) {
		if trials++; trials == 2*4+3 {
			stop()
		}
	}
	r := command.Rounds{Count: 5, Seed: 1, Talk: io.Discard}
	rounds, err := run(ctx, t.TempDir(), all, r, did)
	if rounds != 2 || !errors.Is(err, context.Canceled) {
		t.Fatalf("%d rounds, %v; want 2 and the interruption", rounds, err)
	}
	for _, c := range all[0].cells {
		if len(c.samples) != 2 {
			t.Errorf("%s has %d samples, want 2", c.name, len(c.samples))
		}
	}
	if text := conditions(r.Rounded(rounds)); !strings.Contains(text, "2 rounds") || !strings.Contains(text, "interrupted before 3 more") {
		t.Errorf("not marked: %s", text)
	}
}

func TestCommandPrintsTables(t *testing.T) {
	dir := t.TempDir()
	var out, talk bytes.Buffer
	args := []string{"-quick", "-rounds=1", "-dir", dir, "-seed=7", "-run=append/arm=(holdfast|limit|bufio-4KiB)/goroutines=1$"}
	if err := runCommand(t.Context(), args, &out, &talk); err != nil {
		t.Fatal(err, &talk)
	}
	for _, want := range []string{"-seed 7", "github.com/cockroachdb/pebble/v2 v", "go.uber.org/zap v", "| holdfast |", "| limit |", "`limit`: no sink"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, &out)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

func TestCommandPrintsBenchmarkLines(t *testing.T) {
	var out bytes.Buffer
	args := []string{"-quick", "-rounds=2", "-dir", t.TempDir(), "-benchfmt", "-run=append/arm=limit/"}
	if err := runCommand(t.Context(), args, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^BenchmarkAppend/arm=limit/goroutines=1-\d+\t200000\t[\d.]+ ns/op\t`)
	if got := len(line.FindAllString(out.String(), -1)); got != 2 {
		t.Errorf("%d benchmark lines, want 2:\n%s", got, &out)
	}
}

func TestCommandRefuses(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	stop()
	check := func(ctx context.Context, code int, want string, args ...string) {
		t.Helper()
		err := runCommand(ctx, args, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) || command.ExitCode(err) != code {
			t.Errorf("%q: got %v (exit %d), want %q (exit %d)", args, err, command.ExitCode(err), want, code)
		}
	}
	check(t.Context(), command.ExitUsage, "matches no arm", "-run=nosuch")
	check(t.Context(), command.ExitUsage, "-run:", "-run=(")
	check(t.Context(), command.ExitUsage, "-rounds=-1 is negative", "-rounds=-1")
	check(t.Context(), command.ExitUsage, `"more" is not a flag`, "more")
	check(t.Context(), command.ExitUsage, "not defined", "-nosuch")
	check(t.Context(), command.ExitUnmeasured, "no such file or directory", "-dir=nosuch")
	check(stopped, command.ExitInterrupted, "canceled", "-run=limit", "-dir", t.TempDir())
	if code := command.ExitCode(command.ErrFailed); code != command.ExitFailed {
		t.Errorf("wrong bytes exit with %d", code)
	}
	if err := runCommand(t.Context(), []string{"-help"}, io.Discard, io.Discard); command.ExitCode(err) != 0 {
		t.Errorf("-help: %v", errors.Unwrap(err))
	}
}
