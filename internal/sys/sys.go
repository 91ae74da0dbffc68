// Package sys holds the system calls that holdfast needs and the standard
// library does not offer: one small file for each concept and system. What a
// system cannot do is [errors.ErrUnsupported], never a pretence.
package sys
