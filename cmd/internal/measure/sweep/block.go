package sweep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// In a run with many rounds, each round is a block: it runs in a process of its own. The addresses of a
// process's heap, stacks and pages make its cells faster or slower by some percent. That lasts as long
// as the process, and no single round shows it. Rounds in different processes do.

const (
	// leastBlocks: a run with fewer rounds has no blocks, and stays in one process.
	leastBlocks = 4

	// Each process first writes primeSize with one cell of each kind, which is in no figure.
	primeSize = 1 << 20

	// startTime is the approximate time to start a process and to measure its control.
	startTime = 120 * time.Millisecond

	blockRole = "block"
)

// Roles are the work that second processes do for sweeps.
var Roles = map[string]study.Role{blockRole: runBlock}

// A request is a run's request to a block's process: to run the cell, or to measure the control.
type request struct {
	Cell    *result.Cell `json:"cell,omitempty"`
	Control bool         `json:"control,omitempty"`
}

// A reply is the process's answer.
type reply struct {
	Measurement *result.Measurement `json:"measurement,omitempty"`
	Control     *result.Control     `json:"control,omitempty"`

	Failed  string              `json:"failed,omitempty"` // why there is neither
	Content *trial.ContentError `json:"content,omitempty"`
	Errno   syscall.Errno       `json:"errno,omitempty"`
}

