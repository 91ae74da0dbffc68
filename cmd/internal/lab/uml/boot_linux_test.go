package uml

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

// guestWord makes the test's own program the guest's, and hostWord one that boots a
// guest which hangs.
const (
	guestWord = "guest-of-a-test"
	hostWord  = "host-of-a-test"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == guestWord {
		machine, err := Enter()
		if err == nil {
			err = inside(machine)
			err = machine.Leave(err)
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if len(os.Args) > 2 && os.Args[1] == hostWord {
		fmt.Fprintln(os.Stderr, host(os.Args[2]))
		os.Exit(1)
	}
	os.Exit(isolate.Tests{M: m}.Run())
}

// host boots a guest that hangs.
func host(dir string) error {
	k, err := Find(context.Background())
	if err != nil {
		return err
	}
	chore, err := json.Marshal(chore{Does: "hang"})
	if err != nil {
		return err
	}
	return k.Run(context.Background(), Guest{Command: guestWord, Share: dir, Task: chore, Console: func(line string) { fmt.Println(line) }})
}

// A chore is the task of a test's guest.
type chore struct {
	Kinds []string // write a file on each, in the image of its name
	Does  string
	Shell string // the programs that tools runs
}

// echoes is how often a guest of a test sends back its input.
const echoes = 256

func inside(m *Machine) error {
	var c chore
	if err := json.Unmarshal(m.Task, &c); err != nil {
		return err
	}
	switch c.Does {
	case "echo":
		var block [256]byte
		if _, err := m.Line.Write(block[:1]); err != nil {
			return err
		}
		if _, err := io.ReadFull(m.Line, block[:]); err != nil {
			return err
		}
		_, err := m.Line.Write(bytes.Repeat(block[:], echoes))
		return err
	case "fail":
		return errors.New("no such luck")
	case "write":
		return os.WriteFile(filepath.Join(m.Share, "written"), nil, 0o644)
	case "tools":
		out, err := exec.Command("sh", "-c", c.Shell).CombinedOutput()
		_, lineErr := m.Line.Write(out)
		return errors.Join(err, lineErr)
	case "panic":
		panic("a mistake inside")
	case "hang":
		fmt.Println("hanging")
		for {
			_ = unix.Pause()
		}
	}
	for _, kind := range c.Kinds {
		if err := writeOn(m, kind); err != nil {
			return err
		}
	}
	return nil
}

func writeOn(m *Machine, kind string) error {
	mounted, err := m.Mount(filepath.Join(m.Share, kind), "/mnt/"+kind, kind, "noatime")
	if err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(mounted.Dir, "file"))
	if err != nil {
		return err
	}
	_, err = f.WriteString("kept on " + kind)
	var s unix.Statfs_t
	syncErr := f.Sync()
	if kind == "bfs" && errors.Is(syncErr, unix.EINVAL) {
		syncErr = nil // it has no fsync
	}
	err = errors.Join(err, syncErr, f.Close(), unix.Statfs(mounted.Dir, &s), mounted.Close())
	printed := fmt.Sprintf("%#x", s.Type)
	return errors.Join(err, os.WriteFile(filepath.Join(m.Share, kind+".printed"), []byte(printed), 0o644))
}

// kernel is the one that is installed. The test runs beside others: most of it is
// waiting for a boot.
func kernel(t *testing.T) Kernel {
	t.Helper()
	t.Parallel()
	k, err := Find(t.Context())
	var missing *MissingError
	if errors.As(err, &missing) {
		t.Skipf("no guest can be booted: %v (package %s)", err, missing.Package)
	}
	if err != nil {
		t.Fatal(err)
	}
	if raceEnabled {
		t.Skip("a program with the race detector does not start in User-Mode Linux: the addresses are not where it wants them")
	}
	return k
}

func image(t *testing.T, dir, kind, make string, args ...string) {
	t.Helper()
	program, err := exec.LookPath(make)
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/" + make); err != nil {
			t.Skipf("%s can't be made here: %v", kind, err)
		}
	}
	name := filepath.Join(dir, kind)
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(64<<20), f.Close()); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(program, append(args, name)...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", make, err, out)
	}
}

func task(t *testing.T, c chore) []byte {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestGuestKeepsFilesOnFileSystemsThatTheKernelLacks(t *testing.T) {
	k, dir := kernel(t), t.TempDir()
	image(t, dir, "jfs", "mkfs.jfs", "-q")
	image(t, dir, "bfs", "mkfs.bfs")
	image(t, dir, "minix", "mkfs.minix", "-3")
	image(t, dir, "f2fs", "mkfs.f2fs", "-q")
	kinds := []string{"jfs", "bfs", "minix", "f2fs"}
	g := Guest{Command: guestWord, Share: dir, Modules: append([]string{"loop"}, kinds...), Limit: time.Minute,
		Task: task(t, chore{Kinds: kinds})}
	if err := k.Run(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	// statfs(2) and fs/bfs/bfs.h have the magic numbers.
	for kind, magic := range map[string]string{"jfs": "0x3153464a", "bfs": "0x1badface", "minix": "0x4d5a", "f2fs": "0xf2f52010"} {
		printed, err := os.ReadFile(filepath.Join(dir, kind+".printed"))
		if err != nil || string(printed) != magic {
			t.Errorf("the file system of %s had the magic number %s (%v), want %s", kind, printed, err, magic)
		}
		text, err := os.ReadFile(filepath.Join(dir, kind))
		if err != nil || !strings.Contains(string(text), "kept on "+kind) {
			t.Errorf("the image of %s does not hold what was written: %v", kind, err)
		}
	}
	onlyImages(t, dir)
}

func onlyImages(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "uml-") {
			t.Errorf("%s is left", e.Name())
		}
	}
	if _, err := os.Stat(filepath.Join(dir, ".uml")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory of the kernel's own is left: %v", err)
	}
}

