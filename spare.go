package holdfast

import "sync"

// spares is memory that calls have left for those to come: what a Write or a worker
// takes, and what a WriteAll takes. It holds nothing of theirs, neither names nor data.
type spares struct {
	mu      sync.Mutex
	scribes *scribe
	batches *batch
	// How many there are.
	idleScribes, idleBatches int
}

// Of more calls at once than this the memory is left to the collector.
const (
	mostSpareScribes = 64
	mostSpareBatches = 8
)

func (p *spares) takeScribe() *scribe {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.scribes
	if s == nil {
		return &scribe{}
	}
	p.scribes, s.next = s.next, nil
	p.idleScribes--
	return s
}

func (p *spares) giveScribe(s *scribe) {
	*s = scribe{}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.idleScribes < mostSpareScribes {
		s.next, p.scribes = p.scribes, s
		p.idleScribes++
	}
}

func (p *spares) takeBatch() *batch {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.batches
	if b == nil {
		return &batch{}
	}
	p.batches, b.next = b.next, nil
	p.idleBatches--
	return b
}

// giveBatch takes a batch back that was cleared.
func (p *spares) giveBatch(b *batch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.idleBatches < mostSpareBatches {
		b.next, p.batches = p.batches, b
		p.idleBatches++
	}
}