// runBlock serves requests on its standard input, in a directory of its own in args[0].
func runBlock(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) (err error) {
	if len(args) != 1 {
		return errors.New("a directory is missing")
	}
	// A terminal interrupts the whole process group. This process ends with its input.
	signal.Ignore(os.Interrupt, syscall.SIGHUP)
	g, err := trial.OpenWorkDir(args[0], true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	asked := make(chan request)
	go func() {
		defer cancel()
		defer close(asked)
		for in := json.NewDecoder(stdin); ; {
			var r request
			if in.Decode(&r) != nil {
				return
			}
			asked <- r
		}
	}()
	out := json.NewEncoder(stdout)
	for r := range asked {
		if err := out.Encode(answer(ctx, g, r)); err != nil {
			return err
		}
	}
	return nil
}

func answer(ctx context.Context, g *trial.WorkDir, r request) (a reply) {
	var err error
	if r.Control {
		var c result.Control
		c, err = g.Control()
		a.Control = &c
	} else {
		var m result.Measurement
		m, err = Cell(*r.Cell, 0, trial.NotCounting).Run(ctx, g, false)
		a.Measurement = &m
	}
	if err != nil {
		a = reply{Failed: err.Error()}
		_ = errors.As(err, &a.Content)
		_ = errors.As(err, &a.Errno)
	}
	return a
}

// Blocks is a matrix whose rounds, except the warm-up, each run in a process of its own.
type Blocks struct {
	Matrix trial.Matrix

	prime   []result.Cell // see primes
	control func(result.Control) error
	process *Process // nil: none
}

// InBlocks returns the matrix in blocks. It passes on the control of each round. The caller ends the
// blocks with Close. A matrix with few rounds stays unchanged, and so does one for which [primes]
// returns none.
func InBlocks(m trial.Matrix, g *trial.WorkDir, control func(result.Control) error) *Blocks {
	b := &Blocks{Matrix: m, control: control}
	all := make([]result.Cell, len(m.Cells))
	for i, c := range m.Cells {
		all[i] = c.Cell
	}
	b.prime = primes(all)
	if g.Second == nil || len(b.prime) == 0 || m.Settled == nil && m.Rounds-m.Whole < leastBlocks {
		return b
	}
	b.Matrix.Cells, b.Matrix.Fresh = slices.Clone(m.Cells), b.begin
	for i, c := range m.Cells {
		b.Matrix.Cells[i].Run = func(ctx context.Context, g *trial.WorkDir, warmUp bool) (result.Measurement, error) {
			if warmUp {
				return c.Run(ctx, g, true)
			}
			return b.process.Run(c.Cell)
		}
	}
	return b
}

// primes returns the short cells that each process runs first in a round: for each load one in memory
// and one that waits for the disk. There are none, and no blocks, if a cell needs the same process
// throughout: on file systems made for the run, with a required state of the page cache, and in one
// long trial.
func primes(cells []result.Cell) (short []result.Cell) {
	type kind struct {
		size    int64
		writers int
		waits   bool
	}
	known := map[kind]bool{}
	for _, c := range cells {
		if c.Steady || c.FileSystem != "" || c.Cache != "" && c.Cache != result.NewFile {
			return nil
		}
		is := kind{c.RecordBytes, c.Writers, c.Policy.Sync.Waits()}
		if c.Empty || c.Every > 0 || known[is] {
			continue
		}
		known[is] = true
		c.Turns, c.Control = 0, 0
		c.Records = Workload{Policy: c.Policy, RecordBytes: c.RecordBytes, Writers: c.Writers, Setting: study.Setting{Rate: c.Rate}}.least(primeSize)
		short = append(short, c)
	}
	return short
}

// blockCost is the time that each block of a choice takes beside its trials, and the bytes that it
// writes. Both are 0 for a run without blocks.
func blockCost(c study.Choice, loads []Workload, rates []rate) (took time.Duration, size int64) {
	if !inBlocks(c, loads) {
		return 0, 0
	}
	took, size = startTime, trial.ControlBytes
	for _, c := range primes(cellsOf(loads)) {
		bytes := c.Records * c.RecordBytes
		size += bytes + trial.PreparedBytes(bytes)
		for i, w := range loads {
			if w.Name() == c.Name && rates != nil {
				took += rates[i].estimate(c.Records)
			}
		}
	}
	return took, size
}

// inBlocks reports whether the choice's run has blocks.
func inBlocks(c study.Choice, loads []Workload) bool {
	few := c.WidthToReach() == 0 && c.RoundsToRun() < leastBlocks
	return len(primes(cellsOf(loads))) > 0 && len(c.FileSystems) == 0 && c.Preset.Name != study.PresetQuick && !few
}

// cellsOf returns the cells of workloads, each with one record.
func cellsOf(loads []Workload) []result.Cell {
	cells := make([]result.Cell, len(loads))
	for i, w := range loads {
		cells[i] = w.cell(1)
	}
	return cells
}

// begin starts the process of a round.
func (b *Blocks) begin(ctx context.Context, g *trial.WorkDir, round int) error {
	if err := b.Close(); err != nil {
		return err
	}
	var err error
	if b.process, err = StartProcess(ctx, g.Second, g.Inside(), b.prime); err != nil {
		return err
	}
	a, err := b.process.ask(request{Control: true})
	if err != nil {
		return err
	}
	a.Control.Round = round
	return b.control(*a.Control)
}

// Close ends the last process.
func (b *Blocks) Close() error {
	if b.process == nil {
		return nil
	}
	p := b.process
	b.process = nil
	return p.Close()
}

// A Process runs cells for this process, one at a time, in a directory of its own.
type Process struct {
	companion *study.Companion // nil: the process has ended
	out       *json.Decoder
	cancel    context.CancelFunc
	outer     context.Context // not ended by cancel
}

// StartProcess starts a process with second. The process makes its directory in dir, and first runs a
// short cell of each kind, in no figure. The caller closes it.
func StartProcess(ctx context.Context, second func(context.Context, ...string) *exec.Cmd, dir string, cells []result.Cell) (p *Process, err error) {
	p = &Process{outer: ctx}
	ctx, p.cancel = context.WithCancel(ctx)
	if p.companion, err = study.NewCompanion(second(ctx, blockRole, dir)); err != nil {
		p.cancel()
		return nil, err
	}
	p.out = json.NewDecoder(p.companion.Out)
	for _, c := range primes(cells) {
		if _, err := p.Run(c); err != nil {
			return nil, errors.Join(err, p.Close())
		}
	}
	return p, nil
}

// Run runs a cell once.
func (p *Process) Run(c result.Cell) (result.Measurement, error) {
	a, err := p.ask(request{Cell: &c})
	if err == nil && a.Measurement == nil {
		err = errors.New("it did not run a cell")
	}
	if err != nil {
		return result.Measurement{}, err
	}
	return *a.Measurement, nil
}

// ask sends a request and waits for the reply.
func (p *Process) ask(r request) (a reply, err error) {
	if err = json.NewEncoder(p.companion.In).Encode(r); err == nil {
		err = p.out.Decode(&a)
	}
	switch {
	case err != nil:
		p.cancel()
		ended := p.companion.Wait()
		if p.outer.Err() == nil && errors.Is(ended, context.Canceled) {
			ended = nil // it had ended with success, and nobody interrupted this process
		}
		err = fmt.Errorf("the process of the round ended: %w", errors.Join(ended, err))
		p.companion = nil
	case a.Content != nil:
		err = a.Content
	case a.Errno != 0:
		err = fmt.Errorf("%w (%s)", a.Errno, a.Failed)
	case a.Failed != "":
		err = errors.New(a.Failed)
	}
	return a, err
}

// Close ends the process.
func (p *Process) Close() error {
	if p.companion == nil {
		return nil
	}
	defer p.cancel()
	err := errors.Join(p.companion.In.Close(), p.companion.Wait())
	p.companion = nil
	return err
}
