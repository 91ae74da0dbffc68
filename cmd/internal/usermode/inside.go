package usermode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/uml"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/sweep"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
	"github.com/holdfast-go/holdfast/cmd/internal/place"
	"github.com/holdfast-go/holdfast/internal/volume"
)

// A guestTask is the guest's measurement.
type guestTask struct {
	Study  string         `json:"study"` // empty: a sweep of policies
	Choice study.Choice   `json:"choice"`
	Again  *result.Header `json:"again,omitempty"` // of an earlier run, which decides instead of the choice
	Call   time.Duration  `json:"call_ns"`         // a system call's time outside
	Sites  []guestSite    `json:"file_systems"`    // in images in the share
}

// A guestSite is an image that the guest mounts.
type guestSite struct {
	Name    string `json:"name"` // with its prefix
	Image   string `json:"image"`
	Type    string `json:"type"`
	Options string `json:"options"`
	Size    int64  `json:"size_bytes"`
}

// On the line, the guest first sends its plan. Then the host orders a trial at a time, and
// the guest answers each when it is done. A trial without a cell ends it.
type (
	guestPlan struct {
		Cells       []guestCell         `json:"cells"`
		Plan        result.Plan         `json:"plan"`
		Missing     []result.Missing    `json:"missing,omitempty"`
		FileSystems []result.FileSystem `json:"file_systems"`
		Slower      time.Duration       `json:"slower_ns"` // see [study.Choice]
	}
	guestCell struct {
		Cell     result.Cell   `json:"cell"`
		Estimate time.Duration `json:"estimate_ns"`
	}
	guestTrial struct {
		Cell   string `json:"cell,omitempty"`
		WarmUp bool   `json:"warm_up,omitempty"`
	}
)

// An inside is a running guest: it measures each trial that is ordered.
type inside struct {
	line    *os.File
	replies *json.Decoder
	stop    context.CancelFunc
	ended   func() error // waits until the guest has ended, and returns why
	plan    guestPlan
}

// Measure implements [place.Order]: it runs a guest on images of its own while measure is
// called, with the choice for the side outside.
func (u *order) Measure(ctx context.Context, h place.Host, outside *place.Volumes, c study.Choice, measure func(place.Place, study.Choice) error) (err error) {
	images, err := u.makeImages(ctx, h)
	if images != nil {
		defer func() { err = errors.Join(err, images.Close()) }()
	}
	if err != nil {
		return err
	}
	i, err := u.boot(ctx, h, images, c)
	if err == nil {
		c.Only, c.PlanSlower = i.arms(), i.plan.Slower // arms of the sizes that they have inside
		err = i.end(measure(both{outside, i}, c))
	}
	if err == nil { // the programs of the file systems look at the images
		for _, one := range u.list {
			err = errors.Join(err, one.Kind.CheckImage(ctx, images.Path(one.Kind)))
		}
	}
	// An error of the guest, or of its images, gets its exit code and hint.
	var crash *uml.CrashError
	var guest *uml.GuestError
	var damage *volume.DamageError
	switch {
	case errors.As(err, &crash):
		last := "nothing"
		if n := len(crash.Console); n > 0 {
			last = crash.Console[n-1]
		}
		return &cli.Refusal{Code: cli.ExitCannot, Err: err, Hint: h.Kept("measure fewer file systems, or a smaller study, to need less memory; its last line: " + last)}
	case errors.As(err, &guest):
		return &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("inside User-Mode Linux: %w", err), Hint: h.Kept("if the file system lacks a feature, leave it out of --fs")}
	case errors.As(err, &damage):
		return &cli.Refusal{Code: cli.ExitNotMet, Err: err, Hint: "this must not happen on a healthy disk; please report it with the kernel's version"}
	}
	return err
}

// makeImages makes the file systems. The result is closed also after an error.
func (u *order) makeImages(ctx context.Context, h place.Host) (*volume.Images, error) {
	if err := h.WorkDir.Need(place.Orders{List: u.list}.Images()); err != nil {
		return nil, err
	}
	images, err := volume.NewImages(h.Dir)
	if err != nil {
		return nil, place.CannotMake(err)
	}
	for _, dir := range images.Removed {
		h.Say("removed %s, a leftover of a killed run", dir)
	}
	for _, one := range u.list {
		h.Say("making %s%s in an image of %s", insidePrefix, one.Kind.Name, cli.BytesText(one.Size))
		if err := one.Kind.MakeImage(ctx, images.Path(one.Kind), one.Size); err != nil {
			return images, place.CannotMake(err)
		}
	}
	return images, nil
}

// task is the guest's part of the choice.
func (u *order) task(c study.Choice) guestTask {
	t := guestTask{Study: u.wish.Study.Name, Choice: c.Part(len(u.list)), Call: callTime()}
	if u.wish.Earlier != nil {
		h := parted(*u.wish.Earlier, true)
		t.Study, t.Again = h.Study, &h
	}
	for _, one := range u.list {
		k := one.Kind
		t.Sites = append(t.Sites, guestSite{insidePrefix + k.Name, volume.ImageName(k.Name), k.Type, k.Options, one.Size})
	}
	return t
}

