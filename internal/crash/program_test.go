//go:build unix

package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestReaderOfACrashStateMayFindATornLine checks which lines --read may print where a crash has
// torn the last one.
func TestReaderOfACrashStateMayFindATornLine(t *testing.T) {
	check := func(printed string, n uint64, torn int, disorder bool, unreadable string) {
		t.Helper()
		s, err := readBack(printed)
		if s.N[0] != n || s.TornTails != torn || s.Disorder[0] != disorder {
			t.Errorf("%q: %+v", printed, s)
		}
		if (err == nil) != (unreadable == "") || err != nil && !strings.Contains(err.Error(), unreadable) {
			t.Errorf("%q: %v", printed, err)
		}
	}
	check("", 0, 0, false, "")
	check("1\n2\n", 2, 0, false, "")
	check("1\n2", 2, 0, false, "")
	check("1\n2\n3\n4\n5\n6\n7\n8\n9\n1", 9, 1, false, "") // of 10
	check("1\n\x00\x00", 1, 1, false, "")
	check("1\n\x00\x00\n", 1, 0, true, "--read printed")
	check("1\n3\n", 1, 0, true, "")
	check("1\n1\n2\n", 1, 0, true, "")
}

func TestProgramIsRunAgainOnWhatACrashLeft(t *testing.T) {
	again := func(command string, had uint64) (Tally, *Violation) {
		t.Helper()
		before := NewSurvivors(1)
		before.N[0] = had
		p := Program{Command: command, Read: "touch log; cat log"}
		tally, v, err := p.RunAgain(context.Background(), t.TempDir(), before)
		if err != nil {
			t.Fatal(err)
		}
		return tally, v
	}
	if tally, v := again("echo 1 >>log; echo ack 1; sleep 10", 0); v != nil || tally.Acknowledged != 1 {
		t.Errorf("%+v, %v", tally, v)
	}
	if _, v := again("echo ack 1; sleep 10", 0); v == nil || v.Words != "it had printed ack 1, and only the records up to 0 are there" {
		t.Errorf("%v", v)
	}
	if _, v := again("rm -f log; echo ack 3; sleep 10", 3); v == nil || v.Rule != "lost" { // the old records are gone
		t.Errorf("%v", v)
	}
	if _, v := again("echo torn >&2; exit 3", 0); v == nil || v.Rule != "again" || !strings.Contains(v.Words, `exit status 3; it said "torn"`) {
		t.Errorf("%v", v)
	}
	for _, words := range []string{"write log: no space left on device", "sh: echo: No space left on device", "Disk quota exceeded"} {
		p := Program{Command: "echo " + words + " >&2; exit 3", Read: "touch log; cat log"}
		if _, v, err := p.RunAgain(context.Background(), t.TempDir(), NewSurvivors(1)); v != nil || err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%q: %+v, %v", words, v, err)
		}
	}
}

func TestControlThatCouldNotBeJudgedLeavesItsFileSystemNotKnown(t *testing.T) {
	doubted := map[string]bool{}
	judged := func(fs, control, unknown string) Known {
		v := &Verdict{Level: PowerCut, FS: fs, Control: control, Unknown: unknown, Verdict: Held}
		v.judge(doubted)
		return v.Verdict
	}
	if got := judged("xfs", "", "mkfs"); got != NotKnown {
		t.Errorf("what was not judged %v", got)
	}
	if got := judged("xfs", "", ""); got != Held {
		t.Errorf("the row beside it is %v", got)
	}
	if got := judged("ext4", "lost", "mkfs"); got != NotKnown {
		t.Errorf("a control that was not judged %v", got)
	}
	if got := judged("ext4", "", ""); got != NotKnown {
		t.Errorf("a row behind that control is %v", got)
	}
	if got := judged("xfs", "", ""); got != Held {
		t.Errorf("a row of another file system is %v", got)
	}
}

func TestFileSystemThatLosesIsNotTheProductsFault(t *testing.T) {
	for fs, want := range map[string]Known{"ext2": NotKnown, "uml-f2fs": NotKnown, "uml-nilfs2": NotKnown, "ext4-writeback": Broken, "xfs": Broken} {
		v := &Verdict{Level: PowerCut, FS: fs, Verdict: Held, Failure: &Failure{}}
		if v.judge(map[string]bool{}); v.Verdict != want {
			t.Errorf("a loss on %s, which the controls did not show, is %v", fs, v.Verdict)
		}
	}
}

