package prove

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/internal/catalogue"
	"github.com/holdfast-go/holdfast/internal/crash"
)

// command runs prove, and returns what it printed and its exit code with the error's words.
func command(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, told bytes.Buffer
	cmd := New(nil)
	cmd.SetFlagErrorFunc(cli.FlagError) // as the root command has it
	code = cli.Report(&told, cli.Run(t.Context(), cmd, args, strings.NewReader(""), &out, &told))
	return out.String(), told.String(), code
}

// temporary sets the directory of temporary files.
func temporary(t *testing.T, dir string) {
	t.Setenv("TMPDIR", dir)
	t.Setenv("TMP", dir) // of Windows
}

func TestWrongInputIsRefused(t *testing.T) {
	check := func(want string, args ...string) {
		t.Helper()
		out, told, code := command(t, args...)
		if code != cli.ExitUsage || out != "" || !strings.HasPrefix(told, "holdfast: "+want) || !strings.Contains(told, "\nhint: ") {
			t.Errorf("%q: exit code %d\n%s%s", args, code, out, told)
		}
	}
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, []byte("{}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	check(`prove takes no arguments, but "now" was given`, "now")
	check(`--policy: policy "fast": field "fast" has no value`, "--policy", "fast")
	check(`--workload: "writre" is not a workload; did you mean "writer"?`, "--workload", "writre")
	check(`--workload: "plain" is not a workload; use append,`, "--workload", "plain")
	check(`--level: "disk" is not a level; use memory, kill, fault, hostile, power or all`, "--level", "memory,disk")
	check(`--fs: "vfat" is not a file system of level power; use ext4, xfs,`, "--fs", "vfat")
	check(`--fs is for level power, which is not run`, "--fs", "ext4", "--level", "memory")
	check("workload create is not run at level memory", "--workload", "create", "--level", "memory")
	check("workload rotate-close has policies of its own, and none of them was chosen", "--workload", "rotate-close", "--level", "memory", "--policy", "buffer=0,sync=never")
	check(`--look needs --replay`, "--look", "ls")
	check(`--states: 0 can't be judged; use 1 to 1000000000`, "--states", "0")
	check(`--seed: "-1" is not a whole number`, "--seed", "-1")
	check(`--time: "soon" is not a duration from 1ms to 1000h, such as 30s or 2m`, "--time", "soon")
	check(`--time: "-1s" is not a duration`, "--time", "-1s")
	check(`--cmd and --read go together`, "--cmd", "true")
	check(`--level memory can't judge the program of --cmd`, "--cmd", "true", "--read", "true", "--level", "memory")
	check(`--level hostile can't judge the program of --cmd`, "--cmd", "true", "--read", "true", "--level", "hostile")
	check(`with --cmd, --states is for level power only`, "--cmd", "true", "--read", "true", "--states", "10")
	check(`--eio gives no verdict, so --workload has no meaning`, "--eio", "--workload", "writer")
	check(`--trace gives no verdict, so --cmd has no meaning`, "--trace", "--cmd", "true")
	check(`--eio and --trace can't be combined`, "--eio", "--trace")
	check(`--trace is for level power only`, "--trace", "--level", "memory")
	check(`--dir nowhere: there is no such directory`, "--dir", "nowhere")
	check(`--dir `+empty+`: it is a file, not a directory`, "--dir", empty)
	temporary(t, filepath.Join(dir, "none"))
	check(`the directory of temporary files, `+os.TempDir()+`: there is no such directory`, "--level", "kill")
	temporary(t, dir)
	check(`-o `+empty+`: the file exists`, "-o", empty)
	check(`--replay proof.jsonl: give a file and a line number, as in FILE:LINE`, "--replay", "proof.jsonl")
	check(`--replay proof.jsonl:1: there is no file proof.jsonl`, "--replay", "proof.jsonl:1")
	check(`--replay `+empty+`:2: the file has no line 2`, "--replay", empty+":2")
	check(`--replay `+empty+`:1: the verdict of this line has no failing state`, "--replay", empty+":1")
}

// TestPageShowsWhatHeldAndItsControls runs one workload in memory.
func TestPageShowsWhatHeldAndItsControls(t *testing.T) {
	file := filepath.Join(t.TempDir(), "proof.jsonl")
	out, told, code := command(t, "--level", "memory", "--policy", "durable", "--workload", "enqueue", "--states", "2000", "--time", "1ms", "--seed", "7", "-o", file, "--all")
	if code != cli.ExitOK || told != "" {
		t.Fatalf("exit code %d\n%s", code, told)
	}
	if want := regexp.MustCompile(`^0 of [0-9,]+ acknowledged records lost in [0-9,]+ crashes; controls 2 of 2 held, liars\s5\sof\s5\scaught\n\nlevel`); !want.MatchString(out) {
		t.Errorf("%s does not begin\n%s", want, out)
	}
	for _, want := range []string{
		`(?m)^plain +buffer=0,sync=each .* control: loses nothing$`,
		`(?m)^liar-no-directory .* control: caught$`,
		`(?m)^enqueue +buffer=64KiB,sync=group +[0-9,]+ +[0-9,]+ +0 +held$`,
		`(?m)^seed 7\n`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("%s is not in\n%s", want, out)
		}
	}
	if lines, err := os.ReadFile(file); err != nil || bytes.Count(lines, []byte("\n")) != 8 {
		t.Errorf("%v, %s", err, lines)
	}
}

