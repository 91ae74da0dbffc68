// Package holdfast writes files under a [Policy]: a statement, in one line of
// text, of when bytes leave the program's memory and when they reach the disk.
//
//	    Write            Flush             Sync
//	memory  ───────▶ kernel ─────────▶ stable storage
//	        lost when          lost when
//	        the process dies   the machine dies
//
// The three words mean these three steps everywhere in this package. A [Writer]
// tells how far each has come by three offsets that only grow:
// [Writer.Written] ≥ [Writer.Flushed] ≥ [Writer.Durable].
//
// Start with a Policy, ask its [Policy.Loss] what a crash may take, and give it
// to [Create], [Append] or [New].
//
// A [Reader] reads such files, and others, from one end to the other: by bytes,
// lines or blocks, and says at which byte an error came.
//
// A [Files] writes many files at once: it appends to any number of paths through
// few descriptors and a bounded memory, and writes whole files, one or thousands,
// that are durable together.
//
// The package decides when bytes move and nothing else: it never prints, logs,
// or reads flags or the environment, and it starts no work for an idle Writer,
// Reader or Files.
package holdfast

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// A File is what a [Writer] writes to. *[os.File] is one.
//
// Write appends at the file's own position and may write less than it was
// given; the Writer goes on at the next byte. Sync returns nil only when all
// that was written before is on stable storage. The Writer calls Write from one
// goroutine at a time, and Sync from one goroutine at a time, but a Sync may run
// beside a Write. With an *os.File the Writer uses fdatasync(2) where the system
// has it.
type File interface {
	io.Writer
	Sync() error
	Close() error
}

var (
	// ErrClosed is returned by every method that is called after Close, and by
	// calls that Close released while they waited for memory. What such a call
	// was given is not in the file. errors.Is(ErrClosed, os.ErrClosed) is true.
	ErrClosed = fmt.Errorf("holdfast: writer is closed: %w", os.ErrClosed)

	// ErrUnlinked is the cause of a [SyncError] when the file has lost its last
	// name: its bytes were synced, but nothing will find them after a crash.
	ErrUnlinked = errors.New("file was removed while it was written")
)
