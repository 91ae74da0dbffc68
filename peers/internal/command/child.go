package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/holdfast-go/holdfast/internal/lab/probe"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// A Sample is what one trial in a process of its own took. It counts only if Err is
// empty.
type Sample struct {
	Elapsed     time.Duration
	CPU         time.Duration // user and system, of the process and the programs that it ran
	Units       int           // files, or lines
	Bytes       uint64        // allocated by Go
	Allocs      uint64
	Err         string
	Unsupported bool // the arm can't do its work here
}

// Broken is the sample of a trial that failed.
func Broken(err error) Sample {
	return Sample{Err: err.Error(), Unsupported: errors.Is(err, errors.ErrUnsupported)}
}

// Micros is the time of a unit in microseconds.
func (s Sample) Micros() float64 { return float64(s.Elapsed) / 1e3 / float64(s.Units) }

// CPUMicros is the CPU time of a unit in microseconds.
func (s Sample) CPUMicros() float64 { return float64(s.CPU) / 1e3 / float64(s.Units) }

// UnitBytes is what was allocated for a unit.
func (s Sample) UnitBytes() float64 { return float64(s.Bytes) / float64(s.Units) }

// UnitAllocs is how many allocations a unit took.
func (s Sample) UnitAllocs() float64 { return float64(s.Allocs) / float64(s.Units) }

// childWord is the first argument of a child.
const childWord = "trial-of-its-own"

// Serve does what the order of this process says, if it is a child. Then it prints what do
// returned, unless that is nil, and ends the process. A command calls it first.
func Serve[Order any](do func(o Order, out io.Writer) (any, error)) {
	if len(os.Args) == 3 && os.Args[1] == childWord {
		os.Exit(serve(os.Args[2], os.Stdout, do))
	}
}

func serve[Order any](order string, out io.Writer, do func(Order, io.Writer) (any, error)) int {
	var o Order
	var result any
	err := json.Unmarshal([]byte(order), &o)
	if err == nil {
		result, err = do(o, out)
	}
	if err == nil && result != nil {
		err = json.NewEncoder(out).Encode(result)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// Child returns this program as a process that carries out an order.
func Child(ctx context.Context, order any) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(order)
	if err != nil {
		return nil, err
	}
	return exec.CommandContext(ctx, self, childWord, string(text)), nil
}

// patience is after how long an arm is taken to hang.
const patience = 10 * time.Minute

// Trial has a child carry out an order, and returns the sample that it printed, or the
// error of it.
func Trial(ctx context.Context, order any) (s Sample, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd, err := Child(ctx, order)
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

// FirstLine returns that of a text that may begin with empty ones.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// CPUTime is what this process and its children, for which it has waited, have used. It is 0
// where the system does not report that.
func CPUTime() time.Duration {
	used, err := probe.ProcessUsage()
	if err != nil {
		return 0
	}
	return used.User + used.System + childrenTime()
}
