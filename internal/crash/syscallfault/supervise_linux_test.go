//go:build amd64 || arm64

package syscallfault

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

// asWriter makes the test binary be a program: it makes n writes, and prints the last error.
const asWriter = "HOLDFAST_TEST_SYSCALLFAULT"

func TestMain(m *testing.M) {
	Launch()
	if os.Getenv(asChanger) != "" {
		fmt.Print(change())
		os.Exit(0)
	}
	if name := os.Getenv(asWriter); name != "" {
		fmt.Print(write(name, os.Args[1]))
		os.Exit(0)
	}
	os.Exit(isolate.Tests{M: m}.Run())
}

func TestUnknownCommandIsRefused(t *testing.T) { isolate.RefusesUnknownCommand(t) }

func write(name, count string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	fd, err := unix.Open(name, unix.O_CREAT|unix.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	for i := range n {
		if _, e := unix.Pwrite(fd, []byte("abcd"), int64(4*i)); e != nil {
			err = e
		}
	}
	return errors.Join(err, unix.Close(fd))
}

// supervised runs a shell's script in a new directory under a supervisor, and returns what it printed.
func supervised(t *testing.T, script string, kinds []Kind, at func(*Call)) (dir, printed string, counts map[Kind]int) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience) // then it and its children are killed
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", script)
	cmd.Dir, cmd.WaitDelay = dir, patience
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	s, err := Start(cmd, dir, kinds, at)
	if err != nil {
		t.Skip(err)
	}
	_ = cmd.Wait() // its output says it
	if ctx.Err() != nil {
		t.Fatalf("it hangs: %s has not ended after %v, and said %q", script, patience, out.String())
	}
	if counts, err = s.Stop(); err != nil {
		t.Fatal(err)
	}
	return dir, out.String(), counts
}

func TestCallsBelowTheDirectoryAreCounted(t *testing.T) {
	var calls []string
	dir, printed, counts := supervised(t, `echo one >a; echo two >/dev/null; mv a "$PWD/b"; sync b; mkdir d; (cd d && echo three >c); ln b e; rm e; truncate -s 3 b`, Kinds, func(c *Call) {
		if c.Kind != Close && c.Kind != Open {
			calls = append(calls, string(c.Kind)+" "+filepath.Base(c.Path))
		}
	})
	want := "write a,rename b,sync b,write c,link e,unlink e,allocate b"
	if got := strings.Join(calls, ","); got != want || printed != "" {
		t.Errorf("%s, want %s\n%s", got, want, printed)
	}
	if counts[Write] != 2 || counts[Rename] != 1 || counts[Open] < 4 {
		t.Errorf("%v", counts)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "b")); string(b) != "one" {
		t.Errorf("%q, %v", b, err)
	}
}

// asChanger makes the test binary be a program whose descriptors become other files'. Its
// value says how many descriptors it opens besides.
const asChanger = "HOLDFAST_TEST_SYSCALLFAULT_CHANGER"

// change writes to files by one number of a descriptor, as far as it can choose it.
func change() error {
	var failed error
	must := func(fd int, err error) int {
		failed = errors.Join(failed, err)
		return fd
	}
	open := func(name string) int {
		return must(unix.Open(name, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o666))
	}
	fd := open("a")
	switch os.Args[1] {
	case "executed":
		must(unix.Write(fd, []byte("x")))
		return failed
	case "below":
		must(0, unix.Mkdir("d", 0o777))
		d := must(unix.Open("d", unix.O_PATH|unix.O_CLOEXEC, 0))
		must(unix.Openat(d, "f", unix.O_CREAT|unix.O_WRONLY, 0o666))
		must(0, unix.Rename("d", "e"))
		must(unix.Openat(d, "g", unix.O_CREAT|unix.O_WRONLY, 0o666))
		return failed
	}
	same := func(other int) {
		if other != fd {
			must(0, fmt.Errorf("descriptor %d, want %d", other, fd))
		}
		must(unix.Write(fd, []byte("x")))
	}
	same(fd)
	must(0, unix.Rename("a", "b"))
	same(fd)
	c := open("c")
	must(0, unix.Dup3(c, fd, unix.O_CLOEXEC))
	same(fd)
	null := must(unix.Open("/dev/null", unix.O_WRONLY|unix.O_CLOEXEC, 0))
	must(0, unix.Dup3(null, fd, unix.O_CLOEXEC))
	same(fd)
	must(0, unix.CloseRange(uint(fd), uint(fd), 0))
	if _, err := unix.Write(fd, []byte("x")); err != unix.EBADF {
		must(0, fmt.Errorf("a closed descriptor: %v", err))
	}
	same(open("d"))
	must(0, unix.Unlink("d"))
	same(fd)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(0, err)
	must(0, unix.Sendmsg(pair[0], []byte{0}, unix.UnixRights(c), nil, 0))
	must(0, unix.Close(fd))
	_, _, _, _, err = unix.Recvmsg(pair[1], make([]byte, 1), make([]byte, 64), unix.MSG_CMSG_CLOEXEC)
	must(0, err)
	same(fd)
	for i := range 2 * maxLinks {
		must(unix.Write(open(fmt.Sprint("many", i)), []byte("x")))
	}
	must(0, syscall.Exec("/proc/self/exe", []string{os.Args[0], "executed"}, os.Environ()))
	return failed
}

