// Package trial runs a matrix of cells in randomised rounds and measures each
// run of a cell. It measures the stages of a file's life apart and together, CPU
// time, system calls, the latency of single Writes, and allocations.
//
// The timed steps are the same for every cell, see [Append]. Before them, and not timed, are making the
// records and a garbage collection. After them, and not timed, are the check of every byte, the removal
// of the file and the settling of the file system. A time counts only if the bytes were right.
//
// The package writes only to files that it made itself, in a fresh directory of
// its own (a [WorkDir]) that is removed afterwards. It does not decide what to measure or what the
// figures mean.
//
// Start with [OpenWorkDir] and [Matrix].
package trial
