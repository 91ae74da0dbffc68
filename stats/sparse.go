package stats

import "time"

// A Sparse is a Histogram with memory for what it has counted alone, from the octave of the
// shortest duration to that of the longest. The zero Sparse is empty. Its user guards it.
type Sparse struct {
	from   int // the bucket of counts[0]
	counts []int64
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
		counts := make([]int64, end-from)
		copy(counts[s.from-from:], s.counts)
		s.from, s.counts = from, counts
	}
	s.counts[i-s.from]++
	s.sum += d
	s.most = max(s.most, d)
}

// Histogram returns what was counted.
func (s *Sparse) Histogram() Histogram {
	h := Histogram{sum: s.sum, most: s.most}
	copy(h.counts[s.from:], s.counts)
	return h
}
