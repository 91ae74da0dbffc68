// Package trial runs a matrix of cells in randomised rounds and measures each
// run of a cell: the stages of a file's life apart and together, CPU time,
// system calls, the latency of single Writes, allocations.
//
// What is in the clock is the same for every cell, see [Append]. What is not:
// making the records, the garbage collection before, and after it the check of
// every byte that was written, the removal of the file and the settling of the
// file system. A time counts only if the bytes were right.
//
// The package writes only to files that it made itself, in a fresh folder of
// its own (a [Ground]) that is gone afterwards. It decides neither what is worth
// measuring nor what the figures mean.
//
// Start with [OpenGround] and [Matrix].
package trial
