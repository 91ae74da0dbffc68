package prove

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
)

const appendPaths = 12

// Workload append is goroutines that append to more paths than there are descriptors for, all to each. The first
// path gets half of the records, so that they meet there. Workload append-mounted has enough descriptors, so that a whole
// file system is synced, which some of the files are not on.
func (all *catalogue) append() {
	const writers = 3
	appending := func(name, about string, descriptors int, mounted ...string) {
		options := func(p holdfast.Policy) files.Options { return files.Options{Policy: p, Handles: descriptors} }
		*all = append(*all, &Workload{Name: name, About: about, InMemory: len(mounted) > 0, Mounted: mounted,
			Cleans: true, Targets: func(holdfast.Policy) (all []Target) {
				for id := range writers * appendPaths {
					all = append(all, Target{ID: uint32(id), Path: fmt.Sprintf("a%d", id%appendPaths)})
				}
				return all
			},
			Loss: func(p holdfast.Policy) holdfast.Loss { return options(p).Loss(appendPaths) },
			Run: func(r *Run) error {
				set, err := r.Set(options(r.Policy))
				if err != nil {
					return err
				}
				streams := make([]*stream, writers*appendPaths)
				for path := range uint32(appendPaths) {
					f, next, err := r.open(fmt.Sprintf("a%d", path), path, path+appendPaths, path+2*appendPaths)
					if err != nil {
						return err
					}
					if err := f.Close(); err != nil {
						return err
					}
					for i, n := range next {
						id := path + uint32(i*appendPaths)
						streams[id] = r.stream(id, n)
					}
				}
				errs := make([]error, writers)
				var group sync.WaitGroup
				for i := range errs {
					group.Add(1)
					go func() {
						defer group.Done()
						mine := streams[i*appendPaths:][:appendPaths]
						pick := r.random(uint32(1<<20 + i))
						for made := 0; errs[i] == nil && r.more(3*writers*made/appendPaths); made++ {
							errs[i] = r.appends(set, mine, mine[pick.IntN(len(mine))*pick.IntN(2)], pick.IntN(400))
						}
					}()
				}
				group.Wait()
				err = errors.Join(errs...)
				closed := set.Close()
				if err == nil && closed == nil {
					noteAll(r, Flushed, streams)
					if r.Policy.Sync.Mode != holdfast.SyncNever {
						noteAll(r, Durable, streams)
					}
				}
				return errors.Join(err, closed)
			}})
	}
	appending("append", "files.Append to 12 paths through 6 descriptors, in 3 goroutines", 6)
	appending("append-mounted", "files.Append to 12 paths, two of another file system, in 3 goroutines", 2*appendPaths, "a0", "a5")
}

// appends appends a record, and now and then flushes or syncs all. That acknowledges what is of the same goroutine.
func (r *Run) appends(set *files.Set, mine []*stream, s *stream, chance int) error {
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
		noteAll(r, Flushed, mine)
	case chance == 1 && r.Policy.Sync.Mode != holdfast.SyncNever: // else a file that was closed to make room can't be synced on every file system
		if err := set.Sync(ctx); err != nil {
			return err
		}
		noteAll(r, Durable, mine)
	}
	return nil
}

func noteAll(r *Run, kind NoteKind, streams []*stream) {
	for _, s := range streams {
		r.Note(kind, s.id, s.next)
	}
}
