package wal

import (
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/internal/sys"
)

var (
	// ErrClosed is the error of calls after Close that need the files. It is that of calls that
	// Close released while they waited, too. errors.Is(ErrClosed, os.ErrClosed) is true.
	ErrClosed error = sys.Closed("wal: log is closed")

	// ErrLocked is the error of an Open or Scan of a log that is open, here or in another
	// process. Systems without flock(2) don't notice it.
	ErrLocked = errors.New("wal: the log is open elsewhere; close it there first")

	// ErrNotFound is the error of a call for an index that the log does not have: it was
	// truncated, or not yet appended.
	ErrNotFound = errors.New("wal: the log does not have this index")
)

// An Error is a failed write or sync. After a failed sync nothing is known of the records
// beyond Durable, and the error is Final: every later call returns it. Close the Log and
// open it again to learn what is there.
type Error struct {
	Op      string // such as "write" or "sync"
	Path    string
	Durable uint64 // up to this index all records are on stable storage
	AtRisk  int64  // how many bytes of records were accepted and are not durable
	Final   bool   // else the records wait in memory, and the next call tries again
	Err     error  // the system's

	told bool // a call has returned it
}

func (e *Error) Error() string {
	again := "the next call tries again"
	if e.Final {
		again = "unknown from there; open the log anew"
	}
	return fmt.Sprintf("wal: %s %s (durable up to index %d, %d bytes at risk, %s): %v", e.Op, e.Path, e.Durable, e.AtRisk, again, e.Err)
}

// Unwrap returns the system's error.
func (e *Error) Unwrap() error { return e.Err }

// A DamageError says that bytes are not there, or are not what was written, though they had
// been durable. It is never what a crash leaves of a record that was not yet durable.
type DamageError struct {
	Path   string // the segment
	Offset int64  // where the first record that is not whole begins
	Index  uint64 // of that record
	Reason string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("wal: %s is damaged at byte %d, where record %d should be: %s", e.Path, e.Offset, e.Index, e.Reason)
}
