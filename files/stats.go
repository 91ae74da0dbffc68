package files

import (
	"time"

	"github.com/holdfast-go/holdfast/stats"
)

// Stats counts a [Set]'s work so far, and its present state. All counts but Open, InFlight,
// Streams, Memory and the bytes at risk only grow.
type Stats struct {
	// Counts is about Append, but that syncs of whole files are among its Syncs. A
	// sync that covers many files at once is one in its histogram. Bytes at risk are bytes of the
	// paths in Streams.
	stats.Counts

	Healed    int64 `json:"healed"`     // torn lines that a line feed has ended: see Options.Lines
	Files     int64 `json:"files"`      // whole files that were begun
	Stripped  int64 `json:"stripped"`   // replaced files that could not keep all that the old ones had: see Result
	NoJournal int64 `json:"no_journal"` // syncs of directories that keep names in doubt, also for streams: see Result
	Retries   int64 `json:"retries"`    // calls that were made again after a pause
	Hits      int64 `json:"hits"`       // descriptors that were found open
	Misses    int64 `json:"misses"`     // descriptors that had to be opened, among the kept ones
	Evictions int64 `json:"evictions"`  // idle descriptors that were closed to make room

	Open     int   `json:"open"`         // descriptors
	InFlight int   `json:"in_flight"`    // files that are being written
	Streams  int   `json:"streams"`      // paths that were appended to and are not forgotten
	Memory   int64 `json:"memory_bytes"` // bytes of memory that hold what was appended
}

// Stats returns the counts as they are now. It may be called at any time, by any
// goroutine, also after Close, and waits for no disk. The counts are read one after
// the other, so they are not of one instant.
func (f *Set) Stats() Stats {
	s := Stats{Files: f.whole.files.Load(), Stripped: f.whole.stripped.Load(), NoJournal: f.whole.noJournal.Load(), Retries: f.retries.Load()}
	kept, open, turns := f.handles.Counts()
	s.Hits, s.Misses, s.Evictions, s.Open, s.InFlight = kept.Hits, kept.Misses, kept.Evictions, open, turns
	t := &f.streams
	t.mu.Lock()
	defer t.mu.Unlock()
	s.Counts = t.counts
	s.Syncs += f.whole.syncs.Load()
	var oldest time.Time
	for _, x := range t.paths {
		s.NotFlushed += x.waitsLocked()
		s.NotDurable += x.accepted - x.durable
		if since := x.age.Oldest(); x.accepted > x.durable && (oldest.IsZero() || since.Before(oldest)) {
			oldest = since
		}
	}
	if !oldest.IsZero() && !t.closing {
		s.Oldest = time.Since(oldest)
	}
	s.Healed = t.healed
	s.Streams, s.Memory = len(t.paths), f.flusher.memory.used
	return s
}

// Metrics implements [stats.Source].
func (s Stats) Metrics() []stats.Metric {
	return append(s.Counts.Metrics(),
		stats.Metric{Name: "healed", Unit: "{line}", Help: "Torn lines that were ended.", Value: float64(s.Healed)},
		stats.Metric{Name: "files", Unit: "{file}", Help: "Whole files that were begun.", Value: float64(s.Files)},
		stats.Metric{Name: "retries", Unit: "{call}", Help: "Calls that were made again after a pause.", Value: float64(s.Retries)},
		stats.Metric{Name: "open", Unit: "{file}", Help: "Descriptors that are open.", Kind: stats.UpDown, Value: float64(s.Open)},
		stats.Metric{Name: "memory", Unit: "By", Help: "Memory that holds what was appended.", Kind: stats.UpDown, Value: float64(s.Memory)},
	)
}