// TestPageFitsTheTerminal: a narrow page keeps each verdict's subject, and its loss beside the allowed
// one.
func TestPageFitsTheTerminal(t *testing.T) {
	v := &crash.Verdict{Level: crash.Memory, Workload: "liar-no-directory", Control: "liar", Policy: holdfast.Periodic(time.Second), Verdict: crash.Held}
	v.Allowed = v.Policy.Loss().Power.String()
	v.Tally = crash.Tally{States: 123_456, Acknowledged: 54_321, Lost: 17, Most: crash.Extent{Records: 2, Bytes: 3 << 10, Age: 4 * time.Millisecond}}
	for _, columns := range []int{60, 100, 200} {
		text := page([]*crash.Verdict{v}, columns)
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > columns {
				t.Errorf("%d columns of %d: %s", n, columns, line)
			}
		}
		for _, want := range []string{"liar-no-directory", "buffer=64KiB,sync=1s", "123,456", "54,321", "17", "control: caught", "2 records, 3.0 KiB, 4.0ms", "the last 1s + one sync"} {
			if !strings.Contains(text, want) {
				t.Errorf("%d columns lack %q:\n%s", columns, want, text)
			}
		}
	}
}

// TestManyVerdictsAreOnePage: all workloads at all levels under as many policies as a run has by default. A broken promise stands in its
// place, and its loss beside the allowed one.
func TestManyVerdictsAreOnePage(t *testing.T) {
	var verdicts []*crash.Verdict
	for _, level := range crash.Levels {
		for i, c := range (crash.Options{Workloads: catalogue.Workloads(), Levels: crash.Levels, Time: 45 * time.Second, Seed: 3}).Cells(level) {
			v := c.Verdict(level, 1)
			v.Tally, v.Kills, v.Faults = crash.Tally{States: 2_000, Acknowledged: 300}, 40, 50
			if v.Allowed != "nothing" {
				v.Tally.Most = crash.Extent{Records: 7, Bytes: 5 << 10, Age: 40 * time.Millisecond}
			}
			if v.Control == "" && i%9 == 0 {
				v.Verdict = crash.NoTime
			}
			verdicts = append(verdicts, v)
		}
	}
	broken := verdicts[slices.IndexFunc(verdicts, func(v *crash.Verdict) bool { return v.Level == crash.Kill && v.Workload == "enqueue" })]
	broken.Verdict, broken.Failure = crash.Broken, &crash.Failure{Words: "record 7 is gone"}
	shown := func(p *proof) (string, int) {
		var out, told bytes.Buffer
		code := cli.Report(&told, p.report(&out, verdicts))
		return out.String(), code
	}
	text, code := shown(&proof{})
	if n := strings.Count(text, "\n"); code != cli.ExitNotMet || n > mostLines {
		t.Errorf("exit code %d, %d lines:\n%s", code, n, text)
	}
	for _, want := range []string{
		`^1 promise broken: 0 of [0-9,]+ acknowledged records lost in [0-9,]+ crashes; controls`,
		`(?m)^kill +[0-9,]+ +[0-9,]+ +0 +2/2 held, 1/1 caught +processes, by SIGKILL$`,
		`(?m)^buffer=64B,\S+ +7 +5.0 KiB +40ms$`, `(?m)^  allowed: the last \d+ms \+ one flush, up to \w+$`,
		`(?m)^kill, enqueue under .*: record 7 is gone$`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
	if text, _ = shown(&proof{Options: crash.Options{All: true}}); strings.Count(text, "\n") < len(verdicts) {
		t.Errorf("--all shows less than %d verdicts:\n%s", len(verdicts), text)
	}
	for _, want := range []string{`(?m)^enqueue +[0-9,k]+\*? +BROKEN `, `(?m)^writer +[0-9,k]+\*? +[0-9,k]+\*? `, `(?m)^copy-tree +- +[0-9]`} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
	for line := range strings.Lines(summary(verdicts, 60)) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 60 {
			t.Errorf("%d columns of 60: %s", n, line)
		}
	}
}

