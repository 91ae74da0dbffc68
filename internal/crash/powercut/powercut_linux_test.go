package powercut

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/volume"
)

// asChild makes the test binary be one of the processes: any of the product's, a run that is killed, or one
// that serves or uses a mount.
const asChild = "HOLDFAST_TEST_POWERCUT_CHILD"

func TestMain(m *testing.M) {
	if mode := os.Getenv(asChild); mode != "" {
		if err := beChild(mode, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(isolate.Tests{M: m}.Run())
}

func beChild(mode string, args []string) error {
	if work := served[mode]; work != nil {
		return work()
	}
	if mode == "stopped" {
		return loopOfStoppedDisk(args[0])
	}
	if mode == "run" || mode == "model" {
		// Its disk is there until it is killed, or until the program has been waited for too long: it
		// acknowledges nothing.
		o := chosen()
		o.Program = &crash.Program{Command: "while :; do echo x >>log; sync log; done", Read: "true"}
		kinds := map[string][]string{"run": {"ext4"}, "model": {Model}}[mode]
		_, err := Run(context.Background(), o, kinds, time.Second)
		return errors.Join(err, errors.New("nobody killed it"))
	}
	if mark := os.Getenv(stopMark); mark != "" && (args[0] == diskArgument || args[0] == treeArgument) {
		if f, err := os.OpenFile(mark, os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			_ = f.Close()
			for {
				_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
			}
		}
	}
	o := chosen()
	o.Workloads = append(o.Workloads, ours...)
	return Process(args, o)
}

// stopMark is a variable with the name of a file: the server that makes it stops for ever, and answers nothing.
const stopMark = "HOLDFAST_TEST_POWERCUT_STOP"

func childAs(mode string) func(context.Context, ...string) *exec.Cmd {
	return func(ctx context.Context, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "/proc/self/exe", args...)
		cmd.Env = append(os.Environ(), asChild+"="+mode)
		return cmd
	}
}

func chosen() crash.Options {
	return crash.Options{Workloads: []*crash.Workload{plain}, States: 150, Seed: uint64(time.Now().UnixNano()), Child: childAs("process")}
}

// plain is the control of these tests, below which disks lie too: it replaces one file again and again. The
// command has the others.
var plain = &crash.Workload{Name: "plain", Control: "correct", Below: true, Policies: []holdfast.Policy{holdfast.EachDurable()},
	Targets: func(holdfast.Policy) []crash.Target {
		return []crash.Target{{Path: "c0", Object: true, Whole: true, Synced: true}}
	},
	Loss: func(holdfast.Policy) holdfast.Loss {
		return holdfast.Loss{Power: holdfast.Bound{Bytes: holdfast.Unlimited, Time: holdfast.Unlimited}}
	},
	Run: func(r *crash.Run) error {
		for made := 0; r.More(made); made++ {
			n := uint64(r.Number+1)<<32 | uint64(made+1)
			r.Note(crash.Begun, 0, n)
			data := crash.Record{N: n, Size: 700}.Append(nil)
			for _, step := range []func() error{
				func() error { return r.WriteFile("c0.tmp", data, true) },
				func() error { return r.Rename("c0.tmp", "c0") },
				r.SyncDir,
			} {
				if err := step(); err != nil {
					return err
				}
			}
			r.Note(crash.Durable, 0, n)
		}
		return nil
	}}

func needs(t *testing.T, kind string) {
	t.Helper()
	if err := Can(t.Context(), chosen(), kind); err != nil {
		t.Skipf("what a power cut leaves of %s is not known here: %v", kind, err)
	}
}

// journalled are the file systems that are here, of those whose names last.
func journalled(t *testing.T) (kinds []string) {
	t.Helper()
	for _, kind := range Kinds[:4] {
		if err := Can(t.Context(), chosen(), kind); err != nil {
			t.Logf("left out: %v", err)
		} else {
			kinds = append(kinds, kind)
		}
	}
	if kinds == nil {
		t.Skip("no file system can be mounted here")
	}
	return kinds
}

// TestKillLeavesNothing kills a run at work. Its processes, mounts and loop devices end with it.
func TestKillLeavesNothing(t *testing.T) {
	t.Parallel()
	needs(t, "ext4")
	cmd := childAs("run")(t.Context())
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var said tail
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	owner := fmt.Sprintf("holdfast-disk:%d:", cmd.Process.Pid)
	devices := map[string]string{}
	for len(devices) == 0 {
		for _, p := range mounted(owner) {
			for device, file := range loopsIn(p) {
				devices[device] = file
			}
		}
		select {
		case err := <-ended:
			t.Fatalf("it ended before it was killed: %v: %s", err, &said)
		case <-time.After(time.Millisecond):
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended
	gone := func() (left []string) {
		left = mounted(owner)
		for device, file := range devices {
			// "/" is a file that no path leads to: its mount is being ended.
			if text, err := os.ReadFile(device); err == nil && (string(text) == file || string(text) == "/\n") {
				left = append(left, device)
			}
		}
		return left
	}
	for began := time.Now(); len(gone()) > 0; time.Sleep(time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatalf("left: %v", gone())
		}
	}
}

// mounted are the processes that have a disk of an owner mounted.
func mounted(owner string) (all []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/mountinfo")
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), " "+owner) {
			all = append(all, filepath.Dir(file))
		}
	}
	return all
}

