package holdfast

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// A copyTree is a CopyAll under way. Its workers take jobs from a stack, so that the
// trees are walked depth first and few folders wait to be opened.
type copyTree struct {
	ctx     context.Context
	o       CopyOptions
	disk    copyDisk
	copier  *copier
	handles handles
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
	parked  int // readers that wait in the stack with their folder open

	most, mostParked int // how many workers, and such readers, there may be

	hungry atomic.Int32 // workers that have no job
	spare  sync.Pool    // of *folderReader
}

// A treeJob is a folder that is to be opened, one that is to be read on, or some
// names of one.
type treeJob struct {
	node   *copyNode
	reader *folderReader
	names  []sys.FolderEntry
	as     sys.Name // in the destination, of an only name; "" if it is the same
}

// How the names of a folder are read, and divided among the workers.
const (
	namesBuffer  = 32 << 10 // a call's names, some 1000
	mostKids     = 1024     // folders that a folder has waiting while it is read on
	mostParked   = 32       // readers that keep their folder open meanwhile; more read on instead
	namesPerGift = 32       // names given to a worker that has none
)

// A folderReader reads the names of a folder.
type folderReader struct {
	node  *copyNode
	from  *handle
	buf   []byte
	names []sys.FolderEntry
	kids  []sys.Name
}

// run copies all roots.
func (t *copyTree) run() {
	t.wake.L = &t.mu
	for again := true; again; again = t.batch.step() { // whose renames may leave something to do
		t.moreWorkers(t.o.workers())
		t.all.Wait()
	}
	t.batch.end()
	for _, m := range t.marks {
		m.end()
	}
	t.handles.closeAll()
}

// moreWorkers sees that there are so many workers.
func (t *copyTree) moreWorkers(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for ; t.workers < min(n, t.most); t.workers++ {
		t.busy++
		t.all.Go(t.work)
	}
}

