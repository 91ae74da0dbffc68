package holdfast

import (
	"errors"
	"fmt"
	"runtime"
)

// CopyOptions says how [Copy] and [CopyAll] work. The zero CopyOptions is safe and
// useful: the fastest way that the kernel offers, permissions and times kept,
// nothing synced.
type CopyOptions struct {
	// Policy says when copies are durable, by its Sync: never; each, every file by
	// itself; or close, group and a period, which make all files of the call durable,
	// with their names, before it returns. Its Buffer is that of [MethodReadWrite],
	// which 0 leaves to the package; its Flush says nothing here.
	Policy Policy

	// Atomic writes every copy under another name in its folder, syncs it, renames
	// it, and syncs the folder: after a power cut there is either what was there
	// before, or the whole copy. It is durable whatever the Policy says.
	Atomic bool

	// Method is the only way to copy that is tried; [MethodAuto] takes the first that
	// works, file by file.
	Method CopyMethod

	// Archive keeps owners, extended attributes with access control lists, and the
	// hard links among the files of one call too. Permissions and times are always
	// kept.
	Archive bool

	// Verify reads every copy back from the disk, past the page cache, and compares
	// it with its source.
	Verify bool

	// Resume keeps what an interrupted copy has made of a large file, and goes on with
	// it the next time if it is proven to equal the source's beginning.
	Resume bool

	// KeepGoing copies the other files where one fails.
	KeepGoing bool

	// Workers is how many files are copied at a time; 0 is GOMAXPROCS.
	Workers int

	// Each is told of every file, link and folder that was copied, refused or failed.
	// Progress is told, not more often than 20 times a second, how far all is. Both
	// are called by one goroutine at a time and hold up the copying while they run.
	Each     func(CopyResult)
	Progress func(CopyProgress)
}

// A CopyMethod is how a file's bytes get from one file to another.
type CopyMethod int

// The methods. [MethodAuto] shares the bytes if it can; else it lets the server of a
// network file system copy them, or splices them, and reads and writes what the kernel
// can't splice. It reads and writes files of up to 64 KiB, which takes less than to look
// for another way, but shares those that the page cache does not have (cachestat(2),
// Linux 6.5), and on btrfs those of CopyAll, and those above 4 KiB of Copy. Sendfile is taken only if it is asked for.
const (
	MethodAuto      CopyMethod = iota
	MethodReflink              // FICLONE, ioctl_ficlone(2): both files share the bytes on the disk
	MethodCopyRange            // copy_file_range(2), in the kernel, or in the server of a network file system
	MethodSendfile             // sendfile(2), in the kernel
	MethodSplice               // splice(2) by way of a pipe, in the kernel
	MethodReadWrite            // read(2) and write(2) with a buffer
)

var copyMethodNames = [...]string{
	MethodAuto: "auto", MethodReflink: "reflink", MethodCopyRange: "copy_file_range",
	MethodSendfile: "sendfile", MethodSplice: "splice", MethodReadWrite: "readwrite",
}

// String returns the method's name, such as copy_file_range.
func (m CopyMethod) String() string {
	if m < 0 || int(m) >= len(copyMethodNames) {
		return fmt.Sprintf("CopyMethod(%d)", int(m))
	}
	return copyMethodNames[m]
}

// Validate returns an error that names the field and the value with which nothing
// can be copied, or nil.
func (o CopyOptions) Validate() error {
	if err := o.Policy.Validate(); err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	switch {
	case o.Method < 0 || int(o.Method) >= len(copyMethodNames):
		return fmt.Errorf("copy: there is no method %d; use MethodAuto", int(o.Method))
	case o.Workers < 0 || o.Workers > maxWorkers:
		return fmt.Errorf("copy: workers=%d can't be; use 0 for as many as there are processors, or up to %d", o.Workers, maxWorkers)
	case o.Resume && o.Method == MethodReflink:
		return errors.New("copy: a reflink is made at once and can't be resumed; leave Resume out")
	}
	return nil
}

func (o CopyOptions) workers() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return runtime.GOMAXPROCS(0)
}
