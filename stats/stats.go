// Package stats is what a holdfast.Writer, a log that rotates, a set of files and a
// write-ahead log count, in one form. It has counts, bytes at risk, and latencies as
// histograms. They marshal to JSON, with units in the keys.
package stats

import "time"

// Counts is what was done and what is at risk. All but NotFlushed, NotDurable and Oldest
// only grow.
type Counts struct {
	Writes      int64 `json:"writes"`       // that were accepted
	Flushes     int64 `json:"flushes"`      // writes to files
	Syncs       int64 `json:"syncs"`        // of files, and of many together
	SystemCalls int64 `json:"system_calls"` // of a Writer: flushes, syncs, Close, and the calls for the file's name
	Waits       int64 `json:"waits"`        // Writes that waited because memory was full
	Errors      int64 `json:"errors"`       // failures; OnError has one call for each

	NotFlushed int64 `json:"not_flushed_bytes"` // accepted, and the end of the process takes them
	NotDurable int64 `json:"not_durable_bytes"` // accepted, and the end of the machine may take them
	// Oldest is how long the oldest byte of NotDurable has waited, to within the time between
	// two syncs. After Close it is 0.
	Oldest time.Duration `json:"oldest_not_durable_ns"`

	// LongestSync is the time of the longest sync so far, that of the file's directory
	// included. A bound by time does not count it.
	LongestSync time.Duration `json:"longest_sync_ns"`
	// Flush is the time of writes to a file. A Writer times one of 16 of those of less than 4 KiB.
	Flush Histogram `json:"flush_latency"`
	Sync  Histogram `json:"sync_latency"` // of each sync
}

// Synced counts a sync that took so long.
func (c *Counts) Synced(took time.Duration) {
	c.Syncs++
	c.LongestSync = max(c.LongestSync, took)
	c.Sync.Add(took)
}

// Merge adds what another has counted. Its Oldest is the older one.
func (c *Counts) Merge(o *Counts) {
	c.Writes += o.Writes
	c.Flushes += o.Flushes
	c.Syncs += o.Syncs
	c.SystemCalls += o.SystemCalls
	c.Waits += o.Waits
	c.Errors += o.Errors
	c.NotFlushed += o.NotFlushed
	c.NotDurable += o.NotDurable
	c.Oldest = max(c.Oldest, o.Oldest)
	c.LongestSync = max(c.LongestSync, o.LongestSync)
	c.Flush.Merge(&o.Flush)
	c.Sync.Merge(&o.Sync)
}
