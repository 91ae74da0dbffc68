package prove

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
)

// Workload replace-each is several goroutines that replace files, each its own, by one Set.
func (all *catalogue) each() {
	const writers, paths = 3, 2
	*all = append(*all, &Workload{Name: "replace-each", About: "files.WriteFile in 3 goroutines, mode replace", Cleans: true, Whole: true,
		Targets: func(p holdfast.Policy) (all []Target) {
			for id := range writers * paths {
				all = append(all, Target{ID: uint32(id), Path: fmt.Sprintf("e%d", id), Object: true, Whole: true, Synced: p.Sync.Mode != holdfast.SyncNever})
			}
			return all
		},
		Loss: func(holdfast.Policy) holdfast.Loss {
			return holdfast.Loss{Power: holdfast.Bound{Bytes: holdfast.Unlimited, Time: holdfast.Unlimited}}
		},
		Run: func(r *Run) error {
			set, err := r.Set(files.Options{Policy: r.Policy, Handles: 8})
			if err != nil {
				return err
			}
			errs := make([]error, writers)
			var group sync.WaitGroup
			for writer := range writers {
				group.Add(1)
				go func() {
					defer group.Done()
					random := r.random(uint32(writer))
					for made := 0; errs[writer] == nil && r.more(30*made); made++ {
						id, n := uint32(writer*paths+made%paths), uint64(r.Number+1)<<32|uint64(made+1)
						r.Note(Begun, id, n)
						data := Record{ID: id, N: n, At: time.Now().UnixNano(), Size: 600 + random.IntN(6000)}.Append(nil)
						result, err := set.WriteFile(context.Background(), r.Path(fmt.Sprintf("e%d", id)), data, files.Replace)
						if err != nil {
							errs[writer] = err
							break
						}
						r.Note(Accepted, id, n)
						if result.Durable() {
							r.Note(Durable, id, n)
						}
						if r.Pause != nil {
							r.Pause(random)
						}
					}
				}()
			}
			group.Wait()
			return errors.Join(errors.Join(errs...), set.Close())
		}})
}
