package place

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/volume"
)

// FileSystemsFlag adds --fs.
func FileSystemsFlag(f *pflag.FlagSet, kinds *[]volume.Kind) {
	set := func(text string) error {
		for name := range strings.SplitSeq(text, ",") {
			parse := volume.Parse
			if strings.ContainsAny(name, "/"+string(filepath.Separator)) {
				parse = onDirectory
			}
			more, err := parse(name)
			if err != nil {
				return err
			}
			if !slices.Contains(KindNames(*kinds), more[0].Name) {
				*kinds = append(*kinds, more[0])
			}
		}
		return nil
	}
	f.Var(cli.FlagValue{Kind: "list", Parse: set, Text: func() string { return strings.Join(KindNames(*kinds), ",") }}, "fs", "make these file systems, each in an image in --dir, and measure on\nall of them, such as ext4,xfs,btrfs (needs root). A directory on\nanother disk, such as /mnt/hdd, is measured with them")
}

// onDirectory is the file system of a directory. The name begins with the kind, as made file
// systems' names do.
func onDirectory(dir string) ([]volume.Kind, error) {
	path, err := filepath.Abs(strings.TrimSpace(dir))
	if err != nil {
		return nil, err
	}
	if why := cli.NotDir(path); why != nil {
		return nil, fmt.Errorf("%s: %w, and a file system's name has no slash", dir, why)
	}
	kind, err := sys.FileSystem(path)
	if err != nil || kind == "" {
		kind = "unknown"
	}
	separator := string(filepath.Separator)
	name := kind + "-" + strings.NewReplacer(separator, "-", ":", "").Replace(strings.TrimPrefix(path, separator))
	return []volume.Kind{{Name: name, Type: kind, Dir: path}}, nil
}

// KindNames are the names of kinds of file systems.
func KindNames(kinds []volume.Kind) (names []string) {
	for _, k := range kinds {
		names = append(names, k.Name)
	}
	return names
}

// An Ordered file system is one that is to be made.
type Ordered struct {
	Kind volume.Kind
	Size int64
}

// Orders are all file systems that a run makes for itself, and the ones that can't be had
// here.
type Orders struct {
	List    []Ordered
	Missing []result.Missing
	Again   bool // as an earlier run had them

	// Own names the directory's own file system where that is measured too, beside the file systems
	// of a kernel that is started; else it is empty.
	Own string
}

// OrderHere finds out what can be made here for a run, and how large. It removes from the
// choice what can't be made.
func OrderHere(w Wish, c *study.Choice) (Orders, error) {
	if w.Earlier != nil {
		o, err := OrderAgain(*w.Earlier)
		if err == nil && o.Own != "" {
			err = cli.Misuse("start a new run with --fs", "the results were measured in a directory that they name %s, and it is not given", o.Own)
		}
		return o, err
	}
	o, err := Possible(w.Kinds)
	if err != nil || len(o.List) == 0 {
		return o, err
	}
	c.FileSystems = nil
	for _, one := range o.List {
		c.FileSystems = append(c.FileSystems, one.Kind.Name)
	}
	LimitRoom(w.Dir, c)
	_, plan := w.Outline(*c)
	for i, one := range o.List {
		o.List[i] = OrderOf(one.Kind, plan)
	}
	return o, nil
}

// Possible orders what of these kinds can be made here, of no size yet. If that is nothing,
// it returns a refusal.
func Possible(kinds []volume.Kind) (o Orders, err error) {
	var why error
	for _, k := range kinds {
		if err := k.Can(); k.Dir == "" && err != nil {
			o.Missing, why = append(o.Missing, MissingKind(k, err)), errors.Join(why, err)
			continue
		}
		o.List = append(o.List, Ordered{Kind: k})
	}
	if len(kinds) > 0 && len(o.List) == 0 {
		return o, NoneCanBeMade(o.Missing, why)
	}
	return o, nil
}

// OrderOf orders a file system of twice the plan's room: removed files may not be free yet.
func OrderOf(k volume.Kind, plan result.Plan) Ordered {
	if k.Dir != "" {
		return Ordered{k, 0}
	}
	return Ordered{k, k.SizeFor(2*plan.Room, plan.Files)}
}

