package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast/internal/machine"
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/study"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/trial"
	"github.com/holdfast-go/holdfast/internal/volume"
)

func fileSystemsFlag(f *pflag.FlagSet, kinds *[]volume.Kind) {
	set := func(text string) error {
		more, err := volume.Parse(text)
		for _, k := range more {
			if !slices.Contains(kindNames(*kinds), k.Name) {
				*kinds = append(*kinds, k)
			}
		}
		return err
	}
	f.Var(flagValue{"list", set, func() string { return strings.Join(kindNames(*kinds), ",") }}, "fs", "make these file systems, each in an image in --dir, and measure on\nall of them side by side, such as ext4,xfs,btrfs (root)")
}

func kindNames(kinds []volume.Kind) (names []string) {
	for _, k := range kinds {
		names = append(names, k.Name)
	}
	return names
}

// An ordered file system is one that is to be made.
type ordered struct {
	kind volume.Kind
	size int64
}

// orders are all file systems that a run makes for itself, and those that it would and
// that can't be had here.
type orders struct {
	list    []ordered
	missing []result.Missing
	again   bool // as an earlier run had them

	// own names the folder's own file system where that is measured too, beside those
	// inside User-Mode Linux; else it is empty.
	own string
}

// order looks what of --fs, or of an earlier run, can be made here, and how large. It
// takes what can't be out of the choice.
func (b *benchmark) order(c *study.Choice, earlier result.Header, again bool) (orders, error) {
	if again {
		return orderAgain(earlier)
	}
	o, err := b.possible()
	if err != nil || len(o.list) == 0 {
		return o, err
	}
	c.FileSystems = o.names()
	if b.steady && b.room == 0 {
		c.Room = steadyRoom(b.dir, len(o.list))
	}
	_, plan := b.outline(*c)
	for i, one := range o.list {
		o.list[i] = orderOf(one.kind, plan)
	}
	return o, nil
}

// possible orders what of --fs can be made here, of no size yet. Where that is nothing
// it is refused.
func (b *benchmark) possible() (o orders, err error) {
	var why error
	for _, k := range b.fs {
		if err := k.Can(); err != nil {
			o.missing, why = append(o.missing, missingKind(k, err)), errors.Join(why, err)
			continue
		}
		o.list = append(o.list, ordered{kind: k})
	}
	if len(b.fs) > 0 && len(o.list) == 0 {
		return o, noneCanBeMade(o.missing, why)
	}
	return o, nil
}

func (o orders) names() (names []string) {
	for _, one := range o.list {
		names = append(names, one.kind.Name)
	}
	return names
}

// orderOf is of a size that holds what the plan has on it at once, and as much again
// of what was removed and is not yet free.
func orderOf(k volume.Kind, plan result.Plan) ordered {
	return ordered{k, k.SizeFor(2*plan.Room, plan.Files)}
}

// steadyRoom is the largest file of a long trial where each of n images has to hold one.
func steadyRoom(dir string, n int) int64 {
	free, err := sys.FreeSpace(dir)
	if err != nil {
		return study.DefaultRoom
	}
	return max(int64(minRoom), min(study.DefaultRoom, free/int64(6*n)))
}

// orderAgain orders what the cells of an earlier run were on: all of it must be had.
func orderAgain(h result.Header) (orders, error) {
	o := orders{again: true}
	for _, name := range (result.Run{Header: h}).FileSystems() {
		if made, ok := h.Made(name); ok && made.Size == 0 {
			o.own = name
			continue
		}
		kinds, err := volume.Parse(name)
		if err != nil {
			return o, misuse("repeat it where it was run", "the results are of file systems that can't be made here: %w", err)
		}
		if err := kinds[0].Can(); err != nil {
			return o, noneCanBeMade([]result.Missing{missingKind(kinds[0], err)}, err)
		}
		o.list = append(o.list, orderOfRun(kinds[0], name, h))
	}
	return o, nil
}

// orderOfRun is as large as an earlier run had it, under its name.
func orderOfRun(k volume.Kind, name string, h result.Header) ordered {
	if made, ok := h.Made(name); ok && made.Size >= k.Least {
		return ordered{k, made.Size}
	}
	return ordered{k, k.SizeFor(2*h.Plan.Room, h.Plan.Files)}
}

func missingKind(k volume.Kind, err error) result.Missing {
	var missing *volume.MissingError
	if errors.As(err, &missing) {
		return result.Missing{Cell: k.Name, Why: missing.Why}
	}
	return result.Missing{Cell: k.Name, Why: err.Error()}
}

// noneCanBeMade refuses a run of which nothing is left. The hint is that of the first.
func noneCanBeMade(all []result.Missing, why error) error {
	var missing *volume.MissingError
	hint := "give a folder on a mounted one with --dir"
	if errors.As(why, &missing) {
		hint = missing.Hint()
	}
	return &refusal{exitCannot, fmt.Errorf("--fs: %s", strings.Join(study.MissingByReason(all), "; ")), hint}
}

// all is the plan of all, where plan is that of each.
func (o orders) all(plan result.Plan) result.Plan {
	sum := plan
	for range o.number() - 1 {
		sum = study.Sum(sum, plan)
	}
	return sum
}

// number is how many file systems each cell is run on.
func (o orders) number() int {
	if o.own != "" {
		return len(o.list) + 1
	}
	return len(o.list)
}