// TestBrokenPromiseIsSaidAtOnce takes a liar for a workload.
func TestBrokenPromiseIsSaidAtOnce(t *testing.T) {
	broken := *catalogue.Find("liar-no-sync")
	broken.Control, broken.Policies = "", nil
	p := &proof{Options: crash.Options{Policies: []holdfast.Policy{holdfast.Durable()}, Workloads: append(catalogue.With(), &broken), Levels: []crash.Level{crash.Memory}, States: 1000}}
	var told bytes.Buffer
	if _, err := p.judgeAll(t.Context(), &told); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(told.String(), "holdfast: memory, liar-no-sync under buffer=64KiB,sync=group: c0: version "); n != 1 || strings.Count(told.String(), ", liar-") != 1 {
		t.Errorf("%s", told.String())
	}
}

// TestBrokenPromiseIsKeptAndReplayed takes a liar for a workload.
func TestBrokenPromiseIsKeptAndReplayed(t *testing.T) {
	temporary(t, t.TempDir())
	verdicts, err := crash.Prove(t.Context(), crash.Options{Policies: []holdfast.Policy{holdfast.Durable()}, Workloads: catalogue.With(), Levels: []crash.Level{crash.Memory}, States: 1000})
	if err != nil {
		t.Fatal(err)
	}
	p := &proof{output: filepath.Join(t.TempDir(), "proof.jsonl")}
	liar := verdicts[slices.IndexFunc(verdicts, func(v *crash.Verdict) bool { return v.Control == "lost" })]
	if liar.Workload != "liar-no-sync" || liar.Caught == nil {
		t.Fatalf("%+v", liar)
	}
	liar.Control, liar.Verdict, liar.Failure = "", crash.Broken, liar.Caught
	var out, told bytes.Buffer
	if code := cli.Report(&told, p.report(&out, verdicts)); code != cli.ExitNotMet || !strings.HasPrefix(told.String(), "holdfast: 1 promise broken\n") {
		t.Errorf("exit code %d\n%s", code, told.String())
	}
	shown := regexp.MustCompile(`(?m)^  holdfast prove --replay (.*:3)$`).FindStringSubmatch(out.String())
	if shown == nil {
		t.Fatal(out.String())
	}
	again, told2, code := command(t, "--replay", shown[1])
	if code != cli.ExitNotMet || !strings.Contains(again, liar.Caught.Violation.Words) {
		t.Errorf("exit code %d\n%s%s", code, again, told2)
	}
	liar.Verdict = crash.NotKnown
	var refusal *cli.Refusal
	if err := (&proof{output: filepath.Join(t.TempDir(), "x")}).report(io.Discard, verdicts); !errors.As(err, &refusal) || refusal.Code != cli.ExitNotKnown {
		t.Errorf("a liar that is not caught: %v", err)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	liar.Verdict, liar.Failure = crash.NoTime, nil
	if err := (&proof{}).report(io.Discard, verdicts); !errors.As(err, &refusal) || !strings.Contains(err.Error(), " to prove much: 0 of 1 verdict") {
		t.Errorf("a verdict for which there was no time: %v", err)
	}
	if err := (&proof{}).report(io.Discard, append(verdicts, &crash.Verdict{Verdict: crash.Held}, &crash.Verdict{Verdict: crash.Held})); err != nil {
		t.Errorf("one of three verdicts was not made: %v", err)
	}
	out.Reset()
	liar.Verdict, liar.Failure = crash.Broken, liar.Caught
	if err := (&proof{}).report(&out, verdicts); err == nil || strings.Contains(out.String(), "prove --replay") || !strings.Contains(out.String(), "-o FILE keeps failing states") {
		t.Errorf("without -o: %v\n%s", err, out.String())
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestABusyMachineIsNamed holds that load alone never ends with the code of what is not known.
func TestABusyMachineIsNamed(t *testing.T) {
	check := func(average string, code int, words string) {
		t.Helper()
		got := sum{all: 40, noTime: 30}.tooFew(45*time.Second, load(average, 2))
		if got.Code != code || got.Error() != words {
			t.Errorf("%q: exit code %d, %q; want %d, %q", average, got.Code, got, code, words)
		}
	}
	check("3.00 2.00 1.00 5/100 1\n", cli.ExitCannot, "this machine is too busy to prove much: 10 of 40 verdicts made in 45s, at a load of 3.00 on 2 CPUs")
	check("2.99 2.00 1.00 5/100 1\n", cli.ExitNotKnown, "the time is too short to prove much: 10 of 40 verdicts made in 45s")
	check("", cli.ExitNotKnown, "the time is too short to prove much: 10 of 40 verdicts made in 45s")
	if (sum{all: 40, noTime: 20}).tooBusy() || !(sum{all: 40, noTime: 21}).tooBusy() {
		t.Error("half of the verdicts are enough, and no fewer")
	}
}