// TestDescriptorsOfOtherFilesAreNotMixedUp has a program that gives one number to file after file, in
// all ways that there are.
func TestDescriptorsOfOtherFilesAreNotMixedUp(t *testing.T) {
	check := func(kind Kind, wantMany int, want, name string, args ...string) {
		t.Helper()
		dir, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), asChanger+"=1")
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		got, many := "", 0
		s, err := Start(cmd, dir, []Kind{kind}, func(c *Call) {
			if name := strings.TrimPrefix(c.Path, dir); strings.HasPrefix(name, "/many") {
				many++
			} else {
				got += name
			}
		})
		if err != nil {
			t.Skip(err)
		}
		err = cmd.Wait()
		if _, e := s.Stop(); err != nil || e != nil || got != want {
			t.Errorf("%s %v: %q, want %q: %v, %v, %s", name, args, got, want, err, e, out.String())
		}
		if many != wantMany || len(s.links) > maxLinks {
			t.Errorf("%s %v: %d of %d files, and %d links are kept", name, args, many, wantMany, len(s.links))
		}
	}
	check(Write, 2*maxLinks, "/a/b/c/d/d/c/a", os.Args[0], "first")
	check(Write, 0, "/a/b/c/a", "sh", "-c", "exec >a; echo; (exec >b; echo); exec >c; echo; exec >/dev/null; echo; exec sh -c 'exec >a; echo'")
	check(Open, 0, "/a/d/d/f/e/g", os.Args[0], "below")
	check(Open, 0, "/a/d/b/d/c/e", "sh", "-c", "echo >a; mkdir d; cd d; echo >b; (echo >c; cd /; : </dev/null); cd ..; mv d f; echo >e")
}