// TestPromiseMayBreakBeforeAnAcknowledgement: what can't be read is told, though nothing was acknowledged yet.
func TestPromiseMayBreakBeforeAnAcknowledgement(t *testing.T) {
	unread := func(string, []byte) (Tally, *Violation, Judge, error) {
		return Tally{}, &Violation{Rule: "unread"}, nil, nil
	}
	p := Program{Command: "echo begun", Dir: t.TempDir(), Time: time.Nanosecond, Judge: unread}
	if v, err := p.Prove(t.Context()); err != nil || v.Failure == nil || v.Failure.Violation.Rule != "unread" {
		t.Errorf("%+v, %v", v, err)
	}
}

// writes is a program that goes on behind what its log has.
const writes = `n=$(wc -l <log); while :; do n=$((n+1)); printf "%07d\n" $n >>log && sync log && echo ack $n || exit 1; done`

// TestProgramThatIsDeadBehindACrashIsBroken has programs that run once, and are dead then. The files of the crash are kept, and show it again.
func TestProgramThatIsDeadBehindACrashIsBroken(t *testing.T) {
	for _, c := range []struct{ start, rule, words string }{
		{`[ -s log ] && { echo "log needs repair" >&2; exit 7; }`, "again", `exit status 7; it said "log needs repair"`},
		{`[ -s log ] && sleep 1000`, "hang", "behind a crash it acknowledged nothing for"},
		{`[ -s log ] && kill -s SEGV $$`, "again", "signal: segmentation fault"},
	} {
		for _, level := range []Level{Kill, Fault, PowerCut} {
			if level != Kill && CanSupervise(exec.Command("true")) != "" {
				continue
			}
			t.Run(string(level)+" "+c.rule, func(t *testing.T) {
				t.Parallel()
				p := Program{Command: "touch log; sync .; " + c.start + "; " + writes, Read: "touch log; cat log", Dir: t.TempDir(), Time: 10 * time.Second, Seed: 1, Level: level, patience: time.Second} // it ends where it is broken
				v, err := p.Prove(t.Context())
				if err != nil || v.Verdict != Broken || v.Failure.Violation.Rule != c.rule || !strings.Contains(v.Failure.Words, c.words) {
					t.Fatalf("%v, %+v, %+v", err, v, v.Failure)
				}
				if kept := v.Failure.Tree().Files["log"]; len(kept) == 0 {
					t.Error("the log that it died of is not kept")
				}
			})
		}
	}
}

// TestNothingOfAProgramIsLeft runs a program that leaves its process group at once, and starts processes that leave it too, and that leave
// its environment and its parent.
func TestNothingOfAProgramIsLeft(t *testing.T) {
	setsid, err := exec.LookPath("setsid")
	if _, noProc := os.Stat("/proc/self/environ"); err != nil || noProc != nil {
		t.Skip("it needs setsid and /proc")
	}
	own := filepath.Join(t.TempDir(), "pids")
	// The reader starts what leaves it too.
	read := fmt.Sprintf(`env -i %s sh -c '(sh -c "echo \$\$ >>%[2]s; sleep 1000; :" &)'; touch log; cat log`, setsid, own)
	p := Program{Command: fmt.Sprintf(`env -i %[1]s sh -c '(sh -c "echo \$\$ >>%[2]s; sleep 1000; :" &)' & %[1]s sh -c 'echo $$ >>%[2]s; sleep 1000' & %[1]s sh -c 'echo $$ >>%[2]s; touch log; %[3]s'`, setsid, own, writes), Read: read,
		Dir: t.TempDir(), Time: 200 * time.Millisecond, Seed: 1}
	if v, err := p.Prove(t.Context()); err != nil || v.Verdict != Held {
		t.Errorf("%v, %+v", err, v)
	}
	pids, err := os.ReadFile(own)
	if err != nil || len(strings.Fields(string(pids))) < 4 {
		t.Fatalf("%q, %v", pids, err)
	}
	for _, pid := range strings.Fields(string(pids)) {
		if words, err := os.ReadFile("/proc/" + pid + "/cmdline"); err == nil && strings.Contains(string(words), own) {
			t.Errorf("process %s is left: %q", pid, words)
		}
	}
}

