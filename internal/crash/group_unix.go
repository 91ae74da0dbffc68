//go:build unix

package crash

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

// A group is processes that end with this program, however it ends, also by kill -9. So do their
// children. A process that leaves the group is known by a variable of its environment, where the
// system shows that (/proc). Its leader is a shell that waits for the end of a pipe which only this
// program has open. Then it kills the group. A process is in the group before it becomes another
// program, so there is no moment at which nothing watches it.
//
// Note: User-Mode Linux calls setsid(2), by which only a leader stays in its group. So package uml has
// a shell outside of its group instead.
type group struct {
	leader *exec.Cmd
	pipe   *os.File
	mark   string
}

// markName is the variable that all processes of a group have.
const markName = "HOLDFAST_GROUP"

// groups makes marks differ.
var groups atomic.Int64

// newGroup starts an empty group. Its end must be called in the end.
func newGroup() (*group, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	// A program may send its whole group a signal, to end what it has started.
	mark := fmt.Sprintf("%s=%d.%d.%d", markName, os.Getpid(), groups.Add(1), time.Now().UnixNano())
	leader := exec.Command("/bin/sh", "-c", `trap '' HUP INT QUIT TERM; echo; read -r _
for p in /proc/[0-9]*; do if grep -qs "$0" $p/environ; then kill -s KILL ${p#/proc/}; fi; done
kill -s KILL 0`, mark)
	leader.Stdin = read
	leader.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	ready, err := leader.StdoutPipe()
	if err := errors.Join(err, leader.Start(), read.Close()); err != nil {
		return nil, errors.Join(err, write.Close())
	}
	g := &group{leader, write, mark}
	if _, err := ready.Read(make([]byte, 1)); err != nil { // no signal ends it from now on
		g.end()
		return nil, err
	}
	return g, nil
}

// take makes a command start in the group. Its context's end kills all of the group.
func (g *group) take(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: g.leader.Process.Pid}
	cmd.Env = append(cmd.Environ(), g.mark)
	cmd.Cancel = g.kill
}

// killAll kills all of the group, and the processes that have left it:
// descendants of its process, or processes with the group's mark. An error
// says that one could not be ended.
func (g *group) killAll(root int) error {
	const patience = 5 * time.Second
	first := g.strays(root)
	err := g.kill()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		strays := append(first, g.strays(0)...)
		first = nil
		if err != nil {
			return err
		}
		if len(strays) == 0 {
			return nil
		}
		if time.Since(began) > patience {
			return fmt.Errorf("process %d, which the program has started, can't be ended", strays[0])
		}
		for _, process := range strays {
			_ = syscall.Kill(process, syscall.SIGKILL) // it may have ended
		}
	}
}

// strays are the processes with the group's mark, and all below a process, that are not dead.
func (g *group) strays(root int) (all []int) {
	parents := map[int]int{}
	marked := map[int]bool{root: root > 1}
	entries, _ := os.ReadDir("/proc") // there is none everywhere
	for _, e := range entries {
		process, err := strconv.Atoi(e.Name())
		if err != nil || process == g.leader.Process.Pid || process == os.Getpid() {
			continue
		}
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
		var state byte
		var parent int // they are behind the name, which may have any bytes
		if _, err := fmt.Sscanf(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " %c %d", &state, &parent); err != nil || state == 'Z' || state == 'X' {
			continue
		}
		parents[process] = parent
		environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", process))
		marked[process] = marked[process] || bytes.Contains(environ, []byte(g.mark))
	}
	for process := range parents {
		for at, depth := process, 0; at > 1 && depth < 1000; at, depth = parents[at], depth+1 {
			if marked[at] {
				all = append(all, process)
				break
			}
		}
	}
	return all
}

// kill kills all of the group. Any goroutine may call it until end.
func (g *group) kill() error { return syscall.Kill(-g.leader.Process.Pid, syscall.SIGKILL) }

// end kills what is left of the group. Before it, the caller waits for the processes that it started.
func (g *group) end() {
	_ = g.kill() // the leader is there until Wait: nobody else has its number
	_ = g.leader.Wait()
	_ = g.pipe.Close()
}
