// Package report makes pages out of a run's results: a table for the terminal
// and one self-contained HTML page.
//
// Both show the same figures, computed once from the raw data in the results. The possible loss of a
// policy comes from [holdfast.Policy.Loss] alone. A figure with too few samples is not shown. The
// package reads and writes no files and keeps no clock, so the same results always make the same bytes.
//
// Start with [Text] and [HTML].
package report
