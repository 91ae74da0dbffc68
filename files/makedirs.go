package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/handles"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// dirPerm is what new directories may be used for, before umask.
const dirPerm = 0o777

// makeDirs makes a directory and those above it that are missing. If the policy
// syncs, their names are durable when it returns. The caller has a turn, and
// room in it for one more descriptor.
func (f *Set) makeDirs(ctx context.Context, path string) error {
	f.makers.Add(1)
	defer f.makers.Add(-1)
	select {
	case f.making <- struct{}{}:
		defer func() { <-f.making }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	var missing []string // the lowest first
	for ; path != ""; path = dirAbove(path) {
		_, err := f.statDir(ctx, path)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		missing = append(missing, path)
	}
	for _, path := range slices.Backward(missing) {
		if err := f.makeDir(ctx, path); err != nil {
			return err
		}
	}
	return nil
}

// settled waits until no call makes directories, and returns d open and in use again. One
// of those calls may have made d: its name is durable then. If nothing in d can be made
// durable, settled returns why, and d is not in use.
func (f *Set) settled(ctx context.Context, d *handles.Dir, era int64) (*handles.Dir, retry.Op, error) {
	if !f.options.MkdirAll || f.options.Policy.Sync.Mode == holdfast.SyncNever {
		return d, "", nil
	}
	path := d.Path
	if f.makers.Load() > 0 {
		f.handles.Rest(&d.Handle) // a call that makes one may need this descriptor
		select {
		case f.making <- struct{}{}:
			<-f.making
		case <-ctx.Done():
			return nil, opWait, context.Cause(ctx)
		}
		var err error
		if d, err = f.handles.UseDir(path, era); err != nil {
			return nil, retry.OpOpen, err
		}
	}
	if err := f.lostDir(path); err != nil {
		f.handles.Rest(&d.Handle)
		return nil, retry.OpMkdir, err
	}
	return d, "", nil
}

// dirAbove returns the path of the directory that a directory's path is in.
func dirAbove(path string) string {
	above, _ := vfs.SplitPath(strings.TrimRightFunc(path, func(r rune) bool { return r == '/' || r == os.PathSeparator }))
	if above == path {
		return ""
	}
	return above
}

func (f *Set) statDir(ctx context.Context, path string) (sys.Stat, error) {
	name, err := sys.NewName(path)
	if err != nil {
		return sys.Stat{}, err
	}
	for t := f.tries(path); ; {
		is, err := f.disk.StatPath(name)
		if err == nil || !t.Again(ctx, retry.OpStat, &err) {
			return is, err
		}
	}
}

// makeDir makes one directory, unless another call or program has meanwhile.
func (f *Set) makeDir(ctx context.Context, path string) error {
	if f.options.Policy.Sync.Mode == holdfast.SyncNever {
		return f.mkdir(ctx, path)
	}
	// It is opened first: once the directory is made only its sync may fail.
	var d *handles.Dir
	t := f.tries(path)
	err := t.Insist(ctx, retry.OpOpen, func() (err error) {
		d, err = f.handles.UseDir(dirAbove(path), f.era.Add(1))
		return err
	})
	if err != nil {
		return err
	}
	defer f.handles.Rest(&d.Handle)
	losses := f.names.Losses(d.Key())
	if err := f.mkdir(ctx, path); err != nil {
		return err
	}
	if err = f.syncNamesIn(d, losses); err != nil {
		// Another sync of the directory above would report nothing of it.
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.lostDirs == nil {
			f.lostDirs = map[string]error{}
		}
		f.lostDirs[path] = fmt.Errorf("the directory %s was made, and then the sync of its name failed: %w", path, err)
	}
	return err
}

func (f *Set) mkdir(ctx context.Context, path string) error {
	name, err := sys.NewName(path)
	if err != nil {
		return err
	}
	t := f.tries(path)
	err = t.Insist(ctx, retry.OpMkdir, func() error { return f.disk.Mkdir(name, dirPerm) })
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// lostDir returns why nothing in a directory can be made durable, if that is so.
func (f *Set) lostDir(path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for ; len(f.lostDirs) > 0 && path != ""; path = dirAbove(path) {
		if err := f.lostDirs[path]; err != nil {
			return err
		}
	}
	return nil
}
