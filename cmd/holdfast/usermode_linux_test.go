package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/uml"
	"github.com/holdfast-go/holdfast/cmd/internal/place"
	"github.com/holdfast-go/holdfast/cmd/internal/usermode"
	"github.com/holdfast-go/holdfast/internal/catalogue"
	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/crash/powercut"
	"github.com/holdfast-go/holdfast/internal/crash/syscallfault"
	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/volume"
)

// needsGuest skips where no run inside User-Mode Linux can be had.
func needsGuest(t *testing.T) {
	t.Helper()
	if raceEnabled {
		t.Skip("a program with the race detector does not start in User-Mode Linux")
	}
	if _, err := uml.Find(t.Context()); err != nil {
		t.Skip(err)
	}
	if kinds, err := volume.Parse(place.BesideKind); err != nil || kinds[0].CanMake() != nil {
		t.Skip("an ext4 can't be made here")
	}
}

// TestRunInsideGoesOnAfterAnInterruptAndAKill ends a run in the middle of a round, in
// both ways, and lets it go on. volumes --clean finds all remnants of killed runs.
func TestRunInsideGoesOnAfterAnInterruptAndAKill(t *testing.T) {
	isolate.Once(t)
	needsGuest(t)
	t.Parallel()
	dir, file := isolate.DirInMemory(t), filepath.Join(t.TempDir(), "results.jsonl")
	first := startUser(t, "study", "copy", "--kernel", "uml", "--fs", "ext4", "--part", "sync", "--quick", "--rounds", "2", "--allow-tmpfs", "--dir", dir, "-o", file)
	first.until(t, "round 1 of 2")
	awaitTrial(t, file, 1)
	if err := first.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := first.exit(t); code != cli.ExitInterrupted || !strings.Contains(first.reported.String(), "bench --resume "+file+" continues the run") {
		t.Errorf("exit code %d:\n%s", code, first.reported.String())
	}
	nothingIn(t, dir)

	second := startUser(t, "bench", "--resume", file, "--allow-tmpfs")
	second.until(t, "round 1 of 2")
	awaitTrial(t, file, 2)
	if err := second.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	second.exit(t)
	awaitProcessesIn(t, dir, 0)
	if cleaned, _ := bench(t, "volumes", "--clean", dir); !strings.Contains(cleaned, "(uml, ") {
		t.Errorf("volumes --clean stderr:\n%s", cleaned)
	}
	nothingIn(t, dir)

	third := startUser(t, "bench", "--resume", file, "--allow-tmpfs")
	third.until(t, "ended after 2 rounds: all planned rounds")
	if code := third.exit(t); code != cli.ExitOK {
		t.Errorf("exit code %d:\n%s", code, third.reported.String())
	}
	checkFinished(t, file, 2, 2)
	nothingIn(t, dir)
	for _, c := range readFile(t, file).Header.Cells {
		if c.FileSystem == "" {
			t.Errorf("%s is on no file system", c.Name)
		}
	}
}

// startUser starts a call of the command by another user than root. So it mounts
// nothing here, where tests that make a mount namespace would get a copy of it.
func startUser(t *testing.T, args ...string) *child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	how := &syscall.SysProcAttr{}
	if os.Geteuid() == 0 {
		const user = 1000
		how.Cloneflags = syscall.CLONE_NEWUSER
		how.UidMappings = []syscall.SysProcIDMap{{ContainerID: user, HostID: 0, Size: 1}}
		how.GidMappings = []syscall.SysProcIDMap{{ContainerID: user, HostID: 0, Size: 1}}
	}
	return startCommand(t, exec.Command(self, args...), how)
}

// awaitProcessesIn waits until n living processes have their working directory below dir, or are
// a workload that writes there: at least, or none.
func awaitProcessesIn(t *testing.T, dir string, count int) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for living := -1; living < count || count == 0 && living > 0; time.Sleep(10 * time.Millisecond) { // they need the CPU
		if time.Now().After(deadline) {
			t.Fatalf("there are %d processes, want %d", living, count)
		}
		links, err := filepath.Glob("/proc/[0-9]*/cwd")
		if err != nil {
			t.Fatal(err)
		}
		living = 0
		for _, link := range links {
			at, err := os.Readlink(link)
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "cmdline"))
			if err == nil && (strings.HasPrefix(at, dir+"/") || bytes.Contains(line, []byte(dir+"/holdfast-prove-"))) {
				living++
			}
		}
	}
}

