package prove

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/procgroup"
	"github.com/holdfast-go/holdfast/internal/crash/syscallfault"
	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/racetest"
)

// needSupervisor skips a test of processes where their calls can't be supervised. Under the race
// detector the supervisor's own tests are enough.
func needSupervisor(t *testing.T) {
	t.Parallel()
	if racetest.Enabled {
		t.Skip("the supervisor's own tests run under the race detector")
	}
	if why := CanSupervise(exec.Command("true")); why != "" {
		t.Skip(why)
	}
}

// TestFailingCallsBreakNoPromise gives each workload some faults. The command gives more.
func TestFailingCallsBreakNoPromise(t *testing.T) {
	needSupervisor(t)
	o := Options{Policies: []holdfast.Policy{holdfast.Durable()}, Workloads: Workloads(), Levels: []Level{Fault}, Dir: isolate.DirInMemory(t), Child: child, Least: 6}
	verdicts, err := Prove(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	faults := 0
	for _, v := range verdicts {
		faults += v.Faults
		if v.Verdict != Held {
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
	o := Options{Policies: []holdfast.Policy{holdfast.Durable(), holdfast.EachDurable()}, Workloads: Workloads(), Levels: []Level{Hostile}, Dir: isolate.DirInMemory(t), Child: child, Least: 5}
	verdicts, err := Prove(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	attacks := 0
	for _, v := range verdicts {
		attacks += v.Faults
		if v.Verdict != Held || v.Tally.Acknowledged == 0 {
			t.Errorf("%s under %v is %s, seed %d: %+v %+v", v.Workload, v.Policy, v.Verdict, v.Seed, v.Failure, v.Tally)
		}
	}
	t.Logf("%d attacks", attacks)
	if left, err := os.ReadDir(o.Dir); err != nil || len(left) > 0 || len(verdicts) != 13 {
		t.Errorf("%d verdicts; left behind: %v, %v", len(verdicts), left, err)
	}
}

// TestReadersAreThoseOfTheList compares with the algorithm of acl(5), by hand.
func TestReadersAreThoseOfTheList(t *testing.T) {
	mode := func(group, other uint16) []entry {
		return []entry{{listGroup, group, 0}, {listMask, 7, 0}, {listOther, other, 0}}
	}
	named := func(user, mask, other uint16) []entry {
		return []entry{{listUser, user, 1001}, {listGroup, 4, 0}, {listNamedGroup, 4, 3000}, {listMask, mask, 0}, {listOther, other, 0}}
	}
	for _, c := range []struct {
		list  []entry
		group uint32
		want  bool
	}{
		{mode(4, 0), 2000, true}, {mode(4, 0), 3000, false}, {mode(0, 4), 2000, false}, {mode(0, 4), 3000, true},
		{named(4, 4, 0), 1001, true}, {named(0, 4, 4), 2000, false}, {named(4, 3, 4), 2000, false},
	} {
		if got := reads(c.list, 1001, c.group, 2000); got != c.want {
			t.Errorf("%v, group %d: %v", c.list, c.group, got)
		}
	}
	for _, c := range []struct {
		mask, other uint16
		group       uint32
		want        bool
	}{{4, 0, 2000, true}, {4, 0, 3000, true}, {0, 4, 3000, false}, {4, 0, 4000, false}, {0, 4, 4000, true}} {
		if got := reads(named(0, c.mask, c.other), 1002, c.group, 2000); got != c.want {
			t.Errorf("mask %o, other %o, group %d: %v", c.mask, c.other, c.group, got)
		}
	}
}

// TestCutTakesWhatWasNotSynced kills a script that waits, and takes away what it has not synced.
func TestCutTakesWhatWasNotSynced(t *testing.T) {
	needSupervisor(t)
	check := func(script string, want map[string]string) {
		t.Helper()
		dir, remove, err := Options{Dir: t.TempDir()}.Directory()
		if err != nil {
			t.Fatal(err)
		}
		defer remove()
		if err := os.WriteFile(filepath.Join(dir, "old"), []byte("old\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		p := Program{Command: script + "; echo ack 1; while :; do sleep 1; done"}
		if _, said, err := p.runAndCut(t.Context(), dir, 0); err != nil || said != "" {
			t.Fatal(err, said)
		}
		for name, text := range want {
			if b, err := os.ReadFile(filepath.Join(dir, name)); string(b) != text || errors.Is(err, fs.ErrNotExist) != (text == "") {
				t.Errorf("%s: %s is %q, %v, want %q", script, name, b, err, text)
			}
		}
	}
	check("echo new >f; echo more >>old; echo x >>old", map[string]string{"f": "", "old": "old\n"})
	check("echo new >f; sync f; echo more >>f", map[string]string{"f": "new\n"})
	check("echo new >f; sync f; mv f g", map[string]string{"f": "new\n", "g": ""})
	check("echo new >f; sync f; mv f old", map[string]string{"f": "new\n", "old": "old\n"})
	check("echo new >f; sync f; mv f old; sync .", map[string]string{"f": "", "old": "new\n"})
	check("rm old", map[string]string{"old": "old\n"})
	check("rm old; sync .", map[string]string{"old": ""})
	check("mkdir d; echo new >d/f; sync -f d/f; echo more >>d/f", map[string]string{"d/f": "new\n"})
}

// TestProgramsUnderFaultsAreJudgedByWhatTheyAcknowledged runs one that checks what its calls return, and one that does not.
func TestProgramsUnderFaultsAreJudgedByWhatTheyAcknowledged(t *testing.T) {
	needSupervisor(t)
	check := func(want Known, write string) {
		t.Helper()
		p := Program{Command: "n=0; while [ $n -lt 60 ]; do n=$((n+1)); " + write + "; done", Read: "touch log; while read -r n; do echo $n; done <log", Dir: t.TempDir(), Time: time.Nanosecond, Seed: 1, Level: Fault}
		v, err := p.Prove(t.Context())
		if err != nil || v.Verdict != want {
			t.Errorf("%s: %v, %+v", write, err, v)
		}
	}
	check(Held, "echo $n >>log && echo ack $n || exit")
	check(Broken, "echo $n >>log; echo ack $n")
}

// TestCommandIsJudgedWithoutAFaultToo runs one that does not do what it must, whether or not a call fails.
func TestCommandIsJudgedWithoutAFaultToo(t *testing.T) {
	needSupervisor(t)
	for text, want := range map[string]bool{"right": false, "wrong": true} {
		c := &Command{Name: "echo", After: map[string]string{"f": "right\n"},
			Args: func(dir string) []string { return []string{"-c", "echo " + text + ">" + dir + "/f"} }}
		v := &Verdict{Level: Fault}
		o := Options{Dir: t.TempDir(), Self: func(ctx context.Context, args ...string) *exec.Cmd { return exec.CommandContext(ctx, "sh", args...) }}
		if _, _, err := v.underCommand(t.Context(), c, o, nil, nil); err != nil || (v.Failure != nil) != want {
			t.Errorf("%s: %v, %+v", text, err, v.Failure)
		}
	}
}

// TestLossyDiskKeepsWhatWasSynced fails the syncs of a script in all ways.
func TestLossyDiskKeepsWhatWasSynced(t *testing.T) {
	needSupervisor(t)
	check := func(script string, fails int, want map[string]string) {
		t.Helper()
		dir, remove, err := Options{Dir: t.TempDir()}.Directory()
		if err != nil {
			t.Fatal(err)
		}
		defer remove()
		cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
		cmd.Dir = dir
		d := newLossy(dir)
		f, err := underFault(t.Context(), cmd, dir, []syscallfault.Kind{syscallfault.Sync}, nil, func(c *syscallfault.Call) {
			d.sync(c, injection{kind: c.Kind, errno: syscall.EIO, nth: fails}.apply(c))
		})
		if err = errors.Join(err, d.end()); err != nil || f.hung {
			t.Fatal(err, f)
		}
		for name, text := range want {
			if b, err := os.ReadFile(filepath.Join(dir, name)); string(b) != text && (text != "" || !errors.Is(err, fs.ErrNotExist)) {
				t.Errorf("%s, sync %d fails: %s is %q, %v, want %q", script, fails, name, b, err, text)
			}
		}
	}
	const script = "echo one >f; sync f; sync .; echo two >>f; echo new >g; sync f; sync g; sync .; mv g f; sync ."
	check(script, 9, map[string]string{"f": "new\n", "g": ""})
	check(script, 1, map[string]string{"f": "new\n"})
	check(script, 3, map[string]string{"f": "new\n"})
	check(script, 4, map[string]string{"f": "\x00\x00\x00\x00"})
	check(script, 6, map[string]string{"f": "one\ntwo\n"})
	check("echo one >f; sync f; echo two >>f; sync f; sync f", 2, map[string]string{"f": "one\n\x00\x00\x00\x00"})
	check("echo one >f; sync f; sync .; sync .", 2, map[string]string{"f": ""})
}

// TestSmallDiskIsEnoughForNotes kills a workload on a disk that is smaller than the notes of one run.
func TestSmallDiskIsEnoughForNotes(t *testing.T) {
	isolate.Mounts(t, func(t *testing.T) {
		o := Options{Policies: []holdfast.Policy{holdfast.Durable()}, Workloads: []*Workload{Find("writer")}, Levels: []Level{Kill}, Dir: diskOf(t, "size=8m"), Child: child, Least: 5}
		verdicts, err := Prove(t.Context(), o)
		if err != nil || len(verdicts) == 0 {
			t.Fatal(verdicts, err)
		}
		for _, v := range verdicts {
			if v.Verdict != Held || v.Kills == 0 {
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
			for _, level := range []Level{Kill, Fault, Hostile} {
				for _, name := range []string{"writer", "whole-replace", "copy-atomic", "rotate"} {
					o := Options{Policies: []holdfast.Policy{holdfast.Durable()}, Workloads: []*Workload{Find(name)}, Levels: []Level{level}, Dir: dir, Child: child}
					verdicts, err := Prove(t.Context(), o)
					if err != nil && !strings.Contains(err.Error(), unix.ENOSPC.Error()) {
						t.Errorf("%s, level %s, workload %s: %v", size, level, name, err)
					} else if err != nil {
						full++
					}
					for _, v := range verdicts {
						if v.Verdict == Broken {
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

// TestWaitInTheKernelIsNoHang has a parent that waits for its child in vfork(2), where it is as deaf as one that
// waits for a disk.
func TestWaitInTheKernelIsNoHang(t *testing.T) {
	perl, err := exec.LookPath("perl")
	if err != nil || runtime.GOARCH != "amd64" {
		t.Skip("vfork by perl needs perl and amd64")
	}
	check := func(want bool, name string, args ...string) {
		t.Helper()
		g, err := procgroup.New()
		if err != nil {
			t.Fatal(err)
		}
		defer g.End()
		cmd := exec.CommandContext(t.Context(), name, args...)
		g.Take(cmd)
		out, err := cmd.StdoutPipe()
		if err = errors.Join(err, cmd.Start()); err != nil {
			t.Fatal(err)
		}
		_, err = out.Read(make([]byte, 1))
		is := !want
		for end := time.Now().Add(10 * time.Second); err == nil && is != want && time.Now().Before(end); time.Sleep(time.Millisecond) {
			is = waitsInKernel(cmd.Process.Pid)
		}
		if err != nil || is != want {
			t.Errorf("%v: it waits in the kernel: %v, %v", args, is, err)
		}
		_ = g.Kill()
		_ = cmd.Wait()
	}
	check(true, perl, "-e", "$| = 1; print 1; if (syscall(58) == 0) { sleep 100 }")
	check(false, "sh", "-c", "echo; read -r a <&2; sleep 100")
}
