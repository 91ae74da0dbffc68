//go:build unix

package crash

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// A group is processes that end with this program, however it ends, also by kill -9. So does what they
// have started themselves, as long as it stays in the group. Its leader is a shell that waits for the end
// of a pipe which only this program has open. Then it kills the group. A process is in the group before it becomes another
// program, so there is no moment at which nothing watches it.
//
// Note: User-Mode Linux calls setsid(2), by which only a leader stays in its group. So package uml has
// a shell outside of its group instead.
type group struct {
	leader *exec.Cmd
	pipe   *os.File
}

// newGroup starts an empty group. Its end must be called in the end.
func newGroup() (*group, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	// A program may send its whole group a signal, to end what it has started.
	leader := exec.Command("/bin/sh", "-c", `trap '' HUP INT QUIT TERM; echo; read -r _; kill -s KILL 0`)
	leader.Stdin = read
	leader.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	ready, err := leader.StdoutPipe()
	if err := errors.Join(err, leader.Start(), read.Close()); err != nil {
		return nil, errors.Join(err, write.Close())
	}
	g := &group{leader, write}
	if _, err := ready.Read(make([]byte, 1)); err != nil { // no signal ends it from now on
		g.end()
		return nil, err
	}
	return g, nil
}

// take makes a command start in the group. Its context's end kills all of the group.
func (g *group) take(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: g.leader.Process.Pid}
	cmd.Cancel = g.kill
}

// kill kills all of the group. Any goroutine may call it until end.
func (g *group) kill() error { return syscall.Kill(-g.leader.Process.Pid, syscall.SIGKILL) }

// end kills what is left of the group. Before it, the caller waits for the processes that it started.
func (g *group) end() {
	_ = g.kill() // the leader is there until Wait: nobody else has its number
	_ = g.leader.Wait()
	_ = g.pipe.Close()
}
