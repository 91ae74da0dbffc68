//go:build go1.25

// Package catalogue lists the workloads of our own that prove crashes: workloads of its library, plain programs without
// it, liars, and commands of its own. The engine is package crash.
//
// A workload is a value. To add one, write it in a file of its own, and add it to the list.
package catalogue

import (
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/filecopy"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/policies"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// workloads are made when they are asked for first: most commands crash nothing.
var workloads = sync.OnceValue(func() []*crash.Workload {
	return slices.Concat(
		[]*crash.Workload{
			appends("append", "files.Append to 12 paths through 6 descriptors, in 3 goroutines", 6),
			appends("append-mounted", "files.Append to 12 paths, two on another file system, in 3 goroutines", 2*appendPaths, "a0", "a5"),
		},
		controls(),
		[]*crash.Workload{
			batches(),
			copying("copy-atomic", "filecopy.File, atomic", 1, 300<<10, filecopy.Options{Atomic: true}),
			copying("copy-tree", "filecopy.All of 6 files", 6, 60<<10, filecopy.Options{}),
			copying("copy-resume", "filecopy.File of 8 MiB, resumed after a kill", 1, 8<<20, filecopy.Options{Resume: true, Method: filecopy.ReadWrite}),
			copyDirs(),
			pendingFiles(),
			inProcesses(),
			replaceEach(),
			appendReplaced(),
			rotated(),
			closedLog(),
			fullLog(),
			sharedLog(),
			processLog(),
			walLog(),
			whole("whole-create", files.Create, false),
			whole("whole-create-dirs", files.Create, true),
			whole("whole-truncate", files.Truncate, false),
			whole("whole-append", files.Append, false),
			whole("whole-replace", files.Replace, false),
			openedFiles(),
			many(),
			thousands(),
			writing("writer", "three goroutines, one Writer: Write, Flush, Sync", policies.Small),
			writing("writer-large", "the same with Writes that bypass memory", policies.Large),
			writing("writer-mixed", "the same with Writes that do and Writes that don't", policies.Mixed),
			enqueue(),
			create(),
		})
})

// Workloads are all, controls included.
func Workloads() []*crash.Workload { return slices.Clone(workloads()) }

// With returns some workloads and all controls, in the order of the catalogue.
func With(chosen ...*crash.Workload) []*crash.Workload {
	return slices.DeleteFunc(Workloads(), func(w *crash.Workload) bool { return w.Control == "" && !slices.Contains(chosen, w) })
}

// Find returns the workload of a name, or nil.
func Find(name string) *crash.Workload { return crash.Find(workloads(), name) }

// onlyAcknowledged is the loss of a workload that keeps nothing in memory when a call returns. The records that
// the workload acknowledges as durable bound a power cut's loss.
func onlyAcknowledged(holdfast.Policy) holdfast.Loss {
	return holdfast.Loss{Power: holdfast.Bound{Bytes: holdfast.Unlimited, Time: holdfast.Unlimited}}
}

// flushedOrAcknowledged lets a process's end, too, take what was only accepted.
func flushedOrAcknowledged(holdfast.Policy) holdfast.Loss {
	none := holdfast.Bound{Bytes: holdfast.Unlimited, Time: holdfast.Unlimited}
	return holdfast.Loss{Process: none, Power: none}
}

// periods are policies of a flush and a sync by time, for fake time.
var periods = []holdfast.Policy{{Buffer: 4 * holdfast.KiB, FlushEvery: 100 * time.Millisecond, Sync: holdfast.SyncEvery(time.Second)}}

// newSet returns files under options, where the run writes.
func newSet(r *crash.Run, o files.Options) (*files.Set, error) {
	d := r.Disk()
	if d == nil {
		return files.New(o)
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return vfs.NewSet.(func(vfs.Disk, files.Options) *files.Set)(d, o), nil
}
