package filecopy

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// A Result is the result of copying one file, link or directory.
type Result struct {
	Source, Destination string

	Size    int64         // the number of source bytes copied
	Copied  int64         // bytes of data moved, without holes and shared bytes
	Resumed int64         // bytes at the beginning that an earlier call had copied, proven equal
	Method  Method        // the method that copied all or most bytes; Auto if none
	Elapsed time.Duration // all calls, including its own syncs and reading back

	Outcome  holdfast.Outcome // the destination's
	Durable  bool             // durable with its name when the call returned
	Verified bool             // read back from the disk, and equal

	// NotKept says what of the source the file system does not let the copy have: see
	// [Options.Effort]. Nil: it has all that the options ask for.
	NotKept error

	// NoJournal is the same doubt about a durable copy as files.Result.NoJournal.
	NoJournal bool

	// Changed is true if the source grew, shrank or was written to meanwhile: the copy may then mix
	// several moments. It is as exact as the file's size and times, which the kernel sets in steps
	// of some milliseconds. It is an error only if the file shrank.
	Changed bool

	Err error // a [*Error], or nil
}

// ErrLeftover says that a part of a failed copy can't be removed. It is still there, under its name
// or one that begins with .holdfast-.
var ErrLeftover = errors.New("what was made of the copy can't be removed")

// An Error names the failed call, the file, and the offset. Ask errors.Is for its cause.
//
// os.IsNotExist and its like know only the errors of package os. So where one name alone has failed,
// and nothing was copied, because a path is not there, there already or not permitted, [File] and [All]
// return the *fs.PathError instead.
type Error struct {
	Op          string // such as read, write, open, rename, verify, refuse
	Source      string
	Destination string
	Offset      int64 // the offset of the byte that could not be copied; -1: the call has none
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

// A dirError is the error of opening the directory that a file is in.
type dirError struct {
	path string
	err  error
}

func (e *dirError) Error() string { return fmt.Sprintf("its directory %s: %v", e.path, e.err) }
func (e *dirError) Unwrap() error { return e.err }

// asPathError returns the error of the only name that failed as package os does, where that is all there
// is to say.
func asPathError(err error) error {
	e, ok := err.(*Error)
	if !ok || e.Offset >= 0 {
		return err
	}
	path := e.Destination
	switch e.Op {
	case "open":
		path = e.Source
	case "create", "mkdir", "stat", "resolve":
	default:
		return err
	}
	if in := (*dirError)(nil); errors.As(e.Err, &in) {
		path = in.path
	} else if number := syscall.Errno(0); !errors.As(e.Err, &number) || e.Err.Error() != number.Error() {
		return err
	}
	if known := sys.PathError(e.Op, path, e.Err); known != nil {
		return known
	}
	return err
}

// A KeepError says what of its source a copy could not have, and why.
type KeepError struct {
	What string // permissions, times, owner, attributes, an attribute's name, or durable name
	Err  error
}

// Error names both.
func (e *KeepError) Error() string { return fmt.Sprintf("%s: %v", e.What, e.Err) }

// Unwrap returns the cause.
func (e *KeepError) Unwrap() error { return e.Err }

// Totals are the sums of a call's results.
type Totals struct {
	Files, Dirs, Links int // copied; Links are symbolic links, with Archive hard links, and kept devices, pipes and sockets
	Refused            int // names of other kinds
	Skipped            int // names that Filter or Special leave out
	Failed             int
	Size, Copied       int64 // bytes, as in Result
	Changed            int   // files whose source changed meanwhile
	NoJournal          int   // durable copies with Result.NoJournal
	NotKept            int   // copies with Result.NotKept
	Methods            map[Method]int
	Elapsed            time.Duration
}

// Progress is the progress of a call.
type Progress struct {
	Files, FilesTotal int   // FilesTotal grows while directories are still being read; with Filter it is Files
	Bytes, BytesTotal int64 // of data and holes
	Listed            bool  // all sources were read: the totals are final
	Elapsed           time.Duration
	Source            string // a file in progress
}
