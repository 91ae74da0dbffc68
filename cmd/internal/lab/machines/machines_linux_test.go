package machines

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/uml"
	"github.com/holdfast-go/holdfast/internal/catalogue"
	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/crash/syscallfault"
	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/volume"
	"golang.org/x/sys/unix"
)

// They take minutes and root's rights, and let the kernel end processes. So they are run only if this is set:
//
//	HOLDFAST_MACHINES=1 go test ./cmd/internal/lab/machines -v
const asked = "HOLDFAST_MACHINES"

// The first arguments of a process of a workload, and of the only one in User-Mode Linux.
const (
	childWord = "child-of-a-test"
	guestWord = "guest-of-a-test"
)

func TestMain(m *testing.M) {
	syscallfault.Launch()
	if len(os.Args) > 1 && os.Args[1] == childWord {
		if what := os.Getenv(harms); what != "" {
			go harm(what)
		}
		if err := crash.Child(os.Args[2:], append(catalogue.Workloads(), thousands())); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == guestWord {
		inGuest()
	}
	os.Exit(isolate.Tests{M: m}.Run())
}

func TestUnknownCommandIsRefused(t *testing.T) { isolate.RefusesUnknownCommand(t) }

// patience is how long a process may take to go on, by one note or one Writer, and to end when its fault is over. Else it hangs.
const patience = 2 * time.Minute

// ask skips a test that nobody has asked for.
func ask(t *testing.T) {
	t.Helper()
	if os.Getenv(asked) == "" {
		t.Skipf("it takes minutes: %s=1 asks for it", asked)
	}
	if os.Geteuid() != 0 {
		t.Skip("it needs root's rights")
	}
}

// A subject is a workload under a policy, in a directory, and a process of it.
type subject struct {
	*crash.Workload
	policy holdfast.Policy
	dir    string
	number int              // of the process
	before *crash.Survivors // of the one before
	tally  crash.Tally      // of all

	notes *crash.SharedNotes
	cmd   *exec.Cmd
	said  bytes.Buffer
	ended chan struct{}
	exit  error
	died  bool // by its own action
}

// underFaults are the workloads of the library: each under a policy that loses nothing, and some under one that syncs by time.
func underFaults(top string) (all []*subject) {
	for _, w := range catalogue.Workloads() {
		if w.Control != "" || w.Attacked || w.InMemory {
			continue
		}
		all = append(all, newSubject(w, holdfast.Durable(), top))
		if w.Name == "writer" || w.Name == "rotate" || w.Name == "wal" {
			all = append(all, newSubject(w, holdfast.Periodic(50*time.Millisecond), top))
		}
	}
	return all
}

func newSubject(w *crash.Workload, p holdfast.Policy, top string) *subject {
	return &subject{Workload: w, policy: p, dir: filepath.Join(top, fmt.Sprint(w.Name, "-", p.Sync)), before: crash.NewSurvivors(len(w.Targets(p)))}
}

// start starts the next process by how, and waits until it has noted something.
func (s *subject) start(how func(*exec.Cmd) error) (err error) {
	if err = os.MkdirAll(s.dir, 0o777); err != nil {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	if s.notes, err = crash.NewNotes(); err != nil {
		return err
	}
	s.cmd = exec.Command(exe, childWord, s.Name, s.policy.String(), s.dir, strconv.Itoa(46+s.number), strconv.Itoa(s.number))
	s.cmd.Env = os.Environ()
	s.said.Reset()
	s.cmd.Stdout, s.cmd.Stderr = &s.said, &s.said
	s.notes.Give(s.cmd)
	if err := how(s.cmd); err != nil {
		return err
	}
	ended := make(chan struct{})
	s.ended = ended
	go func() {
		s.exit = s.cmd.Wait()
		close(ended)
	}()
	return s.more(1)
}

func plainly(cmd *exec.Cmd) error { return cmd.Start() }

// harming has the process harm itself: see harm.
func harming(what string) func(*exec.Cmd) error {
	return func(cmd *exec.Cmd) error {
		cmd.Env = append(cmd.Env, harms+"="+what)
		return cmd.Start()
	}
}

// behind has a shell do something, and then be the process.
func behind(script string, start func(*exec.Cmd) error) func(*exec.Cmd) error {
	return func(cmd *exec.Cmd) error {
		cmd.Args = append([]string{"sh", "-c", script + ` && exec "$@"`, "sh", cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
		return start(cmd)
	}
}

// more waits until the process has made more notes, or has ended.
func (s *subject) more(notes uint64) error {
	late, had := time.Now().Add(patience), s.notes.Begun()
	for want := had + notes; s.notes.Begun() < want; time.Sleep(time.Millisecond) {
		select {
		case <-s.ended:
			return nil
		default:
		}
		if now := s.notes.Begun(); now > had { // slowly beside other work
			late, had = time.Now().Add(patience), now
		}
		if time.Now().After(late) {
			return fmt.Errorf("it hangs: %s", s.stacks())
		}
	}
	return nil
}

// stacks ends a process that hangs, and returns what its goroutines wait for.
func (s *subject) stacks() string {
	_ = s.cmd.Process.Signal(syscall.SIGQUIT)
	select {
	case <-s.ended:
	case <-time.After(10 * time.Second):
		_ = s.cmd.Process.Kill()
		<-s.ended
	}
	return s.said.String()
}

// wait waits for the end of the process, and judges its files.
func (s *subject) wait() error {
	select {
	case <-s.ended:
	case <-time.After(patience):
		return fmt.Errorf("it does not end: %s", s.stacks())
	}
	found, err := s.judge(s.dir, s.notes.All(), crash.Process)
	s.before, s.number = found, s.number+1
	return errors.Join(err, s.notes.Close())
}

// judge compares a directory with notes.
func (s *subject) judge(dir string, notes []crash.Note, kind crash.Kind) (found *crash.Survivors, err error) {
	targets, loss := s.Targets(s.policy), s.policy.Loss()
	if s.Loss != nil {
		loss = s.Loss(s.policy)
	}
	c := crash.NewChecker(targets, loss)
	c.Inherit(s.before)
	for _, n := range notes {
		c.Note(n)
	}
	if found, err = s.Look(dir, targets); err != nil {
		return nil, err
	}
	if v := c.Judge(kind, found, time.Now().UnixNano(), -1); v != nil {
		err = fmt.Errorf("%s: %w", v.Rule, v)
	}
	s.tally.Add(c.Tally)
	return found, err
}

// end ends the process in order, which must not fail.
func (s *subject) end() error {
	s.notes.End(0)
	err := s.wait()
	if s.exit != nil {
		err = errors.Join(err, fmt.Errorf("%w: %s", s.exit, &s.said))
	}
	return err
}

// kill kills the process, whatever it does, and judges what is there.
func (s *subject) kill() error {
	_ = s.cmd.Process.Kill() // or it has no more to do, and has ended
	return s.wait()
}

// goOn has another process go on with the files, without a fault.
func (s *subject) goOn() error {
	err := s.start(plainly)
	if err == nil {
		err = s.more(200)
	}
	if err == nil {
		err = s.end()
	}
	if err != nil {
		err = fmt.Errorf("the process after it: %w", err)
	}
	return err
}

// each does something with all subjects at once, and lets each go on behind it.
func each(t *testing.T, all []*subject, do func(*subject) error) {
	t.Helper()
	var group sync.WaitGroup
	errs := make([]error, len(all))
	for i, s := range all {
		group.Go(func() {
			if errs[i] = do(s); errs[i] == nil {
				errs[i] = s.goOn()
			}
		})
	}
	group.Wait()
	var sum crash.Tally
	for i, s := range all {
		sum.Add(s.tally)
		if errs[i] != nil {
			t.Errorf("%s: %.20000v", s.dir, errs[i])
		}
	}
	t.Logf("%d workloads acknowledged %d records, of which %d are lost", len(all), sum.Acknowledged, sum.Lost)
	if sum.Acknowledged == 0 {
		t.Error("nothing was acknowledged")
	}
}

// harms names what a child does to itself beside its workload.
const harms = "HOLDFAST_TEST_HARM"

// harm takes memory until there is none. With "address space" the limit of that comes down first.
func harm(what string) {
	time.Sleep(50 * time.Millisecond)
	if what == "address space" {
		var statm uint64
		text, _ := os.ReadFile("/proc/self/statm")
		fmt.Sscan(string(text), &statm)
		limit := statm*uint64(os.Getpagesize()) + 32<<20
		if err := unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			panic(err)
		}
	}
	for all := [][]byte{}; ; time.Sleep(2 * time.Millisecond) {
		all = append(all, bytes.Repeat([]byte{1}, 1<<20))
	}
}

// memoryGroup makes a control group whose processes have 64 MiB together, page cache included. It returns what a shell does to
// get into it.
func memoryGroup(t *testing.T) (enter string) {
	t.Helper()
	parent, limit := "/sys/fs/cgroup", "memory.max"
	if _, err := os.Stat("/sys/fs/cgroup/memory"); err == nil {
		parent, limit = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
	}
	dir, err := os.MkdirTemp(parent, "holdfast-machines-")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(filepath.Join(dir, limit), []byte("67108864"), 0); err != nil {
		t.Skip(err)
	}
	return "echo $$ >" + dir + "/cgroup.procs"
}

func TestLittleMemory(t *testing.T) {
	ask(t)
	all := underFaults(t.TempDir())
	groups := map[*subject]string{}
	for _, s := range all {
		groups[s] = memoryGroup(t)
	}
	each(t, all, func(s *subject) error {
		if err := s.start(behind(groups[s], plainly)); err != nil {
			return err
		}
		time.Sleep(3 * time.Second)
		return s.end()
	})
}

// dies runs a subject's process that ends by its own action, or that has no more to do before.
func dies(s *subject, start func(*exec.Cmd) error, how func(syscall.WaitStatus) bool) error {
	if err := s.start(start); err != nil {
		return err
	}
	if err := s.wait(); err != nil {
		return err
	}
	s.died = s.exit != nil
	if status, ok := s.cmd.ProcessState.Sys().(syscall.WaitStatus); s.died && (!ok || !how(status)) {
		return fmt.Errorf("it ended otherwise: %w: %s", s.exit, &s.said)
	}
	return nil
}

// mostDied fails a test if a quarter of the subjects did not die.
func mostDied(t *testing.T, all []*subject) {
	t.Helper()
	died := 0
	for _, s := range all {
		if s.died {
			died++
		}
	}
	if t.Logf("%d of them died", died); 4*died < 3*len(all) {
		t.Error("the others outlived it")
	}
}

func TestKilledForWantOfMemory(t *testing.T) {
	ask(t)
	all := underFaults(t.TempDir())
	groups := map[*subject]string{}
	for _, s := range all {
		groups[s] = memoryGroup(t)
	}
	each(t, all, func(s *subject) error {
		return dies(s, behind(groups[s], harming("memory")), func(status syscall.WaitStatus) bool { return status.Signal() == syscall.SIGKILL })
	})
	mostDied(t, all)
}

// TestLittleAddressSpace: 2 GB are enough, as docs/install.md says. Where there is no more, Go ends the program.
func TestLittleAddressSpace(t *testing.T) {
	ask(t)
	all := underFaults(t.TempDir())
	each(t, all, func(s *subject) error {
		if err := s.start(behind("ulimit -v 2000000", plainly)); err != nil {
			return err
		}
		time.Sleep(time.Second)
		if err := s.end(); err != nil {
			return err
		}
		return dies(s, harming("address space"), func(status syscall.WaitStatus) bool {
			return status.ExitStatus() == 2 && strings.Contains(s.said.String(), "out of memory")
		})
	})
	mostDied(t, all)
}

// TestStoppedForHalfAMinute by SIGSTOP: it goes on afterwards, and is killed when it is stopped again.
func TestStoppedForHalfAMinute(t *testing.T) {
	ask(t)
	each(t, underFaults(t.TempDir()), func(s *subject) error {
		if err := s.start(plainly); err != nil {
			return err
		}
		time.Sleep(200 * time.Millisecond)
		if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			return err
		}
		time.Sleep(time.Second) // until its calls have returned
		notes := s.notes.Begun()
		time.Sleep(30 * time.Second)
		if more := s.notes.Begun() - notes; more > 0 {
			return fmt.Errorf("it was not stopped: %d notes", more)
		}
		if err := s.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			return err
		}
		if err := s.more(100); err != nil {
			return err
		}
		_ = s.cmd.Process.Signal(syscall.SIGSTOP) // likewise
		return s.kill()
	})
}

// TestEachSyncTakesASecond: a process ends in order, and another one is killed.
func TestEachSyncTakesASecond(t *testing.T) {
	ask(t)
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	each(t, underFaults(top), func(s *subject) error {
		return errors.Join(s.slowly(s.end), s.slowly(s.kill))
	})
}

// slowly has a process some time, with a disk that takes a second for each sync, and ends it.
func (s *subject) slowly(end func() error) (err error) {
	var supervisor *syscallfault.Supervisor
	err = s.start(func(cmd *exec.Cmd) (err error) {
		supervisor, err = syscallfault.Start(cmd, s.dir, []syscallfault.Kind{syscallfault.Sync, syscallfault.Write}, func(c *syscallfault.Call) {
			_, flags, _ := c.Descriptor()
			if c.Kind == syscallfault.Sync || c.Durable(flags) {
				c.Delay = time.Second
			}
		})
		return err
	})
	if err == nil {
		time.Sleep(8 * time.Second)
		err = end()
	}
	if supervisor != nil {
		_, stop := supervisor.Stop()
		err = errors.Join(err, stop)
	}
	return err
}

// The requests of fsfreeze(8).
const freeze, thaw = 0xc0045877, 0xc0045878

// TestFrozenFileSystem: nobody acknowledges anything meanwhile, and a snapshot that is taken then has all that was.
func TestFrozenFileSystem(t *testing.T) {
	ask(t)
	for _, name := range []string{"ext4", "xfs"} {
		t.Run(name, func(t *testing.T) {
			isolate.Mounts(t, func(t *testing.T) {
				v := makeVolume(t, name, 320<<20)
				top, err := os.Open(v.Dir())
				if err != nil {
					t.Fatal(err)
				}
				defer top.Close()
				var all []*subject
				for _, s := range underFaults(v.Dir()) {
					if err := s.start(plainly); err != nil {
						t.Fatal(err)
					}
					all = append(all, s)
				}
				time.Sleep(200 * time.Millisecond)
				if err := unix.IoctlSetInt(int(top.Fd()), freeze, 0); err != nil {
					t.Fatal(err)
				}
				err = frozen(t, v, all)
				if err := errors.Join(err, unix.IoctlSetInt(int(top.Fd()), thaw, 0)); err != nil {
					t.Error(err)
				}
				each(t, all, func(s *subject) error {
					if err := s.more(100); err != nil {
						return err
					}
					return s.end()
				})
			})
		})
	}
}

// frozen judges a copy of a frozen volume, and that nothing goes on.
func frozen(t *testing.T, v *volume.Volume, all []*subject) error {
	var notes [][]crash.Note
	for _, s := range all {
		notes = append(notes, s.notes.All())
	}
	copied := filepath.Join(t.TempDir(), "image")
	if out, err := exec.Command("cp", "--sparse=always", v.Device, copied).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	var before []uint64
	for _, s := range all {
		before = append(before, s.notes.Begun())
	}
	time.Sleep(2 * time.Second)
	for i, s := range all {
		if more := s.notes.Begun() - before[i]; more > 0 {
			return fmt.Errorf("%s: %d notes while the file system was frozen", s.dir, more)
		}
	}
	image, err := os.OpenFile(copied, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer image.Close()
	device, err := volume.Loop(image)
	if err != nil {
		return err
	}
	defer device.Close()
	at, options := t.TempDir(), ""
	if v.Kind().Name == "xfs" {
		options = "nouuid"
	}
	if err := unix.Mount(device.Name(), at, v.Kind().Name, 0, options); err != nil {
		return fmt.Errorf("the copy can't be mounted: %w", err)
	}
	for i, s := range all {
		_, judged := s.judge(filepath.Join(at, filepath.Base(s.dir)), notes[i], crash.Power)
		err = errors.Join(err, judged)
	}
	return errors.Join(err, unix.Unmount(at, 0))
}

func makeVolume(t *testing.T, name string, size int64) *volume.Volume {
	t.Helper()
	kinds, err := volume.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	v, err := volume.Make(t.Context(), t.TempDir(), kinds[0], size)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	return v
}

// thousands is a thousand Writers, each of a file of its own. Where the disk is full, each goes on as soon as there is room.
func thousands() *crash.Workload {
	const writers = 1000
	return &crash.Workload{Name: "thousands",
		Targets: func(holdfast.Policy) (all []crash.Target) {
			for id := range uint32(writers) {
				all = append(all, crash.Target{ID: id, Path: fmt.Sprint("f", id)})
			}
			return all
		},
		Run: func(r *crash.Run) error {
			errs := make([]error, writers)
			var group sync.WaitGroup
			for id := range uint32(writers) {
				group.Go(func() { errs[id] = goesOnWhenFull(r, id) })
			}
			group.Wait()
			return errors.Join(errs...)
		}}
}

// metFull is the ID of notes that say that a Writer has met a full disk.
const metFull = 1 << 20

func goesOnWhenFull(r *crash.Run, id uint32) (err error) {
	f, next, err := r.Open(fmt.Sprint("f", id), id)
	if err != nil {
		return err
	}
	w, err := holdfast.New(f, r.Policy)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	random, told := r.Random(id), false
	for made := 0; r.More(made); made++ {
		n := next[0] + uint64(made)
		r.Note(crash.Begun, id, n+1)
		rest := crash.Record{ID: id, N: n, At: time.Now().UnixNano(), Size: crash.HeaderSize + random.IntN(200)}.Append(nil)
		for durable := false; !durable; {
			taken, err := w.Write(rest)
			rest = rest[taken:]
			if full := errors.Is(err, syscall.ENOSPC); full && !told {
				told = true
				r.Note(crash.Begun, metFull, uint64(id)+1)
			}
			for errors.Is(err, syscall.ENOSPC) {
				if !r.More(made) {
					return nil // Close says what becomes of it
				}
				time.Sleep(10 * time.Millisecond)
				if len(rest) > 0 {
					break // it is written again
				}
				err = w.Sync()
			}
			if durable = err == nil; err != nil && !errors.Is(err, syscall.ENOSPC) {
				return err
			}
		}
		r.Note(crash.Durable, id, n+1)
		time.Sleep(time.Millisecond)
	}
	return nil
}

// TestAThousandWritersOnAFullDisk with a thousand Writers: one process is killed then, one ends, and one goes on when there is room.
func TestAThousandWritersOnAFullDisk(t *testing.T) {
	ask(t)
	isolate.Mounts(t, func(t *testing.T) {
		v := makeVolume(t, "ext4", 128<<20)
		ballast := filepath.Join(v.Dir(), "ballast")
		if err := errors.Join(os.WriteFile(ballast, make([]byte, 60<<20), 0o666), fill(filepath.Join(v.Dir(), "filler"), 8<<20)); err != nil {
			t.Fatal(err)
		}
		full := func(s *subject) error {
			if err := s.start(plainly); err != nil {
				return err
			}
			for late, had := time.Now().Add(patience), 0; ; time.Sleep(50 * time.Millisecond) {
				met := 0
				for _, n := range s.notes.All() {
					if n.ID == metFull {
						met++
					}
				}
				if met == len(s.Targets(s.policy)) {
					return nil
				}
				if met > had {
					late, had = time.Now().Add(patience), met
				}
				if time.Now().After(late) {
					return fmt.Errorf("%d of the Writers have met a full disk: %s", met, s.stacks())
				}
			}
		}
		each(t, []*subject{newSubject(thousands(), holdfast.Durable(), v.Dir())}, func(s *subject) error {
			if err := full(s); err != nil {
				return err
			}
			if err := s.kill(); err != nil {
				return fmt.Errorf("killed on a full disk: %w", err)
			}
			if err := full(s); err != nil {
				return err
			}
			s.notes.End(0)
			if err := s.wait(); err != nil {
				return fmt.Errorf("ended on a full disk: %w", err)
			}
			if s.exit == nil || !strings.Contains(s.said.String(), "no space left on device") {
				return fmt.Errorf("it ended on a full disk, and said: %w: %.500s", s.exit, &s.said)
			}
			first, _, _ := strings.Cut(s.said.String(), "\n")
			t.Logf("on a full disk it says: %s", first)
			if err := full(s); err != nil {
				return err
			}
			if err := os.Remove(ballast); err != nil {
				return err
			}
			if err := s.more(20_000); err != nil {
				return err
			}
			return s.end()
		})
	})
}

// fill writes a file until its disk has no more than some bytes free.
func fill(name string, free int64) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		var s unix.Statfs_t
		if err := unix.Fstatfs(int(f.Fd()), &s); err != nil {
			return err
		}
		if int64(s.Bavail)*s.Bsize <= free {
			return f.Sync()
		}
		if _, err := f.Write(make([]byte, 256<<10)); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return err
		}
	}
}