// TestPowerIsCutInside judges a file system in the guest, for a user without rights, by a shell's program of the root outside. That
// and the plain programs keep what they acknowledged. Each program and disk that cheats is caught.
func TestPowerIsCutInside(t *testing.T) {
	needsGuest(t)
	if testing.Short() {
		t.Skip("a kernel is started, and all its controls are judged")
	}
	t.Parallel()
	dir, proof := isolate.DirInMemory(t), filepath.Join(t.TempDir(), "proof.jsonl")
	run := startUser(t, "prove", "--kernel", "uml", "--fs", "ext4", "--states", "20", "--time", "1s", "--dir", dir, "-o", proof,
		"--cmd", "touch log; sync .; n=$(wc -l <log); while :; do n=$((n+1)); echo $n >>log && sync log || exit; echo ack $n; done", "--read", "touch log; cat log")
	if code := run.exit(t); code != cli.ExitOK {
		t.Fatalf("exit code %d\n%s%s", code, run.stdout.String(), run.reported.String())
	}
	nothingIn(t, dir)
	text, err := os.ReadFile(proof)
	if err != nil {
		t.Fatal(err)
	}
	caught, programs := 0, 0
	for line := range strings.Lines(string(text)) {
		var v struct {
			FS, Workload, Control string
			Tally                 struct{ States, Acknowledged, Lost int64 }
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		switch {
		case v.FS != "uml-ext4" || v.Tally.States == 0:
			t.Errorf("%s: %d states of %s", v.Workload, v.Tally.States, v.FS)
		case v.Control == "correct" || v.Control == "":
			if v.Control == "" {
				programs++
			}
			// Four are judged when the time is over, and a liar has twenty. The running kernel is asked for hundreds: level power of catalogue.
			if v.Tally.States < 4 || v.Tally.Acknowledged == 0 || v.Tally.Lost > 0 {
				t.Errorf("%s: %d states, %d of %d acknowledged records lost", v.Workload, v.Tally.States, v.Tally.Lost, v.Tally.Acknowledged)
			}
		default:
			caught++
		}
	}
	if caught < 7 || programs != 1 {
		t.Errorf("%d of the programs and disks that cheat were judged and caught, want 7, and %d programs, want 1:\n%s", caught, programs, run.stdout.String())
	}
}

// TestGuestJudgesWithoutControls asks a guest for one verdict: a workload of the catalogue holds there, and a program that the guest
// can't see is not known, and the reason is said.
func TestGuestJudgesWithoutControls(t *testing.T) {
	needsGuest(t)
	if testing.Short() {
		t.Skip("a kernel is started for each verdict")
	}
	t.Parallel()
	dir := isolate.DirInMemory(t)
	judge := func(o crash.Options) *crash.Verdict {
		t.Helper()
		o.Policies, o.States, o.Seed = []holdfast.Policy{holdfast.Durable()}, 4, rand.Uint64()
		o.Room = func(ctx context.Context, args []string, order []byte, answers func(io.Reader) error) error {
			return usermode.Kernel{}.Start(ctx, place.Work{Dir: dir, Kind: "ext4", Args: append([]string{"proven-process", "--"}, args...), Input: order, Output: answers})
		}
		verdicts, err := powercut.Run(t.Context(), o, []string{"ext4"}, time.Second)
		if err != nil || len(verdicts) != 1 {
			t.Fatalf("%d verdicts, %v", len(verdicts), err)
		}
		nothingIn(t, dir)
		return verdicts[0]
	}
	if v := judge(crash.Options{Workloads: []*crash.Workload{catalogue.Find("writer")}}); v.Unknown != "" || v.Failure != nil || v.Tally.States != 4 || v.Tally.Acknowledged == 0 {
		t.Errorf("writer: %+v, %+v %s", v.Tally, v.Failure, v.Unknown)
	}
	if v := judge(crash.Options{Program: &crash.Program{Command: "/tmp/nowhere", Read: "cat log"}}); !strings.Contains(v.Unknown, "not found") {
		t.Errorf("a program that is not there: %+v %q", v.Failure, v.Unknown)
	}
}

// TestKilledProofInsideLeavesNoProcess kills a run while its guest is at work. No process is left,
// and the next run removes what is left in the directory.
func TestKilledProofInsideLeavesNoProcess(t *testing.T) {
	isolate.Once(t, isolate.Ordinary)
	needsGuest(t)
	t.Parallel()
	dir := isolate.DirInMemory(t)
	start := func() *child {
		c := startUser(t, "prove", "--kernel", "uml", "--fs", "ext4", "--workload", "writer", "--time", "5m", "--dir", dir)
		awaitProcessesIn(t, dir, 9) // the kernel, and one for each process inside
		return c
	}
	first := start()
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	first.exit(t)
	awaitProcessesIn(t, dir, 0)
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Fatalf("%v is left, %v", left, err)
	}
	second := start()
	if err := second.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := second.exit(t); code != cli.ExitInterrupted {
		t.Errorf("exit code %d:\n%s", code, second.reported.String())
	}
	nothingIn(t, dir)
}

