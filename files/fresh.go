package files

import (
	"context"
	"slices"
	"sync"
)

// freshFiles is the files that calls have made and not written yet. Such a file has no
// inode number here, and so no place in the queues. A call that opens an existing file
// waits for the files that are being made then, and for no later ones.
type freshFiles struct {
	mu     sync.Mutex
	now    *freshGroup   // new files join it; nil if there is none
	sealed []*freshGroup // a call waits for them, or did
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
// their queues. If ctx ends, it returns the cause.
func (f *freshFiles) await(ctx context.Context) error {
	f.mu.Lock()
	if f.now != nil && f.now.n > 0 {
		f.now.done = make(chan struct{})
		f.sealed = append(f.sealed, f.now)
		f.now = nil
	}
	sealed := slices.Clone(f.sealed)
	f.mu.Unlock()
	for _, g := range sealed {
		select {
		case <-g.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
