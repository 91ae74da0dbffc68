package filecopy

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A Result says what became of one file, link or directory.
type Result struct {
	Source, Destination string

	Size    int64         // of the source as it was copied
	Copied  int64         // bytes of data that were moved; holes and shared bytes are not
	Resumed int64         // bytes at the beginning that were there already, and proven equal
	Method  Method        // that copied it, or its larger part; Auto if none had to
	Elapsed time.Duration // all calls, with syncs and the reading back of its own

	Outcome  holdfast.Outcome // of the destination
	Durable  bool             // with its name, when the call returned
	Verified bool             // read back from the disk, and equal

	// NoJournal is a doubt about a durable copy, the one of files.Result.
	NoJournal bool

	// Changed is true if the source grew, shrank or was written to meanwhile: the copy may
	// then be of no single moment. It is as exact as the file's size and times, which the kernel
	// sets in steps of some milliseconds. It is an error only if the file shrank.
	Changed bool

	Err error // a [*Error], or nil
}

// ErrLeftover says that a part of a copy that failed can't be removed. It is still there, under
// its name or one that begins with .holdfast-.
var ErrLeftover = errors.New("what was made of the copy can't be removed")

// An Error says which call failed on which of the two files, and where.
type Error struct {
	Op          string // such as read, write, open, rename, verify, refuse
	Source      string
	Destination string
	Offset      int64 // in the file, of the byte that could not be copied; -1: the call has none
	Err         error
}

// Error names both files, the call, the offset and the cause. The call open is made on
// the source, and create on the destination.
func (e *Error) Error() string {
	at := ""
	if e.Offset >= 0 {
		at = fmt.Sprintf(" at byte %d", e.Offset)
	}
	return fmt.Sprintf("copy %s to %s: %s%s: %v", e.Source, e.Destination, e.Op, at, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Totals adds up the results of a call.
type Totals struct {
	Files, Dirs, Links int // that were copied; Links are symbolic links, and hard links of Archive
	Refused            int // that are no file, directory or link
	Failed             int
	Size, Copied       int64 // bytes, as in Result
	Changed            int   // files with a source that changed meanwhile
	NoJournal          int   // durable ones with Result.NoJournal
	Methods            map[Method]int
	Elapsed            time.Duration
}

// Progress is how far a call is.
type Progress struct {
	Files, FilesTotal int   // FilesTotal grows while directories are still being read
	Bytes, BytesTotal int64 // of data and holes
	Listed            bool  // all sources were read: the totals stand
	Elapsed           time.Duration
	Source            string // a file that is being copied
}
