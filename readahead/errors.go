package readahead

import "fmt"

// An Error says that a read of the source failed, and at which offset. The Reader
// returned all bytes before Offset first.
type Error struct {
	Path   string // the file's name, or "" if it has none
	Offset int64  // how many bytes the source returned before it failed
	Err    error  // the source's error
}

func (e *Error) Error() string {
	path := e.Path
	if path != "" {
		path += " "
	}
	return fmt.Sprintf("holdfast: read %sat byte %d: %v", path, e.Offset, e.Err)
}

// Unwrap returns the source's error.
func (e *Error) Unwrap() error { return e.Err }
