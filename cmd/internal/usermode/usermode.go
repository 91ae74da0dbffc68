// Package usermode runs trials on file systems inside User-Mode Linux, beside those on one
// outside. Only this package knows that a run may be inside: others see a [place.Kernel].
package usermode

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

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/uml"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/place"
	"github.com/holdfast-go/holdfast/internal/volume"
)

// Name is the kernel's name for --kernel.
const Name = "uml"

// insidePrefix begins the name of a file system inside: see [result.Cell.FileSystem].
const insidePrefix = "uml-"

// The commands that the program runs itself as in the guest.
const (
	guestCommand = "uml-guest"
	workCommand  = "uml-work"
)

// silence is how long the guest may be silent. It sends a sign of life each sixth of it.
const silence = time.Minute

// Kernel is User-Mode Linux.
type Kernel struct{}

// Name implements [place.Kernel].
func (Kernel) Name() string { return Name }

// Had implements [place.Kernel].
func (Kernel) Had(earlier result.Header) bool {
	return slices.ContainsFunc(earlier.Cells, func(c result.Cell) bool { return strings.HasPrefix(c.FileSystem, insidePrefix) })
}

// Packages implements [place.Kernel]: the images are made outside.
func (Kernel) Packages(ctx context.Context, kinds []volume.Kind) []string {
	packages := place.Packages(kinds, volume.Kind.CanMake)
	var missing *uml.MissingError
	if _, err := uml.Find(ctx); errors.As(err, &missing) && missing.Package != "" {
		packages = append(packages, missing.Package)
	}
	slices.Sort(packages)
	return slices.Compact(packages)
}

// An order is a run on file systems inside User-Mode Linux, and on one outside. Each round has
// the trials of both, in one random order.
type order struct {
	place.Orders // outside
	wish         place.Wish
	kernel       uml.Kernel
	list         []place.Ordered // inside, by the names that they have outside
}

// Order finds what of a wish can be had inside, and puts all file systems of the run into
// the choice.
func (Kernel) Order(ctx context.Context, w place.Wish, c *study.Choice) (place.Order, error) {
	kernel, err := find(ctx)
	var missing *uml.MissingError
	if refusal := (*cli.Refusal)(nil); errors.As(err, &refusal) && errors.As(err, &missing) {
		refusal.Hint += "; or add --install"
	}
	if err != nil {
		return nil, err
	}
	u := &order{wish: w, kernel: kernel}
	if w.Earlier != nil {
		return u, u.orderAgain(*w.Earlier)
	}
	var kinds []volume.Kind
	for _, k := range withBeside(w.Kinds) {
		if err := u.can(k); err != nil {
			u.Missing = append(u.Missing, missingInside(k, err))
			continue
		}
		kinds = append(kinds, k)
	}
	if len(kinds) == 0 {
		return nil, &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("--fs: %s", strings.Join(study.MissingByReason(u.Missing), "; ")), Hint: "add --install to install the missing packages"}
	}
	return u, u.orderNew(c, kinds)
}

// find finds the kernel, or refuses what needs it.
func find(ctx context.Context) (uml.Kernel, error) {
	kernel, err := uml.Find(ctx)
	var missing *uml.MissingError
	switch {
	case errors.Is(err, context.Canceled):
		err = &cli.Refusal{Code: cli.ExitInterrupted, Err: errors.New("interrupted before anything was measured"), Hint: "nothing was written"}
	case errors.As(err, &missing):
		err = &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("--kernel %s: %w", Name, err), Hint: "install it with: apt-get install " + missing.Package}
	}
	return kernel, err
}

// orderNew orders the kinds inside, and one file system outside.
func (u *order) orderNew(c *study.Choice, kinds []volume.Kind) error {
	c.FileSystems = []string{place.BesideKind}
	beside := slices.IndexFunc(kinds, func(k volume.Kind) bool { return k.Name == place.BesideKind })
	made := beside >= 0 && kinds[beside].Can() == nil
	if !made {
		u.Own = cmp.Or(machine.Get(machine.Read(u.wish.Dir), "file system").Value, "unknown")
		c.FileSystems = []string{u.Own}
	}
	for _, k := range kinds {
		c.FileSystems = append(c.FileSystems, insidePrefix+k.Name)
	}
	place.LimitRoom(u.wish.Dir, c)
	_, plan := u.wish.Outline(*c)
	for _, k := range kinds {
		u.list = append(u.list, place.OrderOf(k, plan))
	}
	if made {
		u.List = []place.Ordered{place.OrderOf(kinds[beside], plan)}
	}
	return nil
}

// parted returns the header with the cells that are run inside alone, or with the others.
func parted(h result.Header, inside bool) result.Header {
	h.Cells = slices.DeleteFunc(slices.Clone(h.Cells), func(c result.Cell) bool { return strings.HasPrefix(c.FileSystem, insidePrefix) != inside })
	return h
}

// orderAgain orders what an earlier run had, of the same sizes: all of it must be had.
func (u *order) orderAgain(h result.Header) (err error) {
	if u.Orders, err = place.OrderAgain(parted(h, false)); err != nil {
		return err
	}
	for _, name := range (result.Run{Header: parted(h, true)}).FileSystems() {
		kinds, err := volume.Parse(strings.TrimPrefix(name, insidePrefix))
		if err != nil {
			return cli.Misuse("repeat the run on the machine that made it", "the results need file systems that can't be made here: %w", err)
		}
		if err := u.can(kinds[0]); err != nil {
			return place.NoneCanBeMade([]result.Missing{missingInside(kinds[0], err)}, err)
		}
		u.list = append(u.list, place.OrderOfRun(kinds[0], name, h))
	}
	return nil
}

// Plan implements [place.Order], for both sides.
func (u *order) Plan() (place.Orders, string) {
	o := u.Orders
	o.Again, o.List = u.wish.Earlier != nil, slices.Clone(o.List)
	for _, one := range u.list {
		one.Kind.Name = insidePrefix + one.Kind.Name
		o.List = append(o.List, one)
	}
	return o, "system calls take longer inside: arms that would take too long do less work than planned here"
}

// withBeside adds the kind that is run on both sides.
func withBeside(kinds []volume.Kind) []volume.Kind {
	if slices.Contains(place.KindNames(kinds), place.BesideKind) {
		return kinds
	}
	beside, err := volume.Parse(place.BesideKind)
	if err != nil {
		return kinds
	}
	return append(slices.Clip(kinds), beside...)
}

// can returns why a kind can't be had inside, or nil.
func (u *order) can(k volume.Kind) error {
	if err := u.kernel.Can(k.Type); err != nil {
		return err
	}
	if err := k.CanMake(); err != nil {
		return err
	}
	if k.Type == "bfs" && u.wish.Earlier == nil && !u.wish.Study.Flat {
		return errors.New("a bfs has no directories and no fsync, which this needs")
	}
	return nil
}

func missingInside(k volume.Kind, err error) result.Missing {
	m := place.MissingKind(k, err)
	m.Cell = insidePrefix + k.Name
	return m
}

// callTime is about what a write(2) of a byte to the null device takes here. It is the
// least of some means, because other processes use the CPU too. With too large a time,
// the plan would make arms that are too short to measure anything.
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
