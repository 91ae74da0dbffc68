// Package stats holds the counts of a holdfast.Writer, a rotating log, a set of files or a
// write-ahead log in one form: counts, bytes at risk, and latencies as histograms. They marshal to
// JSON, with units in the keys.
package stats

import "time"

// Counts are the numbers of operations, and the bytes at risk. All but NotFlushed, NotDurable and
// Oldest only grow.
type Counts struct {
	Writes      int64 `json:"writes"`       // accepted Writes
	Flushes     int64 `json:"flushes"`      // writes to files
	Syncs       int64 `json:"syncs"`        // syncs of one file, and of many together
	SystemCalls int64 `json:"system_calls"` // of a Writer: flushes, syncs, Close, and the calls for the file's name
	Waits       int64 `json:"waits"`        // Writes that waited because memory was full
	Errors      int64 `json:"errors"`       // failures; OnError has one call for each

	NotFlushed int64 `json:"not_flushed_bytes"` // accepted, and the end of the process takes them
	NotDurable int64 `json:"not_durable_bytes"` // accepted, and the end of the machine may take them
	// Oldest is the age of the oldest byte in NotDurable, to within the time between two syncs.
	// After Close it is 0.
	Oldest time.Duration `json:"oldest_not_durable_ns"`

	// LongestSync is the time of the longest sync so far, including the sync of the file's
	// directory. A policy's bound by time does not include it.
	LongestSync time.Duration `json:"longest_sync_ns"`
	// Flush counts the times of writes to a file. A Writer times every 16th write below 4 KiB, and
	// all others.
	Flush Histogram `json:"flush_latency"`
	Sync  Histogram `json:"sync_latency"` // the times of syncs
}

// Synced counts a sync and its time.
func (c *Counts) Synced(took time.Duration) {
	c.Syncs++
	c.LongestSync = max(c.LongestSync, took)
	c.Sync.Add(took)
}

// Merge adds the counts of o. Oldest becomes the older of the two.
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
