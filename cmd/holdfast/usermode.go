package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/internal/machine"
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/study"
	"github.com/holdfast-go/holdfast/internal/trial"
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

// A guestTask is what the guest is to measure.
type guestTask struct {
	Study  string        `json:"study"` // empty: a sweep of policies
	Choice study.Choice  `json:"choice"`
	Limit  time.Duration `json:"limit_ns"`     // of the rounds; 0 is none
	Call   time.Duration `json:"call_ns"`      // what a system call takes outside
	Sites  []guestSite   `json:"file_systems"` // in images in the share
}

// A guestSite is an image that the guest mounts.
type guestSite struct {
	Name    string `json:"name"` // with its prefix; the image is called so
	Type    string `json:"type"`
	Options string `json:"options"`
	Size    int64  `json:"size_bytes"`
}

// Names in the share.
const (
	guestResults = "results.jsonl"
	guestChoice  = "choice.json" // what the guest made of the choice
)

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
	list    []ordered // inside
	missing []result.Missing
	outside orders // empty: the folder's own file system
	session *session
	kept    bool // the results, in their file
}

// inUserMode runs what is chosen inside and outside, and tells both as one run.
func (b *benchmark) inUserMode(cmd *cobra.Command, c study.Choice) (err error) {
	u, err := b.orderInside(cmd.Context(), &c)
	if err != nil {
		return err
	}
	if b.dryRun {
		cells, plan := b.outline(c)
		err := b.tellPlan(cmd.OutOrStdout(), cells, plan, c.Seed, orders{list: u.list, missing: u.missing})
		fmt.Fprintln(cmd.OutOrStdout(), "a system call takes longer inside: arms that would not fit into their time do less than this")
		return err
	}
	ground, err := trial.OpenGround(b.dir, b.allowTmpfs)
	if err != nil {
		return b.cannotOpen(err)
	}
	defer func() { err = closeGround(ground, err) }()
	u.session = newSession(cmd.ErrOrStderr(), ground, b.dir, "")
	run, err := u.run(cmd.Context(), c)
	if err != nil && run.Rounds() == 0 {
		return u.refuse(err)
	}
	keepErr := u.keep(run)
	u.kept = keepErr == nil && u.output != ""
	return cmp.Or(keepErr, b.print(cmd.OutOrStdout(), run), u.refuse(err))
}

// orderInside looks what of --fs can be had inside.
func (b *benchmark) orderInside(ctx context.Context, c *study.Choice) (*userMode, error) {
	kernel, err := uml.Find(ctx)
	var missing *uml.MissingError
	if errors.As(err, &missing) {
		return nil, &refusal{exitCannot, fmt.Errorf("--kernel %s: %w", b.kernel, err), "install it with: apt-get install " + missing.Package + "; or give --install"}
	}
	if err != nil {
		return nil, err
	}
	u := &userMode{benchmark: b, kernel: kernel}
	var kinds []volume.Kind
	for _, k := range withBeside(b.fs) {
		if err := u.can(k); err != nil {
			u.missing = append(u.missing, missingInside(k, err))
			continue
		}
		kinds = append(kinds, k)
	}
	if len(kinds) == 0 {
		return nil, &refusal{exitCannot, fmt.Errorf("--fs: %s", strings.Join(study.MissingByReason(u.missing), "; ")), "give --install, which gets what is missing"}
	}
	c.FileSystems = nil
	for _, k := range kinds {
		c.FileSystems = append(c.FileSystems, insidePrefix+k.Name)
	}
	_, plan := b.outline(*c)
	for _, k := range kinds {
		one := orderOf(k, plan)
		if one.kind.Name == besideKind && k.Can() == nil {
			u.outside.list = []ordered{one}
		}
		one.kind.Name = insidePrefix + k.Name
		u.list = append(u.list, one)
	}
	return u, nil
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
	if k.Type == "bfs" && !u.study.Flat {
		return errors.New("a bfs has no folders and no fsync, which this needs")
	}
	return nil
}

