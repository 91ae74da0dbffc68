package filecopy

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/handles"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// A copyTree is a running call of All. Its workers take jobs from a stack, so that trees are walked
// depth first and few directories wait to be opened.
type copyTree struct {
	ctx     context.Context
	o       Options
	disk    vfs.CopyDisk
	copier  *copier
	handles handles.Cache
	batch   copyBatch
	report  copyReport
	links   hardLinks
	marks   []*copyMark

	overlap overlap
	stop    atomic.Bool // nothing new is begun

	mu       sync.Mutex
	wake     sync.Cond
	stack    []treeJob
	roots    []*copyRoot // not begun yet
	all      sync.WaitGroup
	busy     int // workers with a job, or starting
	workers  int
	deferred int // readers in the stack whose directory stays open

	most, mostDeferred int // the limits of workers and deferred readers

	idleWorkers atomic.Int32 // workers without a job
	spare       sync.Pool    // *dirReader values
}

// A treeJob is a directory to open, a directory to read further, or some names of one.
type treeJob struct {
	node   *copyNode
	reader *dirReader
	names  []sys.DirEntry
	as     sys.Name // the destination name of a single name; "" if it is the same
}

// The sizes by which names are read and divided among workers.
const (
	namesBuffer     = 32 << 10 // names of one call, about 1000
	mostSubdirs     = 1024     // subdirectories found before the rest of a directory is deferred
	mostDeferred    = 32       // deferred readers with an open directory; others read on
	namesPerHandoff = 32       // names handed to one idle worker
)

// A dirReader reads the names of a directory.
type dirReader struct {
	node    *copyNode
	from    *handles.Handle
	buf     []byte
	names   []sys.DirEntry
	subdirs []sys.Name
}

// moreWorkers starts workers until there are n.
func (t *copyTree) moreWorkers(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for ; t.workers < min(n, t.most); t.workers++ {
		t.busy++
		t.all.Add(1)
		go func() {
			defer t.all.Done()
			t.work()
		}()
	}
}

// work runs one worker.
func (t *copyTree) work() {
	for {
		j, ok := t.next()
		if !ok {
			return
		}
		switch {
		case j.reader != nil:
			t.mu.Lock()
			t.deferred--
			t.mu.Unlock()
			t.read(j.reader)
		case j.names != nil:
			t.copyNames(j.node, j.names, j.as)
			t.done(j.node)
		default:
			t.enter(j.node)
		}
	}
}

// next returns the next job, or false when all are done.
func (t *copyTree) next() (treeJob, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.busy--
	for {
		if n := len(t.stack); n > 0 {
			j := t.stack[n-1]
			t.stack[n-1] = treeJob{}
			t.stack = t.stack[:n-1]
			t.busy++
			return j, true
		}
		if len(t.roots) > 0 {
			j := t.roots[0].job
			t.roots = t.roots[1:]
			t.busy++
			return j, true
		}
		if t.busy == 0 {
			t.wake.Broadcast()
			t.workers--
			return treeJob{}, false
		}
		t.idleWorkers.Add(1)
		t.wake.Wait()
		t.idleWorkers.Add(-1)
	}
}

// push puts jobs on the stack for idle workers.
func (t *copyTree) push(jobs ...treeJob) {
	t.mu.Lock()
	t.stack = append(t.stack, jobs...)
	t.mu.Unlock()
	for range jobs {
		t.wake.Signal()
	}
}

// stopped reports whether nothing new may begin.
func (t *copyTree) stopped() bool { return t.stop.Load() || t.ctx.Err() != nil }

// read copies the files of a directory. When all names were read, it pushes the subdirectories for
// other workers. If there are many, it defers the rest of the directory until they are done.
func (t *copyTree) read(r *dirReader) {
	n := r.node
	for !t.stopped() {
		names, err := t.disk.ReadNames(r.from.Fd, r.buf, r.names[:0])
		r.names = names
		if err != nil {
			n.cut.Store(true)
			t.report.dir(t.failed(n, copyFailure(opReadDir, err)))
			break
		}
		if len(names) == 0 {
			t.endRead(r)
			return
		}
		files := r.names[:0] // every name except subdirectories
		for _, e := range r.names {
			if e.Kind == 0 {
				if is, err := t.disk.Stat(r.from.Fd, e.Name); err == nil {
					e.Kind = is.Mode & vfs.KindMask
				}
			}
			if t.leavesOut(n, e.Name, e.Kind) {
				continue
			}
			if e.Kind == kindDir {
				// Clone: the names of a call share their memory.
				r.subdirs = append(r.subdirs, sys.Name(strings.Clone(string(e.Name))))
			} else {
				files = append(files, e)
			}
		}
		// In inode order, which is about the order on the disk.
		slices.SortFunc(files, func(a, b sys.DirEntry) int { return cmp.Compare(a.Inode, b.Inode) })
		t.copyNames(n, files, "")
		if len(r.subdirs) >= mostSubdirs && t.deferDir(r) {
			return
		}
	}
	if t.stopped() {
		n.cut.Store(true)
	}
	t.endRead(r)
}

// deferDir pushes the rest of a directory below its subdirectories found so far. It returns false
// if too many directories stay open for that.
func (t *copyTree) deferDir(r *dirReader) bool {
	t.mu.Lock()
	if t.deferred >= t.mostDeferred {
		t.mu.Unlock()
		return false
	}
	t.deferred++
	t.mu.Unlock()
	jobs := append(make([]treeJob, 0, len(r.subdirs)+1), treeJob{node: r.node, reader: r})
	subdirs := r.subdirs
	r.subdirs = nil // another worker may take the reader as soon as it is pushed
	t.push(t.subdirJobs(jobs, r.node, subdirs)...)
	return true
}

func (t *copyTree) subdirJobs(jobs []treeJob, n *copyNode, subdirs []sys.Name) []treeJob {
	for _, name := range subdirs {
		jobs = append(jobs, treeJob{node: newCopyNode(n, name)})
	}
	return jobs
}

func (t *copyTree) endRead(r *dirReader) {
	n := r.node
	if len(r.subdirs) > 0 {
		t.push(t.subdirJobs(nil, n, r.subdirs)...)
	}
	t.handles.Rest(r.from)
	r.node, r.from = nil, nil
	clear(r.names[:cap(r.names)])
	clear(r.subdirs)
	r.names, r.subdirs = r.names[:0], r.subdirs[:0]
	t.spare.Put(r)
	t.done(n)
}

// fail reports that a directory's names can't be copied.
func (t *copyTree) fail(n *copyNode, err error) {
	n.cut.Store(true)
	t.report.dir(t.failed(n, err))
}

// reportResult reports a final result.
func (t *copyTree) reportResult(p copyPending) { t.report.add(p.kind, p.result) }
