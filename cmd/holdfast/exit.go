package main

import (
	"errors"
	"fmt"
	"io"
	"syscall"
)

// The exit codes.
const (
	exitOK          = 0
	exitNotMet      = 1 // a stated need or promise was not met
	exitUsage       = 2
	exitCannot      = 3 // it could not be measured
	exitInterrupted = 130
)

// A refusal is an error with its exit code and with what the user can do.
type refusal struct {
	code int
	err  error  // lower case, without a full stop
	hint string // likewise
}

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

// misuse is the refusal of wrong input.
func misuse(hint, format string, args ...any) error {
	return &refusal{exitUsage, fmt.Errorf(format, args...), hint}
}

// tell prints what the user has to know about err and returns the exit code. Who
// has stopped reading is told nothing.
func tell(stderr io.Writer, err error) int {
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, syscall.EPIPE):
		return exitInterrupted
	}
	fmt.Fprintf(stderr, "holdfast: %v\n", err)
	var r *refusal
	if !errors.As(err, &r) {
		r = &refusal{exitCannot, err, diskHint(err)}
	}
	if r.hint != "" {
		fmt.Fprintf(stderr, "hint: %s\n", r.hint)
	}
	return r.code
}