// text names them with their sizes, for a plan.
func (o orders) text() string {
	var parts []string
	for _, one := range o.list {
		parts = append(parts, fmt.Sprintf("%s of %s", one.kind.Name, bytesText(one.size)))
	}
	if o.own != "" {
		parts = append(parts, "the folder's own "+o.own)
	}
	return ", on each of " + strings.Join(parts, ", ")
}

// made are file systems that a run has made for itself, in order.
type made struct {
	volumes []*volume.Volume
	sites   []study.Site
	missing []result.Missing
	own     string  // of the sites, the one that is the folder's own file system; or empty
	inside  *inside // those of a guest; nil: none
}

// with returns what is made together with a guest's; nil is nothing so far.
func (m *made) with(i *inside) *made {
	if m == nil {
		m = &made{}
	}
	m.inside = i
	m.missing = append(slices.Clip(m.missing), i.plan.Missing...)
	return m
}

// make makes all that is ordered; nil is nothing. Also with an error the caller closes
// what it returns.
func (o orders) make(ctx context.Context, s *session) (*made, error) {
	if o.number() == 0 {
		return nil, nil
	}
	m := &made{missing: o.missing, own: o.own}
	if o.own != "" {
		m.sites = []study.Site{{FileSystem: o.own, Ground: s.ground}}
		s.say("outside it is measured on the folder's own %s: only root can mount an %s of its own", o.own, besideKind)
	}
	if err := s.ground.Need(o.images()); err != nil {
		return m, err
	}
	host := machine.Get(machine.Read(s.dir), "file system").Value
	for _, one := range o.list {
		v, err := volume.Make(ctx, s.dir, one.kind, one.size)
		if err != nil {
			return m, cannotMake(err)
		}
		m.volumes = append(m.volumes, v)
		for _, folder := range v.Removed() {
			s.say("removed %s, which a killed run had left", folder)
		}
		if err := m.open(v); err != nil {
			return m, err
		}
		s.say("made %s: %s", one.kind.Name, how(v, host))
	}
	return m, nil
}

// images is the room that all images take.
func (o orders) images() (size int64) {
	for _, one := range o.list {
		if one.kind.Type != "tmpfs" {
			size += one.size
		}
	}
	return size
}

// open opens a ground on a volume. A file system in memory was asked for by its name.
func (m *made) open(v *volume.Volume) error {
	ground, err := trial.OpenGround(v.Dir(), true)
	if err != nil {
		return err
	}
	ground.Second = secondProcess
	ground.Remount = func() error { return v.Remount(context.Background()) }
	m.sites = append(m.sites, study.Site{FileSystem: v.Kind().Name, Ground: ground})
	return nil
}

// how says on what a volume lies. Its folder has a new name in each run.
func how(v *volume.Volume, host string) string {
	switch {
	case v.Device() == "":
		return fmt.Sprintf("in memory, of at most %s", bytesText(v.Size()))
	case v.DirectIO():
		return fmt.Sprintf("in an image of %s on %s, on a loop device with direct I/O", bytesText(v.Size()), host)
	}
	return fmt.Sprintf("in an image of %s on %s, on a loop device without direct I/O: what is cold there may be in the memory of the %[2]s", bytesText(v.Size()), host)
}

// cannotMake gives an error of a volume its exit code and hint.
func cannotMake(err error) error {
	var missing *volume.MissingError
	var room *volume.RoomError
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &missing):
		return &refusal{exitCannot, fmt.Errorf("--fs: %w", err), missing.Hint()}
	case errors.As(err, &room):
		return &refusal{exitCannot, fmt.Errorf("--fs: %w", err), hintRoom}
	}
	return &refusal{exitCannot, fmt.Errorf("--fs: %w", err), "leave it out, or give a folder on another file system to --dir"}
}

// names are those of the file systems.
func (m *made) names() string {
	var names []string
	for _, s := range m.sites {
		names = append(names, s.FileSystem)
	}
	if m.inside != nil {
		for _, f := range m.inside.plan.FileSystems {
			names = append(names, f.Name)
		}
	}
	return strings.Join(names, ", ")
}

// described are the file systems as the results have them.
func (m *made) described(host []machine.Fact) (all []result.FileSystem) {
	lies := machine.Get(host, "file system").Value
	if m.own != "" {
		all = append(all, result.FileSystem{Name: m.own, How: "the file system of the folder itself", Machine: []machine.Fact{}})
	}
	for _, v := range m.volumes {
		all = append(all, result.NewFileSystem(v.Kind().Name, how(v, lies), v.Size(), host, machine.Read(v.Dir())))
	}
	if m.inside != nil {
		all = append(all, m.inside.described(host)...)
	}
	return all
}

// close takes all of it down and away, and adds to the error of the run what is damaged
// or left. Nil has none.
func (m *made) close(err error) error {
	if m == nil {
		return err
	}
	for _, s := range m.sites {
		if s.FileSystem != m.own {
			err = closeGround(s.Ground, err)
		}
	}
	var closeErr error
	for _, v := range slices.Backward(m.volumes) {
		closeErr = errors.Join(closeErr, v.Close())
	}
	var damage *volume.DamageError
	switch {
	case closeErr == nil:
		return err
	case err != nil:
		return errors.Join(err, closeErr)
	case errors.As(closeErr, &damage):
		return &refusal{exitNotMet, closeErr, "this must not happen on a sound disk; please report it together with the kernel"}
	}
	return &refusal{exitCannot, closeErr, "end what uses it; holdfast volumes --clean then removes what is left"}
}

// grounds are those that the run's cells are on.
func (s *session) grounds() []study.Site {
	if s.made != nil {
		return s.made.sites
	}
	return []study.Site{{Ground: s.ground}}
}
