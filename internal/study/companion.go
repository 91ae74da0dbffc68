package study

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/holdfast-go/holdfast/internal/trial"
)

// A companion is a second process that is at work. It must be ended by wait.
type companion struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  io.Reader
	talk bytes.Buffer
}

// startCompanion starts one. It is killed when ctx is done, so whoever starts it
// cancels that before it waits on a way out by an error.
func startCompanion(ctx context.Context, c *trial.Clock, args ...string) (*companion, error) {
	cmd, err := c.Second(ctx, args...)
	if err != nil {
		return nil, err
	}
	p := &companion{cmd: cmd}
	cmd.Stderr = &p.talk
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if p.out, err = cmd.StdoutPipe(); err != nil {
		return nil, errors.Join(err, p.in.Close())
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a second process: %w", err)
	}
	return p, nil
}

// wait ends once the process has, and says how, with what it complained of. All
// that is wanted of its output must have been read.
func (p *companion) wait() error {
	err := p.cmd.Wait()
	if text := strings.TrimSpace(p.talk.String()); err != nil && text != "" {
		return fmt.Errorf("%w: %s", err, text)
	}
	return err
}