// loopsIn are the loop devices that a process sees mounted from cells, with their files.
func loopsIn(process string) map[string]string {
	all := map[string]string{}
	text, _ := os.ReadFile(filepath.Join(process, "mountinfo"))
	for line := range strings.Lines(string(text)) {
		_, after, _ := strings.Cut(line, " - ")
		what := strings.Fields(after)
		if len(what) < 2 || !strings.HasPrefix(what[1], "/dev/loop") || !strings.Contains(line, "/cell") {
			continue
		}
		name := filepath.Join("/sys/block", filepath.Base(what[1]), "loop/backing_file")
		if file, err := os.ReadFile(name); err == nil {
			all[name] = string(file)
		}
	}
	return all
}

// TestRefusedWriteIsShown holds what the documentation says of one EIO: the second sync of a plain
// program succeeds, and its record is gone. A Writer of holdfast never says that it is there.
func TestRefusedWriteIsShown(t *testing.T) {
	t.Parallel()
	kinds := journalled(t)
	all, err := ShowRefusals(t.Context(), chosen(), kinds)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]int{}
	for _, x := range all {
		rows[x.FS]++
		second := "ok"
		if x.Writes == "by holdfast" {
			second = "EIO"
		}
		healed := x.Writes == "written again" && x.FS != "ext4" // there the extent stays unwritten
		if x.First != "EIO" || x.Second != second || (x.After == "the record") != healed {
			t.Errorf("%+v", x)
		}
		if after := map[string]string{"overwritten": "the old one", "preallocated": "zeros"}[x.Writes]; after != "" && x.After != after {
			t.Errorf("%+v", x)
		}
	}
	for _, kind := range kinds {
		if n := rows[kind]; n != len(refusals) && !(kind == "ext3" && n == len(refusals)-1) { // it preallocates nothing
			t.Errorf("%s has %d rows", kind, n)
		}
	}
}

// TestSyncSendsItsBytesAndThenAFlush holds of each kind of sync that what it makes durable reached
// the disk before the last flush.
func TestSyncSendsItsBytesAndThenAFlush(t *testing.T) {
	t.Parallel()
	kinds := journalled(t)
	all, err := ShowSyncs(t.Context(), chosen(), kinds)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != len(kinds)*len(tracings()) {
		t.Fatalf("%d rows of %v", len(all), kinds)
	}
	for _, x := range all {
		if x.Data == 0 || x.Flushes == 0 || x.Bytes < pageSize || !strings.HasSuffix(x.Order, "flush") || x.Times < 1 || x.Of != rounds {
			t.Errorf("%+v", x)
		}
		if strings.HasPrefix(x.Calls, "create") && x.Other == 0 {
			t.Errorf("no name was sent: %+v", x)
		}
	}
}

