package prove

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
)

const appendPaths = 12

// Workload append appends to more paths than it has descriptors for.
func init() {
	options := func(p holdfast.Policy) files.Options { return files.Options{Policy: p, Handles: 6} }
	workloads = append(workloads, &Workload{Name: "append", About: "files.Append to 12 paths through 6 descriptors",
		Cleans: true, Targets: func(holdfast.Policy) (all []Target) {
			for id := range appendPaths {
				all = append(all, Target{ID: uint32(id), Path: fmt.Sprintf("a%d", id)})
			}
			return all
		},
		Loss: func(p holdfast.Policy) holdfast.Loss { return options(p).Loss(appendPaths) },
		Run: func(r *Run) (err error) {
			set, err := r.Set(options(r.Policy))
			if err != nil {
				return err
			}
			var streams []*stream
			for id := range appendPaths {
				path := fmt.Sprintf("a%d", id)
				f, next, err := r.open(path, uint32(id))
				if err != nil {
					return err
				}
				if err := f.Close(); err != nil {
					return err
				}
				streams = append(streams, r.stream(uint32(id), next[0]))
			}
			ctx := context.Background()
			pick := r.random(1 << 20)
			for made := 0; err == nil && r.more(3*made/appendPaths); made++ {
				s := streams[pick.IntN(len(streams))]
				if err = set.Append(ctx, r.Path(fmt.Sprintf("a%d", s.id)), s.record()); err != nil {
					break
				}
				s.accepted(r.Policy)
				switch pick.IntN(400) {
				case 0:
					if err = set.Flush(ctx); err == nil {
						noteAll(r, Flushed, streams)
					}
				case 1:
					if r.Policy.Sync.Mode == holdfast.SyncNever {
						continue // a file that was closed to make room can't be synced on every file system
					}
					if err = set.Sync(ctx); err == nil {
						noteAll(r, Durable, streams)
					}
				}
			}
			closed := set.Close()
			if err == nil && closed == nil {
				noteAll(r, Flushed, streams)
				if r.Policy.Sync.Mode != holdfast.SyncNever {
					noteAll(r, Durable, streams)
				}
			}
			if err != nil {
				return err
			}
			return closed
		}})
}

func noteAll(r *Run, kind NoteKind, streams []*stream) {
	for _, s := range streams {
		r.Note(kind, s.id, s.next)
	}
}
