package holdfast

import (
	"context"
	"slices"
	"sync"
)

// freshFiles is the files that somebody makes and has not written yet. Such a file is
// not looked at, so that nobody can be met in its queue: who opens one that was there
// waits for those that were being made then, and for no later ones.
type freshFiles struct {
	mu     sync.Mutex
	now    *freshGroup   // who begins joins it; nil if there is none
	sealed []*freshGroup // somebody waits for them, or did
}

// A freshGroup is files that are being made.
type freshGroup struct {
	n    int
	done chan struct{} // of a sealed one: closed when all are written
}

// enter counts one more file until leave.
func (f *freshFiles) enter() *freshGroup {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now == nil {
		f.now = &freshGroup{}
	}
	f.now.n++
	return f.now
}

func (f *freshFiles) leave(g *freshGroup) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if g.n--; g.n == 0 && g.done != nil {
		close(g.done)
		f.sealed = slices.DeleteFunc(f.sealed, func(other *freshGroup) bool { return other == g })
	}
}

// await waits until the files that are being made are written, or can be met in
// their queues; or it returns the cause why ctx ended.
func (f *freshFiles) await(ctx context.Context) error {
	for _, g := range f.seal() {
		select {
		case <-g.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// seal returns who is not done.
func (f *freshFiles) seal() []*freshGroup {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now != nil && f.now.n > 0 {
		f.now.done = make(chan struct{})
		f.sealed = append(f.sealed, f.now)
		f.now = nil
	}
	return slices.Clone(f.sealed)
}
