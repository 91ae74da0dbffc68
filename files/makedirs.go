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

// dirPerm is the permissions of new directories, before umask.
const dirPerm = 0o777

// makeDirs makes a directory and those above it that are missing. If the policy
// syncs, their names are durable when it returns. The caller has a turn, and
// room in it for one more descriptor.
func (g *ground) makeDirs(ctx context.Context, path string) error {
	g.dirs.makers.Add(1)
	defer g.dirs.makers.Add(-1)
	select {
	case g.dirs.making <- struct{}{}:
		defer func() { <-g.dirs.making }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	var missing []string // the lowest first
	for ; path != ""; path = dirAbove(path) {
		_, err := g.statDir(ctx, path)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		missing = append(missing, path)
	}
	for _, path := range slices.Backward(missing) {
		if err := g.makeDir(ctx, path); err != nil {
			return err
		}
	}
	return nil
}

// settled waits until no call makes directories, and returns d open and in use again. One
// of those calls may have made d: its name is durable then. If nothing in d can be made
// durable, settled returns why, and d is not in use.
func (g *ground) settled(ctx context.Context, d *handles.Dir, era int64) (*handles.Dir, retry.Op, error) {
	if !g.options.MkdirAll || g.options.Policy.Sync.Mode == holdfast.SyncNever {
		return d, "", nil
	}
	path := d.Path
	if g.dirs.makers.Load() > 0 {
		g.handles.Rest(&d.Handle) // a call that makes one may need this descriptor
		select {
		case g.dirs.making <- struct{}{}:
			<-g.dirs.making
		case <-ctx.Done():
			return nil, opWait, context.Cause(ctx)
		}
		var err error
		if d, err = g.handles.UseDir(path, era); err != nil {
			return nil, retry.OpOpen, err
		}
	}
	if err := g.lostDir(path); err != nil {
		g.handles.Rest(&d.Handle)
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

func (g *ground) statDir(ctx context.Context, path string) (sys.Stat, error) {
	name, err := sys.NewName(path)
	if err != nil {
		return sys.Stat{}, err
	}
	for t := g.tries(path); ; {
		is, err := g.disk.StatPath(name)
		if err == nil || !t.Again(ctx, retry.OpStat, &err) {
			return is, err
		}
	}
}

// makeDir makes one directory, unless another call or program has meanwhile.
func (g *ground) makeDir(ctx context.Context, path string) error {
	if g.options.Policy.Sync.Mode == holdfast.SyncNever {
		return g.mkdir(ctx, path)
	}
	// It is opened first: once the directory is made only its sync may fail.
	var d *handles.Dir
	t := g.tries(path)
	err := t.Insist(ctx, retry.OpOpen, func() (err error) {
		d, err = g.handles.UseDir(dirAbove(path), g.era.Add(1))
		return err
	})
	if err != nil {
		return err
	}
	defer g.handles.Rest(&d.Handle)
	losses := g.names.Losses(d.Key())
	if err := g.mkdir(ctx, path); err != nil {
		return err
	}
	if err = g.syncNamesIn(d, losses); err != nil {
		// Another sync of the directory above would report nothing of it.
		g.dirs.mu.Lock()
		defer g.dirs.mu.Unlock()
		if g.dirs.lost == nil {
			g.dirs.lost = map[string]error{}
		}
		g.dirs.lost[path] = fmt.Errorf("the directory %s was made, and then the sync of its name failed: %w", path, err)
	}
	return err
}

func (g *ground) mkdir(ctx context.Context, path string) error {
	name, err := sys.NewName(path)
	if err != nil {
		return err
	}
	t := g.tries(path)
	err = t.Insist(ctx, retry.OpMkdir, func() error { return g.disk.Mkdir(name, dirPerm) })
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// lostDir returns why nothing in a directory can be made durable, if that is so.
func (g *ground) lostDir(path string) error {
	g.dirs.mu.Lock()
	defer g.dirs.mu.Unlock()
	for ; len(g.dirs.lost) > 0 && path != ""; path = dirAbove(path) {
		if err := g.dirs.lost[path]; err != nil {
			return err
		}
	}
	return nil
}
