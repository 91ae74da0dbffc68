// Package sys has the system calls that holdfast needs and the standard library lacks: one small
// file for each concept and system. A call that a system lacks returns [errors.ErrUnsupported] and
// never only pretends.
package sys
