package stats

import "time"

// A Sparse is a Histogram that allocates counts only from the octave of its shortest duration to
// the octave of its longest. The zero Sparse is empty. It is not safe for concurrent use.
type Sparse struct {
	from   int // the bucket of counts[0]
	counts []uint32
	more   *Histogram // the counts beyond a uint32
	sum    time.Duration
	most   time.Duration
}

// Add counts a duration.
func (s *Sparse) Add(d time.Duration) {
	d = max(d, 0)
	i := bucket(d)
	if s.counts == nil {
		s.from = i
	}
	if i < s.from || i >= s.from+len(s.counts) {
		from := min(s.from, i) &^ (perOctave - 1)
		end := min((max(s.from+len(s.counts)-1, i)|(perOctave-1))+1, buckets)
		counts := make([]uint32, end-from)
		copy(counts[s.from-from:], s.counts)
		s.from, s.counts = from, counts
	}
	if s.counts[i-s.from]++; s.counts[i-s.from] == 0 {
		if s.more == nil {
			s.more = new(Histogram)
		}
		s.more.counts[i] += 1 << 32
	}
	s.sum += d
	s.most = max(s.most, d)
}

// Histogram returns the durations as a Histogram.
func (s *Sparse) Histogram() Histogram {
	var h Histogram
	if s.more != nil {
		h = *s.more
	}
	h.sum, h.most = s.sum, s.most
	for i, n := range s.counts {
		h.counts[s.from+i] += int64(n)
	}
	return h
}