// inside is the value of asked in User-Mode Linux.
const inside = "inside"

// TestTheClockIsSet back and forward by an hour, in a kernel of its own: a time namespace has no clock of the day, and a
// library before libc's is not asked by Go.
func TestTheClockIsSet(t *testing.T) {
	ask(t)
	if os.Getenv(asked) != inside {
		runInside(t)
		return
	}
	step := func(by time.Duration) error {
		now := unix.NsecToTimespec(time.Now().Add(by).UnixNano())
		return unix.ClockSettime(unix.CLOCK_REALTIME, &now)
	}
	all := underFaults(t.TempDir())
	var begun sync.WaitGroup
	begun.Add(len(all))
	var set sync.WaitGroup
	set.Add(1)
	go func() {
		begun.Wait()
		for _, by := range []time.Duration{-time.Hour, 2 * time.Hour, -time.Hour} {
			before := time.Now().Round(0)
			if err := step(by); err != nil {
				t.Error(err)
			}
			if moved := time.Now().Round(0).Sub(before); (moved - by).Abs() > time.Minute {
				t.Errorf("the clock moved by %v, want %v", moved, by)
			}
			time.Sleep(2 * time.Second)
		}
		set.Done()
	}()
	each(t, all, func(s *subject) error {
		err := s.start(plainly)
		begun.Done()
		if err != nil {
			return err
		}
		set.Wait()
		if err := s.more(10); err != nil {
			return err
		}
		return s.end()
	})
}

// runInside runs this test in User-Mode Linux, which has a clock of its own.
func runInside(t *testing.T) {
	kernel, err := uml.Find(t.Context())
	if missing := (*uml.MissingError)(nil); errors.As(err, &missing) {
		t.Skipf("%v (Debian: apt-get install %s)", err, missing.Package)
	}
	if err != nil {
		t.Fatal(err)
	}
	err = kernel.Run(t.Context(), uml.Guest{Command: guestWord, Share: t.TempDir(), Memory: 2 << 30, Limit: 10 * time.Minute, Console: func(line string) { t.Log(line) }})
	if err != nil {
		t.Error(err)
	}
}

// inGuest is the only process there, and starts the test.
func inGuest() {
	machine, err := uml.Enter()
	if err == nil {
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestTheClockIsSet$", "-test.v")
		cmd.Env = append(os.Environ(), asked+"="+inside)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stdout
		err = machine.Leave(cmd.Run())
	}
	fmt.Println(err)
	os.Exit(1)
}
