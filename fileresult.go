package holdfast

import (
	"encoding/json"
	"fmt"
	"time"
)

// An Outcome says what became of a file that was to be written, or of data that
// was to be appended.
type Outcome int8

const (
	// OutcomeUntouched: the file is as it was. It was never begun, or refused.
	OutcomeUntouched Outcome = iota
	// OutcomePartial: the file was changed and does not hold all that it was to
	// hold; the result's Bytes and the error's Offset say how much it does.
	OutcomePartial
	// OutcomeWritten: all bytes are the kernel's, under the file's name. They
	// survive the death of the process.
	OutcomeWritten
	// OutcomeDurable: the bytes and the name survive the death of the machine.
	OutcomeDurable
	// OutcomeUncertain: all was written, or accepted, and then a sync or a close
	// failed or was given up. Whether a crash takes it is not known; after a failed
	// sync the kernel may have dropped it though it still shows it.
	OutcomeUncertain
)

var outcomeNames = [...]string{
	OutcomeUntouched: "untouched", OutcomePartial: "partial", OutcomeWritten: "written",
	OutcomeDurable: "durable", OutcomeUncertain: "uncertain",
}

// String returns untouched, partial, written, durable or uncertain.
func (o Outcome) String() string {
	if o < 0 || int(o) >= len(outcomeNames) {
		return fmt.Sprintf("Outcome(%d)", int(o))
	}
	return outcomeNames[o]
}

// MarshalText returns the outcome's name.
func (o Outcome) MarshalText() ([]byte, error) {
	if o < 0 || int(o) >= len(outcomeNames) {
		return nil, fmt.Errorf("outcome %d is none", int(o))
	}
	return []byte(o.String()), nil
}

// A FileResult says what happened to one file.
type FileResult struct {
	Path     string
	Bytes    int64         // how many bytes of it were written
	Elapsed  time.Duration // from its first system call to its last, pauses included, a batch's shared sync not
	Err      error         // nil, or a *FileError
	Attempts int32         // how often it was tried; 0 if it was never begun
	Outcome  Outcome
}

// Durable reports whether the file's bytes and its name survive the death of the
// machine.
func (r FileResult) Durable() bool { return r.Outcome == OutcomeDurable }

// MarshalJSON writes an object with the keys path, size_bytes, elapsed_ns, attempts,
// outcome, durable and, if it failed, error.
func (r FileResult) MarshalJSON() ([]byte, error) {
	text := ""
	if r.Err != nil {
		text = r.Err.Error()
	}
	return json.Marshal(struct {
		Path     string  `json:"path"`
		Bytes    int64   `json:"size_bytes"`
		Elapsed  int64   `json:"elapsed_ns"`
		Attempts int32   `json:"attempts"`
		Outcome  Outcome `json:"outcome"`
		Durable  bool    `json:"durable"`
		Err      string  `json:"error,omitempty"`
	}{r.Path, r.Bytes, r.Elapsed.Nanoseconds(), r.Attempts, r.Outcome, r.Durable(), text})
}

// A FileError says what failed, of which file, and where.
type FileError struct {
	Path     string
	Op       string  // such as open, write, sync, close, rename
	Offset   int64   // how many bytes of this call's data are in the file, or were accepted: do not give them again
	Attempts int     // how often it was tried
	Outcome  Outcome // what became of the file, or of this call's data
	Err      error   // what the system said
}

func (e *FileError) Error() string {
	at := ""
	if e.Offset > 0 {
		at = fmt.Sprintf(" at byte %d", e.Offset)
	}
	return fmt.Sprintf("holdfast: %s %s%s: %v", e.Op, e.Path, at, e.Err)
}

// Unwrap returns what the system said.
func (e *FileError) Unwrap() error { return e.Err }
