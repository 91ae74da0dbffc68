package holdfast

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/sys"
)

type copyKind int8

const (
	fileCopy copyKind = iota
	folderCopy
	linkCopy
	refusedCopy
)

// mostErrors is how many of the failures of a call its error holds.
const mostErrors = 100

// A copyReport adds up results, and tells them.
type copyReport struct {
	each     func(CopyResult)
	progress func(CopyProgress)
	began    time.Time
	stop     func() // is called after the first failure

	done  atomic.Int64 // bytes of data and holes, also of files under way
	files atomic.Int64

	mu     sync.Mutex
	totals CopyTotals
	errs   []error
	more   int
	at     *copyNode // a file that is being copied
	name   sys.Name
}

func (r *copyReport) init(t *copyTree) {
	r.began, r.each, r.progress = time.Now(), t.o.Each, t.o.Progress
	if !t.o.KeepGoing {
		r.stop = func() { t.stop.Store(true) }
	}
	t.copier.moved = func(n int64) { r.done.Add(n) }
}

// fail is told of what keeps the whole call from being made.
func (r *copyReport) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keepLocked(err)
}

func (r *copyReport) folder(x CopyResult) { r.told(folderCopy, x) }

// told is told of a result.
func (r *copyReport) told(kind copyKind, x CopyResult) {
	r.files.Add(btoi(kind != folderCopy))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(kind, x)
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

func btoi(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func (r *copyReport) add(kind copyKind, x CopyResult) {
	t := &r.totals
	t.Copied += x.Copied
	if x.Changed {
		t.Changed++
	}
	switch {
	case kind == refusedCopy:
		t.Refused++
	case x.Err != nil:
		t.Failed++
	case kind == folderCopy:
		t.Folders++
	case kind == linkCopy:
		t.Links++
	default:
		t.Files++
		t.Size += x.Size
		if t.Methods == nil {
			t.Methods = map[CopyMethod]int{}
		}
		t.Methods[x.Method]++
	}
}

func (r *copyReport) keepLocked(err error) {
	if len(r.errs) < mostErrors {
		r.errs = append(r.errs, err)
	} else {
		r.more++
	}
}

// err joins what failed.
func (r *copyReport) err(cause error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	errs := r.errs
	if r.more > 0 {
		errs = append(errs, fmt.Errorf("copy: and %d more", r.more))
	}
	if cause != nil {
		errs = append([]error{cause}, errs...)
	}
	return errors.Join(errs...)
}

// begins is told which file is copied now.
func (r *copyReport) begins(n *copyNode, name sys.Name) {
	if r.progress == nil {
		return
	}
	r.mu.Lock()
	r.at, r.name = n, name
	r.mu.Unlock()
}
