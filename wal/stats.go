package wal

import (
	"time"

	"github.com/holdfast-go/holdfast/stats"
)

// Stats are the counts of a log since Open, and its state.
type Stats struct {
	stats.Counts

	First   uint64 `json:"first_index"` // see Log.First, Log.Last and Log.Durable
	Last    uint64 `json:"last_index"`
	Durable uint64 `json:"durable_index"`
}

// Stats returns the counts since Open, and the bytes at risk now, which include the frames around
// records. A write that is durable at once counts as a flush and as a sync. Stats may be called at
// any time and waits for nothing.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Stats{Counts: l.counts, First: l.first, Last: l.last, Durable: l.durable.Load()}
	s.NotFlushed = l.waitsLocked()
	s.NotDurable = s.NotFlushed + l.unsynced
	if s.NotDurable > 0 && !l.sealed {
		s.Oldest = time.Since(l.age.Oldest())
	}
	return s
}

// Metrics implements [stats.Source].
func (s Stats) Metrics() []stats.Metric {
	return append(s.Counts.Metrics(),
		stats.Metric{Name: "first_index", Unit: "{index}", Help: "The index of the first record.", Kind: stats.Gauge, Value: float64(s.First)},
		stats.Metric{Name: "last_index", Unit: "{index}", Help: "The index of the last accepted record.", Kind: stats.Gauge, Value: float64(s.Last)},
		stats.Metric{Name: "durable_index", Unit: "{index}", Help: "The index of the last record that is durable with all before it.", Kind: stats.Gauge, Value: float64(s.Durable)},
	)
}