func missingInside(k volume.Kind, err error) result.Missing {
	m := missingKind(k, err)
	m.Cell = insidePrefix + k.Name
	return m
}

// run is the run inside, and after it as many rounds outside. After an error it is
// what is whole of the run inside.
func (u *userMode) run(ctx context.Context, c study.Choice) (result.Run, error) {
	inside, c, err := u.runInside(ctx, c)
	if err != nil {
		return inside, err
	}
	// The same time for a trial outside makes the same arms of the same sizes.
	rounds := max(1, inside.Rounds())
	c.Budget = c.Budget / time.Duration(len(u.list)) * time.Duration(rounds+1) / time.Duration(inside.Header.Plan.Rounds+1)
	c.Only = armsOf(inside)
	outside, err := u.runOutside(ctx, c, rounds)
	if err != nil {
		return inside, err
	}
	host := outside.Header.Machine
	for i, f := range inside.Header.FileSystems {
		inside.Header.FileSystems[i] = result.NewFileSystem(f.Name, f.How, f.Size, host, f.Machine)
	}
	outside.Header.Missing = append(outside.Header.Missing, u.missing...)
	return result.Merge(outside, inside)
}

// armsOf names the arms that a run has on any of its file systems.
func armsOf(run result.Run) (names []string) {
	for _, name := range run.FileSystems() {
		for _, c := range run.On(name).Header.Cells {
			if c.Twin == "" && !slices.Contains(names, c.Name) {
				names = append(names, c.Name)
			}
		}
	}
	return names
}

// share is the part that n of the file systems have of the time for all of them, of
// which one is outside.
func (u *userMode) share(c study.Choice, n int) time.Duration {
	_, plan := u.outline(c)
	total := cmp.Or(c.Budget, plan.Limit*time.Duration(len(u.list)))
	return total * time.Duration(n) / time.Duration(len(u.list)+1)
}

// runInside makes the images, runs the guest and reads what it has measured, and what
// it made of the choice.
func (u *userMode) runInside(ctx context.Context, c study.Choice) (run result.Run, made study.Choice, err error) {
	dir := u.session.ground.Dir()
	c.Budget = u.share(c, len(u.list))
	task := guestTask{Study: u.named, Choice: c, Call: callTime()}
	if c.Rounds == 0 {
		task.Limit = c.Budget
	}
	for _, missing := range u.missing {
		u.session.say("not run: %s: %s", missing.Cell, missing.Why)
	}
	for _, one := range u.list {
		u.session.say("making %s in an image of %s", one.kind.Name, bytesText(one.size))
		if err := one.kind.MakeImage(ctx, filepath.Join(dir, one.kind.Name), one.size); err != nil {
			return run, c, cannotMake(err)
		}
		task.Sites = append(task.Sites, guestSite{one.kind.Name, one.kind.Type, one.kind.Options, one.size})
	}
	if err := u.boot(ctx, dir, task); err != nil {
		// What was measured until then is read, if there is any: a cut line is none.
		run, _, _ = readGuest(dir)
		return run, c, err
	}
	run, c, err = readGuest(dir)
	return run, c, errors.Join(err, u.check(ctx, dir))
}

// boot runs the guest on the task.
func (u *userMode) boot(ctx context.Context, dir string, task guestTask) error {
	text, err := json.Marshal(task)
	if err != nil {
		return err
	}
	modules := []string{"loop"}
	most := int64(0)
	for _, one := range u.list {
		modules = append(modules, one.kind.Type)
		most = max(most, one.size)
	}
	guest := uml.Guest{
		Command: guestCommand, Task: text, Modules: modules, Memory: guestMemory(most), Share: dir, Silence: silence,
		Console: func(line string) {
			if told, ok := strings.CutPrefix(line, "holdfast: "); ok {
				u.session.say("inside: %s", told)
			}
		},
	}
	u.session.say("starting User-Mode Linux %s with %s of memory", u.kernel.Release, bytesText(guest.Memory))
	return u.kernel.Run(ctx, guest)
}

