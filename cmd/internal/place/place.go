// Package place is where the trials of a run are. They are in a directory, on file systems that are
// made for the run, or in a kernel that is started for it. A run uses a [Place], and does not know
// which.
package place

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/sweep"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/volume"
)

// CloseWorkDir removes the ground, and adds a failure of that to the error of the run.
func CloseWorkDir(ground *trial.WorkDir, err error) error {
	closeErr := ground.Close()
	switch {
	case closeErr == nil:
		return err
	case err == nil:
		return &cli.Refusal{Code: cli.ExitCannot, Err: closeErr, Hint: "remove " + ground.Dir() + " by hand"}
	}
	return errors.Join(err, fmt.Errorf("%w; remove %s by hand", closeErr, ground.Dir()))
}

// onKind names the file system of a directory, if it is known.
func onKind(dir string) string {
	kind, err := sys.FileSystem(dir)
	if err != nil || kind == "" {
		return ""
	}
	return ": it is on " + kind
}

// HintRoom helps against a full disk.
const HintRoom = "free some space, or name a directory on another disk with --dir"

// MinRoom is less than any disk writes in the window of a steady state.
const MinRoom = 64 * holdfast.MiB

// BesideKind is run here and in a started kernel, so that a reader sees what that costs.
const BesideKind = "ext4"

// A Host is the directory of a run, and how the place reports to the run's user.
type Host struct {
	Dir     string // as the user gave it
	WorkDir *trial.WorkDir
	Say     func(format string, args ...any)
	Kept    func(hint string) string // adds where the results are
}

// A Wish is a run's request for its place.
type Wish struct {
	Dir     string
	Kinds   []volume.Kind  // to be made; nil: none
	Study   study.Study    // that is run; without a name, a sweep of policies
	Earlier *result.Header // that decides what is run; nil: the choice does
}

// Outline is the plan of the run, as far as that is known before. Of several file systems it is the
// plan for each.
func (w Wish) Outline(c study.Choice) ([]result.Cell, result.Plan) {
	if w.Study.Name != "" {
		return w.Study.OutlineOn(c)
	}
	return sweep.Policy().OutlineOn(c)
}

// A Place is where the trials of a run are.
type Place interface {
	// Names are its file systems' names.
	Names() string
	// Described are its file systems as the results have them; none is the directory's.
	Described(host []machine.Fact) []result.FileSystem
	// Missing lists the wanted file systems that can't be had.
	Missing() []result.Missing
	// Sites are the directories that other processes of this kernel reach.
	Sites() []study.Site
	// Need refuses a plan for which there is no room.
	Need(plan result.Plan) error

	// Sweep, Study and Again prepare the trials: of policies, of a study, of an earlier run.
	Sweep(ctx context.Context, of sweep.Sweep, c study.Choice, progress func(done, all int)) (trial.Matrix, result.Plan, error)
	Study(of study.Study, c study.Choice) (trial.Matrix, result.Plan, []result.Missing, error)
	// The earlier run may be of one of these studies.
	Again(studies study.List, h result.Header, counting trial.Counting) (trial.Matrix, error)
}

// An Order is a place that is not yet made.
type Order interface {
	// Plan returns all its file systems, and a note for the plan, or an empty one.
	Plan() (Orders, string)
	// Make makes what lies in this kernel. The caller closes what it returns, also after an error.
	Make(ctx context.Context, h Host) (*Volumes, error)
	// Measure makes the rest and calls measure, with the choice as it is for that place.
	Measure(ctx context.Context, h Host, v *Volumes, c study.Choice, measure func(Place, study.Choice) error) error
}

// A Kernel is one that can be started for a run, with file systems of its own.
type Kernel interface {
	Name() string
	// Had reports whether an earlier run had trials in it.
	Had(earlier result.Header) bool
	// Packages of Debian are missing for it and for these file systems in it.
	Packages(ctx context.Context, kinds []volume.Kind) []string
	// Order finds what of a wish can be had, and puts all file systems of the run into the choice.
	Order(ctx context.Context, w Wish, c *study.Choice) (Order, error)
}

// A Starter starts a kernel for work that is no run's.
type Starter interface {
	Name() string
	// Can returns nil if the kernel has the file system and the programs outside make it. A
	// refusal says that there is no such kernel.
	Can(ctx context.Context, kind string) error
	// Start does the work, and returns when nothing of the kernel is left.
	Start(ctx context.Context, w Work) error
}

// Work is this program's task in a kernel that is started for it. Its root is the one outside,
// which it only reads.
type Work struct {
	Dir    string   // where the kernel has its own files while it runs
	Kind   string   // the file system that the kernel must have
	Args   []string // of this program
	Input  []byte
	Output func(io.Reader) error // reads until the work's end
}

