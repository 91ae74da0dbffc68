package write

import "github.com/holdfast-go/holdfast/files"

// A batch is lines that are given to the library together: the lines of one file in one
// piece, which costs one call.
type batch struct {
	apart bool // each line is a file of its own
	piles []*pile
	byKey map[string]*pile
	spare []*pile
	bytes int
	lines int
	last  int64 // the number of the last line that was read before it is written
}

// A pile is lines of one file.
type pile struct {
	path    string
	data    []byte
	numbers []int64      // of the lines
	isElse  bool         // it is the file for lines that have no other
	taken   int          // bytes that the library has accepted
	err     error        // why not all, or that all is perhaps not durable
	removed *files.Error // lines before it went with a removed file
}

const (
	mostBatch  = 1 << 20  // bytes of a batch
	mostApart  = 4096     // files of a batch, as many as the library syncs together
	mostSpared = 64 << 10 // bytes of memory that a pile may keep
)

// add puts a line on the pile of its file.
func (b *batch) add(path, text []byte, number int64) {
	var p *pile
	if !b.apart {
		p = b.byKey[string(path)]
	}
	if p == nil {
		p = b.pile(string(path))
	}
	p.data = append(p.data, text...)
	p.numbers = append(p.numbers, number)
	b.bytes += len(text)
	b.lines++
}

// pile begins a new one.
func (b *batch) pile(path string) *pile {
	p := &pile{}
	if n := len(b.spare); n > 0 {
		p, b.spare = b.spare[n-1], b.spare[:n-1]
	}
	*p = pile{path: path, data: p.data[:0], numbers: p.numbers[:0]}
	b.piles = append(b.piles, p)
	if !b.apart {
		b.byKey[p.path] = p
	}
	return p
}

// full reports whether the batch is to be written before it grows.
func (b *batch) full() bool {
	return b.bytes >= mostBatch || b.apart && len(b.piles) >= mostApart
}

// reset empties the batch and keeps its memory.
func (b *batch) reset() {
	for _, p := range b.piles {
		if cap(p.data) <= mostSpared && len(b.spare) < mostApart {
			b.spare = append(b.spare, p)
		}
	}
	b.piles, b.bytes, b.lines = b.piles[:0], 0, 0
	clear(b.byKey)
}
