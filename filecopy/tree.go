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

// A copyTree is an All under way. Its workers take jobs from a stack, so that the
// trees are walked depth first and few directories wait to be opened.
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

	crossings crossings
	stop      atomic.Bool // nothing more is begun

	mu      sync.Mutex
	wake    sync.Cond
	stack   []treeJob
	roots   []*copyRoot // not begun
	all     sync.WaitGroup
	busy    int // workers that have a job, or look for the first
	workers int
	parked  int // readers that wait in the stack with their directory open

	most, mostParked int // how many workers, and such readers, there may be

	hungry atomic.Int32 // workers that have no job
	spare  sync.Pool    // of *dirReader
}

// A treeJob is a directory that is to be opened, one that is to be read on, or some
// names of one.
type treeJob struct {
	node   *copyNode
	reader *dirReader
	names  []sys.DirEntry
	as     sys.Name // in the destination, of an only name; "" if it is the same
}

// How the names of a directory are read, and divided among the workers.
const (
	namesBuffer  = 32 << 10 // a call's names, some 1000
	mostKids     = 1024     // directories that a directory has waiting while it is read on
	mostParked   = 32       // readers that keep their directory open meanwhile; more read on instead
	namesPerGift = 32       // names given to a worker that has none
)

// A dirReader reads the names of a directory.
type dirReader struct {
	node  *copyNode
	from  *handles.Handle
	buf   []byte
	names []sys.DirEntry
	kids  []sys.Name
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

// work is a worker.
func (t *copyTree) work() {
	for {
		j, ok := t.next()
		if !ok {
			return
		}
		switch {
		case j.reader != nil:
			t.mu.Lock()
			t.parked--
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

// next returns what to do next, or false when there is nothing left.
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
		t.hungry.Add(1)
		t.wake.Wait()
		t.hungry.Add(-1)
	}
}

// push leaves jobs to the first free worker.
func (t *copyTree) push(jobs ...treeJob) {
	t.mu.Lock()
	t.stack = append(t.stack, jobs...)
	t.mu.Unlock()
	for range jobs {
		t.wake.Signal()
	}
}

// stopped reports whether nothing more is to be begun.
func (t *copyTree) stopped() bool { return t.stop.Load() || t.ctx.Err() != nil }

// read copies what is in a directory. When all names were read, it leaves the directories among
// them to the first free workers. If these are many, it is read on when they are done.
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
		files := r.names[:0] // all that are no directories
		for _, e := range r.names {
			if e.Kind == 0 {
				if is, err := t.disk.Stat(r.from.Fd, e.Name); err == nil {
					e.Kind = is.Mode & vfs.KindMask
				}
			}
			if e.Kind == kindDir {
				// A copy, because the names of a call share their memory.
				r.kids = append(r.kids, sys.Name(strings.Clone(string(e.Name))))
			} else {
				files = append(files, e)
			}
		}
		// In the order of their inodes, which is about that on the disk.
		slices.SortFunc(files, func(a, b sys.DirEntry) int { return cmp.Compare(a.Inode, b.Inode) })
		t.copyNames(n, files, "")
		if len(r.kids) >= mostKids && t.park(r) {
			return
		}
	}
	if t.stopped() {
		n.cut.Store(true)
	}
	t.endRead(r)
}

// park leaves a directory to be read on when the directories that were found are done. It
// returns false if too many stay open for that.
func (t *copyTree) park(r *dirReader) bool {
	t.mu.Lock()
	if t.parked >= t.mostParked {
		t.mu.Unlock()
		return false
	}
	t.parked++
	t.mu.Unlock()
	jobs := append(make([]treeJob, 0, len(r.kids)+1), treeJob{node: r.node, reader: r})
	kids := r.kids
	r.kids = nil // another may have the reader as soon as it is pushed
	t.push(t.kidJobs(jobs, r.node, kids)...)
	return true
}

func (t *copyTree) kidJobs(jobs []treeJob, n *copyNode, kids []sys.Name) []treeJob {
	for _, name := range kids {
		jobs = append(jobs, treeJob{node: newCopyNode(n, name)})
	}
	return jobs
}

func (t *copyTree) endRead(r *dirReader) {
	n := r.node
	if len(r.kids) > 0 {
		t.push(t.kidJobs(nil, n, r.kids)...)
	}
	t.handles.Rest(r.from)
	r.node, r.from = nil, nil
	clear(r.names[:cap(r.names)])
	clear(r.kids)
	r.names, r.kids = r.names[:0], r.kids[:0]
	t.spare.Put(r)
	t.done(n)
}

// lose reports that a directory's names can't be copied.
func (t *copyTree) lose(n *copyNode, err error) {
	n.cut.Store(true)
	t.report.dir(t.failed(n, err))
}

// reportResult reports a result that will not change any more.
func (t *copyTree) reportResult(p copyPending) { t.report.add(p.kind, p.result) }
