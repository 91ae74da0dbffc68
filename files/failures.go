package files

import (
	"cmp"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/errjoin"
)

// OnError has report called once for each failed write or sync of appended data, even if no later call
// would return the error. Failed writes to a path are one failure until one works; bytes that Close
// could not write are another. The failures of [Set.WriteFile] and [Set.WriteAll] are in their results
// alone.
//
// The calls are made in a goroutine of their own, one at a time, without a lock. So report may
// call the Set, Close too. Close does not wait for it. Call OnError before the first Append.
func (f *Set) OnError(report func(*Error)) { f.failures.To(report) }

// OnSlowSync has report called once for each sync that runs for longer than a threshold, while it
// runs: of appended files and of whole files, alone or together. Syncs of directories after renames
// are not watched. The calls are made as for OnError. Call OnSlowSync before the first write.
func (f *Set) OnSlowSync(after time.Duration, report func(holdfast.SlowSync)) {
	f.slow.To(after, report)
}

// Err returns why paths accept nothing at present, joined, or nil. These are failed writes,
// which each call tries again, and failed syncs, which are final for their path. It waits for
// no disk, and the next calls report the failures all the same.
func (f *Set) Err() error {
	t := &f.streams
	t.mu.Lock()
	defer t.mu.Unlock()
	var failed []*stream
	for _, s := range t.paths {
		if s.final != nil || s.failed != nil {
			failed = append(failed, s)
		}
	}
	slices.SortFunc(failed, func(a, b *stream) int { return cmp.Compare(a.name.path, b.name.path) })
	var errs []error
	for _, s := range failed {
		errs = append(errs, cmp.Or(s.final, s.failed))
	}
	return errjoin.Join(errs...)
}
