package main

import (
	"io"
	"sync/atomic"
)

// An output is the standard output of the command. It remembers that a write to it has
// failed, as tables and helps are written line by line. It may be used by several
// goroutines if what is in it may.
type output struct {
	io.Writer
	failed atomic.Pointer[outputFailure] // the first one
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if err != nil {
		o.failed.CompareAndSwap(nil, &outputFailure{cause(err)})
	}
	return n, err
}

// failure is the error of the first write that has failed.
func (o *output) failure() error {
	failed := o.failed.Load()
	if failed == nil {
		return nil
	}
	return &refusal{exitCannot, failed, diskHint(failed.err)}
}