func TestSentSumsUpAnOrder(t *testing.T) {
	write := func(data string, n int) logged {
		return logged{Entry: crash.Entry{Op: crash.Write, Data: []byte(data + strings.Repeat("x", n-len(data)))}}
	}
	flush := logged{Entry: crash.Entry{Op: crash.Flush}}
	got := sent([]logged{write(traced, 4096), write("", 4096), write("", 512), flush, flush, write("", 1024)})
	want := Sync{Data: 1, Other: 3, Flushes: 2, Bytes: 9728, Order: "data 4KiB, other 4608B, flush, flush, other 1KiB"}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if most := usual([]Sync{{Data: 1}, want, {Data: 2}, want}); most.Order != want.Order || most.Times != 2 || most.Of != 4 {
		t.Errorf("%+v", most)
	}
}

func TestBlockIsRefusedOnce(t *testing.T) {
	refuse := refusesOnce()
	check := func(data string, want bool) {
		t.Helper()
		if got := refuse(crash.Entry{Op: crash.Write, Data: []byte(data)}); got != want {
			t.Errorf("%q: %v", data, got)
		}
	}
	check("anything", false)
	check(refused, false) // no letter
	check("before "+refused+"a behind", true)
	check(refused+"a", false)
	check(refused+"b", true)
	check(refused+"b", false)
}

// TestProgramIsJudgedByItsAcknowledgements gives level power programs of the shell.
func TestProgramIsJudgedByItsAcknowledgements(t *testing.T) {
	t.Parallel()
	needs(t, "ext4")
	judged := func(step string) *crash.Verdict {
		t.Helper()
		o := chosen()
		o.States = 60
		o.Program = &crash.Program{Command: "touch log; sync .; n=$(wc -l <log); while :; do n=$((n+1)); echo $n >>log; " + step + "; done", Read: "cat log"}
		verdicts, err := Run(t.Context(), o, []string{"ext4"}, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if len(verdicts) < 4 {
			t.Errorf("there are no controls beside the program: %+v", verdicts)
		}
		for _, v := range verdicts {
			if v.Workload == "program" {
				return v
			}
		}
		t.Fatalf("the program has no verdict: %+v", verdicts)
		return nil
	}
	if v := judged("sync log; echo ack $n"); v.Failure != nil || v.Unknown != "" || v.Tally.States < leastStates || v.Tally.Acknowledged == 0 {
		t.Errorf("%+v %+v", v, v.Failure)
	}
	v := judged("echo ack $n; sync log") // each ack has its place before the flush
	if v.Failure == nil || v.Failure.Violation.Rule != "lost" || !strings.Contains(v.Failure.Words, "it had printed ack ") {
		t.Fatalf("%+v", v)
	}
	judgedAgain(t, v.Failure)
}

// judgedAgain holds that a failing state was made small, and is judged and looked at again from its
// file.
func judgedAgain(t *testing.T, small *crash.Failure) {
	t.Helper()
	if s := small.State; s.Keep != 0 || s.Mask != 0 || s.Rest || s.Tear != 0 || len(small.Log.Entries) > s.Position+1 {
		t.Errorf("%+v of %d entries is not small", s, len(small.Log.Entries))
	}
	if !strings.Contains(small.Words, "It was acknowledged at log entry") {
		t.Errorf("no explanation: %s", small.Words)
	}
	kept, err := json.Marshal(small)
	var again crash.Failure
	if err == nil {
		err = json.Unmarshal(kept, &again)
	}
	if err != nil {
		t.Fatal(err)
	}
	v, err := Replay(t.Context(), chosen(), &again, "[ $(basename $PWD) = d ] && mountpoint -q ..")
	if err != nil || !reflect.DeepEqual(v, small.Violation) {
		t.Errorf("judged again: %+v, %v; it was %+v", v, err, small.Violation)
	}
	if _, err := Replay(t.Context(), chosen(), &again, "exit 3"); err == nil {
		t.Error("a look that fails is no error")
	}
	t.Logf("%d entries and %d bytes of JSON are kept: %s", len(small.Log.Entries), len(kept), small.Words)
	again.State.Position = len(again.Log.Entries) + 1
	if _, err := Replay(t.Context(), chosen(), &again, ""); err == nil {
		t.Error("a state behind the end of its log was judged")
	}
}

// TestStoppedDiskIsItsCellsError stops a disk's process for ever. Its cell fails, and the others have
// their verdicts.
func TestStoppedDiskIsItsCellsError(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for a disk that never answers")
	}
	t.Parallel()
	needs(t, "ext4")
	stopped(t, order{Kinds: []string{"ext4"}, Workloads: []string{plain.Name}, States: 8, Seconds: 1, Patience: 5 * time.Second})
}

