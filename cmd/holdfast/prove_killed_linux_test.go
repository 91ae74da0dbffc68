package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

// TestWhatStaysOfAKilledProve kills prove by SIGKILL at each level while it has processes, mounts and loop devices, as root and as an
// ordinary user. It counts what stays, and what the next run leaves of that. docs/prove.md has its rows, which -v prints.
func TestWhatStaysOfAKilledProve(t *testing.T) {
	isolate.Once(t)
	if testing.Short() {
		t.Skip("each level is at work for a while")
	}
	page, err := os.ReadFile("../../docs/prove.md")
	if err != nil {
		t.Fatal(err)
	}
	users := []uint32{uint32(os.Geteuid())}
	if os.Geteuid() == 0 {
		const nobody = 65534
		users = append(users, nobody)
	}
	top := workplace(t)
	for _, level := range []struct {
		name  string
		args  []string
		needs holdings
		most  int // of its directories, which stay
	}{
		{"memory", []string{"--level", "memory", "--workload", "writer"}, holdings{processes: 1}, 0},
		{"kill", []string{"--level", "kill", "--workload", "wal"}, holdings{processes: 2, directories: 1}, 4},
		{"fault", []string{"--level", "fault", "--workload", "wal"}, holdings{processes: 2, directories: 1}, 4},
		{"hostile", []string{"--level", "hostile", "--workload", "wal"}, holdings{processes: 2, directories: 1}, 4},
		{"power, posix", []string{"--level", "power", "--fs", "posix", "--workload", "wal"}, holdings{processes: 2, mounts: []string{""}}, 0},
		{"power, ext4", []string{"--level", "power", "--fs", "ext4", "--workload", "wal"}, holdings{processes: 2, mounts: []string{""}, loops: []string{""}}, 0},
	} {
		for _, user := range users {
			who := "a user"
			if user == 0 {
				who = "root"
			} else if level.needs.loops != nil { // which take root
				continue
			}
			t.Run(level.name+", "+who, func(t *testing.T) {
				t.Parallel()
				k := killed{dir: filepath.Join(top, strings.ReplaceAll(level.name+" "+who, " ", "-")), user: user}
				if err := errors.Join(os.Mkdir(k.dir, 0o755), os.Chown(k.dir, int(user), -1)); err != nil {
					t.Fatal(err)
				}
				k.mark = "HOLDFAST_TEST_KILLED=" + k.dir
				had := k.endAtWork(t, level.needs, level.args)
				left := k.holds()
				for began := time.Now(); time.Since(began) < time.Minute; left = k.holds() { // on a busy machine they end late
					if left.mounts, left.loops = had.stillMounted(), had.stillLooped(); left.processes+len(left.mounts)+len(left.loops) == 0 {
						break
					}
					time.Sleep(10 * time.Millisecond)
				}
				_ = k.command("--replay", "none:1").Run() // there is nothing to judge again; it removes what is stale
				then := k.holds()
				t.Logf("at work: %d processes, %d mounts, %d loop devices, %d directories; behind kill -9: %d, %d, %d, %d; behind the next run: %d directories",
					had.processes, len(had.mounts), len(had.loops), had.directories, left.processes, len(left.mounts), len(left.loops), left.directories, then.directories)
				if left.processes+len(left.mounts)+len(left.loops) > 0 || left.directories > level.most || then.directories > 0 {
					t.Errorf("it left %+v, and the next run %+v", left, then)
				}
				directories := "0"
				if level.most > 0 {
					directories = fmt.Sprintf("up to %d, until the next run", level.most)
				}
				if row := fmt.Sprintf("| %s | %s | 0 | 0 | 0 | %s |", level.name, who, directories); !strings.Contains(string(page), row) {
					t.Errorf("docs/prove.md lacks %q", row)
				}
			})
		}
	}
}

// A killed is a prove that is killed: its directory, and the variable of its environment by which its processes are known.
type killed struct {
	dir, mark string
	user      uint32
}

// holdings count the processes, directories, mounts and loop devices of a run of prove.
type holdings struct {
	processes, directories int
	mounts                 []string // lines of mountinfo
	loops                  []string // devices, each with its file
}

