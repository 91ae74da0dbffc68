package trial

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/workdir"
)

// isLocked locks a directory, if the system has such locks. It returns false if another process has the
// lock, or has removed the directory.
func isLocked(held *workdir.Dir) bool {
	locked, err := sys.TryLock(held.File())
	return err != nil || locked && held.Still() == nil
}

// A Neighbour is a directory beside a work directory that has a name like it.
type Neighbour struct {
	Dir string
	Err error // the reason why it is not stale: [ErrAlive] if its run goes on; nil: [RemoveLeftover] removes it
}

// Neighbours lists the directories beside this work directory that have a name like it. It changes
// nothing: a user's directory may look like a killed run's.
func (g *WorkDir) Neighbours() (all []Neighbour) {
	parent := filepath.Dir(g.Dir())
	names, _ := workDirsIn(parent)
	for _, name := range names {
		if name == g.Name() {
			continue
		}
		held, err := workdir.Open(parent, name)
		if errors.Is(err, fs.ErrNotExist) { // its run has just ended
			continue
		}
		if err == nil {
			_, err = stale(held)
			_ = held.Close()
		}
		all = append(all, Neighbour{filepath.Join(parent, name), err})
	}
	return all
}

// workDirsIn lists the names of work directories in parent, whoever owns them.
func workDirsIn(parent string) (names []string, err error) {
	entries, err := os.ReadDir(parent)
	for _, e := range entries {
		if e.IsDir() && workDirName().MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// Leftovers lists the names of the work directories in parent that killed runs have left: no
// run holds their locks. If directories can't be locked it lists none. It changes nothing. For a
// directory that is not this user's alone it also returns a [workdir.ForeignError].
func Leftovers(parent string) (names []string, err error) {
	there, err := workDirsIn(parent)
	for _, name := range there {
		held, openErr := workdir.Open(parent, name)
		var foreign *workdir.ForeignError
		if errors.As(openErr, &foreign) {
			err = errors.Join(err, foreign)
		}
		if openErr != nil {
			continue
		}
		if locked, err := sys.TryLock(held.File()); err == nil && locked && held.Still() == nil {
			names = append(names, name)
		}
		_ = held.Close()
	}
	return names, err
}

// ErrAlive means that the run which made a work directory still goes on.
var ErrAlive = errors.New("the run that made the directory is still going on")

// The names of a work directory, of the entries in it, and of the files in a trial's directory. Studies
// that keep a file for all trials use them too. See OpenWorkDir, fresh, fill and Beside.
func workDirName() *regexp.Regexp { return regexp.MustCompile(`^` + workDirPrefix + `\d+$`) }
func fileName() *regexp.Regexp    { return regexp.MustCompile(`^(m-|memory-|read-by-all-|s-)?\d+$`) }
func dirName() *regexp.Regexp     { return regexp.MustCompile(`^\d+$`) }
func createdName() *regexp.Regexp { return regexp.MustCompile(`^(check|[a-z]+-\d+)$`) }

// RemoveLeftover removes the work directory of the given name in parent, which a killed run has
// left there. It reports whether there was one.
//
// It changes nothing unless everything proves that this is a work directory. It must be a directory
// that is this user's alone, and no link to one. The entries in it must have the right names. It must
// be unlocked, so that no run uses it; if directories can't be locked, nothing proves that. If a run
// uses it, the error is ErrAlive. If it is not this user's alone, the error is a
// [workdir.ForeignError].
//
// A second process of the killed run ends when it notices that, and then removes its own directory, which is in
// this one. RemoveLeftover waits some seconds for it; after them the error is ErrAlive.
func RemoveLeftover(parent, name string) (removed bool, err error) {
	if !workDirName().MatchString(name) {
		return false, fmt.Errorf("%q is not a name of a run's directory", name)
	}
	for begun := time.Now(); ; time.Sleep(endingStep) {
		removed, err = removeLeftover(parent, name)
		// The second process may also have made its directory after this one was listed.
		if ending := errors.Is(err, errEnding) || errors.Is(err, syscall.ENOTEMPTY); !ending || time.Since(begun) > longestEnding {
			return removed, err
		}
	}
}

// A second process stops its trial, but not a sync or a check in it.
const (
	longestEnding = 10 * time.Second
	endingStep    = 10 * time.Millisecond
)

// errEnding means that the run was killed, and that a second process of it has not ended yet.
var errEnding error = ending{}

type ending struct{}

func (ending) Error() string { return "a second process of the run has not ended: " + ErrAlive.Error() }

func (ending) Unwrap() error { return ErrAlive }

func removeLeftover(parent, name string) (removed bool, err error) {
	held, err := workdir.Open(parent, name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer held.Close()
	ours, err := stale(held)
	for _, name := range ours {
		if err == nil {
			err = held.Root().Remove(name)
		}
	}
	if err == nil {
		err = held.Remove()
	}
	if err != nil {
		return false, fmt.Errorf("%s is left: %w", held.Name(), err)
	}
	return true, nil
}

// stale locks a work directory, if no run uses it and it holds only files of a run. It returns its
// entries, the entries in a directory before the directory.
func stale(held *workdir.Dir) (ours []string, err error) {
	switch alone, err := sys.TryLock(held.File()); {
	case err != nil:
		return nil, err
	case !alone:
		return nil, ErrAlive
	}
	if err := held.Still(); err != nil {
		return nil, err
	}
	entries, err := held.Entries()
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		inside, err := made(held, e)
		if err != nil {
			return nil, err
		}
		for _, name := range inside {
			ours = append(ours, path.Join(e.Name(), name))
		}
		ours = append(ours, e.Name())
	}
	return ours, nil
}

// made returns the files in an entry of a work directory, if the entry is a directory of a trial or of
// a second process. It returns an error if no run makes such an entry.
func made(held *workdir.Dir, e fs.DirEntry) (inside []string, err error) {
	switch {
	case e.Type().IsRegular() && fileName().MatchString(e.Name()):
		return nil, nil
	case e.IsDir() && workDirName().MatchString(e.Name()):
		second, err := workdir.Open(held.Path(), e.Name())
		if err == nil {
			inside, err = stale(second)
			err = errors.Join(err, second.Close())
		}
		if errors.Is(err, ErrAlive) || errors.Is(err, fs.ErrNotExist) { // it is just being removed
			err = errEnding
		}
		return inside, err
	case !e.IsDir() || !dirName().MatchString(e.Name()):
		return nil, fmt.Errorf("it holds %s, which no run makes", e.Name())
	}
	files, err := fs.ReadDir(held.Root().FS(), e.Name())
	for _, f := range files {
		if !f.Type().IsRegular() || !createdName().MatchString(f.Name()) {
			return nil, fmt.Errorf("it holds %s, which no run makes", path.Join(e.Name(), f.Name()))
		}
		inside = append(inside, f.Name())
	}
	return inside, err
}