// TestLinksLeadIntoACopyToo: a state is a copy of a directory, and what a program has linked by its path must not lead out of it.
func TestLinksLeadIntoACopyToo(t *testing.T) {
	dir, copied := t.TempDir(), t.TempDir()
	err := errors.Join(os.MkdirAll(filepath.Join(dir, "a/to"), 0o777), os.Mkdir(filepath.Join(dir, "b"), 0o777), os.WriteFile(filepath.Join(dir, "a/to/f"), []byte("1"), 0o666))
	targets := map[string]string{"b/inside": filepath.Join(dir, "a/to"), "b/relative": "../a/to", "b/outside": os.TempDir(), "top": filepath.Join(dir, "b/inside")}
	for name, target := range targets {
		err = errors.Join(err, os.Symlink(target, filepath.Join(dir, name)))
	}
	if err = errors.Join(err, treeOf(dir).Write(copied), os.RemoveAll(dir)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"b/inside", "b/relative", "top"} {
		if data, err := os.ReadFile(filepath.Join(copied, name, "f")); err != nil || string(data) != "1" {
			t.Errorf("through %s: %q, %v", name, data, err)
		}
	}
	if target, err := os.Readlink(filepath.Join(copied, "b/outside")); err != nil || target != os.TempDir() {
		t.Errorf("the link out of the directory leads to %q, %v", target, err)
	}
}

// TestKeptStateOfAKillIsJudgedAgain kills a program that acknowledges what is in its memory.
func TestKeptStateOfAKillIsJudgedAgain(t *testing.T) {
	p := Program{Command: "n=0; while :; do n=$((n+1)); echo ack $n; done", Read: "touch log; cat log", Dir: t.TempDir(), Time: time.Nanosecond, Seed: 1}
	v, err := p.Prove(t.Context())
	if err != nil || v.Failure == nil {
		t.Fatalf("%v, %+v", err, v)
	}
	text, err := json.Marshal(v.Failure)
	var kept Failure
	if err = errors.Join(err, json.Unmarshal(text, &kept)); err != nil {
		t.Fatal(err)
	}
	kept.Targets, kept.Loss = programTarget, lossOfAck
	kept.Read = func(Tree) (*Survivors, error) { return NewSurvivors(1), nil }
	if again, err := kept.Replay(nil); err != nil || again == nil || again.Words != v.Failure.Violation.Words {
		t.Errorf("%v, %+v, want %+v", err, again, v.Failure.Violation)
	}
}

// TestWhatIsNeverKilledIsNotKnown: a program that ends by itself meets no crash.
func TestWhatIsNeverKilledIsNotKnown(t *testing.T) {
	p := Program{Command: "touch log; [ -s log ] || { printf '%07d\\n' 1 >log; echo ack 1; }", Read: "cat log", Dir: t.TempDir(), Time: time.Nanosecond, Seed: 1}
	v, err := p.Prove(t.Context())
	if err != nil || v.Verdict != NotKnown {
		t.Fatalf("%v, %+v", err, v)
	}
	// A kill may come before its end, a millisecond after the acknowledgement. Then the next life has nothing to do.
	want := "ended by itself"
	if v.Kills > 0 {
		want = "acknowledged nothing after a crash"
	}
	if !strings.Contains(v.Unknown, want) {
		t.Errorf("%+v", v)
	}
}

// TestAReaderThatFailsOnTheFirstStateIsNoFaultOfTheReader: it reads what no power cut has touched.
func TestAReaderThatFailsOnTheFirstStateIsNoFaultOfTheReader(t *testing.T) {
	if why := CanSupervise(exec.Command("true")); why != "" {
		t.Skip(why)
	}
	for seed := range uint64(8) {
		p := Program{Command: "n=$(cat log 2>/dev/null | wc -l); while :; do n=$((n+1)); printf '%07d\\n' $n >>log; echo ack $n; done",
			Read: "test -s log && cat log", Dir: t.TempDir(), Time: time.Nanosecond, Seed: seed, Level: PowerCut}
		if v, err := p.Prove(t.Context()); err != nil || v.Verdict != Broken {
			t.Errorf("seed %d: %v, %+v", seed, err, v)
		}
	}
}

// TestADirectoryThatIsMovedTakesItsNamesAlong: another process than the one that moves it made its last name. A trace that looks for what that
// process has done finds no directory there, and what was synced before stays on the disk.
func TestADirectoryThatIsMovedTakesItsNamesAlong(t *testing.T) {
	p := Program{Command: `if [ ! -d d ]; then rm -rf t; mkdir t; mkdir t/s; echo 15 >t/version; touch t/log; sync; mv t d; sync .; fi
n=$(wc -l <d/log); while :; do n=$((n+1)); printf "%07d\n" $n >>d/log; sync d/log; echo ack $n; done`,
		Read: "if [ -d d ]; then test -s d/version && cat d/log; fi", Dir: t.TempDir(), Time: 300 * time.Millisecond, Seed: 1, Level: PowerCut}
	if why := CanSupervise(exec.Command("true")); why != "" {
		t.Skip(why)
	}
	v, err := p.Prove(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if v.Failure != nil {
		t.Error(v.Failure.Words)
	}
}
