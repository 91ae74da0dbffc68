package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/lab"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/report"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
)

// small are the flags of a run that takes about a second, and most of it waits.
func small(dir string, more ...string) []string {
	return append([]string{"bench", "--dir", dir, "--allow-tmpfs", "--writers", "1", "--policy", "buffer=4KiB", "--rate", "1000"}, more...)
}

// bench runs the command in this process, and wants it to succeed.
func bench(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, talk bytes.Buffer
	if err := runCommand(t.Context(), args, nil, &out, &talk); err != nil {
		t.Fatalf("%q: %v\n%s", args, err, talk.String())
	}
	return out.String(), talk.String()
}

// refusalOf runs the command in this process, and wants a refusal with a hint.
func refusalOf(t *testing.T, args ...string) (code int, reported string) {
	t.Helper()
	var talk bytes.Buffer
	err := runCommand(t.Context(), args, nil, io.Discard, &talk)
	code = cli.Report(&talk, err)
	if code == cli.ExitOK || !strings.Contains(talk.String(), "\nhint: ") {
		t.Errorf("%q: exit code %d, stderr:\n%s", args, code, talk.String())
	}
	return code, talk.String()
}

func readFile(t *testing.T, path string) result.Run {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	run, err := result.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// awaitTrial waits until the results hold a trial of the round, which is then in
// its middle, or the file ends.
func awaitTrial(t *testing.T, path string, round int) {
	t.Helper()
	for {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, fmt.Appendf(nil, `"round":%d,`, round)) || bytes.Contains(text, []byte(`{"kind":"end"`)) {
			return
		}
		time.Sleep(5 * time.Millisecond) // the run needs the CPU
	}
}

// leftovers returns the directories of runs in dir.
func leftovers(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "holdfast-bench-*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// checkFinished wants a run that is complete after some parts, with as many whole
// rounds as were planned, and a table of these alone.
func checkFinished(t *testing.T, path string, parts, rounds int) {
	t.Helper()
	run := readFile(t, path)
	if !run.Complete() || run.End.Rounds != rounds || run.Rounds() != rounds || len(run.Resumed) != parts {
		t.Errorf("%d parts, %d rounds, end %+v, torn %v", len(run.Resumed), run.Rounds(), run.End, run.Torn)
	}
	whole := run
	whole.Trials = nil
	perRound := map[int]map[string]int{}
	for _, trial := range run.Trials {
		if perRound[trial.Round] == nil {
			perRound[trial.Round] = map[string]int{}
		}
		perRound[trial.Round][trial.Cell]++
	}
	for _, trial := range run.Trials {
		if trial.Round == 0 || len(perRound[trial.Round]) == len(run.Header.Cells) {
			whole.Trials = append(whole.Trials, trial)
		}
	}
	for round, cells := range perRound {
		for cell, n := range cells {
			if round > 0 && n != 1 {
				t.Errorf("%s ran %d times in round %d", cell, n, round)
			}
		}
	}
	var all, some bytes.Buffer
	if err := errors.Join(report.Text(&all, lab.Studies(), run, 100, true), report.Text(&some, lab.Studies(), whole, 100, true)); err != nil {
		t.Fatal(err)
	}
	if all.String() != some.String() || strings.Contains(all.String(), "not complete") {
		t.Errorf("the table of all trials:\n%s\nand of those in whole rounds:\n%s", all.String(), some.String())
	}
	if shown, _ := bench(t, "report", path, "--all"); shown != all.String() {
		t.Errorf("report shows:\n%s", shown)
	}
}

// TestResumeFinishesWhatWasInterruptedOrKilled ends a run in the middle of a
// round, twice, and lets it go on.
func TestResumeFinishesWhatWasInterruptedOrKilled(t *testing.T) {
	skipWithoutSignals(t)
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			skipIfIgnored(t, signal)
			t.Parallel()
			dir, file := t.TempDir(), ""
			onceOfThree(t, func() bool {
				file = filepath.Join(t.TempDir(), "results.jsonl")
				c := startChild(t, small(dir, "--time", "2s", "--rounds", "4", "-o", file)...)
				c.until(t, "round 1 of 4")
				awaitTrial(t, file, 1)
				if !endBy(t, c, signal, file) {
					return false
				}
				again := startChild(t, "bench", "--resume", file, "--allow-tmpfs")
				again.until(t, "of 4, ")
				awaitTrial(t, file, 2)
				return endBy(t, again, signal, file)
			})
			stdout, reported := bench(t, "bench", "--resume", file, "--allow-tmpfs")
			if !strings.Contains(reported, "ended after 4 rounds: all planned rounds") || strings.Contains(reported, "round 5") || !strings.Contains(stdout, ", 4 rounds\n") {
				t.Errorf("stderr:\n%s%s", reported, stdout)
			}
			checkFinished(t, file, 2, 4)
			nothingIn(t, dir)
		})
	}
}

