//go:build unix

package crash

import (
	"io"
	"os/exec"
	"syscall"
	"testing"
)

// TestGroupEndsWithThisProgram closes the pipe, as the end of this program does, and by End and Kill.
// The children of a process of the group end too: at the end of its output, nobody has it open.
func TestGroupEndsWithThisProgram(t *testing.T) {
	for name, end := range map[string]func(*group) error{
		"the end of the program": func(g *group) error { return g.pipe.Close() },
		"kill":                   (*group).kill,
	} {
		g, err := newGroup()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "trap '' INT; sleep 1000 & kill -s INT 0; echo started; wait; sleep 1000")
		g.take(cmd)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(out, make([]byte, len("started\n"))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := end(g); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := io.ReadAll(out); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		_ = cmd.Wait()
		if is := cmd.ProcessState.Sys().(syscall.WaitStatus); !is.Signaled() {
			t.Errorf("%s: the program ended by itself: %v", name, cmd.ProcessState)
		}
		g.end()
	}
}
