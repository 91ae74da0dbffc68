package holdfast

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// A streamFile is the open file of a stream.
type streamFile struct {
	handle
	stream   *stream
	key      turnKey // the file that it is, or zero where the system does not tell
	syncsAll bool    // disk.SyncAll can be relied on there
	stales   int64   // streams.stales when it was opened
	witness  int     // the number of the one that was open before anything was written here, or 0
	// replaced says that the name has become another file's by our own doing: that this
	// one has lost its last name is no failure. Guarded by streams.mu.
	replaced bool
	dropped  chan struct{} // closed when it is closed
}

// useFile returns the stream's open file, in use until rest. The caller has a turn
// and is the one who is busy with the stream.
func (t *streams) useFile(ctx context.Context, s *stream) (*streamFile, fileOp, error) {
	h := &t.files.handles
	for {
		h.mu.Lock()
		x := s.file
		kept := x != nil && !x.gone // once in use it may be let go, and is ours all the same
		if kept {
			h.stats.hits++
			h.useLocked(&x.handle)
		}
		h.mu.Unlock()
		switch {
		case x == nil:
			x, op, err := t.open(ctx, s)
			if err != nil || t.leadsTo(s, x) {
				return x, op, err
			}
			t.letGo(x)
			h.rest(&x.handle)
			continue
		case kept:
			return x, "", nil
		}
		if err := x.awaitDrop(ctx); err != nil {
			return nil, opWait, err
		}
	}
}

// awaitDrop waits until a file that is gone is closed. Who drops it waits for nothing
// but the disk.
func (x *streamFile) awaitDrop(ctx context.Context) error {
	select {
	case <-x.dropped:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// open opens the stream's file, which is made if it is not there.
func (t *streams) open(ctx context.Context, s *stream) (*streamFile, fileOp, error) {
	f := t.files
	d, op, err := t.useFolder(ctx, s.name.folder)
	if err != nil {
		return nil, op, err
	}
	defer f.handles.rest(&d.handle)
	site := nameSite{d.key(), f.handles.losses(d)}
	stales := t.stales.Load()
	f.handles.reserve()
	fd, err := f.disk.OpenFile(d.fd, s.name.base, os.O_WRONLY|os.O_APPEND|os.O_CREATE, uint32(f.options.Perm))
	if err != nil {
		f.handles.release()
		return nil, opOpen, err
	}
	op, is, err := opWait, sys.Stat{}, f.fresh.await(ctx)
	if err == nil {
		op = opOpen
		is, err = f.disk.StatFD(fd)
	}
	if err == nil && is.Mode&kindMask != kindRegular {
		err = errAppendTo
	}
	if err != nil {
		f.disk.Close(fd)
		f.handles.release()
		return nil, op, err
	}
	x := &streamFile{handle: handle{fd: fd, users: 1}, stream: s, stales: stales, dropped: make(chan struct{})}
	x.drop = func() { t.dropFile(x) }
	if is.Inode != 0 {
		x.key = turnKey{device: is.Device, inode: is.Inode}
	}
	x.syncsAll = d.syncsAll && is.Device == d.is.Device
	x.witness = t.watch(d, is)
	t.keep(x, site, is.Size == 0)
	return x, "", nil
}

var errAppendTo = errors.New("it is no regular file; append only to regular ones")

// leadsTo reports whether the stream's path leads to a file that was just opened: it
// may have been replaced, or removed, before it was kept.
func (t *streams) leadsTo(s *stream, x *streamFile) bool {
	if t.stales.Load() == x.stales || x.key == (turnKey{}) {
		return true
	}
	name, err := sys.NewName(s.name.path)
	if err != nil {
		return true
	}
	is, err := t.files.disk.StatPath(name)
	return err != nil && !errors.Is(err, fs.ErrNotExist) || err == nil && x.key == turnKey{device: is.Device, inode: is.Inode}
}

// keep lets the file be found. If it is another than the stream had, its name is
// another too; one that is empty may be new and have the old one's number.
func (t *streams) keep(x *streamFile, site nameSite, empty bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := x.stream
	if s.named == (nameSite{}) || !s.nameless {
		s.named = site
	}
	if empty || s.last != x.key || x.key == (turnKey{}) {
		s.nameless, s.last = true, x.key
		s.births++
	}
	if why := t.lostNames[s.name.folder]; why != nil && !empty && s.births == 1 && s.final == nil {
		s.final = syncFailed(s, why) // it may be a forgotten one, of which the name was lost
	}
	h := &t.files.handles
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stats.misses++
	x.stream.file = x
	t.byFile[x.key] = append(t.byFile[x.key], x)
}

// useFolder returns the open folder of the path, which is made if that is wanted.
func (t *streams) useFolder(ctx context.Context, path string) (*folder, fileOp, error) {
	f := t.files
	// A folder that was moved since must not get the file: look each time.
	d, err := f.handles.useFolder(path, f.era.Add(1))
	if !f.options.Folders {
		return d, opOpen, err
	}
	if errors.Is(err, fs.ErrNotExist) {
		if err := f.makeFolders(ctx, path); err != nil {
			return nil, opMkdir, err
		}
		d, err = f.handles.useFolder(path, f.era.Add(1))
	}
	if err != nil {
		return nil, opOpen, err
	}
	return f.settled(ctx, d, f.era.Add(1)) // somebody else may have just made it
}

// dropFile closes a file that nobody uses, after it has synced what was written to
// it if the policy syncs: a failure is told to this descriptor only.
func (t *streams) dropFile(x *streamFile) {
	t.syncDropped(x)
	err := t.files.disk.Close(x.fd)
	s := x.stream
	t.mu.Lock()
	t.forgetFileLocked(x)
	if !t.policy.syncs() {
		t.leaveLocked(x)
	}
	if err != nil && s.unreported == nil {
		s.unreported = &FileError{Path: s.name.path, Op: string(opClose), Attempts: 1, Outcome: OutcomeUncertain,
			Err: fmt.Errorf("its bytes may be lost: %w", err)}
	}
	close(x.dropped)
	s.changed.tellLocked()
	t.tidyLocked(s)
	t.mu.Unlock()
	t.files.handles.release()
}

func (t *streams) forgetFileLocked(x *streamFile) {
	h := &t.files.handles
	h.mu.Lock()
	defer h.mu.Unlock()
	x.stream.file = nil
	same := t.byFile[x.key]
	if i := slices.Index(same, x); len(same) > 1 {
		t.byFile[x.key] = slices.Delete(same, i, i+1)
	} else {
		delete(t.byFile, x.key)
	}
}

// letGo closes an open file as soon as nobody uses it.
func (t *streams) letGo(x *streamFile) {
	h := &t.files.handles
	h.mu.Lock()
	idle := !x.gone && x.users == 0
	if idle {
		h.idle.remove(&x.handle)
	}
	x.gone = true
	h.mu.Unlock()
	if idle {
		x.drop()
	}
}

// stale is told that a file has lost its name to another by our own doing: who
// appends to that name opens the new file then.
func (t *streams) stale(device, inode uint64) {
	h := &t.files.handles
	t.stales.Add(1)
	t.mu.Lock()
	h.mu.Lock()
	same := slices.Clone(t.byFile[turnKey{device: device, inode: inode}])
	h.mu.Unlock()
	for _, x := range same {
		x.replaced = true
	}
	t.mu.Unlock()
	for _, x := range same {
		t.letGo(x)
	}
}
