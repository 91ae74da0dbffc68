//go:build go1.25

package catalogue

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// needSupervisor skips a test of processes where their calls can't be supervised. Under the race
// detector the supervisor's own tests are enough.
func needSupervisor(t *testing.T) {
	t.Parallel()
	if isolate.RaceEnabled {
		t.Skip("the supervisor's own tests run under the race detector")
	}
	if why := crash.CanSupervise(exec.Command("true")); why != "" {
		t.Skip(why)
	}
}

// TestFailingCallsBreakNoPromise gives each workload some faults. The command gives more.
func TestFailingCallsBreakNoPromise(t *testing.T) {
	needSupervisor(t)
	o := crash.Options{Policies: []holdfast.Policy{holdfast.Durable()}, Workloads: Workloads(), Levels: []crash.Level{crash.Fault}, Dir: isolate.DirInMemory(t), Child: child, Least: 6}
	verdicts, err := crash.Prove(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	faults := 0
	for _, v := range verdicts {
		faults += v.Faults
		if v.Verdict != crash.Held {
			t.Errorf("%s under %v is %s, seed %d: %+v", v.Workload, v.Policy, v.Verdict, v.Seed, v.Failure)
		}
	}
	t.Logf("%d faults", faults)
	if left, err := os.ReadDir(o.Dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestOtherUsersBreakNoPromise gives each workload that replaces files some attacks, and the controls.
func TestOtherUsersBreakNoPromise(t *testing.T) {
	needSupervisor(t)
	o := crash.Options{Policies: []holdfast.Policy{holdfast.Durable(), holdfast.EachDurable()}, Workloads: Workloads(), Levels: []crash.Level{crash.Hostile}, Dir: isolate.DirInMemory(t), Child: child, Least: 5}
	verdicts, err := crash.Prove(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	attacks := 0
	for _, v := range verdicts {
		attacks += v.Faults
		if v.Verdict != crash.Held || v.Tally.Acknowledged == 0 {
			t.Errorf("%s under %v is %s, seed %d: %+v %+v", v.Workload, v.Policy, v.Verdict, v.Seed, v.Failure, v.Tally)
		}
	}
	t.Logf("%d attacks", attacks)
	if left, err := os.ReadDir(o.Dir); err != nil || len(left) > 0 || len(verdicts) != 14 {
		t.Errorf("%d verdicts; left behind: %v, %v", len(verdicts), left, err)
	}
}

// TestSmallDiskIsEnoughForNotes kills a workload on a disk that is smaller than the notes of one run.
func TestSmallDiskIsEnoughForNotes(t *testing.T) {
	isolate.Mounts(t, func(t *testing.T) {
		o := crash.Options{Policies: []holdfast.Policy{holdfast.Durable()}, Workloads: []*crash.Workload{Find("writer")}, Levels: []crash.Level{crash.Kill}, Dir: diskOf(t, "size=8m"), Child: child, Least: 5}
		verdicts, err := crash.Prove(t.Context(), o)
		if err != nil || len(verdicts) == 0 {
			t.Fatal(verdicts, err)
		}
		for _, v := range verdicts {
			if v.Verdict != crash.Held || v.Kills == 0 {
				t.Errorf("%s is %s after %d kills: %+v", v.Workload, v.Verdict, v.Kills, v.Failure)
			}
		}
	})
}

// TestFullDiskBreaksNoPromise has disks of which the workloads reach the end.
func TestFullDiskBreaksNoPromise(t *testing.T) {
	needSupervisor(t)
	isolate.Mounts(t, func(t *testing.T) {
		full := 0
		for _, size := range []string{"size=24k", "size=64k", "size=200k"} {
			dir := diskOf(t, size)
			for _, level := range []crash.Level{crash.Kill, crash.Fault, crash.Hostile} {
				for _, name := range []string{"writer", "whole-replace", "copy-atomic", "rotate"} {
					o := crash.Options{Policies: []holdfast.Policy{holdfast.Durable()}, Workloads: []*crash.Workload{Find(name)}, Levels: []crash.Level{level}, Dir: dir, Child: child}
					verdicts, err := crash.Prove(t.Context(), o)
					if err != nil && !strings.Contains(err.Error(), unix.ENOSPC.Error()) {
						t.Errorf("%s, level %s, workload %s: %v", size, level, name, err)
					} else if err != nil {
						full++
					}
					for _, v := range verdicts {
						if v.Verdict == crash.Broken {
							t.Errorf("%s, level %s: %s is broken: %s", size, level, v.Workload, v.Failure.Words)
						}
					}
				}
			}
		}
		if full == 0 {
			t.Error("no disk was full")
		}
	})
}

// diskOf returns a new tmpfs, which no other process sees.
func diskOf(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, size); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}