// stopped obeys an order, one server of which stops for ever.
func stopped(t *testing.T, what order) {
	t.Helper()
	o := chosen()
	mark := filepath.Join(t.TempDir(), "stopped")
	o.Child = func(ctx context.Context, args ...string) *exec.Cmd {
		cmd := childAs("process")(ctx, args...)
		cmd.Env = append(cmd.Env, stopMark+"="+mark)
		return cmd
	}
	held, errored := 0, ""
	err := enter(t.Context(), o, what, nil, func(a *answer) {
		if v := a.Verdict; v != nil && v.Unknown != "" {
			errored += v.Unknown
		} else if v != nil {
			held++
		}
	})
	if err != nil || !strings.Contains(errored, "took more than 5s, and its disk was aborted") || held == 0 {
		t.Errorf("%v: %d verdicts, and the error of a cell: %q", err, held, errored)
	}
	t.Logf("%d verdicts, and the error of a cell: %q", held, errored)
}

// TestStoppedDiskKeepsNoLoopDeviceFromOthers stops a disk's process and takes a loop device for its file. The
// kernel asks the disk, and offers the half-made device to all others meanwhile: they must not wait as well.
func TestStoppedDiskKeepsNoLoopDeviceFromOthers(t *testing.T) {
	t.Parallel()
	needs(t, "ext4")
	mounts, err := os.Open("/proc/self/ns/mnt")
	if err != nil {
		t.Fatal(err)
	}
	defer mounts.Close()
	cmd := childAs("stopped")(t.Context(), t.TempDir())
	cmd.ExtraFiles = []*os.File{mounts, mounts, mounts} // mountsFD is the last
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Unshareflags: syscall.CLONE_NEWNS}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// loopOfStoppedDisk is the process of that test, with mounts of its own.
func loopOfStoppedDisk(dir string) error {
	var server *exec.Cmd
	r := &room{top: filepath.Join(dir, "top"), child: func(ctx context.Context, args ...string) *exec.Cmd {
		server = childAs("process")(ctx, args...)
		return server
	}}
	c := &cell{dir: filepath.Join(r.top, "cell"), owner: fmt.Sprintf("holdfast-stopped:%d", os.Getpid())}
	if err := errors.Join(os.Mkdir(r.top, 0o700), r.private(), os.Mkdir(c.dir, 0o700)); err != nil {
		return err
	}
	image, err := os.Create(c.in("image"))
	if err != nil {
		return err
	}
	if err := image.Truncate(1 << 20); err != nil {
		return err
	}
	d, err := r.serve(context.Background(), c, image, onlyServes)
	if err != nil {
		return err
	}
	defer d.kill()
	if err := server.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	// One of its threads may answer until all have stopped.
	if err := unix.Waitid(unix.P_PID, server.Process.Pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil); err != nil {
		return err
	}
	waiting := make(chan error, 1)
	go func() {
		loop, err := volume.Loop(d.file)
		if err == nil {
			err = loop.Close()
		}
		waiting <- err
	}()
	for asks := false; !asks; {
		select {
		case err := <-waiting:
			return fmt.Errorf("a loop device asked its disk for nothing: %w", err)
		case <-time.After(time.Millisecond):
		}
		stacks, err := filepath.Glob("/proc/self/task/[0-9]*/stack")
		if err != nil {
			return err
		}
		for _, name := range stacks {
			stack, _ := os.ReadFile(name)
			asks = asks || bytes.Contains(stack, []byte("loop_configure")) && bytes.Contains(stack, []byte("request_wait_answer"))
		}
	}
	loop, err := volume.Loop(image)
	if err != nil {
		return err
	}
	select {
	case err := <-waiting:
		return fmt.Errorf("another file's loop device waited for the disk: %w", err)
	default:
	}
	return errors.Join(loop.Close(), server.Process.Signal(syscall.SIGCONT), <-waiting, d.close())
}

