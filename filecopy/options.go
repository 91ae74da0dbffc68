package filecopy

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"

	"github.com/holdfast-go/holdfast"
)

// Options configure [File] and [All]. The zero Options is safe and useful: the fastest method that
// the kernel has, permissions and times kept, nothing synced.
type Options struct {
	// Policy says by its Sync when copies are durable: never; each, every file by itself; or close,
	// group or a period. These three make all files of the call durable, with their names, before
	// it returns. Its Buffer is the buffer of [ReadWrite]; 0 leaves the size to the package. Its
	// Flush has no effect.
	Policy holdfast.Policy

	// SyncWrites syncs after each write, like a file opened with O_SYNC: the bytes of one write are
	// durable before the next are read. It needs [ReadWrite], and a Policy with sync=each; the
	// Policy's Buffer is the size of a write.
	SyncWrites bool

	// Atomic writes every copy under another name in its directory, syncs it, renames it, and syncs
	// the directory. After a power cut the name has the earlier file or the whole copy. It is
	// durable under any Policy.
	Atomic bool

	// Method is the only method tried; [Auto] takes the first that works, file by file.
	Method Method

	// Archive keeps owners, extended attributes with access control lists, and the
	// hard links among the files of one call too. Permissions and times are
	// kept if the file system has them and permits it: else Result.NotKept says so, and with Archive
	// it is an error.
	Archive bool

	// FreshTimes gives copies the time at which they were made, as cp does.
	FreshTimes bool

	// Special says what becomes of devices, pipes and sockets.
	Special Special

	// Filter is called before each name in a directory is copied, and reports whether it is. A
	// directory that is left out is not entered. kind has the type bits of its mode. The names that a call is
	// given are not asked for. Filter is called as Each is.
	Filter func(source, destination string, kind fs.FileMode) bool

	// Effort says what happens where the file system refuses what the other options ask for: what
	// Archive keeps, and the sync of a directory. With [holdfast.Best] such a copy is no failure,
	// its Result.NotKept says why, and one whose directory can't be synced is not Durable.
	Effort holdfast.Effort

	// Verify reads every copy back from the disk, past the page cache, and compares
	// it with its source.
	Verify bool

	// Resume keeps the part of a large file that an interrupted copy has made. The next call
	// continues it if it equals the source's beginning, which it proves.
	Resume bool

	// KeepGoing copies the other files after a failure.
	KeepGoing bool

	// Workers is the number of files copied at a time; 0 is GOMAXPROCS.
	Workers int

	// Each is called for every file, link and directory that was copied, refused or failed.
	// Progress is called at most 20 times a second with the progress of the call. They are called
	// by one goroutine at a time and delay the copying while they run. If one panics, the call ends
	// as if ctx had ended, and then panics with the same value in the caller's goroutine. A
	// function of All must not call runtime.Goexit.
	Each     func(Result)
	Progress func(Progress)
}

// A Special says what becomes of devices, pipes and sockets, which have no bytes to copy.
type Special int

const (
	RefuseSpecial Special = iota // each is an error, which does not stop the call
	SkipSpecial                  // they are left out, and no error; in a directory only
	KeepSpecial                  // they are made anew. A device takes root. On Linux alone; by All alone
)

// String returns refuse, skip or keep.
func (s Special) String() string {
	switch s {
	case RefuseSpecial:
		return "refuse"
	case SkipSpecial:
		return "skip"
	case KeepSpecial:
		return "keep"
	}
	return fmt.Sprintf("Special(%d)", int(s))
}

// A Method is a way to copy a file's bytes.
type Method int

// The methods. [Auto] shares the bytes if it can. Otherwise the server of a network file system
// copies them, or the kernel splices them. Where that does not work, Auto reads and writes. It also
// reads and writes files of up to 64 KiB, because finding another method takes longer. But it
// shares small files that are not in the page cache (cachestat(2), Linux 6.5), and on btrfs the
// small files of [All] and the ones above 4 KiB of [File].
//
// Note: sendfile(2) is no method. On local disks it copies in steps of 16 pages, which is slower
// than a splice or a buffer.
const (
	Auto      Method = iota
	Reflink          // FICLONE, ioctl_ficlone(2): both files share the bytes on the disk
	CopyRange        // copy_file_range(2), in the kernel, or in the server of a network file system
	Splice           // splice(2) by way of a pipe, in the kernel
	ReadWrite        // read(2) and write(2) with a buffer
)

var copyMethodNames = [...]string{
	Auto: "auto", Reflink: "reflink", CopyRange: "copy_file_range",
	Splice: "splice", ReadWrite: "readwrite",
}

// String returns the method's name, such as copy_file_range.
func (m Method) String() string {
	if m < 0 || int(m) >= len(copyMethodNames) {
		return fmt.Sprintf("Method(%d)", int(m))
	}
	return copyMethodNames[m]
}

// mostWorkers keeps a mistyped number from starting millions of goroutines.
const mostWorkers = 1 << 16

// Validate returns nil, or an error that names the invalid field and its value.
func (o Options) Validate() error {
	if err := o.Policy.Validate(); err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	if err := o.Effort.Validate(); err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	switch {
	case o.Method < 0 || int(o.Method) >= len(copyMethodNames):
		return fmt.Errorf("copy: there is no method %d; use filecopy.Auto", int(o.Method))
	case o.Workers < 0 || o.Workers > mostWorkers:
		return fmt.Errorf("copy: workers=%d can't be; use 0 for as many as there are processors, or up to %d", o.Workers, mostWorkers)
	case o.Special < RefuseSpecial || o.Special > KeepSpecial:
		return fmt.Errorf("copy: there is no Special %d; use filecopy.SkipSpecial", int(o.Special))
	case o.SyncWrites && (o.Method != ReadWrite || o.Policy.Sync.Mode != holdfast.SyncEach):
		return fmt.Errorf("copy: SyncWrites can't be kept by method %v and sync=%v; use filecopy.ReadWrite and holdfast.SyncEach", o.Method, o.Policy.Sync)
	case o.Resume && o.Method == Reflink:
		return errors.New("copy: a reflink is made at once and can't be resumed; leave Resume out")
	}
	return nil
}

func (o Options) workers() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return runtime.GOMAXPROCS(0)
}
