package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/handles"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// A streamFile is the open file of a stream.
type streamFile struct {
	handles.Handle
	stream   *stream
	key      keyed.Key       // device and inode, or zero where the system reports none
	syncsAll bool            // disk.SyncAll can be relied on there
	stales   int64           // streams.stales when it was opened
	errseq   *durable.Errseq // was open before anything was written here; or nil
	// replaced says that this process gave the name to another file, so that it is no
	// failure if this one has no name left. Guarded by streams.mu.
	replaced bool
	removed  bool          // a sync found it without a name: nothing in it will be found; guarded as replaced
	dropped  chan struct{} // closed when it is closed
	ended    bool          // it is known to end with a line; belongs to the call with the file's turn
}

// useFile returns the stream's open file, in use until rest. The caller has a turn
// and is busy with the stream.
func (t *streams) useFile(ctx context.Context, s *stream) (*streamFile, retry.Op, error) {
	h := &t.files.handles
	for {
		h.Mu.Lock()
		x := s.file
		kept := x != nil && !x.Gone // once in use it may be let go, and is ours all the same
		if kept {
			h.Stats.Hits++
			h.UseLocked(&x.Handle)
		}
		h.Mu.Unlock()
		switch {
		case x == nil:
			x, op, err := t.open(ctx, s)
			if err != nil || t.leadsTo(s, x) {
				return x, op, err
			}
			t.letGo(x)
			h.Rest(&x.Handle)
			continue
		case kept:
			return x, "", nil
		}
		if err := x.awaitDrop(ctx); err != nil {
			return nil, opWait, err
		}
	}
}