// onceOfThree runs a test up to three times, until the signal came before the run had ended: on a busy
// machine it may come late. A program that ignored the signal would end each run.
func onceOfThree(t *testing.T, interrupted func() bool) {
	t.Helper()
	for range 3 {
		if interrupted() {
			return
		}
	}
	t.Fatal("three runs ended before their signal")
}

// endBy sends the signal, and wants no directory of the run to be left, or one after a kill. It reports
// false if the run ended first.
func endBy(t *testing.T, c *child, signal os.Signal, file string) bool {
	t.Helper()
	if err := c.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	code, left := c.exit(t), leftovers(t, filepath.Dir(c.ground(t)))
	if readFile(t, file).Complete() {
		return false
	}
	if killed := signal == syscall.SIGKILL; killed && len(left) != 1 || !killed && (code != exitBy(signal) || len(left) != 0) {
		t.Errorf("exit code %d, left: %q; stderr:\n%s", code, left, c.reported.String())
	}
	return true
}

// TestRunEndsWhereItsProgressIsNotRead closes the pipe that gets the progress of a run.
func TestRunEndsWhereItsProgressIsNotRead(t *testing.T) {
	skipWithoutSignals(t)
	t.Parallel()
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "results.jsonl")
	c := startChild(t, small(dir, "--time", "1s", "--rounds", "1000", "-o", file)...)
	c.until(t, "round 1 of 1000")
	if err := c.pipe.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err == nil || c.ProcessState.ExitCode() != cli.ExitInterrupted {
		t.Errorf("exit code %d, %v", c.ProcessState.ExitCode(), err)
	}
	if run := readFile(t, file); run.Rounds() < 1 || run.End == nil || run.End.State != result.Interrupted {
		t.Errorf("%d rounds, end %+v", run.Rounds(), run.End)
	}
	nothingIn(t, dir)
}

// TestAPipeThatIsNotItsOutputEndsNoRun sends the signal of a pipe to a process that has ended, such as one that could not be traced.
func TestAPipeThatIsNotItsOutputEndsNoRun(t *testing.T) {
	skipWithoutSignals(t)
	t.Parallel()
	dir := t.TempDir()
	c := startChild(t, small(dir, "--time", "1s", "--rounds", "2")...)
	c.until(t, "round 1 of 2")
	if err := c.Process.Signal(syscall.SIGPIPE); err != nil {
		t.Fatal(err)
	}
	if code := c.exit(t); code != cli.ExitOK {
		t.Errorf("exit code %d, stderr:\n%s", code, c.reported.String())
	}
	nothingIn(t, dir)
}

// TestIgnoredSignalsStayIgnored sends what nohup(1) makes a program ignore.
func TestIgnoredSignalsStayIgnored(t *testing.T) {
	skipWithoutSignals(t)
	t.Parallel()
	dir := t.TempDir()
	args := append([]string{"-c", `trap "" HUP && exec "$0" "$@"`, os.Args[0]}, small(dir, "--time", "1s", "--rounds", "2")...)
	c := startCommand(t, exec.Command("sh", args...), nil)
	c.until(t, "round 1 of 2")
	if err := c.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if code := c.exit(t); code != cli.ExitOK {
		t.Errorf("exit code %d, stderr:\n%s", code, c.reported.String())
	}
	nothingIn(t, dir)
}

