// Package filecopy copies files and whole trees, with holes, attributes and links, by
// the fastest way that the system has. Copies are atomic or in place, and durable as
// a [holdfast.Policy] says. Start with [All] for many files and [File] for one.
package filecopy

import (
	"context"
	"iter"

	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/handles"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// All copies files, and directories with all that is in them, from the second of each pair to
// the first. A file is copied to a file of the name that the pair gives. A directory is copied
// to a directory. If that exists, it gets the source's names beside its own; else it is made in
// an existing one. Symbolic links in a directory are copied as links; one that a pair
// gives is followed. Directories get their permissions and times when all is in them. Until
// then their owner may write in them, also in an existing one that did not allow it.
//
// If the error is nil all of that was copied. It is durable, with its names, if o.Atomic is set
// or the policy's Sync is not never. The error joins the [*Error] of each name that failed or
// was refused, or of the first 100 of them. Each file then holds what was there before, all of
// it or nothing, as [File] says, or all that its source held. Directories that were made stay,
// and so does what can't be removed ([ErrLeftover]). Without o.KeepGoing nothing more is begun
// after the first failure. Pipes, sockets and devices are refused, which does not stop the
// call. If ctx ends, its cause is among the errors; what was not yet made durable is reported
// as written, with an error. If pairs panics, nothing was written yet.
//
// These pairs are refused before anything of them is written:
//   - a directory into itself or into one that is in it, under whatever name;
//   - a destination that a pair before has;
//   - a file where a directory must be, and the reverse.
//
// All pairs are refused if it is known that single files of the call have no room, holes not
// counted. Mounts may make a directory of a tree hold the destination, or be in it: it is refused
// when it is met. So is one that is mounted in itself. Where mounts make two directories be copied
// into each other, the one that is met second is refused. A name of a tree that becomes a symbolic
// link meanwhile fails and is not followed. If two directories are copied to the same one or to
// overlapping ones, it is not defined which files stay.
//
// Under sync=each every file is synced by itself, and its directory. Otherwise files are made
// durable together, at the end and whenever 4096 files or 256 MiB have come together. The whole
// file system is synced where that can be relied on and is cheaper; else each file, up to 64
// at a time. With o.Atomic the files of such a step get their names when all
// of them are durable, and the call returns when the names are. If a sync fails, nothing that
// it was to cover is reported as durable. With o.Verify files are compared after that: with
// o.Atomic before they get their names, else one that differs stays.
//
// All takes at most half of the process's descriptors, and the memory of some thousand names,
// however large or deep the trees are. With o.Archive it also remembers each file with several
// names until it has met them all. Any number of goroutines may call
// All, unless they copy to the same directories.
func All(ctx context.Context, pairs iter.Seq2[string, string], o Options) (Totals, error) {
	if err := o.Validate(); err != nil {
		return Totals{}, err
	}
	return copyTrees(ctx, sys.Disk{}, pairs, o)
}

// A worker needs at once two directories, those above them, the directory of another link, and
// one that it is opening. It also needs two files and a pipe. A sync or a verification in a
// step needs beside that: two directories, one that is just opened; two files.
const (
	dirsPerWorker  = 6
	filesPerWorker = 4
	dirsPerSync    = 3
	filesPerSync   = 2
)

// copyTrees copies what the pairs name.
func copyTrees(ctx context.Context, disk vfs.CopyDisk, pairs iter.Seq2[string, string], o Options) (Totals, error) {
	ctx, calls := guard(ctx, &o, true)
	defer calls.end()
	t := &copyTree{ctx: ctx, o: o, disk: disk, copier: newCopier(disk, o)}
	t.wake.L = &t.mu
	t.copier.batch = true
	// A call uses a half of the process's descriptors, and as many workers as these allow.
	// Directories that are likely to be used again stay open beside those that are in use.
	limit, known := sys.DescriptorLimit()
	if !known {
		limit = 1024
	}
	most := max(1, limit/2/(dirsPerWorker+filesPerWorker+dirsPerSync+filesPerSync+1))
	t.most = min(most, max(durable.Waiters, o.workers()))
	t.mostParked = min(t.most, mostParked)
	t.handles.Init(disk, (dirsPerWorker+dirsPerSync)*t.most+t.mostParked+handles.LeastHandles)
	defer t.handles.CloseAll() // also if the pairs panic
	t.batch.init(t)
	t.report.init(t)
	look := copyPairs{t: t, taken: map[takenName]string{}, need: map[uint64]*roomNeed{}}
	if err := look.look(pairs); err != nil {
		t.report.keepLocked(err) // nothing else runs yet
		t.roots = nil
	}
	if t.stopped() {
		t.roots = nil
	}
	if len(t.roots) == 1 && t.roots[0].job.names != nil {
		// To sync a single file by itself is cheaper.
		t.batch.each, t.batch.inSteps = t.batch.each || t.batch.inSteps, false
	}
	end := t.progress()
	for again := true; again; again = t.batch.makeDurable() { // its renames may leave something to do
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
