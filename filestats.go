package holdfast

// FilesStats is what a [Files] has done, and what it holds just now. All counts but
// Open, InFlight, Streams and Memory only grow.
type FilesStats struct {
	Files     int64 `json:"files"`     // whole files that were begun
	Flushes   int64 `json:"flushes"`   // writes of what was appended
	Syncs     int64 `json:"syncs"`     // of files, folders and file systems
	Retries   int64 `json:"retries"`   // calls that were made again after a pause
	Waits     int64 `json:"waits"`     // Appends that waited because the memory was used up
	Hits      int64 `json:"hits"`      // descriptors that were found open
	Misses    int64 `json:"misses"`    // descriptors that had to be opened, of those that are kept
	Evictions int64 `json:"evictions"` // idle descriptors that were closed to make room

	Open     int   `json:"open"`         // descriptors
	InFlight int   `json:"in_flight"`    // files that are being written
	Streams  int   `json:"streams"`      // paths that were appended to and are not forgotten
	Memory   int64 `json:"memory_bytes"` // bytes of memory that hold what was appended
}

// Stats returns the counts as they are now. It may be called at any time, by any
// goroutine, also after Close, and waits for no disk. The counts are read one after
// the other, so that they may differ by what happens meanwhile.
func (f *Files) Stats() FilesStats {
	s := FilesStats{Files: f.whole.files.Load(), Syncs: f.whole.syncs.Load(), Retries: f.retries.Load()}
	f.handles.tell(&s)
	f.streams.tell(&s)
	return s
}

func (h *handles) tell(s *FilesStats) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.Hits, s.Misses, s.Evictions = h.stats.hits, h.stats.misses, h.stats.evictions
	s.Open, s.InFlight = h.open, len(h.turns)
}
