package files

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/errorqueue"
	"github.com/holdfast-go/holdfast/internal/handles"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/slow"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// A ground is shared by whole files and streams: a disk, its descriptors, the turns of its writers,
// and the options. Every part guards itself, so that no lock of the rooms above is needed here.
type ground struct {
	options  Options // with every default filled in
	disk     vfs.Disk
	byPath   paths
	handles  handles.Cache
	turns    keyed.Queue        // one writer at a time for each path and each file
	names    *durable.NameSyncs // the syncs of directories and of file systems
	dirs     dirMaker
	era      atomic.Int64  // grows with each Write and WriteAll, and each file opened to append: see UseDir
	fresh    freshFiles    // made and not written yet: see openFresh
	watches  chan struct{} // one for each errseq descriptor that may be open
	retries  atomic.Int64  // calls made again after a pause
	whole    wholeCounts
	failures errorqueue.Queue[*Error]
	slow     slow.Watch[holdfast.SlowSync]

	unsyncable sync.Map // the keys of directories that the file system does not sync: see holdfast.Best
}

// wholeCounts counts what WriteFile and WriteAll have done. Syncs of directories are among syncs.
type wholeCounts struct{ files, syncs, stripped, noJournal atomic.Int64 }

// A dirMaker has one call at a time make directories.
type dirMaker struct {
	makers atomic.Int64        // calls that make directories, or wait for that
	making chan struct{}       // held by the one that does
	synced map[keyed.Key]int64 // the last era in which a directory was synced for the directories found in it; guarded by making

	mu    sync.Mutex
	named map[keyed.Key]int64 // 1: its name is durable, and those above it
	lost  map[string]error    // why the names of directories that were made may be lost, by their paths
}

func (g *ground) init(d vfs.Disk, options Options) {
	g.options, g.disk = options.withDefaults(), d
	g.handles.Init(d, g.options.Handles)
	g.handles.Syncs = g.options.Policy.Sync.Mode != holdfast.SyncNever
	if log := g.options.Logger; log != nil {
		g.handles.Opened = func(path string) { log.Debug("open", "path", path) }
		g.handles.Evicted = func(path string) { log.Debug("evict", "path", path) }
	}
	g.watches = make(chan struct{}, handles.ErrseqDescriptors)
	g.dirs.making = make(chan struct{}, 1)
}

// tries begins to count for one file.
func (g *ground) tries(path string) retry.Tries {
	t := retry.Tries{Limits: retry.Limits(g.options.Retry), Handles: &g.handles, Retries: &g.retries}
	if log := g.options.Logger; log != nil {
		t.Paused = func(op retry.Op, err error, pause time.Duration) {
			log.Warn("retry", "path", path, "op", string(op), "pause", pause, "error", err)
		}
	}
	return t
}

// resolve returns where the symbolic links of a path lead.
func (g *ground) resolve(ctx context.Context, t *retry.Tries, path string) (fileName, error) {
	var target string
	err := t.Insist(ctx, retry.OpResolve, func() (err error) {
		target, err = g.disk.Resolve(path)
		return err
	})
	if err != nil {
		return fileName{}, err
	}
	return newName(target)
}

// watchSync begins the watch of a sync for OnSlowSync. The caller calls its result when the sync ends.
func (g *ground) watchSync(path string) (end func()) {
	return g.slow.Begin(holdfast.SlowSync{Path: path, Since: time.Now()})
}

// syncAll syncs a whole file system for a step.
func (g *ground) syncAll(errseq int) error {
	defer g.watchSync("")()
	return vfs.SyncAll(g.disk, errseq)
}

// sync syncs a file or a directory, once whatever comes of it.
func (g *ground) sync(fd int) error {
	g.whole.syncs.Add(1)
	return g.disk.Sync(fd)
}

// syncFile is sync of a file, and watches it.
func (g *ground) syncFile(fd int, path string) error {
	defer g.watchSync(path)()
	return g.sync(fd)
}