// Plan implements [Order].
func (o Orders) Plan() (Orders, string) { return o, "" }

// Measure implements [Order].
func (o Orders) Measure(_ context.Context, h Host, v *Volumes, c study.Choice, measure func(Place, study.Choice) error) error {
	return measure(v.In(h.WorkDir), c)
}

// In is the place of the volumes; if there are none it is the ground.
func (m *Volumes) In(ground *trial.WorkDir) Place {
	if len(m.sites) == 0 {
		return directory{ground}
	}
	return m
}

// A directory is a place on the file system that it is on. Its methods implement [Place].
type directory struct{ ground *trial.WorkDir }

func (d directory) Names() string                                { return d.ground.FileSystem }
func (d directory) Described([]machine.Fact) []result.FileSystem { return nil }
func (d directory) Missing() []result.Missing                    { return nil }
func (d directory) Sites() []study.Site                          { return []study.Site{{WorkDir: d.ground}} }

func (d directory) Need(plan result.Plan) error {
	return errors.Join(d.ground.Need(plan.Room), d.ground.NeedFiles(plan.Files))
}

func (d directory) Sweep(ctx context.Context, of sweep.Sweep, c study.Choice, progress func(done, all int)) (trial.Matrix, result.Plan, error) {
	return of.Prepare(ctx, d.ground, c, progress)
}

func (d directory) Study(of study.Study, c study.Choice) (trial.Matrix, result.Plan, []result.Missing, error) {
	return of.Prepare(d.ground, c)
}

func (d directory) Again(studies study.List, h result.Header, counting trial.Counting) (trial.Matrix, error) {
	return sweep.Again(studies, h, counting)
}

// Missing implements [Place].
func (m *Volumes) Missing() []result.Missing { return m.missing }

// Sites implements [Place].
func (m *Volumes) Sites() []study.Site { return m.sites }

// Need implements [Place]: they were made as large as the plan needs.
func (m *Volumes) Need(result.Plan) error { return nil }

// Sweep implements [Place].
func (m *Volumes) Sweep(ctx context.Context, of sweep.Sweep, c study.Choice, progress func(done, all int)) (trial.Matrix, result.Plan, error) {
	return of.PrepareOn(ctx, m.sites, c, progress)
}

// Study implements [Place].
func (m *Volumes) Study(of study.Study, c study.Choice) (trial.Matrix, result.Plan, []result.Missing, error) {
	matrix, plan, missing, err := of.PrepareOn(m.sites, c)
	return matrix, plan, append(missing, m.missing...), err
}

// Again implements [Place].
func (m *Volumes) Again(studies study.List, h result.Header, counting trial.Counting) (trial.Matrix, error) {
	return sweep.AgainOn(studies, h, counting, m.sites)
}

// Packages are the Debian packages that these kinds need, each once; can says what is missing.
func Packages(kinds []volume.Kind, can func(volume.Kind) error) (packages []string) {
	for _, k := range kinds {
		var missing *volume.MissingError
		if k.Dir == "" && errors.As(can(k), &missing) && missing.Package != "" {
			packages = append(packages, missing.Package)
		}
	}
	slices.Sort(packages)
	return slices.Compact(packages)
}

// IsDir refuses a directory that is not there.
func IsDir(dir string) error {
	if why := cli.NotDir(dir); why != nil {
		return cli.Misuse("give an existing directory on the disk to measure", "--dir %s: %w", dir, why)
	}
	return nil
}

// CannotOpen says why nothing can be measured in the directory given.
func CannotOpen(dir string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if info, statErr := os.Stat(dir); statErr == nil && info.IsDir() {
			return &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("--dir %s: no file can be made in this directory%s", dir, onKind(dir)), Hint: "give a directory on a disk"}
		}
		return cli.Misuse("give an existing directory on the disk to measure", "--dir %s: there is no such directory", dir)
	case errors.Is(err, trial.ErrNotDir):
		return cli.Misuse("name the directory that the file is in", "--dir: %w", err)
	case errors.Is(err, trial.ErrMemoryOnly):
		return &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("--dir: %w", err), Hint: "name a directory on a disk, or add --allow-tmpfs to measure memory alone"}
	case retry.Is(err, syscall.ENOSPC, syscall.EDQUOT):
		return &cli.Refusal{Code: cli.ExitCannot, Err: err, Hint: HintRoom}
	}
	hint := "give a directory that you may write to"
	if retry.Is(err, syscall.EMFILE) {
		hint = cli.DiskHint(err)
	}
	return &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("--dir: can't make a directory in %s: %w", dir, cli.Cause(err)), Hint: hint}
}
