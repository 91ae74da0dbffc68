package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/lab/trial"
	"github.com/holdfast-go/holdfast/peers/internal/command"
)

// newSite returns one of short trials.
func newSite(t *testing.T) *site {
	t.Helper()
	ground, err := trial.OpenWorkDir(t.TempDir(), true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if left, err := os.ReadDir(ground.Dir()); err != nil || len(left) > 0 {
			t.Errorf("trials left %v, %v", left, err)
		}
		if err := ground.Close(); err != nil {
			t.Error(err)
		}
	})
	return &site{ground: ground, length: 10 * time.Millisecond}
}

// captured returns what a tool printed once, on ext4.
func captured(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestParseFio(t *testing.T) {
	check := func(out string, want sample) {
		t.Helper()
		if got, err := parseFio([]byte(out)); err != nil || got != want {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
	}
	fdatasync := captured(t, "fio_fdatasync.json")
	want := sample{operations: 259, elapsed: 51 * time.Millisecond, write: 5365, sync: 187471}
	check(fdatasync, want)
	check("fio: this_platform does not support a thing\n"+fdatasync, want)
	check(captured(t, "fio_dsync.json"), sample{operations: 250, elapsed: 51 * time.Millisecond, write: 199700})

	refuse := func(out, want string) {
		t.Helper()
		if _, err := parseFio([]byte(out)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", out, err, want)
		}
	}
	refuse(captured(t, "fio_fails.json"), "fio's job failed with error 22")
	refuse(fdatasync[:len(fdatasync)/2], "fio's JSON: unexpected end")
	refuse("fio: no such option", "no JSON")
	refuse(`{"jobs": []}`, "0 jobs")
	refuse(`{"jobs": [{}]}`, "0 writes in 0 ms")
}

func TestParsePg(t *testing.T) {
	out := captured(t, "pg_test_fsync.txt")
	check := func(method string, want time.Duration) {
		t.Helper()
		got, err := parsePg(strings.NewReader(out), method)
		if one := time.Duration(got.perOperation()); err != nil || one != want {
			t.Errorf("%s takes %v, %v; want %v", method, one, err, want)
		}
	}
	check("open_datasync", 98759) // 10125.593 ops/sec
	check("fdatasync", 107217)    // 9326.815 ops/sec
	check("open_sync", 103327)    // 9678.003 ops/sec

	refuse := func(out, method, want string) {
		t.Helper()
		if _, err := parsePg(strings.NewReader(out), method); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", method, err, want)
		}
	}
	refuse(out, "fsync_writethrough", `no figure, but "fsync_writethrough n/a"`)
	refuse(out, "1", "does not report 1")
	refuse(out[:strings.Index(out, "fdatasync   ")], "fdatasync", "it ended before fdatasync")
	refuse(strings.Replace(out, "10125.593", "0.000", 1), "open_datasync", `"0.000" is no rate`)
	refuse(strings.Replace(out, "10125.593", "lots", 1), "open_datasync", `"lots" is no rate`)
}

// TestParsePgStopsAtItsLine reads no more than it needs: what the tool does then
// would take a quarter of a minute.
func TestParsePgStopsAtItsLine(t *testing.T) {
	out := captured(t, "pg_test_fsync.txt")
	end := strings.Index(out, "        fsync  ")
	never := readerFunc(func([]byte) (int, error) { t.Fatal("reads on"); return 0, nil })
	if _, err := parsePg(io.MultiReader(strings.NewReader(out[:end]), never), "fdatasync"); err != nil {
		t.Error(err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// logged returns groups whose arms only tell of their trials.
func logged(log *[]string) []*group {
	var all []*group
	for _, g := range []string{"a", "b", "c"} {
		made := &group{name: g, title: g}
		for _, name := range []string{"ours", "again", "theirs"} {
			try := func(context.Context, *site) (sample, error) {
				*log = append(*log, g+"/"+name)
				return sample{operations: 1, elapsed: time.Microsecond}, nil
			}
			made.arms = append(made.arms, &arm{name: name, try: try})
		}
		all = append(all, made)
	}
	return all
}

func rounds(n int, seed uint64, talk io.Writer) command.Rounds {
	return command.Rounds{Name: "fsync", Count: n, Seed: seed, Warm: true, Talk: talk}
}

func TestEachRoundRunsEachArmOnceAndGroupsTogether(t *testing.T) {
	orders := map[uint64]string{}
	for _, seed := range []uint64{1, 1, 2} {
		var log []string
		all := logged(&log)
		complete, err := run(t.Context(), newSite(t), all, rounds(4, seed, io.Discard))
		if complete != 4 || err != nil || len(log) != 5*9 {
			t.Fatalf("%d rounds, %v, %d trials; want 4 and a warm-up of 9 trials each", complete, err, len(log))
		}
		for round := range slices.Chunk(log, 9) {
			for together := range slices.Chunk(round, 3) {
				if together[0][0] != together[1][0] || together[1][0] != together[2][0] {
					t.Errorf("the arms of a group lie apart: %v", round)
				}
			}
			slices.Sort(round)
			if len(slices.Compact(round)) != 9 {
				t.Errorf("a round does not run every arm: %v", round)
			}
		}
		for _, a := range all[0].arms {
			if len(a.Samples) != 4 {
				t.Errorf("%s has %d samples, want 4 without the warm-up", a.name, len(a.Samples))
			}
		}
		var again []string
		if _, err := run(t.Context(), newSite(t), logged(&again), rounds(4, seed, io.Discard)); err != nil {
			t.Fatal(err)
		}
		orders[seed] = fmt.Sprint(again)
	}
	if orders[1] == orders[2] {
		t.Error("another seed gave the same order")
	}
}

func TestInterruptedRunKeepsItsWholeRounds(t *testing.T) {
	var log []string
	all := logged(&log)
	ctx, stop := context.WithCancel(t.Context())
	try := all[1].arms[1].try
	calls := 0
	all[1].arms[1].try = func(ctx context.Context, s *site) (sample, error) {
		if calls++; calls == 4 { // in round 3
			stop()
			return sample{}, context.Canceled
		}
		return try(ctx, s)
	}
	complete, err := run(ctx, newSite(t), all, rounds(9, 1, io.Discard))
	if complete != 2 || !errors.Is(err, context.Canceled) || command.Failed(all) != nil {
		t.Fatalf("%d rounds, %v, %v; want 2 and the interruption", complete, err, command.Failed(all))
	}
	for _, g := range all {
		for _, a := range g.arms {
			if len(a.Samples) != 2 {
				t.Errorf("%s/%s has %d samples, want 2", g.name, a.name, len(a.Samples))
			}
		}
	}
}

func TestFailedArmIsRunNoMoreAndShown(t *testing.T) {
	var log []string
	all := logged(&log)
	calls := 0
	all[0].arms[2].try = func(context.Context, *site) (sample, error) {
		calls++
		return sample{}, errors.New("broke | down")
	}
	var talk, out bytes.Buffer
	if _, err := run(t.Context(), newSite(t), all, rounds(10, 1, &talk)); err != nil || calls != 1 {
		t.Fatalf("%v, %d calls, want 1", err, calls)
	}
	writeTables(&out, all)
	if !strings.Contains(out.String(), "| theirs | does not count: broke / down |") || command.Failed(all) != command.ErrFailed {
		t.Errorf("not told: %v\n%s", command.Failed(all), &out)
	}
	if !strings.Contains(out.String(), "| theirs | 1000000 | 1000000–1000000 | 1.000 | 1.000–1.000 | same |") {
		t.Errorf("the others are not compared:\n%s", &out)
	}
}

// TestOurArmsWork runs all arms that need no tool, among files that bear the names
// they use.
func TestOurArmsWork(t *testing.T) {
	s := newSite(t)
	planted := filepath.Join(filepath.Dir(s.ground.Dir()), "data")
	if err := os.WriteFile(planted, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, g := range groups(nil) {
		for _, a := range g.arms {
			if strings.HasSuffix(a.name, "-again") || g.name == "grow-2300" || g.name == "grow-8192" {
				continue // the same code, as the next line sees
			}
			taken, err := a.try(t.Context(), s)
			if strings.Contains(g.name, "direct") && err != nil && s.ground.FileSystem == "tmpfs" {
				t.Logf("%s: tmpfs has no O_DIRECT here: %v", g.name, err)
				continue
			}
			if err != nil || taken.operations < 1 || taken.elapsed <= 0 {
				t.Errorf("%s, %s: %+v, %v", g.name, a.name, taken, err)
			}
		}
	}
	if text, err := os.ReadFile(planted); err != nil || string(text) != "mine" {
		t.Errorf("the planted file: %q, %v", text, err)
	}
}

func TestOverwritingIsVerified(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	if err := allocate(path); err != nil {
		t.Fatal(err)
	}
	if err := verify(path, alignedBlock()); err == nil {
		t.Error("another block was not noticed")
	}
	if err := allocate(path); !errors.Is(err, os.ErrExist) {
		t.Errorf("a file that exists: %v", err)
	}
}

// TestMissingToolsAreLeftOut has neither of them.
func TestMissingToolsAreLeftOut(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if path := find("fio", ""); path != "" {
		t.Fatalf("found %s in an empty directory", path)
	}
	for _, g := range groups([]tool{{"fio", "fio", ""}, {"pg_test_fsync", "postgresql", ""}}) {
		for i, a := range g.arms {
			if a.name == "fio" || a.name == "pg_test_fsync" {
				t.Errorf("%s has %s", g.name, a.name)
			}
			if i == 1 && a.name != g.arms[0].name+"-again" {
				t.Errorf("%s: the second arm is %s, not our twin", g.name, a.name)
			}
		}
	}
}

func TestNewestOfSeveralVersionsIsFound(t *testing.T) {
	dir := t.TempDir()
	for _, version := range []string{"14", "16", "15"} {
		if err := os.MkdirAll(filepath.Join(dir, version, "bin", "tool"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := find("no-such-tool", filepath.Join(dir, "*", "bin", "tool")), filepath.Join(dir, "16", "bin", "tool"); got != want {
		t.Errorf("found %q, want %q", got, want)
	}
}

// TestToolsWork runs the tools that are installed.
func TestToolsWork(t *testing.T) {
	tools := findTools()
	for _, tool := range tools {
		t.Run(tool.name, func(t *testing.T) {
			if tool.path == "" {
				t.Skipf("%s is not installed (Debian: apt-get install %s)", tool.name, tool.debian)
			}
			s := newSite(t)
			for _, g := range groups(tools) {
				i := slices.IndexFunc(g.arms, func(a *arm) bool { return a.name == tool.name })
				if i < 0 || g.name == "grow-2300" || g.name == "grow-8192" || tool.name == "pg_test_fsync" && g.name == "overwrite" {
					continue // like the others, and each takes a while
				}
				taken, err := g.arms[i].try(t.Context(), s)
				if err != nil || taken.operations < 1 || taken.elapsed <= 0 {
					t.Errorf("%s: %+v, %v", g.name, taken, err)
				}
			}
			if tool.version() == "" || strings.Contains(tool.version(), "unknown") {
				t.Errorf("version %q", tool.version())
			}
		})
	}
}

func TestCommandRefuses(t *testing.T) {
	check := func(code int, want string, args ...string) {
		t.Helper()
		err := runCommand(t.Context(), args, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) || command.ExitCode(err) != code {
			t.Errorf("%q: got %v (exit %d), want %q (exit %d)", args, err, command.ExitCode(err), want, code)
		}
	}
	check(command.ExitUsage, "-rounds=0: give at least 1", "-rounds=0")
	check(command.ExitUsage, "-trial=99ms: give at least 100ms", "-trial=99ms")
	check(command.ExitUsage, "-run: error parsing regexp", "-run=(")
	check(command.ExitUsage, "-run=nosuch matches no group; the groups are grow-8192, grow-2300, grow-128, overwrite", "-run=nosuch")
	check(command.ExitUsage, `"more" is not a flag`, "more")
	check(command.ExitUsage, "not defined", "-nosuch")
	check(command.ExitUnmeasured, "-dir: stat nosuch", "-dir=nosuch")
	if err := runCommand(t.Context(), []string{"-help"}, io.Discard, io.Discard); command.ExitCode(err) != 0 {
		t.Errorf("-help: %v", err)
	}
	if command.ExitCode(command.ErrFailed) != command.ExitFailed || command.ExitCode(context.Canceled) != command.ExitInterrupted {
		t.Error("exit codes")
	}
}
