package crash

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/crash/syscallfault"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// needSupervisor skips a test of processes where their calls can't be supervised. Under the race
// detector the supervisor's own tests are enough.
func needSupervisor(t *testing.T) {
	t.Parallel()
	if isolate.RaceEnabled {
		t.Skip("the supervisor's own tests run under the race detector")
	}
	if why := CanSupervise(exec.Command("true")); why != "" {
		t.Skip(why)
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

// TestCutTakesWhatWasNotSynced traces a script, and cuts the power at its end with nothing pending on the disk.
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
		cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
		cmd.Dir = dir
		trace := newTrace(dir, true, nil)
		if f, err := underFault(t.Context(), cmd, dir, traced, nil, trace.meet); err != nil || f.exit != nil {
			t.Fatal(err, f)
		}
		trace.killed()
		if err := trace.end(); err != nil {
			t.Fatal(err)
		}
		at := len(trace.log.Entries)
		all := (&Failure{Log: trace.log, State: State{Crash: Power, Position: at, Rest: true, Mask: ^uint64(0)}}).Tree()
		is := treeOf(dir)
		for name, data := range is.Files {
			if string(all.Files[name]) != string(data) || len(all.Files) != len(is.Files) {
				t.Errorf("%s: with all that is pending %s is %q, want %q", script, name, all.Files[name], data)
			}
		}
		left := (&Failure{Log: trace.log, State: State{Crash: Power, Position: at}}).Tree()
		for name, text := range want {
			if b, there := left.Files[name]; string(b) != text || there != (text != "") {
				t.Errorf("%s: %s is %q, %v, want %q", script, name, b, there, text)
			}
		}
	}
	check("echo new >f; echo more >>old; echo x >>old", map[string]string{"f": "", "old": "old\n"})
	check("echo new >f; sync f; echo more >>f", map[string]string{"f": "new\n"})
	check("echo new >f; sync f; mv f g", map[string]string{"f": "new\n", "g": ""})
	check("echo new >f; sync f; mv f old", map[string]string{"f": "new\n", "old": "old\n"})
	check("echo new >f; sync f; mv f old; sync .", map[string]string{"f": "", "old": "new\n"})
	check("echo longer >f; sync f; sync .; echo x >f", map[string]string{"f": "longer\n"})
	check("rm old", map[string]string{"old": "old\n"})
	check("rm old; sync .", map[string]string{"old": ""})
	check("mkdir d; echo new >d/f; sync -f d/f; echo more >>d/f", map[string]string{"d/f": "new\n"})
}

// TestProgramsUnderFaultsAreJudgedByWhatTheyAcknowledged runs one that checks what its calls return, and one that does not.
func TestProgramsUnderFaultsAreJudgedByWhatTheyAcknowledged(t *testing.T) {
	needSupervisor(t)
	check := func(want Known, long time.Duration, write string) {
		t.Helper()
		p := Program{Command: "touch log; grep -xE '[0-9]{7}' log >new; mv new log; n=$(wc -l <log); while [ $n -lt 60 ]; do n=$((n+1)); " + write + "; done", Read: "touch log; while read -r n; do echo $n; done <log", Dir: t.TempDir(), Time: long, Seed: 1, Level: Fault}
		v, err := p.Prove(t.Context())
		if err != nil || v.Verdict != want {
			t.Errorf("%s: %v, %+v", write, err, v)
		}
	}
	check(Held, time.Nanosecond, "printf '%07d\\n' $n >>log && echo ack $n || exit")
	check(Broken, time.Minute, "printf '%07d\\n' $n >>log; echo ack $n")
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

// TestCommandAcknowledgesNoMoreThanThereIs: a line that there is not can't be durable.
func TestCommandAcknowledgesNoMoreThanThereIs(t *testing.T) {
	for acked, want := range map[string]bool{"1\n2\n": false, "1\n3\n": true, "4\n": true} {
		there := map[string]string{"f": "one\ntwo\n"}
		if v := (&Command{Acks: true}).judge(&faulted{}, &injection{}, acked, there, there); (v != nil) != want {
			t.Errorf("%q: %+v", acked, v)
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
		in := injection{kind: syscallfault.Sync, errno: syscall.EIO, nth: fails}
		f, err := underFault(t.Context(), cmd, dir, in.kinds(), nil, func(c *syscallfault.Call) { d.meet(c, in) })
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
	// Perl syncs by two descriptors, and stops at a failure: the second one reports the first one's.
	const perl = "perl -MIO::Handle -e 'open($a, q(>>), q(f)); open($b, q(>>), q(f)); syswrite($a, qq(one\\n)); $a->sync; $b->sync and open($c, q(>), q(g)) and print $c q(x)'"
	if _, err := exec.LookPath("perl"); err == nil {
		check(perl, 1, map[string]string{"f": "\x00\x00\x00\x00", "g": ""})
	}
	const renamed = "echo one >f; sync f; sync .; mv f g; sync .; "
	check(renamed, 3, map[string]string{"f": "one\n", "g": ""})
	check(renamed+"sync .", 3, map[string]string{"f": "one\n", "g": ""})
	check(renamed+"mv g f", 3, map[string]string{"f": "one\n", "g": ""})
	check(renamed+"mv g f; mv f g; sync .", 3, map[string]string{"f": "", "g": "one\n"}) // the name was made anew
	check(renamed+"mv g f; sync .", 4, map[string]string{"f": "", "g": "one\n"})
	check(renamed+"sync .; echo new >f; sync f; sync .", 3, map[string]string{"f": "new\n", "g": ""}) // in place of its only durable name
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
		g, err := newGroup()
		if err != nil {
			t.Fatal(err)
		}
		defer g.end()
		cmd := exec.CommandContext(t.Context(), name, args...)
		g.take(cmd)
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
		_ = g.kill()
		_ = cmd.Wait()
	}
	check(true, perl, "-e", "$| = 1; print 1; if (syscall(58) == 0) { sleep 100 }")
	check(false, "sh", "-c", "echo; read -r a <&2; sleep 100")
}
