package uml

import (
	"encoding/json"
	"path"
	"path/filepath"
	"time"
)

// An order is what the guest is told.
type order struct {
	Boot    string        `json:"boot"`  // the folder outside where the guest tells how it ended
	Share   string        `json:"share"` // the folder outside that the guest may use
	Modules []string      `json:"modules,omitempty"`
	Task    []byte        `json:"task,omitempty"`
	Line    bool          `json:"line,omitempty"`
	Beat    time.Duration `json:"beat_ns,omitempty"` // between two signs of life; 0 is none
}

// contents lists what the guest's root holds.
func (k Kernel) contents(o order, modules []string) ([]packed, error) {
	files, err := thisProgram()
	if err != nil {
		return nil, err
	}
	for _, m := range modules {
		inside := path.Join(modulePath, path.Base(m))
		files = append(files, packed{path: inside, mode: 0o644, from: filepath.Join(k.Modules, m)})
		o.Modules = append(o.Modules, inside)
	}
	text, err := json.Marshal(o)
	return append(files, packed{path: orderPath, mode: 0o644, text: text}), err
}

// An outcome is how the program inside ended.
type outcome struct {
	Err string `json:"err,omitempty"`
}

// beatsPer is how often the program inside tells that it lives in the time that it may be silent.
const beatsPer = 6
