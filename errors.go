package holdfast

import "fmt"

// A WriteError reports a failed flush. It is not final: the accepted bytes stay in
// memory in their order, and the next call continues at byte Flushed.
type WriteError struct {
	Path    string // the file's name, or "" if it has none
	Flushed int64  // the Writer's bytes in the kernel: the offset of the failure
	Durable int64  // the Writer's bytes on stable storage
	AtRisk  int64  // accepted bytes that only memory holds: the end of the process takes them
	Err     error  // the file's error

	reported bool // a call has returned it, or the one before at the same byte
	lost     bool // it failed in Close
}

func (e *WriteError) Error() string {
	var wait string
	switch {
	case e.AtRisk > 0 && e.lost:
		wait = fmt.Sprintf("; %d accepted bytes are lost with the Writer", e.AtRisk)
	case e.AtRisk > 0:
		wait = fmt.Sprintf("; %d accepted bytes wait in memory, and each call tries again", e.AtRisk)
	}
	return fmt.Sprintf("holdfast: write %sat byte %d (durable up to %d): %v%s", inPath(e.Path), e.Flushed, e.Durable, e.Err, wait)
}

// Unwrap returns the file's error.
func (e *WriteError) Unwrap() error { return e.Err }

// A SyncError reports a failed sync. It is final: the kernel may have dropped the bytes
// that it could not write, and a second sync can report success for them. So the Writer
// never syncs that file again. Write the bytes past Durable again, to another file.
type SyncError struct {
	Path    string // the file's name, or "" if it has none
	Durable int64  // the Writer's bytes on stable storage
	AtRisk  int64  // accepted bytes that a power cut may take, from Durable on
	Err     error  // the file's error
}

func (e *SyncError) Error() string {
	return fmt.Sprintf("holdfast: sync %s(durable up to byte %d, %d at risk from there): %v; write these to another file", inPath(e.Path), e.Durable, e.AtRisk, e.Err)
}

// Unwrap returns the file's error.
func (e *SyncError) Unwrap() error { return e.Err }

// A panicError is the final error of a Writer whose File has panicked.
type panicError struct {
	method, path string
	durable      int64
	cause        any
}

func (e *panicError) Error() string {
	return fmt.Sprintf("holdfast: %s %spanicked, and this Writer accepts nothing more (%d bytes are durable): %v", e.method, inPath(e.path), e.durable, e.cause)
}

// Unwrap returns ErrPanicked, and the panic value if it is an error.
func (e *panicError) Unwrap() []error {
	if cause, ok := e.cause.(error); ok {
		return []error{ErrPanicked, cause}
	}
	return []error{ErrPanicked}
}

func inPath(path string) string {
	if path == "" {
		return ""
	}
	return path + " "
}

// An Outcome is the result of writing a whole file, or of appending data.
type Outcome int8

const (
	// OutcomeUntouched: the file is unchanged. The write was refused, or did not begin.
	OutcomeUntouched Outcome = iota
	// OutcomePartial: the file was changed, but does not hold all of the data. It holds
	// the number of bytes in the result's Bytes and the error's Offset.
	OutcomePartial
	// OutcomeWritten: the kernel has all bytes, under the file's name. They survive
	// the death of the process.
	OutcomeWritten
	// OutcomeDurable: the bytes and the name survive the death of the machine.
	OutcomeDurable
	// OutcomeUncertain: all bytes were written, or accepted, and then a sync or a close
	// failed or was given up. A crash may take them. After a failed sync the kernel may
	// have dropped them, though reads still return them.
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
		return nil, fmt.Errorf("outcome %d is not defined", int(o))
	}
	return []byte(o.String()), nil
}
