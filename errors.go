package holdfast

import "fmt"

// A WriteError says that a flush failed, and at which byte. It is not final: what was
// accepted stays in memory in its order, and the next call goes on at byte Flushed.
type WriteError struct {
	Path    string // the file's name, or "" if it has none
	Flushed int64  // how many of the Writer's bytes are in the kernel
	Durable int64  // how many of the Writer's bytes are on stable storage
	Err     error  // the file's error

	again bool // the write before failed too, at the same byte
}

func (e *WriteError) Error() string {
	return fmt.Sprintf("holdfast: write %sat byte %d (durable up to %d): %v", inPath(e.Path), e.Flushed, e.Durable, e.Err)
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
	Err     error  // the file's error
}

func (e *SyncError) Error() string {
	return fmt.Sprintf("holdfast: sync %s(durable up to byte %d, unknown from there): %v", inPath(e.Path), e.Durable, e.Err)
}

// Unwrap returns the file's error.
func (e *SyncError) Unwrap() error { return e.Err }

func inPath(path string) string {
	if path == "" {
		return ""
	}
	return path + " "
}
