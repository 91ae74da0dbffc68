// Package holdfast writes files under a [Policy]. One line of text states when
// bytes leave the program's memory and when they reach the disk.
//
//	    Write            Flush             Sync
//	memory  ───────▶ kernel ─────────▶ stable storage
//	        lost when          lost when
//	        the process dies   the machine dies
//
// The three words mean these three steps everywhere in this package. A [Writer]
// reports how far each has come in three offsets that only grow:
// [Writer.Written] ≥ [Writer.Flushed] ≥ [Writer.Durable].
//
// Start with a Policy. Its [Policy.Loss] bounds the bytes that a crash may take. Give
// it to [Create], [Append] or [New].
//
// A readahead.Reader reads a file, written by this package or not, from start to end: by
// bytes, lines or blocks. Its errors name the byte at which they occurred.
//
// A files.Set writes many files at once. It appends to any number of paths with few
// descriptors and bounded memory. It also writes whole files, one or thousands, and makes
// them durable together.
//
// The package decides when bytes move and nothing else. It never prints, logs, or reads
// flags or the environment. It starts no work for an idle Writer, Reader or Set.
package holdfast

import (
	"errors"
	"io"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// A File is the destination of a [Writer]. *[os.File] implements it.
//
// Write writes at the file's own position and may write fewer bytes than it was given; the Writer
// continues at the next byte. Sync returns nil only when all bytes written before it are on stable
// storage. The Writer never calls two Writes at a time, nor two Syncs, but a Sync may run during a
// Write. With an *os.File the Writer uses fdatasync(2) where the system has it.
type File interface {
	io.Writer
	Sync() error
	Close() error
}

var (
	// ErrClosed is returned by every call after Close, and by calls that waited for
	// memory when Close began. The bytes of such a call are not in the file.
	// errors.Is(ErrClosed, os.ErrClosed) is true.
	ErrClosed error = sys.Closed("holdfast: writer is closed")

	// ErrPanicked is returned by every call after the Writer's File has panicked. The error
	// also wraps the panic value if that is an error.
	ErrPanicked = errors.New("file panicked")

	errNotMade = errors.New("holdfast: this Writer has no file; make one with New, Create, Append or OpenFile")

	// ErrUnlinked is the cause of a [SyncError], [files.Error] or [wal.Error] when the file has
	// lost its last name. Its bytes were synced, but no name leads to them after a crash. It is
	// final for a Writer, which has one file, and for a [wal.Log]; make a new one. A files.Set
	// reports it once, and the next call opens the path again.
	ErrUnlinked = errors.New("file was removed while it was written")
)
