package uml

import "time"

// An order is the message that tells the guest its work.
type order struct {
	Boot    string        `json:"boot"`  // the directory outside where the guest reports how it ended
	Share   string        `json:"share"` // the directory outside that the guest may use
	Modules []string      `json:"modules,omitempty"`
	Tools   string        `json:"tools,omitempty"` // PATH outside, if its programs run inside
	Task    []byte        `json:"task,omitempty"`
	Line    bool          `json:"line,omitempty"`
	Beat    time.Duration `json:"beat_ns,omitempty"` // between two signs of life; 0 is none
}

// An outcome is how the program inside ended.
type outcome struct {
	Err string `json:"err,omitempty"`
}

// beatsPer is how often the program inside prints a beat in the time that it may be silent.
const beatsPer = 6
