package holdfast

import "fmt"

// A WriteError says that a flush failed, and at which byte. It is not final: what was
// accepted stays in memory in its order, and the next call goes on at byte Flushed.
type WriteError struct {
	Path    string // the file's name, or "" if it has none
	Flushed int64  // how many of the Writer's bytes are in the kernel
	Durable int64  // how many of the Writer's bytes are on stable storage
	AtRisk  int64  // how many accepted bytes only memory holds: they go with the process
	Err     error  // the file's error

	told bool // a call has returned it, or the one before at the same byte
	lost bool // it failed in Close
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

// A SyncError says that a sync failed. It is final: the kernel may have dropped
// the bytes that it could not write, and a second sync can report success for
// them. So the Writer never syncs that file again. Write what lies past Durable again,
// to another file.
type SyncError struct {
	Path    string // the file's name, or "" if it has none
	Durable int64  // how many of the Writer's bytes are on stable storage
	AtRisk  int64  // how many accepted bytes a power cut may take, from Durable on
	Err     error  // the file's error
}

func (e *SyncError) Error() string {
	return fmt.Sprintf("holdfast: sync %s(durable up to byte %d, %d at risk from there): %v; write these to another file", inPath(e.Path), e.Durable, e.AtRisk, e.Err)
}

// Unwrap returns the file's error.
func (e *SyncError) Unwrap() error { return e.Err }

// A panicError is why a Writer whose File has panicked accepts nothing more.
type panicError struct {
	method, path string
	durable      int64
	cause        any
}

func (e *panicError) Error() string {
	return fmt.Sprintf("holdfast: %s %spanicked, and this Writer accepts nothing more (%d bytes are durable): %v", e.method, inPath(e.path), e.durable, e.cause)
}

// Unwrap returns ErrPanicked, and what the File has panicked with if that is an error.
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

// An Outcome says what became of a write of a whole file, or of appended data.
type Outcome int8

const (
	// OutcomeUntouched: the file is as it was. It was never begun, or refused.
	OutcomeUntouched Outcome = iota
	// OutcomePartial: the file was changed, but does not hold all of the data. The
	// result's Bytes and the error's Offset say how much it holds.
	OutcomePartial
	// OutcomeWritten: all bytes are the kernel's, under the file's name. They
	// survive the death of the process.
	OutcomeWritten
	// OutcomeDurable: the bytes and the name survive the death of the machine.
	OutcomeDurable
	// OutcomeUncertain: all was written, or accepted, and then a sync or a close
	// failed or was given up. A crash may take it. After a failed sync the kernel may
	// have dropped it, though reads still return it.
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
