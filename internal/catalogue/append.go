//go:build go1.25

package catalogue

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/crash"
)

const appendPaths = 12

// appends is goroutines that append to more paths than there are descriptors for, all to each. The first
// path gets half of the records, so that they meet there. Workload append-mounted has enough descriptors, so that a whole
// file system is synced, which some of the files are not on.
func appends(name, about string, descriptors int, mounted ...string) *crash.Workload {
	const writers = 3
	options := func(p holdfast.Policy) files.Options { return files.Options{Policy: p, Handles: descriptors} }
	return &crash.Workload{Name: name, About: about, InMemory: len(mounted) > 0, Mounted: mounted,
		Cleans: true, Periods: periods, Targets: func(holdfast.Policy) (all []crash.Target) {
			for id := range writers * appendPaths {
				all = append(all, crash.Target{ID: uint32(id), Path: fmt.Sprintf("a%d", id%appendPaths)})
			}
			return all
		},
		Loss: func(p holdfast.Policy) holdfast.Loss { return options(p).Loss(appendPaths) },
		Run: func(r *crash.Run) error {
			set, err := newSet(r, options(r.Policy))
			if err != nil {
				return err
			}
			streams := make([]*stream, writers*appendPaths)
			for path := range uint32(appendPaths) {
				f, next, err := r.Open(fmt.Sprintf("a%d", path), path, path+appendPaths, path+2*appendPaths)
				if err != nil {
					return err
				}
				if err := f.Close(); err != nil {
					return err
				}
				for i, n := range next {
					id := path + uint32(i*appendPaths)
					streams[id] = newStream(r, id, n)
				}
			}
			errs := make([]error, writers)
			var group sync.WaitGroup
			for i := range errs {
				group.Go(func() {
					mine := streams[i*appendPaths:][:appendPaths]
					pick := r.Random(uint32(1<<20 + i))
					for made := 0; errs[i] == nil && r.More(3*writers*made/appendPaths); made++ {
						errs[i] = appendOne(r, set, mine, mine[pick.IntN(len(mine))*pick.IntN(2)], pick.IntN(400))
					}
				})
			}
			group.Wait()
			err = errors.Join(errs...)
			closed := set.Close()
			if err == nil && closed == nil {
				noteAll(r, crash.Flushed, streams)
				if r.Policy.Sync.Mode != holdfast.SyncNever {
					noteAll(r, crash.Durable, streams)
				}
			}
			return errors.Join(err, closed)
		}}
}

// appendOne appends a record, and now and then flushes or syncs all. That acknowledges what is of the same goroutine.
func appendOne(r *crash.Run, set *files.Set, mine []*stream, s *stream, chance int) error {
	ctx, data := context.Background(), s.record()
	for tries := 0; ; tries++ { // where nothing was accepted it may be given again
		err, failed := set.Append(ctx, r.Path(fmt.Sprintf("a%d", s.id%appendPaths)), data), (*files.Error)(nil)
		if err == nil {
			break
		}
		if tries == 3 || !errors.As(err, &failed) || failed.Outcome != holdfast.OutcomeUntouched || failed.Offset > 0 {
			return err
		}
	}
	s.accepted(r.Policy)
	switch {
	case chance == 0:
		if err := set.Flush(ctx); err != nil {
			return err
		}
		noteAll(r, crash.Flushed, mine)
	case chance == 1 && r.Policy.Sync.Mode != holdfast.SyncNever: // else a file that was closed to make room can't be synced on every file system
		if err := set.Sync(ctx); err != nil {
			return err
		}
		noteAll(r, crash.Durable, mine)
	}
	return nil
}