// workplace makes a directory with this program in a copy that every user may start.
func workplace(t *testing.T) string {
	t.Helper()
	top, err := os.MkdirTemp("", "holdfast-killed-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(top); err != nil {
			t.Error(err)
		}
	})
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := os.OpenFile(filepath.Join(top, "holdfast"), os.O_WRONLY|os.O_CREATE, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(to, from)
	if err := errors.Join(err, to.Close(), os.Chmod(to.Name(), 0o755), os.Chmod(top, 0o755)); err != nil {
		t.Fatal(err)
	}
	return top
}

// command is prove, by the killed one's user.
func (k killed) command(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(filepath.Dir(k.dir), "holdfast"), append([]string{"prove", "--time", "60s", "--dir", k.dir}, args...)...)
	cmd.Env = append(os.Environ(), k.mark, asCommand+"=1", "TMPDIR="+k.dir)
	cmd.WaitDelay = 10 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if int(k.user) != os.Geteuid() {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: k.user, Gid: k.user}
	}
	return cmd
}

// endAtWork starts prove, and kills it when it has what it needs. It returns what it had then.
func (k killed) endAtWork(t *testing.T, needs holdings, args []string) (had holdings) {
	t.Helper()
	var said bytes.Buffer
	cmd := k.command(args...)
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if needs.directories+len(needs.mounts) == 0 {
		time.Sleep(time.Second) // level memory has nothing to look for
	}
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		had = k.holds()
		if had.processes >= needs.processes && had.directories >= needs.directories && len(had.mounts) >= len(needs.mounts) && len(had.loops) >= len(needs.loops) {
			break
		}
		select {
		case err := <-ended:
			t.Skipf("it can't be had here: %v: %s", err, &said)
		default:
		}
		if time.Since(began) > 30*time.Second {
			t.Fatalf("it has %+v, and is to have %+v", had, needs)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended
	return had
}

// holds returns what prove has now.
func (k killed) holds() (h holdings) {
	ours, _ := os.ReadFile("/proc/self/mountinfo") // a copy of these is no mount of prove
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		environ, _ := os.ReadFile(file) // it may have ended
		if !bytes.Contains(environ, []byte(k.mark)) {
			continue
		}
		h.processes++
		mounts, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "mountinfo"))
		for line := range strings.Lines(string(mounts)) {
			_, behind, _ := strings.Cut(line, " - ")
			what := strings.Fields(behind)
			if len(what) < 2 || slices.Contains(h.mounts, line) || bytes.Contains(ours, []byte(strings.Join(strings.Fields(line)[2:5], " "))) {
				continue
			}
			loop := strings.HasPrefix(what[1], "/dev/loop") && strings.Contains(line, "/cell")
			if loop || strings.HasPrefix(what[1], "holdfast-") {
				h.mounts = append(h.mounts, line)
			}
			if name := filepath.Join("/sys/block", filepath.Base(what[1]), "loop/backing_file"); loop {
				if file, err := os.ReadFile(name); err == nil {
					h.loops = append(h.loops, name+" "+string(file))
				}
			}
		}
	}
	entries, _ := os.ReadDir(k.dir)
	h.directories = len(entries)
	return h
}

// stillMounted are the mounts that any process still has.
func (h holdings) stillMounted() (left []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/mountinfo")
	for _, file := range files {
		mounts, _ := os.ReadFile(file)
		for _, line := range h.mounts {
			if bytes.Contains(mounts, []byte(line)) && !slices.Contains(left, line) {
				left = append(left, line)
			}
		}
	}
	return left
}

// stillLooped are the loop devices that still have their files. "/" is a file that no path leads to: its mount is being ended.
func (h holdings) stillLooped() (left []string) {
	for _, loop := range h.loops {
		device, file, _ := strings.Cut(loop, " ")
		if text, err := os.ReadFile(device); err == nil && (string(text) == file || string(text) == "/\n") {
			left = append(left, loop)
		}
	}
	return left
}
