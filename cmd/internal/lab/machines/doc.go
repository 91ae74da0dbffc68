// Package machines has tests alone: the workloads of the catalogue run on machines that fail, for want of memory, of room or of
// time. What they acknowledge is kept by another process, and judged by what is there afterwards.
package machines
