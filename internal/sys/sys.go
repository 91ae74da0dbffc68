// Package sys holds the system calls of holdfast: one small file for each
// concept and operating system.
//
// What a system cannot do is an error that wraps [errors.ErrUnsupported], never
// a pretence. The package decides nothing: which way is the right one for a
// policy or a measurement is its callers' business.
package sys