// TestNumberOfAnEndedThreadIsAnothers plants the link of a thread that has ended.
func TestNumberOfAnEndedThreadIsAnothers(t *testing.T) {
	ended := exec.Command("sh", "-c", "read x")
	in, err := ended.StdinPipe()
	if err == nil {
		err = ended.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	stale, err := unix.Open(fmt.Sprintf("/proc/%d/fd/0", ended.Process.Pid), unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	_ = in.Close()
	_ = ended.Wait() // read fails at the end
	if err != nil {
		t.Fatal(err)
	}
	_, printed, counts := supervised(t, "exec >f; echo one; echo two; echo three", []Kind{Write}, func(c *Call) {
		if l := (link{int32(c.task), 1}); c.Number == 1 {
			c.s.close(l)
			c.s.links[l] = stale
		}
	})
	if counts[Write] != 3 || printed != "" {
		t.Errorf("%v, %q", counts, printed)
	}
}

func TestProgramsGetTheFaults(t *testing.T) {
	check := func(script, wantPrinted, wantFile string, kind Kind, at func(*Call)) {
		t.Helper()
		dir, printed, _ := supervised(t, script, []Kind{kind}, at)
		b, err := os.ReadFile(filepath.Join(dir, "f"))
		if !strings.Contains(printed, wantPrinted) || string(b) != wantFile || err != nil {
			t.Errorf("%s: %q, and the file has %q, %v", script, printed, b, err)
		}
	}
	second := func(do func(*Call)) func(*Call) {
		return func(c *Call) {
			if c.Number == 2 {
				do(c)
			}
		}
	}
	two := "touch f; echo one >>f; echo two >>f && echo well"
	check(two, "well", "one\ntwo\n", Write, func(*Call) {})
	check(two, "I/O error", "one\n", Write, second(func(c *Call) { c.Fail(syscall.ENOSPC) }))
	// A shell goes on behind a short write.
	check(two, "well", "one\ntwo\n", Write, second(func(c *Call) {
		if !c.Shorten() {
			t.Error("it could not be shortened")
		}
	}))
	check("printf abcdefgh >f", "I/O error", "abcd", Write, func(c *Call) {
		if c.Number > 1 {
			c.Fail(syscall.EIO)
		} else if !c.Shorten() {
			t.Error("it could not be shortened")
		}
	})
	check("echo old >f; echo new >g; mv g f", "Read-only file system", "old\n", Rename, func(c *Call) { c.Fail(syscall.EROFS) })
	check("echo old >f; sync f && echo well", "", "old\n", Sync, func(c *Call) { c.Fail(syscall.EIO) })
	began := time.Now()
	check("echo one >f && echo well", "well", "one\n", Write, func(c *Call) { c.Delay = 50 * time.Millisecond })
	if elapsed := time.Since(began); elapsed < 50*time.Millisecond {
		t.Errorf("a write was to come 50ms later, and all was over in %v", elapsed)
	}
}

// TestOthersAreAnsweredBesideADelay has a call come while another one is late.
func TestOthersAreAnsweredBesideADelay(t *testing.T) {
	_, printed, counts := supervised(t, "echo one >a & sleep 0.05; echo two >b; wait; cat a b", []Kind{Write}, func(c *Call) {
		if filepath.Base(c.Path) == "a" {
			c.Delay = 200 * time.Millisecond
		}
	})
	if printed != "one\ntwo\n" || counts[Write] != 2 {
		t.Errorf("%q, %v", printed, counts)
	}
}

// TestKilledProgramEndsItsSupervision kills a program in the middle of a call.
func TestKilledProgramEndsItsSupervision(t *testing.T) {
	_, printed, counts := supervised(t, "echo $$ >f; echo again >f; echo never", []Kind{Write}, func(c *Call) {
		if c.Number == 2 {
			if err := syscall.Kill(c.task, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
			for c.waits() {
				time.Sleep(time.Millisecond)
			}
		}
	})
	if printed != "" || counts[Write] != 2 {
		t.Errorf("%q, %v", printed, counts)
	}
}

// TestStopEndsBesideWhatStillRuns stops supervisors at any moment of a call, and while they wait for one.
func TestStopEndsBesideWhatStillRuns(t *testing.T) {
	dir := t.TempDir()
	check := func(script string, calls int) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
		cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Setpgid: true}
		seen, enough := 0, make(chan struct{})
		s, err := Start(cmd, dir, []Kind{Write}, func(*Call) {
			if seen++; seen == calls {
				close(enough)
			}
		})
		if err != nil {
			t.Skip(err)
		}
		if calls > 0 {
			<-enough
		}
		counts, err := s.Stop()
		if err != nil || counts[Write] != seen || seen < calls {
			t.Errorf("%s: %v, %v, and %d were seen", script, counts, err, seen)
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait() // it was killed
	}
	for n := range 20 {
		check("while :; do echo a >f; done", n)
		check("echo a >f; exec tail -f /dev/null", n%2)
	}
}

// TestMemoryOfAnEndedProgramHasNoPath locates a call whose program has been killed meanwhile.
func TestMemoryOfAnEndedProgramHasNoPath(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	at := callsByNumber()[unix.SYS_OPENAT]
	c := &Call{s: &Supervisor{dir: "/"}, task: cmd.Process.Pid, at: at}
	if c.locate() {
		t.Errorf("it is at %q", c.Path)
	}
}

func TestProgramThatIsNotThereIsNoProgram(t *testing.T) {
	if s, err := Start(exec.Command("/nowhere/no-such-program"), t.TempDir(), Kinds, func(*Call) {}); err == nil || s != nil {
		t.Errorf("%v, %v", s, err)
	}
}

// TestProgramThatLaunchesNothingIsNotStarted tests the guard that keeps tests from starting themselves.
func TestProgramThatLaunchesNothingIsNotStarted(t *testing.T) {
	launches = false
	defer func() { launches = true }()
	if s, err := Start(exec.Command("true"), t.TempDir(), Kinds, func(*Call) {}); err == nil || s != nil || !strings.Contains(err.Error(), "Launch") {
		t.Errorf("%v, %v", s, err)
	}
}

// BenchmarkSupervisedWrite makes writes of four bytes, with and without a supervisor.
func BenchmarkSupervisedWrite(b *testing.B) {
	for _, kinds := range [][]Kind{nil, {Write}} {
		b.Run(fmt.Sprint(kinds), func(b *testing.B) {
			dir := b.TempDir()
			cmd := exec.Command(os.Args[0], strconv.Itoa(b.N))
			cmd.Env = append(os.Environ(), asWriter+"="+filepath.Join(dir, "f"))
			b.ResetTimer()
			if kinds == nil {
				if out, err := cmd.CombinedOutput(); string(out) != "<nil>" {
					b.Fatalf("%s, %v", out, err)
				}
				return
			}
			calls := 0
			s, err := Start(cmd, dir, kinds, func(*Call) { calls++ })
			if err != nil {
				b.Skip(err)
			}
			err = cmd.Wait()
			if _, e := s.Stop(); err != nil || e != nil || calls != b.N {
				b.Fatal(err, e, calls)
			}
		})
	}
}
