package wal

import (
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/internal/sys"
)

var (
	// ErrClosed is returned by calls after Close that need the files, and by calls that were
	// waiting when Close began. errors.Is(ErrClosed, os.ErrClosed) is true.
	ErrClosed error = sys.Closed("wal: log is closed")

	// ErrLocked is returned by Open and Scan if the log is open, in this or another process; ScanOpen
	// reads such a log.
	// Linux, macOS and Windows notice it, other systems don't.
	ErrLocked = errors.New("wal: the log is open elsewhere; close it there first")

	// ErrNotFound is returned for an index that the log does not have: it was truncated, or not yet
	// appended.
	ErrNotFound = errors.New("wal: the log does not have this index")
)

// An Error is a failed write or sync. After a failed sync the state of the records after Durable is
// unknown, and the error is Final: every later call returns it. To learn which records survive,
// close the Log and open it again.
type Error struct {
	Op      string // such as "write" or "sync"
	Path    string
	Durable uint64 // the last index up to which all records are on stable storage
	AtRisk  int64  // bytes of accepted records that are not durable
	Final   bool   // else the records wait in memory, and the next call tries again
	Err     error  // the system's

	reported bool // a call has returned it
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

// A DamageError reports bytes that were durable and are missing or changed. It never reports a
// record that a crash took before it was durable.
type DamageError struct {
	Path   string // the segment
	Offset int64  // where the first damaged record begins
	Index  uint64 // the index of that record
	Reason string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("wal: %s is damaged at byte %d, where record %d should be: %s", e.Path, e.Offset, e.Index, e.Reason)
}