// LimitRoom limits the size of the file of a long trial, if none is chosen: each image of
// the choice has to hold one.
func LimitRoom(dir string, c *study.Choice) {
	if !c.Steady || c.Room > 0 {
		return
	}
	c.Room = study.DefaultRoom
	if free, err := sys.FreeSpace(dir); err == nil {
		c.Room = max(int64(MinRoom), min(study.DefaultRoom, free/int64(6*len(c.FileSystems))))
	}
}

// OrderAgain orders the file systems of an earlier run's cells, or refuses if one can't be
// had.
func OrderAgain(h result.Header) (Orders, error) {
	o := Orders{Again: true}
	for _, name := range (result.Run{Header: h}).FileSystems() {
		if made, ok := h.Made(name); ok && made.Size == 0 {
			o.Own = name
			continue
		}
		kinds, err := volume.Parse(name)
		if err != nil {
			return o, cli.Misuse("repeat the run on the machine that made it", "the results need file systems that can't be made here: %w", err)
		}
		if err := kinds[0].Can(); err != nil {
			return o, NoneCanBeMade([]result.Missing{MissingKind(kinds[0], err)}, err)
		}
		o.List = append(o.List, OrderOfRun(kinds[0], name, h))
	}
	return o, nil
}

// OrderOfRun orders a file system under the name and of the size of an earlier run.
func OrderOfRun(k volume.Kind, name string, h result.Header) Ordered {
	if made, ok := h.Made(name); ok && made.Size >= k.Least {
		return Ordered{k, made.Size}
	}
	return Ordered{k, k.SizeFor(2*h.Plan.Room, h.Plan.Files)}
}

// MissingKind says why a kind of file system can't be had.
func MissingKind(k volume.Kind, err error) result.Missing {
	var missing *volume.MissingError
	if errors.As(err, &missing) {
		return result.Missing{Cell: k.Name, Why: missing.Why}
	}
	return result.Missing{Cell: k.Name, Why: err.Error()}
}

// NoneCanBeMade is the refusal of a run with no file system left. Its hint is the first one's.
func NoneCanBeMade(all []result.Missing, why error) error {
	var missing *volume.MissingError
	hint := "give a directory on a mounted one with --dir"
	if errors.As(why, &missing) {
		hint = missing.Hint()
	}
	return &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("--fs: %s", strings.Join(study.MissingByReason(all), "; ")), Hint: hint}
}

// All is the plan of all file systems, plan the plan of each.
func (o Orders) All(plan result.Plan) result.Plan {
	sum := plan
	for range o.Number() - 1 {
		sum = study.Sum(sum, plan)
	}
	return sum
}

// Number is how many file systems each cell is run on.
func (o Orders) Number() int {
	if o.Own != "" {
		return len(o.List) + 1
	}
	return len(o.List)
}

// Text names them with their sizes, for a plan.
func (o Orders) Text() string {
	var parts []string
	for _, one := range o.List {
		text := fmt.Sprintf("%s of %s", one.Kind.Name, cli.BytesText(one.Size))
		if one.Kind.Dir != "" {
			text = "the directory " + cli.OneLine(one.Kind.Dir)
		}
		parts = append(parts, text)
	}
	if o.Own != "" {
		parts = append(parts, "the directory's own "+o.Own)
	}
	return ", on each of " + strings.Join(parts, ", ")
}

// Volumes are file systems that a run has made for itself, in order.
type Volumes struct {
	volumes []*volume.Volume
	dirs    []volume.Kind // that are there, and stay
	sites   []study.Site
	missing []result.Missing
	own     string // of the sites, the one that is the directory's own file system; or empty
}

