// Package slow calls a function while a call takes long: a sync of a disk that hangs.
package slow

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/errorqueue"
)

// A Watch reports calls that run for longer than a threshold, each once and while it runs. It makes
// its reports as [errorqueue.Queue] does: in a goroutine of their own, one at a time, under no lock.
// The zero Watch and nil report nothing.
type Watch[E any] struct {
	mu      sync.Mutex
	after   time.Duration
	reports errorqueue.Queue[E]
}

// To sets the threshold and the function. A threshold of 0, or nil, ends the reports.
func (w *Watch[E]) To(after time.Duration, report func(E)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.after = after
	if report == nil {
		w.after = 0
	}
	w.reports.To(report)
}

// Begin watches a call that starts now, until end is called. It passes what to the report.
func (w *Watch[E]) Begin(what E) (end func()) {
	if w == nil {
		return unwatched
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.after <= 0 {
		return unwatched
	}
	timer := time.AfterFunc(w.after, func() { w.reports.Add(what) })
	return func() { timer.Stop() }
}

func unwatched() {}
