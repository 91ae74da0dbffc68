package holdfast

import "fmt"

// A WriteError says that bytes on their way to the kernel did not get there, and
// how far they came. It is not final: what was accepted stays in memory in its
// order, and the next call goes on at the byte that Flushed names.
type WriteError struct {
	Path    string // the file's name, or "" if it has none
	Flushed int64  // how many of the Writer's bytes are in the kernel
	Durable int64  // how many of the Writer's bytes are on stable storage
	Err     error  // what the file said

	again bool // the write before failed too, at the same byte
}

func (e *WriteError) Error() string {
	return fmt.Sprintf("holdfast: write %sat byte %d (durable up to %d): %v", inPath(e.Path), e.Flushed, e.Durable, e.Err)
}

// Unwrap returns what the file said.
func (e *WriteError) Unwrap() error { return e.Err }

// A SyncError says that a sync failed. It is final: the kernel may have dropped
// the bytes that it could not write, and a second sync can report success for
// them, so the Writer never syncs that file again. What lies past Durable must
// be sent again, to another file.
type SyncError struct {
	Path    string // the file's name, or "" if it has none
	Durable int64  // how many of the Writer's bytes are on stable storage
	Err     error  // what the file said
}

func (e *SyncError) Error() string {
	return fmt.Sprintf("holdfast: sync %s(durable up to byte %d, unknown from there): %v", inPath(e.Path), e.Durable, e.Err)
}

// Unwrap returns what the file said.
func (e *SyncError) Unwrap() error { return e.Err }

// A ReadError says that a source could not be read on, and how far it was read.
// All bytes before Offset were delivered before it.
type ReadError struct {
	Path   string // the file's name, or "" if it has none
	Offset int64  // how many bytes the source gave the Reader before it failed
	Err    error  // what the source said
}

func (e *ReadError) Error() string {
	return fmt.Sprintf("holdfast: read %sat byte %d: %v", inPath(e.Path), e.Offset, e.Err)
}

// Unwrap returns what the source said.
func (e *ReadError) Unwrap() error { return e.Err }

func inPath(path string) string {
	if path == "" {
		return ""
	}
	return path + " "
}
