package compare

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/report"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/internal/workdir"
)

// A Baseline holds bench's flags about runs kept by name.
type Baseline struct {
	Save, Against string
	Program       string // another build, run alternately with this one
	dir           string // "" is the directory in the user's cache
	threshold     float64

	Earlier result.Run   // the run to compare with
	held    *cli.HeldDir // the directory of Save, from Prepare on
}

// AddFlags adds the flags.
func (b *Baseline) AddFlags(f *pflag.FlagSet) {
	b.threshold = stat.Band
	b.saveFlag(f)
	f.Var(cli.Once("name", &b.Against, parseBaseline), "baseline", "compare with the results of this name; exit with 1 if a policy\ngot slower. Without flags for the load, the baseline's load is\nmeasured again")
	f.Var(cli.Once("program", &b.Program, cli.Given), "against", "run another build of holdfast in turn with this one, round by\nround, and compare; exit with 1 if this one is slower (for CI;\ndefault: 4 policies, 1m)")
	f.Var(cli.Once("percent", &b.threshold, cli.ParseShare("threshold")), "threshold", "the slowdown from which a policy has regressed (default: 5%)")
	b.dirFlag(f)
	cli.InGroup(f, "Before and after", "save-baseline", "baseline", "against", "threshold", "baseline-dir")
}

// AddSaveFlags adds the flags that keep a run, and compare it with none.
func (b *Baseline) AddSaveFlags(f *pflag.FlagSet) {
	b.saveFlag(f)
	b.dirFlag(f)
	cli.InGroup(f, "Before and after", "save-baseline", "baseline-dir")
}

func (b *Baseline) saveFlag(f *pflag.FlagSet) {
	f.Var(cli.Target("name", &b.Save, parseBaseline), "save-baseline", "keep the results under this name, and replace earlier ones")
}

func (b *Baseline) dirFlag(f *pflag.FlagSet) {
	f.Var(cli.Once("dir", &b.dir, cli.Given), "baseline-dir", "the directory of the baselines (default: in the user's cache)")
}

// Threshold is the slowdown from which a cell has regressed.
func (b *Baseline) Threshold() float64 { return b.threshold }

// Prepare reads the baseline to compare with, and, before anything is measured, refuses one that
// could not be saved later. For a plan it writes nothing.
func (b *Baseline) Prepare(isPlan bool) (err error) {
	if b.Against != "" && b.Against == b.Save {
		return cli.Misuse("give two names, or leave one out", "--baseline and --save-baseline both name %s, and a slower run would replace it", b.Save)
	}
	if b.Against != "" {
		if b.Earlier, err = loadBaseline(b.dir, b.Against); err != nil {
			return err
		}
	}
	if b.Save == "" {
		return nil
	}
	dir, err := baselineDir(b.dir)
	if err != nil || isPlan {
		return err
	}
	hold := cli.HoldDir
	if b.dir == "" {
		hold = cli.HoldDirAll
	}
	if b.held, err = hold(dir, 0o755); err != nil {
		return cannotSave(b.Save, err)
	}
	f, name, err := b.create()
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), b.held.Remove(name))
}

// Close closes the directory that Prepare opened.
func (b *Baseline) Close() {
	if b.held != nil {
		_ = b.held.Close() // nothing was written to it
	}
}

// Show writes the comparison of the run with the baseline, and returns the refusal
// of a regression.
func (b *Baseline) Show(w io.Writer, run result.Run, format report.Format) error {
	earlier, err := newSide("baseline:"+b.Against, b.Earlier)
	if err != nil {
		return err
	}
	now, err := newSide("this run", run)
	if err != nil {
		return err
	}
	c, err := Contrast(earlier, now, false, b.threshold)
	if err != nil {
		return err
	}
	return errors.Join(Show(w, c, format, false), Regression(c))
}