// TestKilledProofLeavesNoProcess kills runs while their processes are at work. None of them is left, and
// the next run removes what is left in the directory. It does not touch a running prove's directory,
// nor one that prove has not made.
func TestKilledProofLeavesNoProcess(t *testing.T) {
	isolate.Once(t, isolate.Ordinary)
	t.Parallel()
	check := func(count int, args ...string) {
		t.Helper()
		dir := isolate.DirInMemory(t)
		own := filepath.Join(dir, "holdfast-prove-1", "d")
		if err := os.MkdirAll(own, 0o700); err != nil {
			t.Fatal(err)
		}
		start := func() *child {
			c := startChild(t, append([]string{"prove", "--time", "5m", "--dir", dir}, args...)...)
			awaitProcessesIn(t, dir, count)
			return c
		}
		first := start()
		if err := first.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		first.exit(t)
		awaitProcessesIn(t, dir, 0)
		left, err := os.ReadDir(dir)
		if err != nil || len(left) < 2 {
			t.Fatalf("%v: %v is left, %v", args, left, err)
		}
		second := start()
		// Each start removes what is stale, also one that writes nothing there.
		startChild(t, "prove", "--level", "memory", "--workload", "writer", "--states", "1", "--time", "1s", "--dir", dir).exit(t)
		for _, e := range left {
			if _, err := os.Stat(filepath.Join(dir, e.Name())); e.Name() != "holdfast-prove-1" && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%v: %s is left: %v", args, e.Name(), err)
			}
		}
		if err := second.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		if code := second.exit(t); code != cli.ExitInterrupted { // a directory that it lost would be an error
			t.Errorf("%v: exit code %d:\n%s", args, code, second.reported.String())
		}
		if left, err := filepath.Glob(dir + "/*/*"); err != nil || len(left) != 1 || left[0] != own {
			t.Errorf("%v: %v is left, %v", args, left, err)
		}
	}
	check(1, "--level", "kill", "--workload", "whole-replace")
	check(2, "--cmd", "(while :; do sleep 1; done) & echo ack 1; sleep 99", "--read", "echo 1; sleep 99")
	idle := exec.Command("true")
	s, err := syscallfault.Start(idle, "/", syscallfault.Kinds[:1], func(*syscallfault.Call) {})
	if err != nil {
		t.Skip("levels fault and hostile: ", err)
	}
	if err := idle.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := s.Stop(); err != nil {
		t.Error(err)
	}
	check(1, "--level", "fault", "--workload", "whole-replace")
	check(1, "--level", "hostile", "--workload", "whole-replace")
}
