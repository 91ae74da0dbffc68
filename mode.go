package holdfast

import "fmt"

// A Mode says what [Files.Write] does with the file that may be there already.
type Mode int

const (
	// ModeCreate makes a new file, and fails if there is one (fs.ErrExist). It is
	// the zero Mode: no file is ever lost by it.
	ModeCreate Mode = iota
	// ModeTruncate empties the file first. A crash in between leaves it empty or short.
	ModeTruncate
	// ModeAppend writes at the file's end.
	ModeAppend
	// ModeReplace writes a temporary file in the same folder and renames it: at
	// every moment, and after a crash if the policy syncs, the path names the old
	// file whole or the new one whole. Permissions and, where the system lets us,
	// owner and group stay. A symbolic link stays, and what it points to is
	// replaced. Other hard links keep the old file.
	ModeReplace
)

var modeNames = [...]string{ModeCreate: "create", ModeTruncate: "truncate", ModeAppend: "append", ModeReplace: "replace"}

// String returns create, truncate, append or replace.
func (m Mode) String() string {
	if m < 0 || int(m) >= len(modeNames) {
		return fmt.Sprintf("Mode(%d)", int(m))
	}
	return modeNames[m]
}

// Validate returns an error for a Mode that is none of the four.
func (m Mode) Validate() error {
	if m < 0 || int(m) >= len(modeNames) {
		return fmt.Errorf("mode %d is none; use create, truncate, append or replace", int(m))
	}
	return nil
}

// MarshalText returns the mode's name.
func (m Mode) MarshalText() ([]byte, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	return []byte(m.String()), nil
}

// UnmarshalText reads the mode's name; on an error m is unchanged.
func (m *Mode) UnmarshalText(text []byte) error {
	for mode, name := range modeNames {
		if name == string(text) {
			*m = Mode(mode)
			return nil
		}
	}
	return fmt.Errorf("%q is not create, truncate, append or replace", text)
}
