package usermode

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/lab"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/uml"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/sweep"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
	"github.com/holdfast-go/holdfast/cmd/internal/place"
)

// Commands are the commands that the program runs itself as in User-Mode Linux.
func Commands() []*cobra.Command {
	return []*cobra.Command{{
		Use:    guestCommand,
		Short:  "measure inside User-Mode Linux, for bench",
		Hidden: true,
		Args:   cobra.ArbitraryArgs, // the kernel hands it on
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := uml.Enter()
			if err != nil {
				return cli.Misuse("bench calls this command itself", "%w", err)
			}
			return m.Leave(inGuest(cmd.Context(), m, cmd.ErrOrStderr()))
		},
	}, {
		Use:    workCommand,
		Short:  "do work inside User-Mode Linux, for prove",
		Hidden: true,
		Args:   cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := uml.Enter()
			if err != nil {
				return cli.Misuse("prove calls this command itself", "%w", err)
			}
			return m.Leave(work(cmd.Context(), m))
		},
	}}
}

// work runs this program with the programs outside, and sends its output.
func work(ctx context.Context, m *uml.Machine) error {
	var w guestWork
	if err := json.Unmarshal(m.Task, &w); err != nil {
		return err
	}
	cmd := place.ThisProgram(ctx, w.Args...)
	var said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(w.Input), m.Line, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(said.String()))
	}
	return nil
}

// A guest is a run inside.
type guest struct {
	guestTask
	machine *uml.Machine
	mounts  []*uml.Mount
	call    time.Duration // a system call's time inside
	say     func(text string)
}

// inGuest does the task.
func inGuest(ctx context.Context, m *uml.Machine, stderr io.Writer) (err error) {
	g := &guest{machine: m, call: callTime(), say: func(text string) { fmt.Fprintln(stderr, "holdfast:", text) }}
	if err := json.Unmarshal(m.Task, &g.guestTask); err != nil {
		return err
	}
	sites, err := g.open()
	defer func() {
		for _, s := range sites {
			err = errors.Join(err, s.WorkDir.Close())
		}
		for _, m := range g.mounts {
			err = errors.Join(err, m.Close())
		}
	}()
	if err != nil {
		return err
	}
	g.say(fmt.Sprintf("a system call takes %v, and %v outside", g.call, g.Call))
	matrix, plan, err := g.prepare(ctx, sites)
	if err != nil {
		return err
	}
	return g.serve(ctx, matrix, plan)
}

// open mounts the images and opens a ground on each. The caller closes them also
// after an error.
func (g *guest) open() (sites []study.Site, err error) {
	for _, s := range g.Sites {
		dir := "/mnt/" + s.Name
		mounted, err := g.machine.Mount(filepath.Join(g.machine.Share, s.Image), dir, s.Type, s.Options)
		if err != nil {
			return sites, err
		}
		g.mounts = append(g.mounts, mounted)
		open := func() (*trial.WorkDir, error) { return trial.OpenWorkDir(dir, true) }
		if s.Type == "bfs" {
			open = func() (*trial.WorkDir, error) { return trial.OpenWhole(dir) }
		}
		ground, err := open()
		if err != nil {
			return sites, fmt.Errorf("%s: %w", s.Name, err)
		}
		ground.Second = place.SecondProcess
		sites = append(sites, study.Site{FileSystem: s.Name, WorkDir: ground})
	}
	return sites, nil
}

// prepare plans the task, on all of the file systems.
func (g *guest) prepare(ctx context.Context, sites []study.Site) (m trial.Matrix, plan guestPlan, err error) {
	c := g.Choice
	if trial.TracepointsUnseen() == "" {
		c.Counting = trial.Tracepoints
	}
	of, named := lab.Studies().Find(g.Study)
	switch {
	case g.Again != nil:
		plan.Plan = g.Again.Plan
		m, err = sweep.AgainOn(lab.Studies(), *g.Again, c.Counting, sites)
	case named:
		c.Slower = max(0, g.call-g.Call)
		plan.Slower = c.Slower
		m, plan.Plan, plan.Missing, err = of.PrepareOn(sites, c)
	default:
		g.say("calibrating with short runs")
		m, plan.Plan, err = sweep.Policy().PrepareOn(ctx, sites, c, func(done, all int) {})
	}
	for _, c := range m.Cells {
		plan.Cells = append(plan.Cells, guestCell{c.Cell, c.Estimate})
	}
	for i, s := range g.Sites {
		how := fmt.Sprintf("in User-Mode Linux, on a loop device over an image of %s; a system call takes %v there, and %v outside", cli.BytesText(s.Size), g.call, g.Call)
		plan.FileSystems = append(plan.FileSystems, result.FileSystem{Name: s.Name, How: how, Size: s.Size, Machine: machine.Read(g.mounts[i].Dir)})
	}
	return m, plan, err
}

// serve sends the plan and runs the trials that the host orders.
func (g *guest) serve(ctx context.Context, m trial.Matrix, plan guestPlan) error {
	asked, answers := json.NewDecoder(g.machine.Line), json.NewEncoder(g.machine.Line)
	if err := answers.Encode(plan); err != nil {
		return err
	}
	for {
		var t guestTrial
		if err := asked.Decode(&t); err != nil || t.Cell == "" {
			return err
		}
		at := slices.IndexFunc(m.Cells, func(c trial.Cell) bool { return c.Name == t.Cell })
		if at < 0 {
			return fmt.Errorf("there is no %q", t.Cell)
		}
		measured, err := m.Cells[at].Run(ctx, nil, t.WarmUp)
		if err != nil {
			return err
		}
		if err := answers.Encode(measured); err != nil {
			return err
		}
	}
}
