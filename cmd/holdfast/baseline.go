package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast/internal/report"
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/stat"
)

// A baseline is what the flags of bench say of runs that are kept by a name.
type baseline struct {
	save, against string
	folder        string // empty is the one in the user's cache
	threshold     float64

	earlier result.Run // the one of against
}

func (b *baseline) addFlags(f *pflag.FlagSet) {
	b.threshold = stat.Band
	f.Var(once("name", &b.save, parseBaseline), "save-baseline", "keep the results under this name, in place of those kept before")
	f.Var(once("name", &b.against, parseBaseline), "baseline", "compare with the results of this name; exit with 1 if a policy\ngot slower. Without flags that say what to measure, the same is\nmeasured again")
	f.Var(once("percent", &b.threshold, parseShare("threshold")), "threshold", "the slowdown from which a policy has regressed (default: 5%)")
	f.Var(once("folder", &b.folder, given), "baseline-dir", "the folder of the baselines (default: in the user's cache)")
	inGroup(f, "Before and after", "save-baseline", "baseline", "threshold", "baseline-dir")
}

// prepare reads the baseline to compare with, and refuses what could not be kept
// later, before anything is measured.
func (b *baseline) prepare() (err error) {
	if b.against != "" {
		if b.earlier, err = loadBaseline(b.folder, b.against); err != nil {
			return err
		}
	}
	if b.save != "" {
		_, err = baselineFolder(b.folder)
	}
	return err
}

// show writes the comparison of the run with the baseline, and returns the refusal
// of a regression.
func (b *baseline) show(w io.Writer, run result.Run, format report.Format) error {
	earlier, err := newSide("baseline:"+b.against, b.earlier)
	if err != nil {
		return err
	}
	now, err := newSide("this run", run)
	if err != nil {
		return err
	}
	c, err := contrast(earlier, now, b.threshold)
	if err != nil {
		return err
	}
	return errors.Join(report.Contrast(w, c, format), regression(c))
}

// baselineNames are names that are a file's name on every system: no separators,
// no dot in front.
var baselineNames = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$`)

func parseBaseline(name string) (string, error) {
	// IsLocal refuses the names of devices on Windows.
	if !baselineNames.MatchString(name) || !filepath.IsLocal(name+baselineExt) {
		return "", fmt.Errorf("%q can't be a baseline's name; use letters, digits, -, _ and dots, at most 100 and no dot in front", name)
	}
	return name, nil
}

const baselineExt = ".jsonl"

// baselineFolder returns the folder given, or the one in the user's cache: a
// baseline is of one machine, which a home's configuration need not be.
func baselineFolder(folder string) (string, error) {
	if folder != "" {
		return folder, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", misuse("give a folder to --baseline-dir", "there is no folder for baselines: %w", err)
	}
	return filepath.Join(cache, "holdfast", "baselines"), nil
}

// loadBaseline reads a run that was kept under a name.
func loadBaseline(folder, name string) (result.Run, error) {
	name, err := parseBaseline(name)
	if err != nil {
		return result.Run{}, misuse("baselines are kept by holdfast bench --save-baseline NAME", "baseline: %w", err)
	}
	folder, err = baselineFolder(folder)
	if err != nil {
		return result.Run{}, err
	}
	run, err := readRun(filepath.Join(folder, name+baselineExt), nil)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return run, misuse(knownBaselines(folder), "there is no baseline %s in %s", name, folder)
	case err != nil:
		return run, misuse("keep it anew with holdfast bench --save-baseline "+name, "baseline %s in %s: %w", name, folder, cause(err))
	}
	return run, nil
}

// knownBaselines is the hint that lists what there is.
func knownBaselines(folder string) string {
	hint := "keep one with holdfast bench --save-baseline NAME"
	files, _ := filepath.Glob(filepath.Join(folder, "*"+baselineExt))
	var names []string
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), baselineExt))
	}
	if len(names) == 0 {
		return hint
	}
	slices.Sort(names)
	return hint + "; there are " + strings.Join(names, ", ")
}

// saveBaseline keeps a run under a name. Readers see the run that was kept before
// or all of this one: it is written beside, synced and renamed. A run that was
// interrupted or failed is refused, and what was kept before stays.
func saveBaseline(folder, name string, run result.Run) error {
	if run.Rounds() == 0 || run.End == nil || run.End.State == result.Interrupted || run.End.State == result.Failed {
		return &refusal{exitCannot, fmt.Errorf("the run can't be the baseline %s: it did not come to its end", name), "run it again"}
	}
	folder, err := baselineFolder(folder)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return cannotSave(name, err)
	}
	f, err := os.CreateTemp(folder, "."+name+"-*")
	if err != nil {
		return cannotSave(name, err)
	}
	err = errors.Join(result.Write(f, run), f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(folder, name+baselineExt))
	}
	if err != nil {
		return cannotSave(name, errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

func cannotSave(name string, err error) error {
	return &refusal{exitCannot, fmt.Errorf("can't keep the baseline %s: %w", name, err), "give a folder that you may write to, with room, to --baseline-dir"}
}
