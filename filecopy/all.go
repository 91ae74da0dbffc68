// Package filecopy copies files and whole trees, with holes, attributes and links, by the fastest
// method that the system has. Copies are atomic or in place, and durable under a [holdfast.Policy].
// Start with [All] for many files and [File] for one.
package filecopy

import (
	"context"
	"iter"

	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/folding"
	"github.com/holdfast-go/holdfast/internal/handles"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// All copies files and whole directories, from the second of each pair to the first. A file is
// copied to a file of the name in the pair, and a directory to a directory. If that exists, the
// source's names are added to its own; else it is made in an existing directory. Symbolic links in
// a directory are copied as links; one in a pair is followed. Directories get their permissions and
// times after their last name. Until then their owner may write in them, even in an existing one
// that did not permit it.
//
// If the error is nil, all was copied. It is durable, with its names, if o.Atomic is set or the
// policy's Sync is not never. The error is the [*Error] of the name that failed or was refused, or
// joins the errors of several names, up to the first 100, in ten lines at most. The file of such a name holds the earlier
// file, all of it or nothing, as in [File], or the whole source. New directories stay, and so does a
// temporary file that can't be removed ([ErrLeftover]). Without o.KeepGoing nothing new is begun after
// the first failure. If ctx ends, its cause is among the errors; copies that are not durable by then are
// reported as written, with an error. If pairs panics, nothing was written yet.
//
// These pairs are refused before anything of them is written:
//   - a directory into itself or into a subdirectory of itself, under any name;
//   - a destination that an earlier pair has;
//   - a file where a directory must be, and the reverse.
//
// All pairs are refused if the single files of the call, without their holes, are known not to fit
// on the disk. Mounts may make a directory of a tree contain the destination, or lie in it: it is
// refused when it is met. So is a directory that is mounted in itself. If mounts make two
// directories be copied into each other, the second one met is refused. A name of a tree that
// becomes a symbolic link meanwhile fails and is not followed. If two directories are copied to the
// same directory or to overlapping ones, it is not defined which files remain.
//
// Under sync=each every file is synced by itself, and its directory. Otherwise files are made
// durable together in steps: at the end, and after every 4096 files or 256 MiB. A step syncs the
// whole file system if that is reliable and cheaper; else each file, up to 64 at a time. With
// o.Atomic the files of a step get their names when all of them are durable, and the call returns
// when the names are. If a sync fails, no file that it had to cover is reported as durable. With
// o.Verify files are compared after that: with o.Atomic before they get their names, else a file
// that differs stays.
//
// All uses at most half of the process's descriptors, and the memory of some thousand names, at any
// size and depth of the trees. With o.Archive it also keeps each file with several names until it
// has met them all. Any number of goroutines may call All, unless they copy to the same
// directories.
func All(ctx context.Context, pairs iter.Seq2[string, string], o Options) (Totals, error) {
	if err := o.Validate(); err != nil {
		return Totals{}, err
	}
	return copyTrees(ctx, sys.Disk{}, pairs, o)
}

// A worker needs at once two directories, their parents, the directory of another link, and one
// that it is opening, plus two files and a pipe. A sync or a verification in a step also needs two
// directories, one that is just opened, and two files.
const (
	dirsPerWorker  = 6
	filesPerWorker = 4
	dirsPerSync    = 3
	filesPerSync   = 2
)

// copyTrees is All on any disk.
func copyTrees(ctx context.Context, disk vfs.CopyDisk, pairs iter.Seq2[string, string], o Options) (Totals, error) {
	ctx, calls := guard(ctx, &o, true)
	defer calls.end()
	t := &copyTree{ctx: ctx, o: o, disk: disk, copier: newCopier(disk, o)}
	t.wake.L = &t.mu
	t.copier.batch = true
	// A call uses half of the process's descriptors, and as many workers as these allow.
	// Directories likely to be used again stay open too.
	limit, known := sys.DescriptorLimit()
	if !known {
		limit = 1024
	}
	most := max(1, limit/2/(dirsPerWorker+filesPerWorker+dirsPerSync+filesPerSync+1))
	t.most = min(most, max(durable.Waiters, o.workers()))
	t.mostDeferred = min(t.most, mostDeferred)
	t.handles.Init(disk, (dirsPerWorker+dirsPerSync)*t.most+t.mostDeferred+handles.LeastHandles)
	defer t.handles.CloseAll() // also if the pairs panic
	t.batch.init(t)
	t.report.init(t)
	look := copyPairs{t: t, taken: map[takenName]string{}, need: map[uint64]*roomNeed{}, given: map[fileID]*folding.Names{}}
	if err := look.look(pairs); err != nil {
		t.report.keepLocked(err) // no other goroutine runs yet
		t.roots = nil
	}
	if t.stopped() {
		t.roots = nil
	}
	if len(t.roots) == 1 && t.roots[0].job.names != nil {
		// Syncing a single file by itself is cheaper.
		t.batch.each, t.batch.inSteps = t.batch.each || t.batch.inSteps, false
	}
	end := t.progress()
	for again := true; again; again = t.batch.makeDurable() { // its renames may leave more to do
		t.moreWorkers(o.workers())
		t.all.Wait()
	}
	t.batch.step.Close(func(errseq int) { disk.Close(errseq) })
	for _, m := range t.marks {
		if m.id != (fileID{}) {
			disk.Close(m.fd) // nothing was written to it
		}
	}
	end()
	return t.report.totals, t.report.err(context.Cause(ctx))
}
