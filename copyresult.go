package holdfast

import (
	"errors"
	"fmt"
	"time"
)

// A CopyResult says what became of one file, link or folder.
type CopyResult struct {
	Source, Destination string

	Size    int64         // of the source as it was copied
	Copied  int64         // bytes of data that were moved; holes and shared bytes are not
	Resumed int64         // bytes at the beginning that were there already, and proven equal
	Method  CopyMethod    // that copied it, or its larger part; MethodAuto if none had to
	Elapsed time.Duration // all calls, with syncs and the reading back of its own

	Outcome  Outcome // of the destination
	Durable  bool    // with its name, when the call returned
	Verified bool    // read back from the disk, and equal

	// Changed tells that the source grew, shrank or was written to meanwhile, as far as its
	// size and times tell, which the kernel sets in steps of some milliseconds: the copy
	// may then be of no single moment. It is an error only if the file shrank.
	Changed bool

	Err error // a [*CopyError], or nil
}

// ErrLeft says that what was made of a copy that failed is still there, under its name
// or one that begins with .holdfast-, because it can't be removed.
var ErrLeft = errors.New("what was made of the copy can't be removed")

// A CopyError says which call failed on which of the two files, and where.
type CopyError struct {
	Op          string // such as read, write, open, rename, verify, refuse
	Source      string
	Destination string
	Offset      int64 // in the file, of the byte that could not be copied; -1: the call has none
	Err         error
}

// Error names both files, the call, the offset and the cause. The call open is made on
// the source, and create on the destination.
func (e *CopyError) Error() string {
	at := ""
	if e.Offset >= 0 {
		at = fmt.Sprintf(" at byte %d", e.Offset)
	}
	return fmt.Sprintf("copy %s to %s: %s%s: %v", e.Source, e.Destination, e.Op, at, e.Err)
}

// Unwrap returns the cause.
func (e *CopyError) Unwrap() error { return e.Err }

// CopyTotals adds up the results of a call.
type CopyTotals struct {
	Files, Folders, Links int // that were copied; Links are symbolic links, and hard links of Archive
	Refused               int // that are no file, folder or link
	Failed                int
	Size, Copied          int64 // bytes, as in CopyResult
	Changed               int   // files whose sources changed meanwhile
	Methods               map[CopyMethod]int
	Elapsed               time.Duration
}

// CopyProgress is how far a call is.
type CopyProgress struct {
	Files, FilesTotal int   // FilesTotal grows while folders are still being read
	Bytes, BytesTotal int64 // of data and holes
	Listed            bool  // all sources were read: the totals stand
	Elapsed           time.Duration
	Rate              float64       // bytes a second, of the last seconds
	Left              time.Duration // estimated; 0: not known
	Source            string        // a file that is being copied
}
