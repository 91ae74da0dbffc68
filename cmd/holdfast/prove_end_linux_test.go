package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

// TestNothingIsLeftOfProve ends prove at each level by SIGTERM, and where programs leave it by SIGKILL too. No process of it is left.
// Directories are left after SIGKILL alone, and the next run removes them. TestWhatStaysOfAKilledProve kills the other levels.
func TestNothingIsLeftOfProve(t *testing.T) {
	isolate.Once(t)
	levels := map[string][]string{
		"memory": {"--level", "memory", "--workload", "writer"},
		"kill":   {"--level", "kill", "--workload", "wal"},
		"fault":  {"--level", "fault", "--workload", "wal"},
		"model":  {"--level", "power", "--fs", "posix", "--workload", "wal"},
		"ext4":   {"--level", "power", "--fs", "ext4", "--workload", "wal"},
	}
	// Each program leaves its group, its session, its environment and its parent.
	daemon := `env -i setsid sh -c '(sh -c "n=0; while n=\$((n+1)); echo \$n >>log; do echo ack \$n; sleep 0.01; done" &)'; sleep 1000`
	for _, level := range []string{"kill", "fault", "power"} {
		levels["cmd-"+level] = []string{"--level", level, "--cmd", daemon, "--read", "touch log; cat log"}
		if level == "power" {
			levels["cmd-"+level] = append(levels["cmd-"+level], "--fs", "posix")
		}
	}
	if os.Geteuid() != 0 {
		delete(levels, "ext4")
	}
	for name, args := range levels {
		for _, by := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			if by == syscall.SIGKILL && !strings.HasPrefix(name, "cmd") {
				continue
			}
			t.Run(fmt.Sprint(name, " ", by), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				mark := "HOLDFAST_TEST_MARK=" + dir
				var said bytes.Buffer
				cmd := exec.Command(os.Args[0], append([]string{"prove", "--time", "60s", "--dir", dir}, args...)...)
				cmd.Env = append(os.Environ(), mark, asCommand+"=1", "TMPDIR="+dir)
				cmd.Stderr, cmd.WaitDelay = &said, 10*time.Second
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				ended := make(chan error, 1)
				go func() { ended <- cmd.Wait() }()
				for began := time.Now(); time.Since(began) < 20*time.Second; time.Sleep(10 * time.Millisecond) {
					if made, _ := filepath.Glob(filepath.Join(dir, "*", "*", "log")); len(made) > 0 || !strings.HasPrefix(name, "cmd") && time.Since(began) > time.Second/2 {
						break
					}
				}
				select {
				case err := <-ended:
					t.Skipf("it can't be had here: %v: %s", err, &said)
				default:
				}
				if err := cmd.Process.Signal(by); err != nil {
					t.Fatal(err)
				}
				<-ended
				left := processesOf(mark, dir)
				for began := time.Now(); len(left) > 0 && time.Since(began) < 20*time.Second; left = processesOf(mark, dir) {
					time.Sleep(10 * time.Millisecond)
				}
				if len(left) > 0 {
					t.Errorf("these are left: %q", left)
				}
				if by == syscall.SIGKILL {
					again := exec.Command(os.Args[0], "prove", "--dir", dir, "--replay", "none:1")
					again.Env = append(os.Environ(), asCommand+"=1", "TMPDIR="+dir)
					_ = again.Run() // there is nothing to judge again
				}
				if stay, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(stay) > 0 {
					t.Errorf("%q stay, %v; it said %q", stay, err, &said)
				}
			})
		}
	}
}

// processesOf are the processes with a variable in their environment, or with a directory below a path.
func processesOf(variable, path string) (all []string) {
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range processes {
		environ, _ := os.ReadFile(p + "/environ") // it may have ended
		args, _ := os.ReadFile(p + "/cmdline")
		cwd, _ := os.Readlink(p + "/cwd")
		if p != fmt.Sprint("/proc/", os.Getpid()) && (bytes.Contains(environ, []byte(variable)) || strings.HasPrefix(cwd, path+"/")) {
			all = append(all, strings.ReplaceAll(string(args), "\x00", " "))
		}
	}
	return all
}
