//go:build amd64 || arm64

package syscallfault

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Keeper is a process between this one and a program. All that the program starts stays below the keeper, whatever group, session
// or environment it takes and whoever of it ends: the keeper is a subreaper. It ends all of them when the program ends, at End, and
// when this process ends, by kill -9 too. Then it ends as the program did.
type Keeper struct{ end *os.File }

// keeping is in the environment of a keeper: the descriptor whose end ends it, and the program.
const keeping = "HOLDFAST_KEEPER"

// Keep puts a keeper before a command that is not started yet. The keeper takes a group of its own, and the program the group that the
// command was given. It is nil where this program does not call Launch. [Keeper.End] must be called in the end.
func Keep(cmd *exec.Cmd) (*Keeper, error) {
	if !launches || cmd.Err != nil {
		return nil, nil
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Env = append(cmd.Environ(), fmt.Sprintf("%s=%d %s", keeping, 3+len(cmd.ExtraFiles), cmd.Path))
	cmd.ExtraFiles = append(cmd.ExtraFiles, read)
	return &Keeper{write}, nil
}

// Start starts the command, unless [Start] does it with a supervisor.
func (k *Keeper) Start(cmd *exec.Cmd) error {
	if k != nil {
		cmd.Path = "/proc/self/exe"
	}
	return cmd.Start()
}

// End ends the program and all that it has started. It may be called again. Wait of its command returns when they have ended.
func (k *Keeper) End() error {
	if k == nil {
		return nil
	}
	if err := k.end.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// keep is the keeper.
func keep(text string) {
	number, program, _ := strings.Cut(text, " ")
	end, err := strconv.Atoi(number)
	group := unix.Getpgrp()
	attributes := &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setpgid: true, Pgid: group}}
	socket := -1
	if order, ok := os.LookupEnv(launch); ok { // that process makes the filter, and becomes the program
		program = "/proc/self/exe"
		word, _, _ := strings.Cut(order, " ")
		socket, _ = strconv.Atoi(word)
	}
	unix.CloseOnExec(end)
	err = errors.Join(err, unix.Setpgid(0, 0), unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
	var child int
	if err == nil {
		child, err = syscall.ForkExec(program, os.Args, attributes)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the program can't be started:", err)
		os.Exit(127)
	}
	if socket >= 0 {
		_ = unix.Close(socket) // the child has it
	}
	go func() {
		_, _ = os.NewFile(uintptr(end), "end").Read(make([]byte, 1))
		endChildren()
	}()
	status := reapUntil(child)
	go endChildren()
	reapUntil(0)
	if !status.Signaled() {
		os.Exit(status.ExitStatus())
	}
	err = syscall.Exec("/bin/sh", []string{"sh", "-c", fmt.Sprintf("ulimit -c 0; kill -%d $$", status.Signal())}, os.Environ())
	fmt.Fprintln(os.Stderr, err)
	os.Exit(128 + int(status.Signal()))
}

// reapUntil waits for children until one of them, or all, have ended.
func reapUntil(child int) (status syscall.WaitStatus) {
	for {
		process, err := syscall.Wait4(-1, &status, 0, nil)
		if process == child && err == nil || errors.Is(err, syscall.ECHILD) {
			return status
		}
	}
}

// endChildren kills the children of this process as long as it lives. When a child dies, its own
// children become this process's.
func endChildren() {
	me := os.Getpid()
	for ; ; time.Sleep(200 * time.Microsecond) {
		entries, _ := os.ReadDir("/proc")
		for _, e := range entries {
			process, err := strconv.Atoi(e.Name())
			if err != nil {
				continue
			}
			stat, _ := os.ReadFile("/proc/" + e.Name() + "/stat")
			var state byte
			var parent int // they are behind the name, which may have any bytes
			if _, err := fmt.Sscanf(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " %c %d", &state, &parent); err == nil && parent == me && state != 'Z' {
				_ = syscall.Kill(process, syscall.SIGKILL) // it may have ended
			}
		}
	}
}
