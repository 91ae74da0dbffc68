package files

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync/atomic"
	"syscall"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/handles"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// openFiles opens and closes the files of streams. There may be fewer descriptors than streams: an idle
// one is closed to make room. streams.mu guards its fields, unless a field's comment names another
// lock.
type openFiles struct {
	*streams
	drop  func(*streamFile) // closes a file that no call uses, without the lock: what is above may have to sync it first
	wrote func()            // with the lock, after bytes went to the kernel

	byFile  map[keyed.Key][]*streamFile // the open files, by identity; guarded by handles.mu
	renames map[keyed.Key]int           // in flight, by the file that each replaces
	stales  atomic.Int64                // how often stale was called

	errseq   *durable.Errseq // nil: none is open
	watching bool            // a goroutine opens it
}

func (o *openFiles) init(t *streams) {
	o.streams = t
	o.byFile = map[keyed.Key][]*streamFile{}
	o.renames = map[keyed.Key]int{}
}

// has reports whether the stream's next write needs no open, unless the file is closed before that.
func (o *openFiles) has(s *stream) bool {
	h := &o.handles
	h.Mu.Lock()
	defer h.Mu.Unlock()
	return s.file != nil && !s.file.Gone
}

// use returns the stream's open file, in use until rest. The caller has a turn
// and is busy with the stream.
func (o *openFiles) use(ctx context.Context, s *stream) (*streamFile, retry.Op, error) {
	h := &o.handles
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
			x, op, err := o.open(ctx, s)
			if err != nil || o.leadsTo(s, x) {
				return x, op, err
			}
			o.letGo(x)
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
func (o *openFiles) open(ctx context.Context, s *stream) (*streamFile, retry.Op, error) {
	x, op, err := o.openAs(ctx, s, s.name)
	if errors.Is(err, syscall.ELOOP) && op == retry.OpOpen { // a symbolic link: the name is where it leads
		tries := o.tries(s.given)
		name, err := o.resolve(ctx, &tries, s.name.path)
		if err != nil {
			return nil, retry.OpResolve, err
		}
		return o.openAs(ctx, s, name)
	}
	return x, op, err
}

// openAs opens the stream's file under this name, which is no symbolic link.
func (o *openFiles) openAs(ctx context.Context, s *stream, name fileName) (*streamFile, retry.Op, error) {
	d, op, err := o.useDir(ctx, name.dir)
	if err != nil {
		return nil, op, err
	}
	defer o.handles.Rest(&d.Handle)
	site := nameSite{dir: d.Key(), losses: o.names.Losses(d.Key())}
	stales := o.stales.Load()
	lost := o.lostIn(name.dir, site)
	o.handles.Reserve()
	fd, found, err := o.openFound(d, name.base, lost != nil)
	if err != nil {
		o.handles.Release()
		return nil, retry.OpOpen, err
	}
	op, is, err := opWait, sys.Stat{}, o.fresh.await(ctx)
	if err == nil {
		op = retry.OpOpen
		is, err = o.disk.StatFD(fd)
	}
	if err == nil && is.Mode&vfs.KindMask != vfs.KindRegular {
		err = errAppendTo
	}
	if err != nil {
		o.disk.Close(fd)
		o.handles.Release()
		o.mu.Lock()
		o.forgetNameLocked(name.dir, site, 0) // it may have been made
		o.mu.Unlock()
		return nil, op, err
	}
	if is.Size > 0 {
		vfs.DropRefused(o.disk, fd, is.Size-1)
	}
	x := &streamFile{Handle: handles.Handle{Fd: fd, Path: s.name.path, Users: 1}, stream: s, stales: stales, dropped: make(chan struct{})}
	x.Drop = func() { o.drop(x) }
	if is.Inode != 0 {
		x.key = keyed.Key{Device: is.Device, Inode: is.Inode}
	}
	x.syncsAll = d.SyncsAll && is.Device == d.Is.Device
	x.errseq = o.watch(d, is)
	if !found {
		lost = nil
	}
	o.keep(x, name.dir, site, is.Size == 0, lost)
	if o.handles.Opened != nil {
		o.handles.Opened(x.Path)
	}
	return x, "", nil
}

// lostIn returns why forgotten files may have lost their names in a directory, or nil. now
// is the directory's present state.
func (o *openFiles) lostIn(path string, now nameSite) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for other, old := range o.forgotten.names {
		if other != path && old.dir != now.dir {
			continue
		}
		if why := nameFailure(now, old.nameSite, nil); why != nil {
			o.loseNamesLocked(other, old.dir, why)
		}
	}
	return o.lostNamesOfLocked(now.dir, path)
}

// openFound opens a file to append to it, which is made if it is not there. It reports whether
// the file was there, if that is asked: an empty one may be either.
func (o *openFiles) openFound(d *handles.Dir, base sys.Name, ask bool) (fd int, found bool, err error) {
	perm, flags := unixPerm(o.options.Perm), openFlags
	if o.options.Lines {
		flags = flags&^os.O_WRONLY | os.O_RDWR
	}
	for ask {
		fd, err = o.disk.OpenFile(d.Fd, base, flags&^os.O_CREATE, 0)
		if !errors.Is(err, fs.ErrNotExist) {
			return fd, true, err
		}
		fd, err = o.disk.OpenFile(d.Fd, base, flags|os.O_EXCL, perm)
		if !errors.Is(err, fs.ErrExist) { // another program has made it just now
			return fd, false, err
		}
	}
	fd, err = o.disk.OpenFile(d.Fd, base, flags, perm)
	return fd, false, err
}

var errAppendTo = errors.New("it is no regular file; append only to regular ones")

