package readahead

import "fmt"

// An Error reports a failed read of the source and its offset. The Reader returned all bytes before
// Offset first.
type Error struct {
	Path   string // the file's name, or "" if it has none
	Offset int64  // number of bytes that the source returned before it failed
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