// Make makes all that is ordered. The caller closes what it returns, also after an error.
func (o Orders) Make(ctx context.Context, h Host) (*Volumes, error) {
	m := &Volumes{missing: o.Missing, own: o.Own}
	if o.Number() == 0 {
		return m, nil
	}
	if o.Own != "" {
		m.sites = []study.Site{{FileSystem: o.Own, WorkDir: h.WorkDir}}
		h.Say("outside, the directory's own %s is measured, because only root can mount a new %s", o.Own, BesideKind)
	}
	if err := h.WorkDir.Need(o.Images()); err != nil {
		return m, err
	}
	host := machine.Get(machine.Read(h.Dir), "file system").Value
	for _, one := range o.List {
		if one.Kind.Dir != "" {
			if err := m.open(one.Kind, one.Kind.Dir, nil); err != nil {
				return m, CannotOpen(one.Kind.Dir, err)
			}
			m.dirs = append(m.dirs, one.Kind)
			continue
		}
		v, err := volume.Make(ctx, h.Dir, one.Kind, one.Size)
		if err != nil {
			return m, CannotMake(err)
		}
		m.volumes = append(m.volumes, v)
		for _, dir := range v.Removed {
			h.Say("removed %s, a leftover of a killed run", dir)
		}
		if err := m.open(v.Kind(), v.Dir(), func() error { return v.Remount(context.Background()) }); err != nil {
			return m, err
		}
		h.Say("made %s: %s", one.Kind.Name, how(v, host))
	}
	return m, nil
}

// Images is the room that all images take.
func (o Orders) Images() (size int64) {
	for _, one := range o.List {
		if one.Kind.Type != "tmpfs" {
			size += one.Size
		}
	}
	return size
}

// open opens a ground in a directory. A file system in memory was asked for by its name.
func (m *Volumes) open(k volume.Kind, dir string, remount func() error) error {
	ground, err := trial.OpenWorkDir(dir, true)
	if err != nil {
		return err
	}
	ground.Second = SecondProcess
	ground.Remount = remount
	m.sites = append(m.sites, study.Site{FileSystem: k.Name, WorkDir: ground})
	return nil
}

// how describes what a volume lies on. Its directory has a new name in each run.
func how(v *volume.Volume, host string) string {
	switch {
	case v.Device == "":
		return fmt.Sprintf("in memory, of at most %s", cli.BytesText(v.Size()))
	case v.DirectIO:
		return fmt.Sprintf("in an image of %s on %s, on a loop device with direct I/O", cli.BytesText(v.Size()), host)
	}
	return fmt.Sprintf("in an image of %s on %s, on a loop device without direct I/O: cold files may still be in the page cache of the %[2]s", cli.BytesText(v.Size()), host)
}

// CannotMake gives an error of a volume its exit code and hint.
func CannotMake(err error) error {
	var missing *volume.MissingError
	var room *volume.RoomError
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &missing):
		return &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("--fs: %w", err), Hint: missing.Hint()}
	case errors.As(err, &room):
		return &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("--fs: %w", err), Hint: HintRoom}
	}
	return &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("--fs: %w", err), Hint: "leave it out, or name a directory on another file system with --dir"}
}

// Names are the file systems' names.
func (m *Volumes) Names() string {
	var names []string
	for _, s := range m.sites {
		names = append(names, s.FileSystem)
	}
	return strings.Join(names, ", ")
}

// Described are the file systems as the results have them.
func (m *Volumes) Described(host []machine.Fact) (all []result.FileSystem) {
	lies := machine.Get(host, "file system").Value
	if m.own != "" {
		all = append(all, result.FileSystem{Name: m.own, How: "the file system of the directory itself", Machine: []machine.Fact{}})
	}
	for _, v := range m.volumes {
		all = append(all, result.NewFileSystem(v.Kind().Name, how(v, lies), v.Size(), host, machine.Read(v.Dir())))
	}
	for _, k := range m.dirs {
		all = append(all, result.NewFileSystem(k.Name, "the directory "+cli.OneLine(k.Dir), 0, host, machine.Read(k.Dir)))
	}
	return all
}

// Close unmounts and removes them all. It adds to the run's error what is damaged or left.
func (m *Volumes) Close(err error) error {
	for _, s := range m.sites {
		if s.FileSystem != m.own {
			err = CloseWorkDir(s.WorkDir, err)
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
		return &cli.Refusal{Code: cli.ExitNotMet, Err: closeErr, Hint: "this must not happen on a healthy disk; please report it with the kernel's version"}
	}
	return &cli.Refusal{Code: cli.ExitCannot, Err: closeErr, Hint: "end the programs that use it; holdfast volumes --clean then removes the leftovers"}
}
