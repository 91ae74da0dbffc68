package holdfast

import "fmt"

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