func TestGuestReportsItsError(t *testing.T) {
	k := kernel(t)
	err := k.Run(t.Context(), Guest{Command: guestWord, Share: t.TempDir(), Limit: time.Minute, Task: task(t, chore{Does: "fail"})})
	var guest *GuestError
	if !errors.As(err, &guest) || guest.Text != "no such luck" {
		t.Errorf("got %v, want the guest's own error", err)
	}
}

func TestPanicInsideIsReported(t *testing.T) {
	k, dir := kernel(t), t.TempDir()
	err := k.Run(t.Context(), Guest{Command: guestWord, Share: dir, Limit: time.Minute, Task: task(t, chore{Does: "panic"})})
	var crash *CrashError
	if !errors.As(err, &crash) || !strings.Contains(crash.Why, "a mistake inside") {
		t.Errorf("got %v, want the crash with the program's own words", err)
	}
	onlyImages(t, dir)
}

func TestNothingIsLeftOfACancelledGuest(t *testing.T) {
	k, dir := kernel(t), t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	g := Guest{Command: guestWord, Share: dir, Task: task(t, chore{Does: "hang"}), Console: func(line string) {
		if line == "hanging" {
			cancel()
		}
	}}
	if err := k.Run(ctx, g); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the cancellation", err)
	}
	onlyImages(t, dir)
	if left := processesIn(t, dir); len(left) > 0 {
		t.Errorf("these are left: %v", left)
	}
}

func TestGuestThatHangsIsEndedAtItsLimit(t *testing.T) {
	k, dir := kernel(t), t.TempDir()
	err := k.Run(t.Context(), Guest{Command: guestWord, Share: dir, Limit: time.Second / 2, Silence: time.Hour, Task: task(t, chore{Does: "hang"})})
	var crash *CrashError
	if !errors.As(err, &crash) || !strings.HasSuffix(crash.Why, "or had not ended after 500ms, and was killed") {
		t.Errorf("got %v, want the limit", err)
	}
	if left := processesIn(t, dir); len(left) > 0 {
		t.Errorf("these are left: %v", left)
	}
}

func TestNoProcessIsLeftOfAGuestWhoseProgramIsKilled(t *testing.T) {
	kernel(t)
	dir := t.TempDir()
	cmd := exec.Command("/proc/self/exe", hostWord, dir)
	printed, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(printed)
	for lines.Scan() && lines.Text() != "hanging" {
	}
	if len(processesIn(t, dir)) < 2 {
		t.Error("the guest has no helpers, so none could be left")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	// The shell that kills them comes a moment later.
	deadline := time.Now().Add(time.Minute)
	for len(processesIn(t, dir)) > 0 && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	if left := processesIn(t, dir); len(left) > 0 {
		t.Errorf("these are left: %v", left)
	}
}

// processesIn lists the living processes that are in a directory of dir.
func processesIn(t *testing.T, dir string) (found []string) {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if at, err := os.Readlink(link); err == nil && strings.HasPrefix(at, dir+"/") {
			found = append(found, filepath.Base(filepath.Dir(link)))
		}
	}
	slices.Sort(found)
	return found
}

// TestProgramsOutsideRunInside makes a file system inside, where the root outside is only read.
func TestProgramsOutsideRunInside(t *testing.T) {
	k := kernel(t)
	outside, theirs, err := NewLine()
	if err != nil {
		t.Fatal(err)
	}
	defer outside.Close()
	ended := make(chan error, 1)
	go func() {
		shell := "cd /dev/shm && truncate -s 64M i && mkfs.ext4 -q i && mount -o loop i /tmp && echo made >/tmp/f && cat /tmp/f && umount /tmp; echo >/etc/holdfast || echo only read"
		ended <- k.Run(t.Context(), Guest{Command: guestWord, Share: t.TempDir(), Modules: []string{"loop", "ext4"}, Tools: true, Limit: time.Minute, Line: theirs,
			Task: task(t, chore{Does: "tools", Shell: shell})})
	}()
	said, _ := io.ReadAll(outside) // it ends with the guest
	if err := <-ended; err != nil || !strings.Contains(string(said), "made\n") || !strings.Contains(string(said), "only read\n") {
		t.Errorf("%v: %s", err, said)
	}
}
