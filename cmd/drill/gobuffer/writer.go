// Package gobuffer is the drill in Go: a bufio.Writer of your own.
//
// You write [Writer.Write] and [Writer.Flush] in writer.go, and then ask what is wrong with
// them:
//
//	go test -tags drill ./drill/gobuffer
package gobuffer

import "io"

// A Writer gathers what is written in a buffer, and hands it on when the buffer is full.
type Writer struct {
	to     io.Writer
	buffer []byte // its capacity is the buffer's size, its length what it holds
	// Add what you need, such as the error of the first write that failed.
}

// NewWriter returns a Writer to another, with a buffer of size bytes.
func NewWriter(to io.Writer, size int) *Writer {
	return &Writer{to: to, buffer: make([]byte, 0, max(1, size))}
}

// Write takes p and returns how many of its bytes it took: all, or fewer with an error.
func (w *Writer) Write(p []byte) (int, error) {
	// TODO 1. Put p into the buffer. When it is full, flush. What if p is longer than the
	// buffer? What if an earlier flush has failed?
	return 0, errTODO
}

// Flush hands what the buffer holds to the other writer.
func (w *Writer) Flush() error {
	// TODO 2. What if the other takes a part only, with an error or without one? What does the next
	// Flush return then, and what does it write?
	return errTODO
}
