package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// inMountNamespace runs a test apart, beside others.
func inMountNamespace(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	if testing.Short() {
		t.Skip("it runs whole benches in child processes; not with -short")
	}
	t.Parallel()
	isolate.Mounts(t, test)
}

// mounted mounts a file system on a new directory.
func mounted(t *testing.T, kind, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("holdfast-test", dir, kind, 0, options); err != nil {
		t.Skipf("mount %s with %s: %v", kind, options, err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// onImage mounts an ext4 of its own, of the given size, in an image.
func onImage(t *testing.T, size int64) string {
	t.Helper()
	image, dir := filepath.Join(t.TempDir(), "image"), t.TempDir()
	if err := errors.Join(os.WriteFile(image, nil, 0o666), os.Truncate(image, size)); err != nil {
		t.Fatal(err)
	}
	for _, line := range [][]string{{"mkfs.ext4", "-q", "-F", image}, {"mount", "-o", "loop", image, dir}} {
		if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
			t.Skipf("%s: %v\n%s", line[0], err, out)
		}
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// fillUp fills the file system that path is on, and whatever becomes free there,
// until stop.
func fillUp(t *testing.T, path string, stop <-chan struct{}) (done chan struct{}) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	done = make(chan struct{})
	go func() {
		defer close(done)
		defer f.Close()
		for block := make([]byte, 64<<10); ; {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := f.Write(block); err != nil {
				block = block[:max(1, len(block)/2)]
			}
		}
	}()
	return done
}

// TestDiskFillsUpInTheMiddle fills the measured disk, and the one of the results,
// in round 2, and lets the run go on when there is room again.
func TestDiskFillsUpInTheMiddle(t *testing.T) {
	inMountNamespace(t, func(t *testing.T) {
		check := func(filled, dir, directory, hint string) {
			t.Helper()
			file, filler := filepath.Join(directory, "results.jsonl"), filepath.Join(filled, "filler")
			c := startChild(t, small(dir, "--time", "1s", "--rounds", "4", "-o", file)...)
			c.until(t, "round 2 of 4")
			ended := make(chan struct{})
			full := fillUp(t, filler, ended)
			code := c.exit(t)
			close(ended)
			<-full
			stderr := c.reported.String()
			if code != cli.ExitCannot || !strings.Contains(stderr, "no space left on device") || !strings.Contains(stderr, "\nhint: "+hint+"; the results so far are in "+file+", and --resume continues the run") {
				t.Errorf("exit code %d, stderr:\n%s", code, stderr)
			}
			if run := readFile(t, file); run.Rounds() < 1 || run.Torn || run.Complete() {
				t.Errorf("%d rounds, torn %v, end %+v", run.Rounds(), run.Torn, run.End)
			}
			if left := leftovers(t, dir); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
			if err := os.Remove(filler); err != nil {
				t.Fatal(err)
			}
			bench(t, "bench", "--resume", file, "--allow-tmpfs")
			checkFinished(t, file, 1, 4)
		}
		measured, results := mounted(t, "tmpfs", "size=16m"), mounted(t, "tmpfs", "size=64k")
		check(measured, measured, t.TempDir(), "free some space, or name a directory on another disk with --dir")
		check(results, t.TempDir(), results, "free some space on the disk of the results")
	})
}

// TestTinyDisks measures on disks from one page up: that there is too little room
// is reported before anything is written.
func TestTinyDisks(t *testing.T) {
	inMountNamespace(t, func(t *testing.T) {
		check := func(dir, free string) {
			t.Helper()
			code, stderr := refusalOf(t, small(dir, "--time", "1s", "--rounds", "1")...)
			if code != cli.ExitCannot || !strings.Contains(stderr, free) || !strings.Contains(stderr, "\nhint: free some space") {
				t.Errorf("exit code %d, stderr:\n%s", code, stderr)
			}
			if left := leftovers(t, dir); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		}
		for _, size := range []string{"4k", "64k", "512k", "1m"} {
			check(mounted(t, "tmpfs", "size="+size), "free, and the plan needs")
		}
		check(mounted(t, "tmpfs", "size=1m,nr_inodes=1"), "no space left on device")
		check(onImage(t, 256<<10), "free, and the plan needs")
	})
}

// removeWhileFilesAreMade is os.RemoveAll, until nothing was made between what it lists and
// the removal of the directory.
func removeWhileFilesAreMade(dir string) error {
	for {
		if err := os.RemoveAll(dir); !errors.Is(err, unix.ENOTEMPTY) {
			return err
		}
	}
}

// TestGroundVanishes takes the directory, or the file system under it, away from a
// run.
func TestGroundVanishes(t *testing.T) {
	inMountNamespace(t, func(t *testing.T) {
		check := func(name, dir string, away func(ground string) error) {
			t.Helper()
			file := filepath.Join(t.TempDir(), "results.jsonl")
			c := startChild(t, small(dir, "--time", "2s", "--rounds", "1000", "-o", file)...)
			c.until(t, "round 2 of 1000")
			if err := away(c.ground(t)); err != nil {
				t.Fatal(err)
			}
			code := c.exit(t)
			stderr := c.reported.String()
			if code != cli.ExitCannot || !strings.Contains(stderr, "the directory "+c.ground(t)+" was removed during the measurement: ") || !strings.Contains(stderr, "\nhint: don't remove it while holdfast runs; the results so far are in "+file) {
				t.Errorf("%s: exit code %d, stderr:\n%s", name, code, stderr)
			}
			if run := readFile(t, file); run.Rounds() < 1 || run.End == nil || run.End.State != result.Failed {
				t.Errorf("%s: %d rounds, end %+v", name, run.Rounds(), run.End)
			}
		}
		check("its own directory", t.TempDir(), removeWhileFilesAreMade)
		check("the directory above", t.TempDir(), func(ground string) error { return removeWhileFilesAreMade(filepath.Dir(ground)) })
		check("its directory moved", t.TempDir(), func(ground string) error { return os.Rename(ground, ground+".away") })
		dir := mounted(t, "tmpfs", "size=64m")
		check("its file system", dir, func(string) error { return unix.Unmount(dir, unix.MNT_DETACH) })
	})
}

// TestGroundThatCannotBeRemoved mounts something in it.
func TestGroundThatCannotBeRemoved(t *testing.T) {
	inMountNamespace(t, func(t *testing.T) {
		check := func(interrupt bool, want int, more string) {
			t.Helper()
			c := startChild(t, small(t.TempDir(), "--time", "1s", "--rounds", "2")...)
			c.until(t, "round 1 of 2")
			busy := filepath.Join(c.ground(t), "busy")
			if err := errors.Join(os.Mkdir(busy, 0o700), unix.Mount("holdfast-test", busy, "tmpfs", 0, "")); err != nil {
				t.Fatal(err)
			}
			defer unix.Unmount(busy, unix.MNT_DETACH)
			if interrupt {
				if err := c.Process.Signal(os.Interrupt); err != nil {
					t.Fatal(err)
				}
			}
			if code := c.exit(t); code != want || !strings.Contains(c.reported.String(), busy+": device or resource busy") || !strings.Contains(c.reported.String(), "remove "+c.ground(t)+" by hand") || !strings.Contains(c.reported.String(), more) {
				t.Errorf("exit code %d, stderr:\n%s", code, c.reported.String())
			}
		}
		check(false, cli.ExitCannot, "")
		check(true, cli.ExitInterrupted, "holdfast: interrupted ")
	})
}

// TestOverlay measures on a file system that lies over others.
func TestOverlay(t *testing.T) {
	inMountNamespace(t, func(t *testing.T) {
		parts := mounted(t, "tmpfs", "size=256m")
		for _, name := range []string{"lower", "upper", "work"} {
			if err := os.Mkdir(filepath.Join(parts, name), 0o777); err != nil {
				t.Fatal(err)
			}
		}
		dir := mounted(t, "overlay", fmt.Sprintf("lowerdir=%s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work", parts))
		file := filepath.Join(t.TempDir(), "results.jsonl")
		bench(t, small(dir, "--time", "1s", "--rounds", "1", "-o", file)...)
		if kind := fact(readFile(t, file), "file system"); !strings.HasPrefix(kind, "overlay") {
			t.Errorf("the file system is %q", kind)
		}
		nothingIn(t, dir)
	})
}

// fact returns what the results know of the machine.
func fact(run result.Run, name string) string {
	for _, f := range run.Header.Machine {
		if f.Name == name {
			return f.Value
		}
	}
	return "no such fact"
}

// TestWithoutProc hides /proc and /sys: the run goes on, and says what it can't
// know.
func TestWithoutProc(t *testing.T) {
	inMountNamespace(t, func(t *testing.T) {
		dir, file := t.TempDir(), filepath.Join(t.TempDir(), "results.jsonl")
		for _, hidden := range []string{"/sys", "/proc"} {
			if err := unix.Mount("holdfast-test", hidden, "tmpfs", 0, ""); err != nil {
				t.Skipf("hide %s: %v", hidden, err)
			}
		}
		c := startCommand(t, exec.Command(os.Args[0], small(dir, "--time", "1s", "--rounds", "2", "-o", file)...), nil)
		if code := c.exit(t); code != cli.ExitOK {
			t.Fatalf("exit code %d:\n%s", code, c.reported.String())
		}
		run := readFile(t, file)
		for _, name := range []string{"CPU model", "memory", "kernel", "mount options", "device", "cgroup memory limit"} {
			if got := fact(run, name); got != machine.Unknown {
				t.Errorf("%s is %q", name, got)
			}
		}
		if run.Header.SystemCallsUnseen == "" {
			t.Error("system calls were seen")
		}
		if all, _ := bench(t, "report", file, "--all"); !run.Complete() || !strings.Contains(all, "system calls are not observable here") {
			t.Errorf("end %+v, the table is\n%s", run.End, all)
		}
		nothingIn(t, dir)
	})
}

// TestOneCPU runs everything on one CPU: no writer starves.
func TestOneCPU(t *testing.T) {
	isolate.Once(t, isolate.Ordinary)
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "bench", "--dir", dir, "--allow-tmpfs", "--time", "2s", "--rounds", "2", "--writers", "64",
		"--policy", "buffer=0", "--policy", "buffer=64KiB,flush=1ms", "--policy", "sync=group")
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	c := startOnOneCPU(t, cmd)
	if code := c.exit(t); code != cli.ExitOK {
		t.Errorf("exit code %d:\n%s", code, c.reported.String())
	}
	nothingIn(t, dir)
}

// startOnOneCPU starts the command from a thread that may run on one CPU only:
// the child inherits that.
func startOnOneCPU(t *testing.T, cmd *exec.Cmd) *child {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	for cpu := 0; one.Count() == 0; cpu++ {
		if all.IsSet(cpu) {
			one.Set(cpu)
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Skip("no thread can be tied to a CPU:", err)
	}
	defer unix.SchedSetaffinity(0, &all)
	return startCommand(t, cmd, nil)
}

// memoryGroup makes a control group with a memory limit, and returns the file that takes its
// processes.
func memoryGroup(t *testing.T, limit int64) string {
	t.Helper()
	for _, file := range []string{"memory/%s/memory.limit_in_bytes", "%s/memory.max"} {
		file = filepath.Join("/sys/fs/cgroup", fmt.Sprintf(file, fmt.Sprintf("holdfast-test-%d", os.Getpid())))
		dir := filepath.Dir(file)
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { os.Remove(dir) })
		// Where this is no control group, no such file has appeared.
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		if err != nil {
			continue
		}
		_, err = fmt.Fprint(f, limit)
		if errors.Join(err, f.Close()) == nil {
			return filepath.Join(dir, "cgroup.procs")
		}
	}
	t.Skip("no control group of memory can be made here")
	return ""
}

func TestMemoryLimitBelowTheBuffers(t *testing.T) {
	procs := memoryGroup(t, 96<<20)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	within := func(args ...string) (code int, stderr string) {
		t.Helper()
		// The shell enters the group before it becomes the command.
		cmd := exec.Command("sh", append([]string{"-c", `echo $$ >"$0" && exec "$@"`, procs, self}, args...)...)
		cmd.Env = append(os.Environ(), asCommand+"=1")
		var talk bytes.Buffer
		cmd.Stderr = &talk
		err := cmd.Run()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), talk.String()
	}
	dir := t.TempDir()
	check := func(want int, sentence string, args ...string) {
		t.Helper()
		args = append([]string{"bench", "--dir", dir, "--allow-tmpfs", "--time", "1s", "--rounds", "1"}, args...)
		if code, stderr := within(args...); code != want || !strings.Contains(stderr, sentence) {
			t.Errorf("%q: exit code %d, stderr:\n%s", args, code, stderr)
		}
		nothingIn(t, dir)
	}
	check(cli.ExitCannot, "policy=buffer=48MiB,sync=never/record=128B/writers=1 needs up to 96 MiB of memory, and the limit of this process's control group is 96 MiB", "--writers", "1", "--policy", "buffer=48MiB")
	check(cli.ExitCannot, "record=1MiB/writers=64 needs up to 128 MiB of memory", "--record", "1MiB", "--writers", "64", "--policy", "buffer=0")
	check(cli.ExitOK, "", "--writers", "1", "--policy", "buffer=1MiB")
}

// TestColdIsProvenInTheResults measures with every state of the cache on an ext4:
// before each trial nothing of its file is in memory, or all.
func TestColdIsProvenInTheResults(t *testing.T) {
	inMountNamespace(t, func(t *testing.T) {
		dir := onImage(t, 64<<20)
		for _, cache := range []result.Cache{result.Warm, result.Cold, result.TryCold, result.Dropped, result.Remount} {
			file := filepath.Join(t.TempDir(), "results.jsonl")
			bench(t, small(dir, "--time", "1s", "--rounds", "1", "--cache", string(cache), "-o", file)...)
			run := readFile(t, file)
			for _, trial := range run.Trials {
				if strings.HasPrefix(trial.Cell, "empty/") {
					continue
				}
				before, want := trial.Before, int64(0)
				if cache == result.Warm && before != nil {
					want = before.Pages
				}
				if before == nil || before.Pages == 0 || before.Resident != want || before.Source == "" {
					t.Errorf("--cache %s, %s, round %d: %+v", cache, trial.Cell, trial.Round, before)
				}
			}
			if left := leftovers(t, dir); !run.Complete() || len(left) > 0 {
				t.Errorf("--cache %s: end %+v, left: %q", cache, run.End, left)
			}
		}
	})
}

// nobody is a user without any right.
const nobody = 65534

// asNobody starts the command as a user without rights, in a directory of that user.
func asNobody(t *testing.T, dir string, args ...string) *child {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("to become another user takes root")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	// The directories that the testing package makes are its own user's alone.
	copied := filepath.Join(t.TempDir(), "holdfast")
	if err := os.WriteFile(copied, text, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, open := range []string{filepath.Dir(filepath.Dir(copied)), filepath.Dir(copied), copied, dir} {
		if err := os.Chmod(open, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	return startCommand(t, exec.Command(copied, args...), &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}})
}

// TestUserCountsByPtraceWhatRootCountsByTracepoints counts the system calls of a
// policy that makes one for each record.
func TestUserCountsByPtraceWhatRootCountsByTracepoints(t *testing.T) {
	inMountNamespace(t, func(t *testing.T) {
		dir := t.TempDir()
		byNobody, byRoot := filepath.Join(dir, "nobody.jsonl"), filepath.Join(dir, "root.jsonl")
		flags := []string{"bench", "--dir", dir, "--allow-tmpfs", "--time", "1s", "--rounds", "1", "--writers", "1", "--record", "4KiB", "--policy", "buffer=0,sync=never"}
		c := asNobody(t, dir, append(flags, "-o", byNobody)...)
		if code := c.exit(t); code != cli.ExitOK {
			t.Fatalf("exit code %d:\n%s", code, c.reported.String())
		}
		killed := filepath.Join(dir, "killed.jsonl")
		if err := os.WriteFile(killed, firstLine(t, byNobody), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(killed, nobody, nobody); err != nil {
			t.Fatal(err)
		}
		if c := asNobody(t, dir, "bench", "--resume", killed, "--allow-tmpfs"); c.exit(t) != cli.ExitOK {
			t.Fatal(c.reported.String())
		}
		bench(t, append(flags, "-o", byRoot)...)
		check := func(file, source string) {
			t.Helper()
			run := readFile(t, file)
			if run.Header.SystemCallsUnseen != "" {
				t.Skip("system calls are unseen:", run.Header.SystemCallsUnseen)
			}
			trial, ok := run.Counted(run.Header.Cells[0].Name)
			if !ok || trial.SystemCalls.Source != source {
				t.Fatalf("%s: counted %+v, want by %s", file, trial.SystemCalls, source)
			}
			calls, records := trial.SystemCalls, trial.SystemCalls.Records
			if records == 0 {
				records = trial.Records
			}
			// Go's runtime wakes its poller by a write(2) to an eventfd, which is rare.
			if calls.Writes < records || calls.Writes > records+3 || calls.Syncs != 0 || calls.Total < calls.Writes {
				t.Errorf("%s: %+v for %d records", file, calls, records)
			}
		}
		check(byNobody, "ptrace")
		check(killed, "ptrace")
		check(byRoot, "tracepoints")
	})
}

// firstLine returns the first line of a file.
func firstLine(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text[:bytes.IndexByte(text, '\n')+1]
}

// TestUserLearnsWhatTakesRoot asks for actions that take root, as nobody.
func TestUserLearnsWhatTakesRoot(t *testing.T) {
	check := func(sentence, hint string, more ...string) {
		t.Helper()
		dir := t.TempDir()
		args := small(dir, append(more, "--time", "1s", "--rounds", "1")...)
		c := asNobody(t, dir, args...)
		if code := c.exit(t); code != cli.ExitCannot || !strings.Contains(c.reported.String(), sentence) || !strings.Contains(c.reported.String(), "\nhint: "+hint) {
			t.Errorf("%q: exit code %d, stderr:\n%s", more, code, c.reported.String())
		}
		nothingIn(t, dir)
	}
	check("caches can't be dropped: ", "--cache try-cold measures anyway", "--cache", "drop")
	check("root", "--cache try-cold measures anyway", "--cache", "remount")
	check("-o: open /holdfast-results.jsonl: permission denied", "name a new file in a directory that you may write to", "-o", "/holdfast-results.jsonl")
}

// TestVolumesOfOthersAreReportedAsNotSeen has a volume mounted in a directory that only root may
// look into.
func TestVolumesOfOthersAreReportedAsNotSeen(t *testing.T) {
	inMountNamespace(t, func(t *testing.T) {
		locked, dir := t.TempDir(), t.TempDir()
		volume := filepath.Join(locked, "holdfast-volume-000000070155ac0f")
		point := filepath.Join(volume, "mount")
		if err := errors.Join(os.MkdirAll(point, 0o755), os.Chmod(locked, 0o700)); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount("holdfast-test", point, "tmpfs", 0, "size=64k"); err != nil {
			t.Skipf("mount: %v", err)
		}
		t.Cleanup(func() { unix.Unmount(point, unix.MNT_DETACH) })
		before, err := os.Getwd()
		if err := errors.Join(err, os.Chdir(dir)); err != nil { // the process is the test's own
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chdir(before) })
		c := asNobody(t, dir, "volumes")
		code, text := c.exit(t), c.stdout.String()
		if code != cli.ExitOK || c.reported.Len() > 0 || !strings.Contains(text, "in this directory, and none mounted, as far as this user can see.") ||
			!strings.Contains(text, "\nOnly root can see:\n  ") || !strings.Contains(text, volume+": permission denied") {
			t.Errorf("exit code %d:\n%s%s", code, text, c.reported.String())
		}
		if c := asNobody(t, dir, "volumes", locked); c.exit(t) == cli.ExitOK {
			t.Errorf("a directory that was named can't be seen: %s", c.stdout.String())
		}
	})
}
