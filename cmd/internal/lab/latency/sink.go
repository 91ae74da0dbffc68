package latency

import (
	"fmt"
	"io"
	"os"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// An sink is a way from a program's Write to a file.
type sink struct {
	by string

	// policy is a Writer's policy; for a bufio.Writer it gives the buffer's size and the period of
	// the ticker that flushes it.
	policy holdfast.Policy
}

// The parts of a sink.
const (
	byNothing  = "nothing" // its Write does nothing: what it takes is the clock's own
	byFile     = "os.File"
	byBufio    = "bufio"
	byHoldfast = "holdfast"
)

func (o sink) name() string {
	switch {
	case o.by == byHoldfast:
		return o.by + " " + o.policy.String()
	case o.by == byBufio && o.policy.FlushEvery > 0:
		return fmt.Sprintf("bufio %v, flushed every %v", o.policy.Buffer, o.policy.FlushEvery)
	case o.by == byBufio:
		return fmt.Sprintf("bufio %v", o.policy.Buffer)
	}
	return o.by
}

// waitsForDisk reports whether each Write returns only when its bytes are durable.
func (o sink) waitsForDisk() bool {
	return o.policy.Sync.Waits()
}

// promise is the most that may be lost with the process, and so the most that
// another process can't read yet. By itself, bufio promises nothing about time.
func (o sink) promise() holdfast.Bound {
	switch {
	case o.by == byHoldfast:
		return o.policy.Loss().Process
	case o.policy.Buffer == 0:
		return holdfast.Bound{}
	case o.policy.FlushEvery > 0:
		return holdfast.Bound{Bytes: o.policy.Buffer, Time: o.policy.FlushEvery}
	}
	return holdfast.Bound{Bytes: o.policy.Buffer, Time: holdfast.Unlimited}
}

// create makes a new file at path. Its Close flushes.
func (o sink) create(path string) (io.WriteCloser, error) {
	switch o.by {
	case byNothing:
		return study.NoSink{}, nil
	case byFile:
		return os.Create(path)
	case byHoldfast:
		return holdfast.Create(path, o.policy)
	case byBufio:
		return study.Way{By: study.Golang, Policy: o.policy}.Open(path)
	}
	return nil, fmt.Errorf("nothing writes by %q", o.by)
}