// TestFileSystemThatCannotBeMadeIsItsCellsError needs no root.
func TestFileSystemThatCannotBeMadeIsItsCellsError(t *testing.T) {
	r := &room{order: order{Patience: patience}}
	c := &cell{Cell: crash.Cell{Workload: plain, Policy: holdfast.EachDurable()}, dir: filepath.Join(t.TempDir(), "cell")}
	c.kind.Name, c.kind.Program, c.kind.Debian = "ext9", "mkfs.ext9", "e9fsprogs"
	a := r.answer(c, time.Now())
	if a.Verdict == nil || a.Verdict.FS != "ext9" || a.Verdict.Control != "correct" || !strings.Contains(a.Verdict.Unknown, "mkfs.ext9 is not installed") {
		t.Errorf("%+v", a.Verdict)
	}
	r.order.Show = showSyncs
	if a := r.answer(c, time.Now()); a.Verdict != nil || !strings.HasPrefix(a.Err, "ext9: ") {
		t.Errorf("%+v", a)
	}
}

// TestSilentRoomIsKilled holds that no room is waited for for ever.
func TestSilentRoomIsKilled(t *testing.T) {
	t.Parallel()
	attended := func(ends bool, patience time.Duration) error {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer read.Close()
		cmd := exec.Command("sleep", "1000")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		cmd.ExtraFiles = []*os.File{write}
		if err := errors.Join(cmd.Start(), write.Close()); err != nil {
			t.Fatal(err)
		}
		lines := make(chan *answer)
		go func() {
			_, _ = read.Read(make([]byte, 1))
			if ends {
				close(lines)
			}
		}()
		failed, exit := attend(cmd, lines, "holdfast-disk:nobody", patience, func(*answer) {})
		if ends && exit == nil {
			t.Error("the process was not killed")
		}
		return failed
	}
	if err := attended(true, time.Second); err == nil || !strings.Contains(err.Error(), "have said nothing") || strings.Contains(err.Error(), "can't be killed") {
		t.Errorf("%v", err)
	}
	// It is killed too; that its answers never end is as if it lived.
	if err := attended(false, 10*time.Millisecond); err == nil || !strings.Contains(err.Error(), "can't be killed") {
		t.Errorf("%v", err)
	}
}

func TestRoomIsOnlyForItsCaller(t *testing.T) {
	for _, args := range [][]string{nil, {roomArgument}, {diskArgument}, {roomArgument, "more"}, {"writer"}} {
		if err := Process(args, crash.Options{}); err == nil {
			t.Errorf("%q was done", args)
		}
	}
}

// TestFlushOfManyWritesIsCutBefore holds that the cuts before flushes are where more than one write is
// pending.
func TestFlushOfManyWritesIsCutBefore(t *testing.T) {
	write, flush := crash.Entry{Op: crash.Write}, crash.Entry{Op: crash.Flush}
	l := &crash.Log{Entries: []crash.Entry{write, flush, write, write, write, flush}}
	times := map[int]int{}
	for _, at := range positions(l, 700, rand.New(rand.NewPCG(1, 2))) {
		times[at]++
	}
	if times[1] == 0 || times[5] < 350 {
		t.Errorf("%v", times)
	}
}