// failFile counts the failed sync of a file against the names in its directory, if the file's
// name was not known to be durable. Elsewhere than on ext a failure is of the file alone.
func (g *ground) failFile(fd int, dir keyed.Key) {
	if vfs.LacksJournal(g.disk, fd) {
		g.names.Fail(dir)
	}
}

// syncBy syncs by a directory's descriptor, unless such a sync has failed: it would succeed.
func (g *ground) syncBy(d *handles.Dir, sync func(fd int) error) error {
	if g.handles.IsLost(d) {
		return durable.ErrDirLost
	}
	err := sync(d.Fd)
	if err != nil && !durable.RefusesDirs(err) {
		g.handles.Lost(d)
	}
	return err
}

// syncDir makes the names durable that a directory has by now.
func (g *ground) syncDir(d *handles.Dir) error {
	if g.handles.IsLost(d) {
		return durable.ErrDirLost
	}
	err := g.names.Directory(d.Key(), func() error { return g.syncBy(d, g.sync) })
	if refused := (*durable.RefusedError)(nil); g.options.Effort == holdfast.Best && errors.As(err, &refused) {
		g.unsyncable.Store(d.Key(), true)
		return nil
	}
	if err == nil {
		g.countDoubt(d)
	}
	return err
}

// named sets the outcome of a file whose bytes and name were synced, as far as its directory can be.
func (g *ground) named(r *record, dir keyed.Key, noJournal bool) {
	r.outcome, r.noJournal = holdfast.OutcomeDurable, noJournal
	if g.options.Effort == holdfast.Strict {
		return
	}
	if _, refused := g.unsyncable.Load(dir); refused {
		r.outcome, r.forgone = holdfast.OutcomeWritten, r.forgone|nameUnsynced
	}
}

// syncNamesIn makes the names in a directory durable that came when these were its losses.
// After another failure it is not known which names were lost.
func (g *ground) syncNamesIn(d *handles.Dir, losses int) error {
	if err := g.syncDir(d); err != nil {
		return err
	}
	return g.names.LostSince(d.Key(), losses)
}

// countDoubt counts a sync of names in a directory without a journal, also for streams, which
// have no result.
func (g *ground) countDoubt(d *handles.Dir) {
	if d.LacksJournal || g.options.Policy.Sync.Mode == holdfast.SyncNever && vfs.LacksJournal(g.disk, d.Fd) {
		g.whole.noJournal.Add(1)
	}
}

// openErrseq opens a directory of a device. It returns -1 if that can't be, or if as
// many are open as are set aside.
func (g *ground) openErrseq(path string, device uint64) int {
	select {
	case g.watches <- struct{}{}:
	default:
		return -1
	}
	g.handles.Reserve()
	fd := -1
	if name, err := sys.NewName(path); err == nil {
		if fd, err = g.disk.OpenDir(name); err != nil {
			fd = -1
		}
	}
	if fd >= 0 {
		if is, err := g.disk.StatFD(fd); err == nil && is.Device == device {
			return fd
		}
	}
	g.closeErrseq(fd)
	return -1
}

func (g *ground) closeErrseq(fd int) {
	if fd >= 0 {
		g.disk.Close(fd) // nothing was written to it
	}
	g.handles.Release()
	<-g.watches
}

var errDirMoved = errors.New("the directory was moved away meanwhile, and another is at its path")

// errFilesClosed is returned by every call after Close.
const errFilesClosed = sys.Closed("holdfast: the set of files was closed")

// Files are opened so that each write goes to their end, even beside other writers. A
// file is emptied in its turn, while no other call writes to it, and not when it is opened.
// Symbolic links are resolved here, not by the kernel: the name is then where they lead.
const (
	openFlags  = os.O_WRONLY | os.O_APPEND | os.O_CREATE | sys.NoFollow
	freshFlags = openFlags | os.O_EXCL
)
