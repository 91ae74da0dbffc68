package holdfast

import "sync"

// spares is memory that calls have left for those to come. It holds nothing of
// theirs, neither names nor data: who gives a value back has cleared it.
type spares[T any] struct {
	mu   sync.Mutex
	idle []*T
}

// Of more calls at once than this the memory is left to the collector.
const (
	mostSpareScribes = 64 // what a Write or a worker takes
	mostSpareBatches = 8  // what a WriteAll takes
)

func (p *spares[T]) take() *T {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.idle) - 1
	if last < 0 {
		return new(T)
	}
	x := p.idle[last]
	p.idle = p.idle[:last]
	return x
}

// give keeps a value unless there are most of them.
func (p *spares[T]) give(x *T, most int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) < most {
		p.idle = append(p.idle, x)
	}
}
