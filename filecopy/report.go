package filecopy

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/errjoin"
	"github.com/holdfast-go/holdfast/internal/sys"
)

type copyKind int8

const (
	fileCopy copyKind = iota
	dirCopy
	linkCopy
	refusedCopy
)

// mostErrors is the most failures in the error of a call, for errors.Is and errors.As. Its text has fewer.
const mostErrors = 100

// A copyReport adds up results, and reports them.
type copyReport struct {
	each     func(Result)
	progress func(Progress)
	began    time.Time
	stop     func() // called after the first failure

	done  atomic.Int64 // bytes of data and holes, including unfinished files
	files atomic.Int64

	mu     sync.Mutex
	totals Totals
	failed errjoin.Many
	at     *copyNode // a file in progress
	name   sys.Name
}

func (r *copyReport) init(t *copyTree) {
	r.began, r.each, r.progress = time.Now(), t.o.Each, t.o.Progress
	if !t.o.KeepGoing {
		r.stop = func() { t.stop.Store(true) }
	}
	t.copier.moved = func(n int64) { r.done.Add(n) }
}

func (r *copyReport) dir(x Result) { r.add(dirCopy, x) }

// add adds a result.
func (r *copyReport) add(kind copyKind, x Result) {
	if kind != dirCopy {
		r.files.Add(1)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t := &r.totals
	t.Copied += x.Copied
	if x.Changed {
		t.Changed++
	}
	if x.NotKept != nil && x.Err == nil {
		t.NotKept++
	}
	if x.NoJournal {
		t.NoJournal++
	}
	switch {
	case kind == refusedCopy:
		t.Refused++
	case x.Err != nil:
		t.Failed++
	case kind == dirCopy:
		t.Dirs++
	case kind == linkCopy:
		t.Links++
	default:
		t.Files++
		t.Size += x.Size
		if t.Methods == nil {
			t.Methods = map[Method]int{}
		}
		t.Methods[x.Method]++
	}
	if x.Err != nil {
		r.keepLocked(x.Err)
		if kind != refusedCopy && r.stop != nil {
			r.stop()
		}
	}
	if r.each != nil {
		r.each(x)
	}
}

// skip counts a name that is left out.
func (r *copyReport) skip() {
	r.mu.Lock()
	r.totals.Skipped++
	r.mu.Unlock()
}

func (r *copyReport) keepLocked(err error) {
	if r.failed.N++; len(r.failed.Errs) < mostErrors {
		r.failed.Errs = append(r.failed.Errs, err)
	}
}

// err joins the failures.
func (r *copyReport) err(cause error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.failed
	if cause != nil {
		all.N, all.Errs = all.N+1, append([]error{cause}, all.Errs...)
	}
	if len(all.Errs) == 1 {
		return asPathError(all.Errs[0])
	}
	return all.Err()
}

// begins records the file that is copied now.
func (r *copyReport) begins(n *copyNode, name sys.Name) {
	if r.progress == nil {
		return
	}
	r.mu.Lock()
	r.at, r.name = n, name
	r.mu.Unlock()
}
