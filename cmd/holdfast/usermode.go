package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/internal/machine"
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/study"
	"github.com/holdfast-go/holdfast/internal/uml"
	"github.com/holdfast-go/holdfast/internal/volume"
)

// userModeKernel is the kernel that --kernel can name.
const userModeKernel = "uml"

// insidePrefix begins the name of a file system inside: see [result.Cell.FileSystem].
const insidePrefix = "uml-"

// besideKind is run inside and outside, so that a reader sees what being inside costs.
const besideKind = "ext4"

// guestCommand is the command that the program runs itself as in the guest.
const guestCommand = "uml-guest"

// silence is how long the guest may tell nothing. It tells of itself each sixth of it.
const silence = time.Minute

func parseKernel(text string) (string, error) {
	if text != userModeKernel {
		return "", fmt.Errorf("%q is no kernel that can be started; use %s, or leave the flag out for the one that runs", text, userModeKernel)
	}
	return text, nil
}

// A userMode is a run on file systems inside User-Mode Linux, and on one outside.
type userMode struct {
	*benchmark
	kernel  uml.Kernel
	list    []ordered // inside, by the names that they have outside
	outside orders
	earlier *result.Header // that decides what is run; nil: what is chosen does
}

// inUserMode runs what is chosen, or what an earlier run had, inside and outside as one
// run: each round has the trials of both, in one random order.
func (b *benchmark) inUserMode(cmd *cobra.Command, c study.Choice, earlier result.Run, again bool) error {
	u, err := b.orderInside(cmd.Context(), &c, earlier.Header)
	if err != nil {
		return err
	}
	cells, plan := b.outline(c)
	if u.earlier != nil {
		cells, plan, c.Seed = earlier.Header.Cells, earlier.Header.Plan, earlier.Header.Seed
	}
	if b.dryRun {
		err := b.tellPlan(cmd.OutOrStdout(), cells, plan, c.Seed, u.all())
		fmt.Fprintln(cmd.OutOrStdout(), "a system call takes longer inside: arms that would not fit into their time do less than this")
		return err
	}
	if err := b.cleanResumed(cmd, earlier); err != nil {
		return err
	}
	return b.onGround(cmd, u.outside, func(ctx context.Context, s *session) error {
		return u.inside(ctx, s, c, func(c study.Choice) error { return b.measured(ctx, s, c, earlier, again) })
	})
}

// findKernel looks for the kernel.
func (b *benchmark) findKernel(ctx context.Context) (uml.Kernel, error) {
	kernel, err := uml.Find(ctx)
	var missing *uml.MissingError
	if errors.Is(err, context.Canceled) {
		return kernel, &refusal{exitInterrupted, errors.New("interrupted before anything was measured"), "nothing was written"}
	}
	if errors.As(err, &missing) {
		return kernel, &refusal{exitCannot, fmt.Errorf("--kernel %s: %w", userModeKernel, err), "install it with: apt-get install " + missing.Package + "; or give --install"}
	}
	return kernel, err
}

// orderInside looks what of --fs, or of an earlier run, can be had inside, and puts all
// file systems of the run into the choice.
func (b *benchmark) orderInside(ctx context.Context, c *study.Choice, earlier result.Header) (*userMode, error) {
	kernel, err := b.findKernel(ctx)
	if err != nil {
		return nil, err
	}
	u := &userMode{benchmark: b, kernel: kernel}
	if hasInside(earlier) {
		return u, u.orderAgain(earlier)
	}
	var kinds []volume.Kind
	for _, k := range withBeside(b.fs) {
		if err := u.can(k); err != nil {
			u.outside.missing = append(u.outside.missing, missingInside(k, err))
			continue
		}
		kinds = append(kinds, k)
	}
	if len(kinds) == 0 {
		return nil, &refusal{exitCannot, fmt.Errorf("--fs: %s", strings.Join(study.MissingByReason(u.outside.missing), "; ")), "give --install, which gets what is missing"}
	}
	return u, u.orderNew(c, kinds)
}

// orderNew orders the kinds inside, and one file system outside.
func (u *userMode) orderNew(c *study.Choice, kinds []volume.Kind) error {
	c.FileSystems = []string{besideKind}
	beside := slices.IndexFunc(kinds, func(k volume.Kind) bool { return k.Name == besideKind })
	made := beside >= 0 && kinds[beside].Can() == nil
	if !made {
		u.outside.own = ownFileSystem(u.dir)
		c.FileSystems = []string{u.outside.own}
	}
	for _, k := range kinds {
		c.FileSystems = append(c.FileSystems, insidePrefix+k.Name)
	}
	if u.steady && u.room == 0 {
		c.Room = steadyRoom(u.dir, len(c.FileSystems))
	}
	_, plan := u.outline(*c)
	for _, k := range kinds {
		u.list = append(u.list, orderOf(k, plan))
	}
	if made {
		u.outside.list = []ordered{orderOf(kinds[beside], plan)}
	}
	return nil
}

