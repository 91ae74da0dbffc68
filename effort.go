package holdfast

import "fmt"

// An Effort decides what a call does if the file system refuses a part of the work: exFAT has no
// owners, some servers sync no directories, a container's single mounted file can't be replaced by a
// rename.
type Effort int

const (
	// Strict makes such a refusal an error. It is the default.
	Strict Effort = iota

	// Best continues with the parts that the file system permits, and reports the others. Bytes are
	// never left out.
	Best
)

// String returns the effort's name, such as strict.
func (e Effort) String() string {
	switch e {
	case Strict:
		return "strict"
	case Best:
		return "best"
	}
	return fmt.Sprintf("Effort(%d)", int(e))
}

// MarshalText returns the name.
func (e Effort) MarshalText() ([]byte, error) { return []byte(e.String()), e.Validate() }

// UnmarshalText reads strict or best.
func (e *Effort) UnmarshalText(text []byte) error {
	switch string(text) {
	case "strict":
		*e = Strict
	case "best":
		*e = Best
	default:
		return fmt.Errorf("%.60q is no effort; use strict or best", text)
	}
	return nil
}

// Validate returns nil, or an error that names the value.
func (e Effort) Validate() error {
	if e != Strict && e != Best {
		return fmt.Errorf("there is no effort %d; use holdfast.Strict or holdfast.Best", int(e))
	}
	return nil
}
