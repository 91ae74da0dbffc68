package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/probe"
)

// A Sample is the cost of one trial. It counts only if Err is empty.
type Sample struct {
	Elapsed     time.Duration
	CPU         time.Duration // user and system, of the process and the programs that it ran
	Units       int           // records, files, lines, bytes or operations
	Bytes       uint64        // allocated by Go
	Allocs      uint64
	Write, Sync time.Duration // of one write and one sync on average, where they are reported
	Values      []float64     // further figures, in the order of the kind's columns, or nil
	Err         string
	Unsupported bool // the arm can't do its work here
}

// Broken is the sample of a trial that failed.
func Broken(err error) Sample {
	return Sample{Err: err.Error(), Unsupported: errors.Is(err, errors.ErrUnsupported)}
}

// Time returns the time of a unit in nanoseconds.
func (s Sample) Time() float64 { return float64(s.Elapsed) / float64(s.Units) }

// CPUTime returns the CPU time of a unit in nanoseconds.
func (s Sample) CPUTime() float64 { return float64(s.CPU) / float64(s.Units) }

// childWord is the first argument of a child, which its kind and its order follow.
const childWord = "trial-of-its-own"

// Order makes the Carry of a [Kind] from the function that runs an order in a child. The child prints what
// do returned, unless that is nil.
func Order[O any](do func(o O, out io.Writer) (any, error)) func([]byte, io.Writer) (any, error) {
	return func(order []byte, out io.Writer) (any, error) {
		var o O
		if err := json.Unmarshal(order, &o); err != nil {
			return nil, err
		}
		return do(o, out)
	}
}

// Serve carries out the order of this process and ends it, if it is a child. [Main] calls it
// first, and so does the TestMain of a kind.
func Serve(kinds ...Kind) {
	if len(os.Args) != 4 || os.Args[1] != childWord {
		return
	}
	for _, k := range kinds {
		if k.Name == os.Args[2] && k.Carry != nil {
			os.Exit(k.serve([]byte(os.Args[3]), os.Stdout))
		}
	}
}

func (k Kind) serve(order []byte, out io.Writer) int {
	result, err := k.Carry(order, out)
	if err == nil && result != nil {
		err = json.NewEncoder(out).Encode(result)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// Child returns this program as a process that carries out an order to a kind.
func Child(ctx context.Context, kind string, order any) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return childOf(ctx, self, kind, order)
}

func childOf(ctx context.Context, program, kind string, order any) (*exec.Cmd, error) {
	text, err := json.Marshal(order)
	if err != nil {
		return nil, err
	}
	return exec.CommandContext(ctx, program, childWord, kind, string(text)), nil
}

// patience is after how long an arm is taken to hang.
const patience = 10 * time.Minute

// Trial has a child carry out an order to a kind, and returns the sample that it printed, or
// the error of it. The child is of another build if that is not empty.
func Trial(ctx context.Context, build, kind string, order any) (s Sample, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if build == "" {
		if build, err = os.Executable(); err != nil {
			return s, err
		}
	}
	cmd, err := childOf(ctx, build, kind, order)
	if err != nil {
		return s, err
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return s, fmt.Errorf("%w: %s", err, FirstLine(said.String()))
	}
	if err := json.Unmarshal(out, &s); err != nil {
		return s, fmt.Errorf("its process printed %.80q: %w", out, err)
	}
	switch {
	case s.Unsupported:
		return s, fmt.Errorf("%s (%w)", s.Err, errors.ErrUnsupported)
	case s.Err != "":
		return s, errors.New(s.Err)
	}
	return s, nil
}

// FirstLine returns the first line of text after leading empty lines.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// CPUTime is the CPU time of this process and of the children it has waited for. It is 0
// where the system does not report that.
func CPUTime() time.Duration {
	used, err := probe.ProcessUsage()
	if err != nil {
		return 0
	}
	return used.User + used.System + childrenTime()
}
