package study

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// A Role is work that a second process does for an arm: it is killed in the middle, or reads while the
// first process writes. It talks with the first by its standard input and output.
type Role func(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error

// RunRole does the work that the first of args names. The other args are passed to the role.
func RunRole(ctx context.Context, roles map[string]Role, args []string, stdin io.Reader, stdout io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("no work is named")
	}
	work, ok := roles[args[0]]
	if !ok {
		return fmt.Errorf("there is no work %q", args[0])
	}
	return work(ctx, args[1:], stdin, stdout)
}

// A Companion is a running second process. It must be ended by wait.
type Companion struct {
	Cmd  *exec.Cmd
	In   io.WriteCloser
	Out  io.Reader
	talk bytes.Buffer
}

// StartCompanion starts one. It is killed when ctx is done, so on an error the caller
// cancels ctx before it waits.
func StartCompanion(ctx context.Context, c *trial.Clock, args ...string) (*Companion, error) {
	cmd, err := c.Second(ctx, args...)
	if err != nil {
		return nil, err
	}
	return NewCompanion(cmd)
}

// NewCompanion starts cmd as one.
func NewCompanion(cmd *exec.Cmd) (p *Companion, err error) {
	p = &Companion{Cmd: cmd}
	cmd.Stderr = &p.talk
	if p.In, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if p.Out, err = cmd.StdoutPipe(); err != nil {
		return nil, errors.Join(err, p.In.Close())
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a second process: %w", err)
	}
	return p, nil
}

// Wait waits for the process to end and returns its error, with the process's error output. All output
// that is needed must have been read before.
func (p *Companion) Wait() error {
	err := p.Cmd.Wait()
	if text := strings.TrimSpace(p.talk.String()); err != nil && text != "" {
		return fmt.Errorf("%w: %s", err, text)
	}
	return err
}
