package holdfast

import (
	"context"
	"iter"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// CopyAll copies files, and folders with all that is in them, from the second of each
// pair to the first. A file is copied to a file of the name that the pair gives; a folder
// to a folder, which is made, in one that is there, or gets the source's names beside its
// own. Symbolic links in a folder are copied as links; one that a pair gives is followed.
// Folders get their permissions and times when all is in them.
//
// If the error is nil all of that was copied, and is durable, with its names, if o.Atomic
// is set or the policy's Sync is not never. It joins the [*CopyError] of each name that
// failed or was refused, or of the first 100 of them. Of each file there is then what
// was there before, all of it or nothing, as [Copy] says, or all that its source held. Folders
// that were made stay, and so does what can't be removed ([ErrLeft]). Without o.KeepGoing nothing more is begun after the first failure;
// pipes, sockets and devices are refused, and are no reason to stop. If ctx ends, its
// cause is among the errors; what was not yet made durable is told as written, with an error.
//
// Refused before anything of it is written are: a folder into itself or into one that is
// in it, under whatever name; a destination that a pair before has; a file where a
// folder must be, and the reverse; and all, where it is known that single files of the
// call have no room, holes not counted. A folder of a tree that turns out to hold the
// destination, or to be in it, because that is mounted there too, is refused when it is
// met; so is one that is mounted in itself, and, where mounts make two folders be copied
// into each other, the one that is met second.
// A name of a tree that becomes a symbolic link meanwhile fails and is not followed. Between two folders that are copied to the
// same or overlapping ones it is not said whose files stay.
//
// Under sync=each every file is synced by itself, and its folder. Otherwise files are made
// durable together, at the end and whenever 4096 files or 256 MiB have come together: by a
// sync of the whole file system where that can be relied on and is cheaper, else by their
// own, up to 64 at a time. With o.Atomic the files of such a step get their names when all
// of them are durable, and the call returns when the names are. If a sync fails, nothing that
// it was to cover is told as durable. With o.Verify files are compared after that: with
// o.Atomic before they get their names, else one that differs stays.
//
// Of the process's descriptors it takes a half at most, and of memory what some thousand
// names take, however large or deep the trees are; but with o.Archive it remembers each file
// with several names until it has met them all. Any number of goroutines may call
// CopyAll, unless they copy to the same folders.
func CopyAll(ctx context.Context, pairs iter.Seq2[string, string], o CopyOptions) (CopyTotals, error) {
	if err := o.Validate(); err != nil {
		return CopyTotals{}, err
	}
	return copyTrees(ctx, sys.Disk{}, pairs, o)
}
