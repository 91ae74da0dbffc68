package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/machine"
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/study"
	"github.com/holdfast-go/holdfast/internal/trial"
	"github.com/holdfast-go/holdfast/internal/uml"
)

// guestCommands are those that the program runs itself as in User-Mode Linux.
func guestCommands() []*cobra.Command {
	return []*cobra.Command{{
		Use:    guestCommand,
		Short:  "measure inside User-Mode Linux, for bench",
		Hidden: true,
		Args:   cobra.ArbitraryArgs, // what the kernel hands on
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := uml.Enter()
			if err != nil {
				return misuse("bench calls this command itself", "%w", err)
			}
			return m.Leave(inGuest(cmd.Context(), m, cmd.ErrOrStderr()))
		},
	}}
}

// A guest is a run inside.
type guest struct {
	guestTask
	machine *uml.Machine
	mounts  []*uml.Mount
	session *session
	call    time.Duration // what a system call takes inside
}

// inGuest does the task.
func inGuest(ctx context.Context, m *uml.Machine, stderr io.Writer) (err error) {
	g := &guest{machine: m, call: callTime()}
	if err := json.Unmarshal(m.Task, &g.guestTask); err != nil {
		return err
	}
	sites, err := g.open()
	defer func() { err = g.close(sites, err) }()
	if err != nil {
		return err
	}
	g.session = newSession(stderr, sites[0].Ground, "/mnt", filepath.Join(m.Share, guestResults))
	g.session.made = &made{sites: sites}
	g.session.say("a system call takes %v, and %v outside", g.call, g.Call)
	return g.measure(ctx)
}

// open mounts the images and opens a ground on each. The caller closes them also
// after an error.
func (g *guest) open() (sites []study.Site, err error) {
	for _, s := range g.Sites {
		dir := "/mnt/" + s.Name
		mounted, err := g.machine.Mount(filepath.Join(g.machine.Share, s.Name), dir, s.Type, s.Options)
		if err != nil {
			return sites, err
		}
		g.mounts = append(g.mounts, mounted)
		open := func() (*trial.Ground, error) { return trial.OpenGround(dir, true) }
		if s.Type == "bfs" {
			open = func() (*trial.Ground, error) { return trial.OpenWhole(dir) }
		}
		ground, err := open()
		if err != nil {
			return sites, fmt.Errorf("%s: %w", s.Name, err)
		}
		ground.Second = secondProcess
		sites = append(sites, study.Site{FileSystem: s.Name, Ground: ground})
	}
	return sites, nil
}

func (g *guest) close(sites []study.Site, err error) error {
	for _, s := range sites {
		err = errors.Join(err, s.Ground.Close())
	}
	for _, m := range g.mounts {
		err = errors.Join(err, m.Close())
	}
	return err
}

// measure runs the study or the sweep on all of the file systems.
func (g *guest) measure(ctx context.Context) error {
	s := g.session
	g.Choice.Counting = s.counting
	of, named := study.Find(g.Study)
	if !named {
		sweep := study.Policy()
		s.name, s.question = sweep.Name, sweep.Question
		matrix, plan, err := sweep.PrepareOn(ctx, s.made.sites, g.Choice, s.show.probing)
		return errors.Join(err, g.run(ctx, matrix, plan, nil, err))
	}
	s.name, s.question = of.Name, of.Question
	g.Choice.Slower = max(0, g.call-g.Call)
	matrix, plan, missing, err := of.PrepareOn(s.made.sites, g.Choice)
	matrix.Limit, plan.Limit = g.Limit, g.Limit
	return errors.Join(err, g.run(ctx, matrix, plan, missing, err))
}

// run runs a matrix that was prepared without an error.
func (g *guest) run(ctx context.Context, m trial.Matrix, plan result.Plan, missing []result.Missing, err error) error {
	if err != nil {
		return nil
	}
	text, err := json.Marshal(g.Choice)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(g.machine.Share, guestChoice), text, 0o644); err != nil {
		return err
	}
	h := g.session.header(m, plan)
	h.Settings, h.Missing = g.Choice.Settings(), missing
	for i, s := range g.Sites {
		how := fmt.Sprintf("in User-Mode Linux, on a loop device over an image of %s; a system call takes %v there, and %v outside", bytesText(s.Size), g.call, g.Call)
		h.FileSystems = append(h.FileSystems, result.FileSystem{Name: s.Name, How: how, Size: s.Size, Machine: machine.Read(g.mounts[i].Dir)})
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go handOver(ctx, g.session.output)
	return g.session.begin(ctx, h, m)
}

// handOver hands the results so far to the kernel outside now and then, until ctx is
// done: what the guest's memory alone has of them goes with a guest that is killed.
func handOver(ctx context.Context, results string) {
	const every = time.Second
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if f, err := os.Open(results); err == nil {
			_ = unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WRITE)
			_ = f.Close()
		}
	}
}
