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
	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/handles"
	"github.com/holdfast-go/holdfast/internal/keyed"
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
			if g.options.Policy.Sync.Mode != holdfast.SyncNever {
				err = g.nameFound(ctx, path, g.era.Add(1))
			}
			if err != nil {
				return err
			}
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

// settled waits until no call makes directories, and returns d open and in use again. The names of d and
// of those above it are durable then. If nothing in d can be made durable, settled returns why, and d is
// not in use.
func (g *ground) settled(ctx context.Context, d *handles.Dir, era int64) (*handles.Dir, retry.Op, error) {
	if !g.options.MkdirAll || g.options.Policy.Sync.Mode == holdfast.SyncNever {
		return d, "", nil
	}
	path := d.Path
	for first := true; !g.dirs.isNamed(d.Key()) || first && g.dirs.makers.Load() > 0; first = false {
		g.handles.Rest(&d.Handle) // a call that makes one may need this descriptor
		select {
		case g.dirs.making <- struct{}{}:
		case <-ctx.Done():
			return nil, opWait, context.Cause(ctx)
		}
		err := g.nameFound(ctx, path, era)
		<-g.dirs.making
		if err != nil {
			return nil, retry.OpMkdir, err
		}
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

// nameFound makes the name of a directory durable, and those of the directories above it on its file system: a process
// that was killed may have made them. In one era it syncs each directory once: what another program makes there
// meanwhile is that program's. The caller holds making, and has room for one more descriptor.
func (g *ground) nameFound(ctx context.Context, path string, era int64) error {
	if err := g.lostDir(path); err != nil {
		return err
	}
	is, err := g.statDir(ctx, path)
	key := keyed.Key{Device: is.Device, Inode: is.Inode}
	if err != nil || g.dirs.isNamed(key) {
		return err
	}
	if above := dirAbove(path); above != "" {
		d, err := g.openDir(ctx, above)
		if errors.Is(err, fs.ErrPermission) { // makeDir makes nothing there either
			g.dirs.setNamed(key)
			return nil
		}
		if err != nil {
			return err
		}
		device := d.Is.Device
		if device == is.Device && g.dirs.synced[d.Key()] != era {
			// Whatever failed there since the process began may have lost a name whose age is not known.
			if err = g.syncNamesIn(d, 0); err == nil {
				note(&g.dirs.synced, d.Key(), era)
			} else if errors.Is(err, durable.ErrDirLost) {
				err = fmt.Errorf("the name of the directory %s may be lost: %w: rename it and back, then start the program again", path, err)
			}
		}
		g.handles.Rest(&d.Handle)
		if err == nil && device == is.Device { // else a file system is mounted here
			err = g.nameFound(ctx, above, era)
		}
		if err != nil {
			return err
		}
	}
	g.dirs.setNamed(key)
	return nil
}

// openDir returns an open directory, in use.
func (g *ground) openDir(ctx context.Context, path string) (d *handles.Dir, err error) {
	t := g.tries(path)
	err = t.Insist(ctx, retry.OpOpen, func() (err error) {
		d, err = g.handles.UseDir(path, g.era.Add(1))
		return err
	})
	return d, err
}

// isNamed reports whether the names of a directory and of those above it are durable.
func (m *dirMaker) isNamed(directory keyed.Key) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.named[directory] != 0
}

func (m *dirMaker) setNamed(directory keyed.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	note(&m.named, directory, 1)
}

// note sets an entry of a map that is allowed to forget: with many entries it begins again.
func note(m *map[keyed.Key]int64, key keyed.Key, value int64) {
	const most = 1 << 14
	if *m == nil || len(*m) >= most {
		*m = map[keyed.Key]int64{}
	}
	(*m)[key] = value
}

// dirAbove returns the path of the directory that a directory's path is in, or "" for the root and the working directory.
func dirAbove(path string) string {
	above, base := vfs.SplitPath(strings.TrimRightFunc(path, func(r rune) bool { return r == '/' || r == os.PathSeparator }))
	if base == "" || above == path {
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
	d, err := g.openDir(ctx, dirAbove(path))
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
		return err
	}
	is, err := g.statDir(ctx, path)
	if err == nil {
		g.dirs.setNamed(keyed.Key{Device: is.Device, Inode: is.Inode})
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