// leadsTo reports whether the stream's path leads to a file that was just opened: it
// may have been replaced, or removed, before it was kept.
func (o *openFiles) leadsTo(s *stream, x *streamFile) bool {
	if o.stales.Load() == x.stales || x.key == (keyed.Key{}) {
		return true
	}
	name, err := sys.NewName(s.name.path)
	if err != nil {
		return true
	}
	is, err := o.disk.StatPath(name)
	return err != nil && !errors.Is(err, fs.ErrNotExist) || err == nil && x.key == keyed.Key{Device: is.Device, Inode: is.Inode}
}

// keep lets the file be found. If it is another than the stream had, its name is
// another too. An empty file may be a new one with the old one's number. The file may be a
// forgotten one that lost its name: lost says why, or is nil.
func (o *openFiles) keep(x *streamFile, dir string, site nameSite, empty bool, lost error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := x.stream
	s.dir = dir
	older := s.site != (nameSite{}) && s.dirUnsynced
	if empty || s.last != x.key || x.key == (keyed.Key{}) {
		s.dirUnsynced, s.last = true, x.key
		s.births++
	}
	if !older {
		s.site = site
		s.site.birth = s.births
	}
	if lost != nil && s.births == 1 && s.final == nil {
		o.endLocked(s, lost)
	}
	h := &o.handles
	h.Mu.Lock()
	defer h.Mu.Unlock()
	h.Stats.Misses++
	x.stream.file = x
	o.byFile[x.key] = append(o.byFile[x.key], x)
}

// useDir returns the open directory of the path, which is made if that is wanted.
func (o *openFiles) useDir(ctx context.Context, path string) (*handles.Dir, retry.Op, error) {
	// A directory that was moved since must not get the file: look each time.
	d, err := o.handles.UseDir(path, o.era.Add(1))
	if !o.options.MkdirAll {
		return d, retry.OpOpen, err
	}
	if errors.Is(err, fs.ErrNotExist) {
		if err := o.makeDirs(ctx, path); err != nil {
			return nil, retry.OpMkdir, err
		}
		d, err = o.handles.UseDir(path, o.era.Add(1))
	}
	if err != nil {
		return nil, retry.OpOpen, err
	}
	return o.settled(ctx, d, o.era.Add(1)) // another call may have just made it
}

// removeLocked takes a closed file out of the table.
func (o *openFiles) removeLocked(x *streamFile) {
	o.handles.Mu.Lock()
	defer o.handles.Mu.Unlock()
	x.stream.file = nil
	same := o.byFile[x.key]
	if i := slices.Index(same, x); len(same) > 1 {
		o.byFile[x.key] = slices.Delete(same, i, i+1)
	} else {
		delete(o.byFile, x.key)
	}
}

// streamsLocked returns the streams with an open file.
func (o *openFiles) streamsLocked() (open []*stream) {
	o.handles.Mu.Lock()
	defer o.handles.Mu.Unlock()
	for _, same := range o.byFile {
		for _, x := range same {
			open = append(open, x.stream)
		}
	}
	return open
}

// letGo closes an open file as soon as no call uses it.
func (o *openFiles) letGo(x *streamFile) {
	h := &o.handles
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

// shutLocked closes a file, and waits for that without the lock.
func (o *openFiles) shutLocked(ctx context.Context, x *streamFile) error {
	o.mu.Unlock()
	defer o.mu.Lock()
	if ctx.Done() == nil {
		o.letGo(x)
	} else {
		o.background.Add(1)
		go func() {
			defer o.background.Done()
			o.letGo(x)
		}()
	}
	if err := x.awaitDrop(ctx); err != nil {
		return appendError(x.stream.given, opWait, err)
	}
	return nil
}

// watch returns the errseq descriptor that is open before the caller writes to a new descriptor
// in the directory, or nil. There is one, of the file system that was first written to; files
// elsewhere are synced one by one.
func (o *openFiles) watch(d *handles.Dir, is sys.Stat) *durable.Errseq {
	if o.policy.Sync.Mode == holdfast.SyncNever || o.policy.Sync.Mode == holdfast.SyncEach || !d.SyncsAll || d.LacksJournal || is.Device != d.Is.Device {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.errseq == nil && !o.watching {
		o.watching = true
		o.mu.Unlock()
		fd := o.openErrseq(d.Path, is.Device)
		o.mu.Lock()
		o.watching = false
		if fd >= 0 {
			o.errseq = &durable.Errseq{ID: is.Device, Fd: fd}
		}
	}
	if o.errseq == nil || o.errseq.ID != is.Device {
		return nil
	}
	return o.errseq
}

// dropErrseq is called when nothing is left to be synced by the descriptor, or when it has failed.
func (o *openFiles) dropErrseq(e *durable.Errseq) {
	o.mu.Lock()
	open := o.errseq == e
	if open {
		o.errseq = nil
	}
	o.mu.Unlock()
	if open && e != nil {
		o.closeErrseq(e.Fd)
	}
}

// renaming counts the renames that replace a file and are in flight. Until stale is called,
// a sync that finds the file without a name can't tell otherwise that this process took it.
func (o *openFiles) renaming(file keyed.Key, by int) {
	if file == (keyed.Key{}) { // it replaces none
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.renames[file] += by; o.renames[file] == 0 {
		delete(o.renames, file)
	}
}

// stale notes that this process has replaced or removed a file: the next append to its
// name opens the new file.
func (o *openFiles) stale(file keyed.Key) {
	h := &o.handles
	o.stales.Add(1)
	o.mu.Lock()
	h.Mu.Lock()
	same := slices.Clone(o.byFile[file])
	h.Mu.Unlock()
	for _, x := range same {
		x.replaced = true
	}
	o.mu.Unlock()
	for _, x := range same {
		o.letGo(x)
	}
}