// baselineNames matches names that every system permits as a file's: no separators, no dot in
// front.
func baselineNames() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$`) }

func parseBaseline(name string) (string, error) {
	// IsLocal refuses the names of devices on Windows.
	if !baselineNames().MatchString(name) || !filepath.IsLocal(name+baselineExt) {
		return "", fmt.Errorf("%q can't be a baseline's name; use letters, digits, -, _ and dots, at most 100 and no dot in front", name)
	}
	return name, nil
}

const baselineExt = ".jsonl"

// baselineDir returns the directory given, or the one in the user's cache: a baseline belongs to
// one machine, and a home directory may serve several.
func baselineDir(dir string) (string, error) {
	if dir != "" {
		return dir, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", cli.Misuse("name a directory with --baseline-dir", "there is no directory for baselines: %w", err)
	}
	return filepath.Join(cache, "holdfast", "baselines"), nil
}

// BaselineNames returns the names of the baselines in the user's cache.
func BaselineNames() []string {
	dir, err := baselineDir("")
	if err != nil {
		return nil
	}
	return namesIn(dir)
}

func namesIn(dir string) []string {
	names, _ := filepath.Glob(filepath.Join(dir, "*"+baselineExt)) // it fails only for a wrong pattern
	for i, file := range names {
		names[i] = strings.TrimSuffix(filepath.Base(file), baselineExt)
	}
	slices.Sort(names)
	return names
}

// loadBaseline reads the baseline of a name.
func loadBaseline(dir, name string) (result.Run, error) {
	name, err := parseBaseline(name)
	if err != nil {
		return result.Run{}, cli.Misuse("baselines are kept by holdfast bench --save-baseline NAME", "baseline: %w", err)
	}
	dir, err = baselineDir(dir)
	if err != nil {
		return result.Run{}, err
	}
	run, err := cli.ReadFile(context.Background(), filepath.Join(dir, name+baselineExt), result.Read)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		hint := "keep one with holdfast bench --save-baseline NAME"
		if names := namesIn(dir); len(names) > 0 {
			hint += "; there are " + strings.Join(names, ", ")
		}
		return run, cli.Misuse(hint, "there is no baseline %s in %s", name, dir)
	case errors.Is(err, fs.ErrPermission):
		return run, cli.Misuse("name a directory that you may read with --baseline-dir", "baseline %s in %s: %w", name, dir, cli.Cause(err))
	case err != nil:
		return run, cli.Misuse("replace it with holdfast bench --save-baseline "+name, "baseline %s in %s: %w", name, dir, cli.Cause(err))
	}
	return run, nil
}

// Keep saves a run under the name of Save. It writes a new file, syncs it and renames it: a reader
// sees the earlier run or all of this one. It refuses an interrupted or failed run, and then the
// earlier run stays.
func (b *Baseline) Keep(run result.Run) error {
	if b.Save == "" {
		return nil
	}
	if run.Rounds() == 0 || run.End == nil || run.End.State == result.Interrupted || run.End.State == result.Failed {
		return &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("the run can't be the baseline %s: it did not finish", b.Save), Hint: "run it again"}
	}
	f, name, err := b.create()
	if err != nil {
		return err
	}
	err = errors.Join(result.Write(f, run), f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = b.held.Rename(name, b.Save+baselineExt)
	}
	if err != nil {
		return cannotSave(b.Save, errors.Join(err, b.held.Remove(name)))
	}
	return nil
}

// create creates the file of a run under a temporary name.
func (b *Baseline) create() (f *os.File, name string, err error) {
	name = "." + b.Save + "-" + strconv.FormatUint(rand.Uint64(), 36)
	if f, err = b.held.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return nil, "", cannotSave(b.Save, workdir.Named(err, filepath.Join(b.held.Name(), name)))
	}
	return f, name, nil
}

func cannotSave(name string, err error) error {
	return &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("can't keep the baseline %s: %w", name, err), Hint: "name a directory with --baseline-dir that you may write to and that has room"}
}