// TestSuperblockIsWrittenWhole tears writes that begin before a superblock, in it and at its end. It is there
// whole or not at all; other sectors are torn from each other.
func TestSuperblockIsWrittenWhole(t *testing.T) {
	for _, name := range Kinds {
		k, err := kindOf(name)
		if err != nil {
			t.Fatal(err)
		}
		super := map[string][2]int64{"ext2": {1024, 2048}, "ext3": {1024, 2048}, "ext4": {1024, 2048}, "btrfs": {64 << 10, 68 << 10}}[k.Type]
		sector, whole := written(k)
		l := &crash.Log{Sector: sector, Whole: whole}
		for _, from := range []int64{max(0, super[0]-1024), super[0], super[0] + 512} {
			from -= from % sector
			l.Entries = []crash.Entry{{Op: crash.Write, Offset: from, Data: make([]byte, super[1]-from+4096)}}
			var seen []crash.State
			apart := false
			l.States(1, []int{0}, rand.New(rand.NewPCG(1, uint64(from))), 400, &seen, func(s *crash.State) {
				there := map[int64]bool{}
				l.Pieces([]int{0}, s, func(at int64, data []byte) {
					for end := at + int64(len(data)); at < end; at += 512 {
						there[at] = true
					}
				})
				for at := max(from, super[0]); at < super[1]; at += 512 {
					if there[at] != there[super[1]-512] {
						t.Fatalf("%s: a write at %d was torn in the superblock, at %d: %+v", name, from, at, s)
					}
				}
				apart = apart || there[super[1]] != there[super[1]+2048]
			})
			if sector == 512 && !apart {
				t.Errorf("%s: a write at %d was not torn behind the superblock", name, from)
			}
		}
	}
}

// TestMissingLoopDeviceIsNoStateThatCannotBeMounted holds that only file systems are blamed.
func TestMissingLoopDeviceIsNoStateThatCannotBeMounted(t *testing.T) {
	needs(t, "ext4")
	k, err := kindOf("ext4")
	file, openErr := os.Open(t.TempDir())
	if err := errors.Join(err, openErr); err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := mount(file, t.TempDir(), k, ""); !errors.Is(err, errMachine) {
		t.Errorf("a directory as a disk: %v", err)
	}
}

// TestFullDiskIsNoBrokenPromise has the second run fail.
func TestFullDiskIsNoBrokenPromise(t *testing.T) {
	for errno, broken := range map[syscall.Errno]bool{syscall.ENOSPC: false, syscall.EDQUOT: false, syscall.EIO: true} {
		m := &mounter{workload: &crash.Workload{Run: func(*crash.Run) error { return fmt.Errorf("write: %w", errno) }}}
		v, err := m.again(t.TempDir(), &crash.Survivors{}, 1, &crash.Tally{})
		if (v != nil) != broken || broken == errors.Is(err, errno) {
			t.Errorf("%v: %+v, %v", errno, v, err)
		}
	}
}