// work is a worker.
func (t *copyTree) work() {
	for {
		j, ok := t.next()
		if !ok {
			return
		}
		t.do(j)
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

// push leaves jobs to who comes first.
func (t *copyTree) push(jobs ...treeJob) {
	t.mu.Lock()
	t.stack = append(t.stack, jobs...)
	t.mu.Unlock()
	for range jobs {
		t.wake.Signal()
	}
}

func (t *copyTree) do(j treeJob) {
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

// stopped reports whether nothing more is to be begun.
func (t *copyTree) stopped() bool { return t.stop.Load() || t.ctx.Err() != nil }

// enter opens a folder, makes the one that it is copied to, and reads it.
func (t *copyTree) enter(n *copyNode) {
	if t.stopped() {
		n.cut.Store(true)
		t.done(n)
		return
	}
	from, err := t.open(n)
	if err != nil {
		n.cut.Store(true)
		t.report.folder(t.failed(n, err))
		t.done(n)
		return
	}
	r, _ := t.spare.Get().(*folderReader)
	if r == nil {
		r = &folderReader{buf: make([]byte, namesBuffer)}
	}
	r.node, r.from = n, from
	t.read(r)
}

// read copies what is in a folder. Its folders are left to be done next, by who comes
// first, when all names were read; or where these are many it is read on when they are done.
func (t *copyTree) read(r *folderReader) {
	n := r.node
	for !t.stopped() {
		names, err := t.disk.ReadNames(r.from.fd, r.buf, r.names[:0])
		r.names = names
		if err != nil {
			n.cut.Store(true)
			t.report.folder(t.failed(n, copyFailure(opReadFolder, err)))
			break
		}
		if len(names) == 0 {
			t.endRead(r)
			return
		}
		files := t.apart(r)
		// In the order of their inodes, which is about that on the disk.
		slices.SortFunc(files, func(a, b sys.FolderEntry) int { return cmp.Compare(a.Inode, b.Inode) })
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

// apart takes the folders out of the names that were read.
func (t *copyTree) apart(r *folderReader) (files []sys.FolderEntry) {
	files = r.names[:0]
	for _, e := range r.names {
		if e.Kind == 0 {
			if is, err := t.disk.Stat(r.from.fd, e.Name); err == nil {
				e.Kind = is.Mode & kindMask
			}
		}
		if e.Kind == kindFolder {
			// A copy, because the names of a call share their memory.
			r.kids = append(r.kids, sys.Name(strings.Clone(string(e.Name))))
		} else {
			files = append(files, e)
		}
	}
	return files
}

// park leaves a folder to be read on when the folders that were found are done. Where
// too many stay open for that it returns false.
func (t *copyTree) park(r *folderReader) bool {
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

func (t *copyTree) endRead(r *folderReader) {
	n := r.node
	if len(r.kids) > 0 {
		t.push(t.kidJobs(nil, n, r.kids)...)
	}
	t.handles.rest(r.from)
	r.node, r.from = nil, nil
	clear(r.names[:cap(r.names)])
	clear(r.kids)
	r.names, r.kids = r.names[:0], r.kids[:0]
	t.spare.Put(r)
	t.done(n)
}

// copyNames copies files and links of a folder. Where other workers have nothing to do
// it gives them some of the names.
func (t *copyTree) copyNames(n *copyNode, names []sys.FolderEntry, as sys.Name) {
	if len(names) == 0 {
		return
	}
	from, err := t.use(n, atSource)
	if err != nil {
		t.lose(n, copyFailure(opOpen, err))
		return
	}
	defer t.handles.rest(from)
	to, err := t.use(n, atDestination)
	if err != nil {
		t.lose(n, copyFailure(opOpen, err))
		return
	}
	defer t.handles.rest(to)
	for i, e := range names {
		if t.stopped() {
			n.cut.Store(true)
			return
		}
		if t.hungry.Load() > 0 && len(names)-i > namesPerGift {
			names = t.give(n, names, i)
		}
		if i >= len(names) {
			return
		}
		name := as
		if name == "" {
			name = e.Name
		}
		t.copyName(copyName{n, from, to, e, name})
		if t.batch.full() {
			t.batch.step()
		}
	}
}

// give gives the last of the names away, in gifts, and returns the others.
func (t *copyTree) give(n *copyNode, names []sys.FolderEntry, i int) []sys.FolderEntry {
	var jobs []treeJob
	for range t.hungry.Load() {
		rest := len(names) - namesPerGift
		if rest <= i {
			break
		}
		n.left.Add(1)
		jobs = append(jobs, treeJob{node: n, names: slices.Clone(names[rest:])})
		names = names[:rest]
	}
	t.push(jobs...)
	return names
}

// lose is told that a folder's names can't be copied.
func (t *copyTree) lose(n *copyNode, err error) {
	n.cut.Store(true)
	t.report.folder(t.failed(n, err))
}

// tell tells a result that is not going to change any more.
func (t *copyTree) tell(p copyPending) { t.report.told(p.kind, p.result) }

// copyTrees copies what the pairs name.
func copyTrees(ctx context.Context, disk copyDisk, pairs iter.Seq2[string, string], o CopyOptions) (CopyTotals, error) {
	t := &copyTree{ctx: ctx, o: o, disk: disk, copier: &copier{disk: disk, o: o, batch: true}}
	t.bound(sys.DescriptorLimit())
	t.batch.init(t)
	t.report.init(t)
	look := copyPairs{t: t, taken: map[takenName]string{}, need: map[uint64]*roomNeed{}}
	look.look(pairs)
	if err := look.room(); err != nil {
		t.report.fail(err)
		t.roots = nil
	}
	if t.stopped() {
		t.roots = nil
	}
	if len(t.roots) == 1 && t.roots[0].job.names != nil {
		t.batch.only()
	}
	end := t.progress()
	t.run()
	end()
	return t.report.totals, t.report.err(context.Cause(ctx))
}

// What a worker needs at once: two folders, those above them, the folder of another
// link, and one that is just opened; two files and a pipe. And who syncs or verifies in a
// step beside it: two folders, one that is just opened; two files.
const (
	foldersPerWorker = 6
	filesPerWorker   = 4
	foldersPerSync   = 3
	filesPerSync     = 2
)

// bound says how many descriptors there may be, a half of the process's, and from that
// how many workers. Folders that are likely to be used again stay open beside theirs.
func (t *copyTree) bound(limit int, known bool) {
	if !known {
		limit = 1024
	}
	most := max(1, limit/2/(foldersPerWorker+filesPerWorker+foldersPerSync+filesPerSync+1))
	t.most = min(most, max(waiters, t.o.workers()))
	t.mostParked = min(t.most, mostParked)
	t.handles.init(t.disk, (foldersPerWorker+foldersPerSync)*t.most+t.mostParked+leastHandles)
}