// awaitDrop waits until a file that is gone is closed. Drop waits for nothing but the disk.
func (x *streamFile) awaitDrop(ctx context.Context) error {
	select {
	case <-x.dropped:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// open opens the stream's file, which is made if it is not there.
func (t *streams) open(ctx context.Context, s *stream) (*streamFile, retry.Op, error) {
	x, op, err := t.openAs(ctx, s, s.name)
	if errors.Is(err, syscall.ELOOP) && op == retry.OpOpen { // a symbolic link: the name is where it leads
		tries := t.files.tries(s.given)
		name, err := t.files.resolve(ctx, &tries, s.name.path)
		if err != nil {
			return nil, retry.OpResolve, err
		}
		return t.openAs(ctx, s, name)
	}
	return x, op, err
}

// openAs opens the stream's file under this name, which is no symbolic link.
func (t *streams) openAs(ctx context.Context, s *stream, name fileName) (*streamFile, retry.Op, error) {
	f := t.files
	d, op, err := t.useDir(ctx, name.dir)
	if err != nil {
		return nil, op, err
	}
	defer f.handles.Rest(&d.Handle)
	site := nameSite{dir: d.Key(), losses: f.names.Losses(d.Key())}
	stales := t.stales.Load()
	lost := t.lostIn(name.dir, site)
	f.handles.Reserve()
	fd, found, err := t.openFound(d, name.base, lost != nil)
	if err != nil {
		f.handles.Release()
		return nil, retry.OpOpen, err
	}
	op, is, err := opWait, sys.Stat{}, f.fresh.await(ctx)
	if err == nil {
		op = retry.OpOpen
		is, err = f.disk.StatFD(fd)
	}
	if err == nil && is.Mode&vfs.KindMask != vfs.KindRegular {
		err = errAppendTo
	}
	if err != nil {
		f.disk.Close(fd)
		f.handles.Release()
		t.mu.Lock()
		t.forgetNameLocked(name.dir, site, 0) // it may have been made
		t.mu.Unlock()
		return nil, op, err
	}
	x := &streamFile{Handle: handles.Handle{Fd: fd, Path: s.name.path, Users: 1}, stream: s, stales: stales, dropped: make(chan struct{})}
	x.Drop = func() { t.dropFile(x) }
	if is.Inode != 0 {
		x.key = keyed.Key{Device: is.Device, Inode: is.Inode}
	}
	x.syncsAll = d.SyncsAll && is.Device == d.Is.Device
	x.errseq = t.watch(d, is)
	if !found {
		lost = nil
	}
	t.keep(x, name.dir, site, is.Size == 0, lost)
	if f.handles.Opened != nil {
		f.handles.Opened(x.Path)
	}
	return x, "", nil
}

// lostIn returns why forgotten files may have lost their names in a directory, or nil. now
// is the directory's present state.
func (t *streams) lostIn(path string, now nameSite) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for other, old := range t.names {
		if other != path && old.dir != now.dir {
			continue
		}
		if why := nameFailure(now, old.nameSite, nil); why != nil {
			t.loseNamesLocked(other, old.dir, why)
		}
	}
	return t.lostNamesOfLocked(now.dir, path)
}

// openFound opens a file to append to it, which is made if it is not there. It reports whether
// the file was there, if that is asked: an empty one may be either.
func (t *streams) openFound(d *handles.Dir, base sys.Name, ask bool) (fd int, found bool, err error) {
	perm, flags := unixPerm(t.files.options.Perm), openFlags
	if t.files.options.Lines {
		flags = flags&^os.O_WRONLY | os.O_RDWR
	}
	for ask {
		fd, err = t.files.disk.OpenFile(d.Fd, base, flags&^os.O_CREATE, 0)
		if !errors.Is(err, fs.ErrNotExist) {
			return fd, true, err
		}
		fd, err = t.files.disk.OpenFile(d.Fd, base, flags|os.O_EXCL, perm)
		if !errors.Is(err, fs.ErrExist) { // another program has made it just now
			return fd, false, err
		}
	}
	fd, err = t.files.disk.OpenFile(d.Fd, base, flags, perm)
	return fd, false, err
}

var errAppendTo = errors.New("it is no regular file; append only to regular ones")

// leadsTo reports whether the stream's path leads to a file that was just opened: it
// may have been replaced, or removed, before it was kept.
func (t *streams) leadsTo(s *stream, x *streamFile) bool {
	if t.stales.Load() == x.stales || x.key == (keyed.Key{}) {
		return true
	}
	name, err := sys.NewName(s.name.path)
	if err != nil {
		return true
	}
	is, err := t.files.disk.StatPath(name)
	return err != nil && !errors.Is(err, fs.ErrNotExist) || err == nil && x.key == keyed.Key{Device: is.Device, Inode: is.Inode}
}

// keep lets the file be found. If it is another than the stream had, its name is
// another too. An empty file may be a new one with the old one's number. The file may be a
// forgotten one that lost its name: lost says why, or is nil.
func (t *streams) keep(x *streamFile, dir string, site nameSite, empty bool, lost error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := x.stream
	s.dir = dir
	older := s.named != (nameSite{}) && s.nameless
	if empty || s.last != x.key || x.key == (keyed.Key{}) {
		s.nameless, s.last = true, x.key
		s.births++
	}
	if !older {
		s.named = site
		s.named.birth = s.births
	}
	if lost != nil && s.births == 1 && s.final == nil {
		t.endLocked(s, lost)
		t.countLocked(s)
	}
	h := &t.files.handles
	h.Mu.Lock()
	defer h.Mu.Unlock()
	h.Stats.Misses++
	x.stream.file = x
	t.byFile[x.key] = append(t.byFile[x.key], x)
}

// UseDir returns the open directory of the path, which is made if that is wanted.
func (t *streams) useDir(ctx context.Context, path string) (*handles.Dir, retry.Op, error) {
	f := t.files
	// A directory that was moved since must not get the file: look each time.
	d, err := f.handles.UseDir(path, f.era.Add(1))
	if !f.options.MkdirAll {
		return d, retry.OpOpen, err
	}
	if errors.Is(err, fs.ErrNotExist) {
		if err := f.makeDirs(ctx, path); err != nil {
			return nil, retry.OpMkdir, err
		}
		d, err = f.handles.UseDir(path, f.era.Add(1))
	}
	if err != nil {
		return nil, retry.OpOpen, err
	}
	return f.settled(ctx, d, f.era.Add(1)) // another call may have just made it
}

// dropFile closes a file that no call uses. If the policy syncs, it first syncs what was
// written: the kernel may report a failure to this descriptor only.
func (t *streams) dropFile(x *streamFile) {
	t.syncDropped(x)
	err := t.files.disk.Close(x.Fd)
	s := x.stream
	t.mu.Lock()
	h := &t.files.handles
	h.Mu.Lock()
	s.file = nil
	same := t.byFile[x.key]
	if i := slices.Index(same, x); len(same) > 1 {
		t.byFile[x.key] = slices.Delete(same, i, i+1)
	} else {
		delete(t.byFile, x.key)
	}
	h.Mu.Unlock()
	if x.removed {
		t.loseLocked(s, s.flushed)
	}
	switch {
	case t.policy.Sync.Mode == holdfast.SyncNever:
		t.leaveLocked(x)
	case s.durable < s.flushed && s.final == nil: // no other descriptor is sure to report a failure
		t.endLocked(s, errClosedUnsynced)
		t.countLocked(s)
	}
	if err != nil {
		failed := &Error{Path: s.given, Op: string(retry.OpClose), Attempts: 1, Outcome: holdfast.OutcomeUncertain,
			Err: fmt.Errorf("its bytes may be lost: %w", err)}
		t.reportLocked(failed, 0)
		if s.unreported == nil {
			s.unreported = failed
		}
	}
	close(x.dropped)
	s.changed.wakeLocked()
	t.tidyLocked(s)
	t.mu.Unlock()
	t.files.handles.Release()
}

var errClosedUnsynced = errors.New("the file was closed before it was synced")

// letGo closes an open file as soon as no call uses it.
func (t *streams) letGo(x *streamFile) {
	h := &t.files.handles
	h.Mu.Lock()
	idle := !x.Gone && x.Users == 0
	if idle {
		h.Idle.Remove(&x.Handle)
	}
	x.Gone = true
	h.Mu.Unlock()
	if idle {
		x.Drop()
	}
}

// renaming counts the renames that replace a file and are in flight. Until stale is called,
// a sync that finds the file without a name can't tell otherwise that this process took it.
func (t *streams) renaming(file keyed.Key, by int) {
	if file == (keyed.Key{}) { // it replaces none
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.renames[file] += by; t.renames[file] == 0 {
		delete(t.renames, file)
	}
}

// stale notes that this process has replaced or removed a file: the next append to its
// name opens the new file.
func (t *streams) stale(file keyed.Key) {
	h := &t.files.handles
	t.stales.Add(1)
	t.mu.Lock()
	h.Mu.Lock()
	same := slices.Clone(t.byFile[file])
	h.Mu.Unlock()
	for _, x := range same {
		x.replaced = true
	}
	t.mu.Unlock()
	for _, x := range same {
		t.letGo(x)
	}
}