// TestResumeRemovesOnlyItsOwnLeftover kills a run, puts something into its directory,
// and plants a directory like it.
func TestResumeRemovesOnlyItsOwnLeftover(t *testing.T) {
	skipWithoutSignals(t)
	t.Parallel()
	dir, file, own := t.TempDir(), "", ""
	other := filepath.Join(dir, "holdfast-bench-1")
	if err := errors.Join(os.Mkdir(other, 0o700), os.WriteFile(filepath.Join(other, "mine"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	onceOfThree(t, func() bool {
		file = filepath.Join(t.TempDir(), "results.jsonl")
		c := startChild(t, small(dir, "--time", "1s", "--rounds", "2", "-o", file)...)
		c.until(t, "round 1 of 2")
		own = c.ground(t)
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		c.exit(t)
		return !readFile(t, file).Complete()
	})
	if err := os.WriteFile(filepath.Join(own, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, reported := bench(t, "bench", "--resume", file, "--allow-tmpfs"); !strings.Contains(reported, own+" is left: it holds mine, which no run makes; remove it by hand if no other run uses it") {
		t.Errorf("stderr:\n%s", reported)
	}
	if left := leftovers(t, dir); !reflect.DeepEqual(left, []string{other, own}) && !reflect.DeepEqual(left, []string{own, other}) {
		t.Errorf("left: %q", left)
	}
	checkFinished(t, file, 1, 2)
}

// TestTheNextRunNamesWhatAKilledOneLeft kills a run with another beside it, which goes on, and
// removes what is left as the next run says.
func TestTheNextRunNamesWhatAKilledOneLeft(t *testing.T) {
	skipWithoutSignals(t)
	t.Parallel()
	dir := t.TempDir()
	killed, alive := startChild(t, small(dir)...), startChild(t, small(dir)...)
	killed.until(t, "calibrating")
	alive.until(t, "calibrating")
	stale, other := killed.ground(t), alive.ground(t)
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed.exit(t)
	c := startChild(t, small(dir)...)
	c.until(t, fmt.Sprintf("found %q, which looks like a leftover of a killed run; holdfast volumes --clean %q removes leftovers", stale, dir))
	c.until(t, fmt.Sprintf("another run is going on in %q, and disturbs this one", other))
	for _, c := range []*child{c, alive} {
		if err := c.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		c.exit(t)
	}
	if cleaned, _ := bench(t, "volumes", "--clean", dir); cleaned != "removed "+stale+" (files of a run)\n" {
		t.Errorf("volumes --clean wrote:\n%s", cleaned)
	}
	nothingIn(t, dir)
}

func TestResumeRefusesARunThatGoesOn(t *testing.T) {
	skipWithoutSignals(t)
	t.Parallel()
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "results.jsonl")
	c := startChild(t, small(dir, "--time", "2s", "--rounds", "1000", "-o", file)...)
	c.until(t, "round 1 of 1000")
	code, reported := refusalOf(t, "bench", "--resume", file, "--allow-tmpfs")
	if code != cli.ExitUsage || !strings.Contains(reported, "--resume "+file+": the run is still going on, in "+c.ground(t)) {
		t.Errorf("exit code %d, stderr:\n%s", code, reported)
	}
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := c.exit(t); code != cli.ExitInterrupted || len(readFile(t, file).Resumed) != 0 {
		t.Errorf("the run that went on ended with exit code %d:\n%s", code, c.reported.String())
	}
	nothingIn(t, dir)
}

// TestEveryCutOfARealFile cuts a file of the command at every byte of its header and of its last
// two lines. It also cuts beside the ends of the others. Whole records are read as they were, and
// nothing else is. TestEveryPrefixIsReadable cuts a file of each kind of line at every byte.
func TestEveryCutOfARealFile(t *testing.T) {
	if testing.Short() {
		t.Skip("it reads a file some thousand times; not with -short")
	}
	t.Parallel()
	file := filepath.Join(t.TempDir(), "results.jsonl")
	bench(t, small(t.TempDir(), "--time", "1s", "--rounds", "1", "--record", "4KiB", "-o", file)...)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	whole := readFile(t, file)
	head := bytes.IndexByte(text, '\n') + 1
	lines := bytes.SplitAfter(text, []byte("\n")) // and behind the last one nothing
	last := len(text) - len(bytes.Join(lines[len(lines)-3:], nil))
	for cut := range text {
		if cut > head+1 && cut < last && !bytes.Contains(text[cut-2:cut+2], []byte("\n")) {
			continue
		}
		got, err := result.Read(bytes.NewReader(text[:cut]))
		if cut < head {
			if !errors.Is(err, result.ErrNotResults) && !errors.Is(err, result.ErrNoHeader) {
				t.Fatalf("cut at byte %d: %v", cut, err)
			}
			continue
		}
		ended := bytes.Count(text[:cut], []byte("\n"))
		want := whole
		want.Trials, want.End = whole.Trials[:ended-1], nil
		if want.Torn = text[cut-1] != '\n'; want.Torn {
			want.TornAt = ended + 1
		}
		if err != nil || len(got.Trials) != ended-1 || got.Torn != want.Torn || got.Complete() {
			t.Fatalf("cut at byte %d: %d trials of %d, torn %v, %v", cut, len(got.Trials), ended-1, got.Torn, err)
		}
		if len(want.Trials) == 0 {
			want.Trials = nil
		}
		if !want.Torn && !reflect.DeepEqual(got, want) {
			t.Fatalf("cut at byte %d: read\n%+v, want\n%+v", cut, got, want)
		}
	}
}

// TestResumeLeavesCellsAtRest continues a run in which a cell rests since its first round: the cell runs in no later round, these
// rounds are complete without it, and its times are in the table.
func TestResumeLeavesCellsAtRest(t *testing.T) {
	t.Parallel()
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "results.jsonl")
	bench(t, small(dir, "--policy", "buffer=64KiB", "--time", "1s", "--rounds", "3", "-o", file)...)
	before := readFile(t, file)
	var resting result.Cell
	for _, c := range before.Header.Cells {
		if c.Policy.Buffer == 64*holdfast.KiB && c.Twin == "" && !c.Empty {
			resting = c
		}
	}
	// As if words ended the run, and it was killed in its third round.
	before.Header.Plan.Width, before.Header.Plan.Words, before.Header.Plan.Limit = 0.1, true, 2*time.Second
	before.Rests, before.End = []result.Rest{{Round: 1, Cells: []string{resting.Name}}}, nil
	third := slices.IndexFunc(before.Trials, func(t *result.Trial) bool { return t.Round == 3 && t.Cell != resting.Name })
	before.Trials = slices.DeleteFunc(before.Trials[:third+1], func(t *result.Trial) bool { return t.Round > 1 && t.Cell == resting.Name })
	var text bytes.Buffer
	if err := errors.Join(result.Write(&text, before), os.WriteFile(file, text.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
	if before = readFile(t, file); before.Rounds() != 2 || before.LastRound() != 3 || len(before.Rests) != 1 {
		t.Fatalf("the killed run has %d rounds, the last was %d, rests %v", before.Rounds(), before.LastRound(), before.Rests)
	}

	stdout, reported := bench(t, "bench", "--resume", file, "--allow-tmpfs")
	after := readFile(t, file)
	if !strings.Contains(reported, " after 2 of ") || len(after.Rests) < 1 || !reflect.DeepEqual(after.Rests[0], before.Rests[0]) || after.Rounds() < 3 || len(after.Resumed) != 1 || after.End == nil {
		t.Errorf("%d rounds, rests %v, %d parts, end %+v, stderr:\n%s", after.Rounds(), after.Rests, len(after.Resumed), after.End, reported)
	}
	for _, trial := range after.Trials[len(before.Trials):] {
		if trial.Cell == resting.Name && trial.Round > 0 {
			t.Errorf("%s rests, and ran in round %d", trial.Cell, trial.Round)
		}
	}
	if n := len(after.Rounded(resting.Name)); n != 1 || !strings.Contains(stdout, "buffered=64KiB") {
		t.Errorf("%d times of the cell that rests, stdout:\n%s", n, stdout)
	}
	nothingIn(t, dir)
}

// TestResumeAfterCuts lets the command go on with files that are cut, or end in a power cut's
// garbage.
func TestResumeAfterCuts(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs whole benches in child processes; not with -short")
	}
	t.Parallel()
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "results.jsonl")
	bench(t, small(dir, "--time", "1s", "--rounds", "2", "-o", file)...)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	upTo := func(n int, more string) []byte { return append(bytes.Join(lines[:n], nil), more...) }
	for name, left := range map[string][]byte{
		"after the header":            upTo(1, ""),
		"within the first trial":      upTo(1, string(lines[1][:20])),
		"within a round":              upTo(5, ""),
		"before the last line feed":   text[:len(text)-1],
		"zeros after a whole line":    upTo(5, strings.Repeat("\x00", 4096)),
		"zeros within the end's line": upTo(10, string(lines[10][:9])+strings.Repeat("\x00", 77)),
	} {
		if err := os.WriteFile(file, left, 0o644); err != nil {
			t.Fatal(err)
		}
		stdout, _ := bench(t, "bench", "--resume", file, "--allow-tmpfs")
		if shown, _ := bench(t, "report", file); shown != stdout {
			t.Errorf("%s: the run shows\n%s\nreport shows\n%s", name, stdout, shown)
		}
		after, err := os.ReadFile(file)
		kept := left[:bytes.LastIndexByte(left, '\n')+1]
		if err != nil || !bytes.HasPrefix(after, kept) || bytes.ContainsRune(after, 0) {
			t.Errorf("%s: what was whole has changed; %v", name, err)
		}
		checkFinished(t, file, 1, 2)
	}
	nothingIn(t, dir)
}
