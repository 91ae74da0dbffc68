// Package stat computes figures with their uncertainty from the samples of interleaved rounds: medians
// with intervals, comparisons with one of four verdicts, and warnings with their cures.
//
// It assumes nothing about the distribution of samples (except for [Peers]), and drops none: an outlier
// is counted and stays in. If the samples are too few for a statement, the statement is absent (NaN,
// [NotProven]) rather than weak. The package knows no files, units or policies, and does no I/O. Its
// functions may be called concurrently, and do not change their arguments.
//
// Start with [Summarize] for one cell, [Compare] for two and [CompareGroup] for
// more. [Settled] decides when a run may end, [Steady] when a long one has become steady.
package stat

// Confidence is the least coverage of every interval that the package returns, and of all intervals of
// a group together.
const Confidence = 0.95

const confidence = Confidence
