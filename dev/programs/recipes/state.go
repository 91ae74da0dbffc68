package recipes

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/holdfast-go/holdfast/files"
)

// SaveState keeps what a daemon must know after a crash. When it returns nil the new state is on the disk, with its name; until then a crash
// leaves the one before, whole. It is indented, for who looks at it.
func SaveState(path string, state any) error {
	return files.WriteFileFunc(path, 0o600, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(state)
	})
}

// LoadState leaves the state as it is if there was none. Anything else is an error: SaveState leaves no half of a file.
func LoadState(path string, state any) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, state)
}
