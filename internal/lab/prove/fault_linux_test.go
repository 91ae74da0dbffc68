package prove

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/lab/syscallfault"
	"github.com/holdfast-go/holdfast/internal/racetest"
)

// needSupervisor skips a test of processes where their calls can't be supervised. Under the race
// detector the supervisor's own tests are enough.
func needSupervisor(t *testing.T) {
	t.Parallel()
	if racetest.Enabled {
		t.Skip("the supervisor's own tests run under the race detector")
	}
	if why := CanSupervise(); why != "" {
		t.Skip(why)
	}
}

// TestFailingCallsBreakNoPromise gives each workload some faults. The command gives more.
func TestFailingCallsBreakNoPromise(t *testing.T) {
	needSupervisor(t)
	o := Options{Policies: []holdfast.Policy{holdfast.Durable()}, Workloads: Workloads(), Levels: []Level{Fault}, Dir: t.TempDir(), Child: child}
	if dir, err := os.MkdirTemp("/dev/shm", "holdfast-test-"); err == nil { // in memory: nothing here needs a disk
		o.Dir = dir
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
	}
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

// TestLossyDiskKeepsWhatWasSynced fails the syncs of a script in all ways.
func TestLossyDiskKeepsWhatWasSynced(t *testing.T) {
	needSupervisor(t)
	check := func(script string, fails int, want map[string]string) {
		t.Helper()
		top, dir, err := provingDirectory(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(top)
		cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
		cmd.Dir = dir
		d := newLossy(dir)
		f, err := underFault(t.Context(), cmd, dir, []syscallfault.Kind{syscallfault.Sync}, func(c *syscallfault.Call) {
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
