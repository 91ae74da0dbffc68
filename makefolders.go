package holdfast

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// folderPerm is what new folders may be used for, before umask.
const folderPerm = 0o777

// makeFolders makes a folder and those above it that are missing. If the policy
// syncs, their names are durable when it returns. The caller has a turn, and
// room in it for one more descriptor.
func (f *Files) makeFolders(ctx context.Context, path string) error {
	f.makers.Add(1)
	defer f.makers.Add(-1)
	select {
	case f.making <- struct{}{}:
		defer func() { <-f.making }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	missing, err := f.missingFolders(ctx, path)
	if err != nil {
		return err
	}
	for i := len(missing) - 1; i >= 0; i-- {
		if err := f.makeFolder(ctx, missing[i]); err != nil {
			return err
		}
	}
	return nil
}

// settled returns a folder that is open and in use again when those are done who make
// folders, one of which may be just this: then its name is durable. It returns why
// nothing in there can be made durable, if that is so, and the folder is not in use then.
func (f *Files) settled(ctx context.Context, d *folder, era int64) (*folder, fileOp, error) {
	if !f.options.Folders || !f.options.Policy.syncs() {
		return d, "", nil
	}
	path := d.path
	if f.makers.Load() > 0 {
		f.handles.rest(&d.handle) // who makes one may need this descriptor
		if err := f.awaitMakers(ctx); err != nil {
			return nil, opWait, err
		}
		var err error
		if d, err = f.handles.useFolder(path, era); err != nil {
			return nil, opOpen, err
		}
	}
	if err := f.lostFolder(path); err != nil {
		f.handles.rest(&d.handle)
		return nil, opMkdir, err
	}
	return d, "", nil
}

// awaitMakers waits until those who are making folders have made them.
func (f *Files) awaitMakers(ctx context.Context) error {
	select {
	case f.making <- struct{}{}:
		<-f.making
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// missingFolders returns which of path and the folders above it are not there, the
// lowest first.
func (f *Files) missingFolders(ctx context.Context, path string) ([]string, error) {
	var missing []string
	for path != "" {
		_, err := f.statFolder(ctx, path)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		missing = append(missing, path)
		path = folderAbove(path)
	}
	return missing, nil
}

// folderAbove returns the path of the folder that a folder's path is in.
func folderAbove(path string) string {
	above, _ := splitPath(strings.TrimRightFunc(path, func(r rune) bool { return r == '/' || r == os.PathSeparator }))
	if above == path {
		return ""
	}
	return above
}

func (f *Files) statFolder(ctx context.Context, path string) (sys.Stat, error) {
	name, err := sys.NewName(path)
	if err != nil {
		return sys.Stat{}, err
	}
	for t := f.tries(); ; {
		is, err := f.disk.StatPath(name)
		if err == nil || !t.again(ctx, opStat, &err) {
			return is, err
		}
	}
}

// makeFolder makes one folder, unless somebody else has meanwhile.
func (f *Files) makeFolder(ctx context.Context, path string) error {
	if !f.options.Policy.syncs() {
		return f.mkdir(ctx, path)
	}
	// It is opened first: once the folder is made only its sync may fail.
	f.handles.reserve()
	defer f.handles.release()
	fd, err := f.openAbove(ctx, path)
	if err != nil {
		return err
	}
	defer f.disk.Close(fd)
	if err := f.mkdir(ctx, path); err != nil {
		return err
	}
	if err = f.disk.Sync(fd); err != nil {
		f.loseFolder(path, err)
	}
	return err
}

func (f *Files) mkdir(ctx context.Context, path string) error {
	name, err := sys.NewName(path)
	if err != nil {
		return err
	}
	t := f.tries()
	return ignoreExist(t.insist(ctx, opMkdir, func() error { return f.disk.Mkdir(name, folderPerm) }))
}

// openAbove opens the folder that a folder's path is in.
func (f *Files) openAbove(ctx context.Context, path string) (fd int, err error) {
	name, err := sys.NewName(folderAbove(path))
	if err != nil {
		return -1, err
	}
	t := f.tries()
	err = t.insist(ctx, opOpen, func() (err error) {
		fd, err = f.disk.OpenFolder(name)
		return err
	})
	return fd, err
}

// loseFolder is told that a new folder's name may be lost: the sync of the folder above
// failed, and another would say nothing of it.
func (f *Files) loseFolder(path string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lostFolders == nil {
		f.lostFolders = map[string]error{}
	}
	f.lostFolders[path] = fmt.Errorf("the folder %s was made, and then the sync of its name failed: %w", path, err)
}

// lostFolder returns why nothing in a folder can be made durable, if that is so.
func (f *Files) lostFolder(path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for ; len(f.lostFolders) > 0 && path != ""; path = folderAbove(path) {
		if err := f.lostFolders[path]; err != nil {
			return err
		}
	}
	return nil
}

func ignoreExist(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}