// boot starts the guest and waits for its plan.
func (u *order) boot(ctx context.Context, h place.Host, images *volume.Images, c study.Choice) (*inside, error) {
	text, err := json.Marshal(u.task(c))
	if err != nil {
		return nil, err
	}
	line, theirs, err := uml.NewLine()
	if err != nil {
		return nil, err
	}
	modules := []string{"loop"}
	for _, one := range u.list {
		modules = append(modules, one.Kind.Type)
	}
	guest := uml.Guest{
		Command: guestCommand, Task: text, Modules: modules, Memory: u.memory(), Share: images.Dir(), Silence: silence, Line: theirs,
		Console: func(line string) {
			if text, ok := strings.CutPrefix(line, "holdfast: "); ok {
				h.Say("inside: %s", text)
			}
		},
	}
	h.Say("starting User-Mode Linux %s with %s of memory", u.kernel.Release, cli.BytesText(guest.Memory))
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- u.kernel.Run(ctx, guest) }()
	i := &inside{line: line, replies: json.NewDecoder(line), stop: stop, ended: sync.OnceValue(func() error { return <-ended })}
	if err := i.answer(&i.plan); err != nil {
		return nil, i.end(err)
	}
	return i, nil
}

// memory covers the files of a trial twice: in the guest's page cache and in hostfs's. It is large
// enough that the kernel does not slow their writers: its limits are parts of the memory.
func (u *order) memory() int64 {
	const least, most = 512 << 20, 4 << 30
	image := int64(0)
	for _, one := range u.list {
		image = max(image, one.Size)
	}
	return min(max(least, 4*image), most)
}

// answer reads the guest's answer. If the guest has ended, it returns why.
func (i *inside) answer(v any) error {
	err := i.replies.Decode(v)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) {
		if why := i.ended(); why != nil {
			return why
		}
	}
	return err
}

// order sends the guest a trial to run. If the guest has ended, answer returns why.
func (i *inside) order(t guestTrial) error {
	err := json.NewEncoder(i.line).Encode(t)
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// end lets the guest end, or after an error ends it, and returns when it has.
func (i *inside) end(err error) error {
	defer i.stop()
	if err == nil {
		err = i.order(guestTrial{})
	}
	if err != nil {
		i.stop()
		_ = i.ended()
		return errors.Join(err, i.line.Close())
	}
	return errors.Join(i.ended(), i.line.Close())
}

// cells are the cells that the guest runs.
func (i *inside) cells() (all []trial.Cell) {
	for _, c := range i.plan.Cells {
		name := c.Cell.Name
		run := func(_ context.Context, _ *trial.WorkDir, warmUp bool) (m result.Measurement, err error) {
			if err := i.order(guestTrial{name, warmUp}); err != nil {
				return m, fmt.Errorf("the line to User-Mode Linux: %w", err)
			}
			err = i.answer(&m)
			if m.Values == nil {
				m.Values = map[string]float64{}
			}
			m.Values[study.CPUUnparted] = 1
			return m, err
		}
		all = append(all, trial.Cell{Cell: c.Cell, Run: run, Estimate: c.Estimate})
	}
	return all
}

// arms names the arms that the guest has on any of its file systems.
func (i *inside) arms() (names []string) {
	for _, c := range i.plan.Cells {
		name := strings.TrimPrefix(c.Cell.Name, result.Named(c.Cell.FileSystem, ""))
		if c.Cell.Twin == "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// beside adds the guest's cells to those outside, if any.
func (i *inside) beside(m trial.Matrix, plan result.Plan, err error) (trial.Matrix, result.Plan, error) {
	if err != nil && !errors.Is(err, study.ErrNoArm) {
		return m, plan, err
	}
	m, plan = study.Beside(m, plan, i.cells(), i.plan.Plan)
	return m, plan, nil
}

// Both is a place on the file systems outside and in a guest.
type both struct {
	place.Place // outside
	guest       *inside
}

// Names implements [place.Place].
func (b both) Names() string {
	var names []string
	if outside := b.Place.Names(); outside != "" {
		names = append(names, outside)
	}
	for _, f := range b.guest.plan.FileSystems {
		names = append(names, f.Name)
	}
	return strings.Join(names, ", ")
}

// Described implements [place.Place].
func (b both) Described(host []machine.Fact) []result.FileSystem {
	all := b.Place.Described(host)
	for _, f := range b.guest.plan.FileSystems {
		all = append(all, result.NewFileSystem(f.Name, f.How, f.Size, host, f.Machine))
	}
	return all
}

// Missing implements [place.Place].
func (b both) Missing() []result.Missing {
	return append(slices.Clip(b.Place.Missing()), b.guest.plan.Missing...)
}

// Sweep implements [place.Place].
func (b both) Sweep(ctx context.Context, of sweep.Sweep, c study.Choice, progress func(done, all int)) (trial.Matrix, result.Plan, error) {
	m, plan, err := b.Place.Sweep(ctx, of, c.Part(1), progress)
	return b.guest.beside(m, plan, err)
}

// Study implements [place.Place].
func (b both) Study(of study.Study, c study.Choice) (trial.Matrix, result.Plan, []result.Missing, error) {
	m, plan, missing, err := b.Place.Study(of, c.Part(1))
	m.Seed = c.Seed // also where there is no arm outside
	m, plan, err = b.guest.beside(m, plan, err)
	return m, plan, append(missing, b.guest.plan.Missing...), err
}

// Again implements [place.Place].
func (b both) Again(studies study.List, h result.Header, counting trial.Counting) (trial.Matrix, error) {
	m, err := b.Place.Again(studies, parted(h, false), counting)
	if err != nil {
		return m, err
	}
	cells := append(m.Cells, b.guest.cells()...)
	m.Cells = nil
	for _, want := range h.Cells {
		at := slices.IndexFunc(cells, func(c trial.Cell) bool { return c.Cell == want })
		if at < 0 {
			return m, fmt.Errorf("this build has no arm %s", want.Name)
		}
		m.Cells = append(m.Cells, cells[at])
	}
	return m, nil
}
