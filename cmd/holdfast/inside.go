package main

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

	"github.com/holdfast-go/holdfast/internal/machine"
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/study"
	"github.com/holdfast-go/holdfast/internal/trial"
	"github.com/holdfast-go/holdfast/internal/uml"
	"github.com/holdfast-go/holdfast/internal/volume"
)

// A guestTask is what the guest is to measure.
type guestTask struct {
	Study  string         `json:"study"` // empty: a sweep of policies
	Choice study.Choice   `json:"choice"`
	Again  *result.Header `json:"again,omitempty"` // of an earlier run, which decides instead of the choice
	Call   time.Duration  `json:"call_ns"`         // what a system call takes outside
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

// On the line, the guest first tells its plan. Then it is told a trial at a time, and
// answers each when it is done; one without a cell is the end.
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

// An inside is a guest that runs: it measures a trial when it is asked to.
type inside struct {
	line    *os.File
	replies *json.Decoder
	stop    context.CancelFunc
	ended   func() error // waits until the guest has ended, and says why
	plan    guestPlan
}

// inside runs a guest on images of its own while measure is called, with the choice for
// the side outside.
func (u *userMode) inside(ctx context.Context, s *session, c study.Choice, measure func(study.Choice) error) (err error) {
	images, err := u.makeImages(ctx, s)
	if images != nil {
		defer func() { err = errors.Join(err, images.Close()) }()
	}
	if err != nil {
		return err
	}
	i, err := u.boot(ctx, s, images, c)
	if err == nil {
		s.made = s.made.with(i)
		c.Only, c.PlanSlower = i.arms(), i.plan.Slower // arms of the sizes that they have inside
		err = i.end(measure(c))
	}
	if err == nil {
		err = u.check(ctx, images)
	}
	return u.refuse(s, err)
}

// makeImages makes the file systems. What it returns is closed also after an error.
func (u *userMode) makeImages(ctx context.Context, s *session) (*volume.Images, error) {
	if err := s.ground.Need(orders{list: u.list}.images()); err != nil {
		return nil, err
	}
	images, err := volume.NewImages(s.dir)
	if err != nil {
		return nil, cannotMake(err)
	}
	for _, folder := range images.Removed() {
		s.say("removed %s, which a killed run had left", folder)
	}
	for _, one := range u.list {
		s.say("making %s%s in an image of %s", insidePrefix, one.kind.Name, bytesText(one.size))
		if err := images.Make(ctx, one.kind, one.size); err != nil {
			return images, cannotMake(err)
		}
	}
	return images, nil
}

// check lets the programs of the file systems look at the images.
func (u *userMode) check(ctx context.Context, images *volume.Images) (err error) {
	for _, one := range u.list {
		err = errors.Join(err, images.Check(ctx, one.kind))
	}
	return err
}

// task is what the guest is told of the choice.
func (u *userMode) task(c study.Choice) guestTask {
	t := guestTask{Study: u.named, Choice: c.Part(len(u.list)), Call: callTime()}
	if u.earlier != nil {
		h := parted(*u.earlier, true)
		t.Study, t.Again = h.Study, &h
	}
	for _, one := range u.list {
		k := one.kind
		t.Sites = append(t.Sites, guestSite{insidePrefix + k.Name, volume.ImageName(k.Name), k.Type, k.Options, one.size})
	}
	return t
}

// boot starts the guest and waits for its plan.
func (u *userMode) boot(ctx context.Context, s *session, images *volume.Images, c study.Choice) (*inside, error) {
	text, err := json.Marshal(u.task(c))
	if err != nil {
		return nil, err
	}
	line, theirs, err := uml.NewLine()
	if err != nil {
		return nil, err
	}
	guest := uml.Guest{
		Command: guestCommand, Task: text, Modules: u.modules(), Memory: u.memory(), Share: images.Folder(), Silence: silence, Line: theirs,
		Console: func(line string) {
			if told, ok := strings.CutPrefix(line, "holdfast: "); ok {
				s.say("inside: %s", told)
			}
		},
	}
	s.say("starting User-Mode Linux %s with %s of memory", u.kernel.Release, bytesText(guest.Memory))
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- u.kernel.Run(ctx, guest) }()
	i := &inside{line: line, replies: json.NewDecoder(line), stop: stop, ended: sync.OnceValue(func() error { return <-ended })}
	if err := i.answer(&i.plan); err != nil {
		return nil, i.end(err)
	}
	return i, nil
}

func (u *userMode) modules() []string {
	modules := []string{"loop"}
	for _, one := range u.list {
		modules = append(modules, one.kind.Type)
	}
	return modules
}

// memory is room for the files of a trial in two page caches, that of the file
// system and that of hostfs, and for their writers not to be slowed by the kernel's
// limits, which are parts of the memory.
func (u *userMode) memory() int64 {
	const least, most = 512 << 20, 4 << 30
	image := int64(0)
	for _, one := range u.list {
		image = max(image, one.size)
	}
	return min(max(least, 4*image), most)
}

// answer reads what the guest tells. Where it tells nothing any more, it is why.
func (i *inside) answer(v any) error {
	err := i.replies.Decode(v)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) {
		if why := i.ended(); why != nil {
			return why
		}
	}
	return err
}

// tell hands the guest a trial to run. A guest that has ended is told of by answer.
func (i *inside) tell(t guestTrial) error {
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
		err = i.tell(guestTrial{})
	}
	if err != nil {
		i.stop()
		_ = i.ended()
		return errors.Join(err, i.line.Close())
	}
	return errors.Join(i.ended(), i.line.Close())
}

// cells are those that the guest runs.
func (i *inside) cells() (all []trial.Cell) {
	for _, c := range i.plan.Cells {
		name := c.Cell.Name
		run := func(_ context.Context, _ *trial.Ground, warmUp bool) (m result.Measurement, err error) {
			if err := i.tell(guestTrial{name, warmUp}); err != nil {
				return m, fmt.Errorf("the line to User-Mode Linux: %w", err)
			}
			return m, i.answer(&m)
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

// described are the guest's file systems as the results have them.
func (i *inside) described(host []machine.Fact) (all []result.FileSystem) {
	for _, f := range i.plan.FileSystems {
		all = append(all, result.NewFileSystem(f.Name, f.How, f.Size, host, f.Machine))
	}
	return all
}

// beside adds the guest's cells to those outside, of which there may be none.
func (i *inside) beside(m trial.Matrix, plan result.Plan, err error) (trial.Matrix, result.Plan, error) {
	if err != nil && !errors.Is(err, study.ErrNoArm) {
		return m, plan, err
	}
	m, plan = study.Beside(m, plan, i.cells(), i.plan.Plan)
	return m, plan, nil
}

// again returns the matrix of an earlier run, of which m has the cells outside.
func (i *inside) again(h result.Header, m trial.Matrix) (trial.Matrix, error) {
	both := append(m.Cells, i.cells()...)
	m.Cells = nil
	for _, want := range h.Cells {
		at := slices.IndexFunc(both, func(c trial.Cell) bool { return c.Cell == want })
		if at < 0 {
			return m, fmt.Errorf("there is no such arm here as %s", want.Name)
		}
		m.Cells = append(m.Cells, both[at])
	}
	return m, nil
}