// recalls is a program that finds its records when it is started again, and acknowledges them before it has synced them.
// Nothing is wrong with its first life: it acknowledges nothing there.
var recalls = &crash.Workload{Name: "recalls", Policies: []holdfast.Policy{holdfast.EachDurable()},
	Targets: func(holdfast.Policy) []crash.Target { return []crash.Target{{Path: "log"}} },
	Loss:    plain.Loss,
	Run: func(r *crash.Run) error {
		data, err := r.ReadFile("log")
		if err != nil {
			return err
		}
		_, count, _ := crash.Records(data)
		n := count(0)
		if n > 0 {
			r.Note(crash.Durable, 0, n)
		}
		f, err := os.OpenFile(r.Path("log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
		if err != nil {
			return err
		}
		for made := 0; err == nil && r.More(made); made++ {
			r.Note(crash.Begun, 0, n+1)
			_, err = f.Write(crash.Record{N: n, Size: 100}.Append(nil))
			n++
			if r.Number > 0 && err == nil { // this life is correct
				if err = f.Sync(); err == nil {
					r.Note(crash.Durable, 0, n)
				}
			}
			time.Sleep(100 * time.Microsecond)
		}
		return errors.Join(err, f.Close())
	}}

// TestSecondLifeIsCut kills programs, lets them go on, and cuts the power then. What only a second life breaks is found and judged
// again from its file; programs without the fault keep their promises.
func TestSecondLifeIsCut(t *testing.T) {
	isolate.Once(t, isolate.Race) // it looks for a fault of programs, until one is found
	t.Parallel()
	needs(t, "ext4")
	o := chosen()
	o.Workloads = append(o.Workloads, recalls)
	for seed, found := uint64(1), false; !found; seed++ { // a cell has two lives by its seed
		if seed > 24 { // a busy machine judges few states of each
			t.Fatal("it was not found")
		}
		o.Seed = seed
		verdicts, err := Run(t.Context(), o, []string{"ext4"}, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range verdicts {
			f := v.Failure
			if v.Workload != recalls.Name {
				if (v.Control != "correct") != (f != nil) {
					t.Errorf("%s: %+v %s", v.Workload, f, v.Unknown)
				}
				continue
			}
			if f == nil {
				t.Logf("seed %d: %+v %s", seed, v.Tally, v.Unknown)
				continue
			}
			if found = true; !strings.Contains(f.Words, "it was killed and started again at entry ") {
				t.Errorf("not behind a kill: %s", f.Words)
			}
			t.Log(f.Words)
			againFromFile(t, f)
		}
	}
}

// trusts is a program whose sync fails, and which takes the success of a second sync for that of the first one's bytes.
var trusts = syncing("trusts", func(f *os.File) error {
	if f.Sync() == nil {
		return nil
	}
	return f.Sync()
})

// hears is the same without the fault. It ends, and is started again.
var hears = syncing("hears", (*os.File).Sync)

// syncing is a program that appends records to a file, and acknowledges each when it is synced.
func syncing(name string, sync func(*os.File) error) *crash.Workload {
	return &crash.Workload{Name: name, Failing: true, Policies: []holdfast.Policy{holdfast.EachDurable()},
		Targets: func(holdfast.Policy) []crash.Target { return []crash.Target{{Path: "log"}} },
		Loss:    plain.Loss,
		Run: func(r *crash.Run) error {
			f, next, err := r.Open("log", 0)
			if err != nil {
				return err
			}
			for n, made := next[0], 0; err == nil && r.More(made); made++ {
				r.Note(crash.Begun, 0, n+1)
				if _, err = f.Write(crash.Record{N: n, Size: 100}.Append(nil)); err == nil {
					err = sync(f.(*os.File))
				}
				if err == nil {
					n++
					r.Note(crash.Durable, 0, n)
				}
			}
			return errors.Join(err, f.Close())
		}}
}

// TestFailedSyncIsCut lets the disk refuse a write of a record, and cuts the power behind it: in the same life, or in one that
// went on with the files. Who trusts a second sync is found and judged again from its file, and who hears the error is not.
func TestFailedSyncIsCut(t *testing.T) {
	isolate.Once(t, isolate.Race) // it looks for a fault of programs, until one is found
	t.Parallel()
	for _, kind := range []string{"ext4", "xfs"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			needs(t, kind)
			o := chosen()
			o.Workloads = append(o.Workloads, trusts, hears)
			o.Seed, o.States = 1, 60 // the others have fewer
			for found := false; !found; o.Seed++ {
				if o.Seed > 12 { // a busy machine judges few states of each
					t.Fatal("it was not found")
				}
				verdicts, err := Run(t.Context(), o, []string{kind}, 3*time.Second)
				if err != nil {
					t.Fatal(err)
				}
				for _, v := range verdicts {
					f := v.Failure
					switch v.Workload {
					case hears.Name:
						if f != nil || v.Unknown != "" || v.Faults != 1 || v.Tally.Acknowledged == 0 {
							t.Errorf("%+v %+v", v, f)
						}
					case trusts.Name:
						if v.Unknown != "" || v.Faults != 1 {
							t.Errorf("%+v", v)
						}
						if found = f != nil; !found {
							t.Logf("seed %d: %+v", o.Seed, v.Tally)
							continue
						}
						if f.Violation.Rule != "lost" || !strings.Contains(f.Words, "; the disk refused a write at entry ") {
							t.Errorf("%+v: %s", f.Violation, f.Words)
						}
						t.Log(f.Words)
						againFromFile(t, f)
					}
				}
			}
		})
	}
}

// againFromFile holds that a failing state is judged the same from its file.
func againFromFile(t *testing.T, f *crash.Failure) {
	t.Helper()
	kept, err := json.Marshal(f)
	var again crash.Failure
	if err := errors.Join(err, json.Unmarshal(kept, &again)); err != nil {
		t.Fatal(err)
	}
	o := chosen()
	o.Workloads = append(o.Workloads, ours...)
	if v, err := Replay(t.Context(), o, &again, ""); err != nil || !reflect.DeepEqual(v, f.Violation) {
		t.Errorf("judged again: %+v, %v; it was %+v", v, err, f.Violation)
	}
}

// ours are the workloads of these tests. Those of holdfast's own join them where Go is new enough for the catalogue.
var ours = []*crash.Workload{recalls, trusts, hears}

// TestSecondLifeOfAProgramIsCut kills programs of the shell, lets them go on, and cuts the power then. The first life of both acknowledges
// what it has synced; of what it has not, a second life finds the lines in the page cache.
func TestSecondLifeOfAProgramIsCut(t *testing.T) {
	isolate.Once(t, isolate.Race) // it looks for a fault of programs, until one is found
	t.Parallel()
	needs(t, "ext4")
	lives := 0
	judged := func(seed uint64, found string) *crash.Failure {
		t.Helper()
		o := chosen()
		o.States, o.Seed = 60, seed
		o.Program = &crash.Program{Read: "touch log; cat log", Command: "[ -e log ] || { touch log; sync log .; }; n=$(wc -l <log); if [ $n != 0 ]; then " + found + "; echo ack $n; fi; " +
			`while :; do n=$((n+1)); printf "%07d\n" $n >>log; if [ $((n%8)) = 0 ]; then sleep 0.02; sync log; echo ack $n; fi; done`}
		verdicts, err := Run(t.Context(), o, []string{"ext4"}, 2*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(verdicts, func(v *crash.Verdict) bool { return v.Workload == "program" })
		v := verdicts[i]
		if v.Unknown != "" || v.Tally.Acknowledged == 0 { // a busy machine may take too long for one
			t.Logf("%+v", v)
			return nil
		}
		c := &cell{Cell: crash.Cell{Workload: o.Program.Workload()}, seed: v.Seed}
		if c.killedAfter(time.Second) > 0 {
			lives++
		}
		return v.Failure
	}
	for seed := uint64(1); lives < 2; seed++ { // a cell has two lives by its seed
		if seed > 24 {
			t.Fatal("nothing was judged")
		}
		if f := judged(seed, "sync log"); f != nil {
			t.Errorf("a correct one: %+v", f)
		}
	}
	for seed := uint64(1); ; seed++ {
		if seed > 24 {
			t.Fatal("it was not found")
		}
		if f := judged(seed, ":"); f != nil {
			if f.Violation.Rule != "lost" || !strings.Contains(f.Words, "it was killed and started again at entry ") {
				t.Errorf("not behind a kill: %s", f.Words)
			}
			t.Logf("seed %d: %s", seed, f.Words)
			againFromFile(t, f)
			return
		}
	}
}