// ownFileSystem names the one that a folder is on.
func ownFileSystem(dir string) string {
	return cmp.Or(machine.Get(machine.Read(dir), "file system").Value, "unknown")
}

// hasInside tells whether a run has file systems inside User-Mode Linux.
func hasInside(h result.Header) bool {
	return slices.ContainsFunc(h.Cells, func(c result.Cell) bool { return strings.HasPrefix(c.FileSystem, insidePrefix) })
}

// parted returns the header with the cells that are run inside alone, or with the others.
func parted(h result.Header, inside bool) result.Header {
	h.Cells = slices.DeleteFunc(slices.Clone(h.Cells), func(c result.Cell) bool { return strings.HasPrefix(c.FileSystem, insidePrefix) != inside })
	return h
}

// orderAgain orders what an earlier run had, of the same sizes: all of it must be had.
func (u *userMode) orderAgain(h result.Header) (err error) {
	u.earlier = &h
	if u.outside, err = orderAgain(parted(h, false)); err != nil {
		return err
	}
	for _, name := range (result.Run{Header: parted(h, true)}).FileSystems() {
		kinds, err := volume.Parse(strings.TrimPrefix(name, insidePrefix))
		if err != nil {
			return misuse("repeat it where it was run", "the results are of file systems that can't be made here: %w", err)
		}
		if err := u.can(kinds[0]); err != nil {
			return noneCanBeMade([]result.Missing{missingInside(kinds[0], err)}, err)
		}
		u.list = append(u.list, orderOfRun(kinds[0], name, h))
	}
	return nil
}

// all are the orders of both sides, for a plan.
func (u *userMode) all() orders {
	o := u.outside
	o.again, o.list = u.earlier != nil, slices.Clone(o.list)
	for _, one := range u.list {
		one.kind.Name = insidePrefix + one.kind.Name
		o.list = append(o.list, one)
	}
	return o
}

// withBeside adds the kind that is run on both sides.
func withBeside(kinds []volume.Kind) []volume.Kind {
	if slices.Contains(kindNames(kinds), besideKind) {
		return kinds
	}
	beside, err := volume.Parse(besideKind)
	if err != nil {
		return kinds
	}
	return append(slices.Clip(kinds), beside...)
}

// can returns why a kind can't be had inside, or nil.
func (u *userMode) can(k volume.Kind) error {
	if err := u.kernel.Can(k.Type); err != nil {
		return err
	}
	if err := k.CanMake(); err != nil {
		return err
	}
	if k.Type == "bfs" && u.earlier == nil && !u.study.Flat {
		return errors.New("a bfs has no folders and no fsync, which this needs")
	}
	return nil
}

func missingInside(k volume.Kind, err error) result.Missing {
	m := missingKind(k, err)
	m.Cell = insidePrefix + k.Name
	return m
}

// refuse gives an error of the guest, or of its images, its exit code and hint.
func (u *userMode) refuse(s *session, err error) error {
	var crash *uml.CrashError
	var guest *uml.GuestError
	var damage *volume.DamageError
	switch {
	case errors.As(err, &crash):
		return &refusal{exitCannot, err, s.kept("fewer file systems, or a smaller study, need less of it; what it told last: " + cmp.Or(lastOf(crash.Console), "nothing"))}
	case errors.As(err, &guest):
		return &refusal{exitCannot, fmt.Errorf("inside User-Mode Linux: %w", err), s.kept("what a file system lacks is another reason than what a disk lacks: leave it out of --fs")}
	case errors.As(err, &damage):
		return &refusal{exitNotMet, err, "this must not happen on a sound disk; please report it together with the kernel"}
	}
	return err
}

func lastOf(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return lines[len(lines)-1]
}

// callTime is what a write(2) of a byte to the null device takes here, about: the least
// of some means, because others have the CPU too, and a plan that takes a call to be
// slow makes arms that are too short to tell anything.
func callTime() time.Duration {
	f, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return 0
	}
	defer f.Close()
	const means, calls = 20, 100
	least := time.Duration(math.MaxInt64)
	for range means {
		begun := time.Now()
		for range calls {
			if _, err := f.Write([]byte{0}); err != nil {
				return 0
			}
		}
		least = min(least, time.Since(begun)/calls)
	}
	return least
}
