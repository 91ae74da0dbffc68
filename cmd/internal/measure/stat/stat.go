// Package stat turns the samples of interleaved rounds into figures that can be believed. These are
// medians with intervals, comparisons with one of four words, and warnings with their cures.
//
// It assumes nothing about how samples are distributed (but for [Peers]), and drops none: an
// outlier is counted and stays in. Where the samples are too few for a statement, the statement is
// absent (NaN, [NotProven]) rather than weak. The package knows no files, units or policies, and
// does no I/O. Its functions may be called concurrently, and leave their arguments as they are.
//
// Start with [Summarize] for one cell, [Compare] for two and [CompareGroup] for
// more. [Settled] says when
// a run may end, [Steady] when a long one has come to rest.
package stat

// Confidence is the least coverage of every interval that the package gives, and
// of those of a group together.
const Confidence = 0.95

const confidence = Confidence