// guestMemory is room for the files of a trial in two page caches, that of the file
// system and that of hostfs, and for their writers not to be slowed by the kernel's
// limits, which are parts of the memory.
func guestMemory(image int64) int64 {
	const least, most = 512 << 20, 4 << 30
	return min(max(least, 4*image), most)
}

// readGuest reads what the guest has left in the share.
func readGuest(dir string) (run result.Run, c study.Choice, err error) {
	text, err := os.ReadFile(filepath.Join(dir, guestChoice))
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	f, openErr := os.Open(filepath.Join(dir, guestResults))
	if err := errors.Join(err, openErr); err != nil {
		return run, c, fmt.Errorf("the guest has left no results: %w", err)
	}
	defer f.Close()
	run, err = result.Read(f)
	return run, c, err
}

// check lets the programs of the file systems look at the images, and removes them.
func (u *userMode) check(ctx context.Context, dir string) (err error) {
	for _, one := range u.list {
		image := filepath.Join(dir, one.kind.Name)
		err = errors.Join(err, one.kind.CheckImage(ctx, image), os.Remove(image))
	}
	return err
}

// runOutside runs the same arms with the kernel that runs here, for so many rounds.
func (u *userMode) runOutside(ctx context.Context, c study.Choice, rounds int) (run result.Run, err error) {
	s := u.session
	c.Rounds, c.Width, c.FileSystems = rounds, 0, nil
	c.PlanSlower, c.Slower = c.Slower, 0 // arms of the sizes that they have inside
	if len(u.outside.list) > 0 {
		c.FileSystems = []string{besideKind}
	} else {
		s.say("outside it is measured on the folder's own %s: only root can mount an %s of its own", s.ground.FileSystem, besideKind)
	}
	defer func() { err = s.made.close(err) }()
	if s.made, err = u.outside.make(ctx, s); err != nil {
		return run, err
	}
	if u.named != "" {
		err = s.study(ctx, u.study, c)
	} else {
		err = s.measure(ctx, study.Policy(), c)
	}
	run = s.run
	if s.made == nil {
		name := machine.Get(run.Header.Machine, "file system").Value
		run = run.As(result.FileSystem{Name: cmp.Or(name, s.ground.FileSystem), How: "the file system of the folder itself", Machine: []machine.Fact{}})
	}
	return run, err
}

// keep writes the results file.
func (u *userMode) keep(run result.Run) error {
	if u.output == "" {
		return nil
	}
	f, err := os.OpenFile(u.output, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return u.session.refuse(&outputError{err})
	}
	if err := errors.Join(result.Write(f, run), f.Sync(), f.Close()); err != nil {
		return u.session.refuse(&outputError{err})
	}
	return nil
}

// refuse gives an error its exit code and hint; nil has none.
func (u *userMode) refuse(err error) error {
	if err == nil {
		return nil
	}
	var crash *uml.CrashError
	var guest *uml.GuestError
	var damage *volume.DamageError
	switch {
	case errors.Is(err, context.Canceled):
		hint := "a shorter --time, or --quick, comes to an end"
		if u.kept {
			hint = "the rounds inside that were whole are in " + u.output + ", with nothing outside beside them"
		}
		return &refusal{exitInterrupted, errors.New("interrupted, of a run inside User-Mode Linux"), hint}
	case errors.As(err, &crash):
		return &refusal{exitCannot, err, "fewer file systems, or a smaller study, need less of it; what it told last: " + cmp.Or(lastOf(crash.Console), "nothing")}
	case errors.As(err, &guest):
		return &refusal{exitCannot, fmt.Errorf("inside User-Mode Linux: %w", err), "what a file system lacks is another reason than what a disk lacks: leave it out of --fs"}
	case errors.As(err, &damage):
		return &refusal{exitNotMet, err, "this must not happen on a sound disk; please report it together with the kernel"}
	}
	return u.session.refuse(err)
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
