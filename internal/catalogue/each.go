//go:build go1.25

package catalogue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/crash"
)

// replaceEach is several goroutines that replace files, each its own, by one Set.
func replaceEach() *crash.Workload {
	const writers, paths = 3, 2
	return &crash.Workload{Name: "replace-each", About: "files.WriteFile in 3 goroutines, mode replace", Cleans: true, Whole: true,
		Targets: func(p holdfast.Policy) (all []crash.Target) {
			for id := range writers * paths {
				all = append(all, crash.Target{ID: uint32(id), Path: fmt.Sprintf("e%d", id), Object: true, Whole: true, Synced: p.Sync.Mode != holdfast.SyncNever})
			}
			return all
		},
		Loss: onlyAcknowledged,
		Run: func(r *crash.Run) error {
			set, err := newSet(r, files.Options{Policy: r.Policy, Handles: 8})
			if err != nil {
				return err
			}
			errs := make([]error, writers)
			var group sync.WaitGroup
			for writer := range writers {
				group.Go(func() {
					random := r.Random(uint32(writer))
					for made := 0; errs[writer] == nil && r.More(30*made); made++ {
						id, n := uint32(writer*paths+made%paths), uint64(r.Number+1)<<32|uint64(made+1)
						r.Note(crash.Begun, id, n)
						data := crash.Record{ID: id, N: n, At: time.Now().UnixNano(), Size: 600 + random.IntN(6000)}.Append(nil)
						result, err := set.WriteFile(context.Background(), r.Path(fmt.Sprintf("e%d", id)), data, files.Replace)
						if err != nil {
							errs[writer] = err
							break
						}
						r.Note(crash.Accepted, id, n)
						if result.Durable() {
							r.Note(crash.Durable, id, n)
						}
						if r.Pause != nil {
							r.Pause(random)
						}
					}
				})
			}
			group.Wait()
			return errors.Join(errors.Join(errs...), set.Close())
		}}
}

// appendReplaced is a file that one goroutine appends to, and now and then replaces by another that has the same records and one more.
func appendReplaced() *crash.Workload {
	return &crash.Workload{Name: "append-replace", About: "files.Append and WriteFile, mode replace, on one path", Cleans: true, Loss: onlyAcknowledged,
		Policies: []holdfast.Policy{holdfast.Durable(), holdfast.EachDurable()}, Targets: streamTargets(log0, 1),
		Run: func(r *crash.Run) (err error) {
			there, err := r.ReadFile(log0)
			if err != nil {
				return err
			}
			end, count, _ := crash.Records(there)
			all := there[:end]
			set, err := newSet(r, files.Options{Policy: r.Policy})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, set.Close()) }()
			s := newStream(r, 0, count(0))
			for r.More(s.made) {
				all = append(all, s.record()...)
				if s.made == 0 || s.rand.IntN(3) == 0 { // the first also takes a torn record away
					if _, err := set.WriteFile(context.Background(), r.Path(log0), all, files.Replace); err != nil {
						return err
					}
				} else if err := set.Append(context.Background(), r.Path(log0), s.buf); err != nil {
					return err
				}
				s.accepted(r.Policy)
			}
			return nil
		}}
}

// inProcesses is several processes that replace and append to files of one directory, each its own. A process removes the temporaries
// that killed ones have left, and no other's.
func inProcesses() *crash.Workload {
	const count = 3
	return &crash.Workload{Name: "processes", About: "files.WriteFile, mode replace, and Append in 3 processes", Processes: count, Loss: onlyAcknowledged,
		Policies: []holdfast.Policy{holdfast.Durable(), holdfast.Unbuffered()},
		Targets: func(holdfast.Policy) (all []crash.Target) {
			for id := range uint32(count) {
				all = append(all, crash.Target{ID: id, Path: fmt.Sprint("o", id), Object: true, Whole: true})
			}
			for id := range uint32(count) {
				all = append(all, crash.Target{ID: count + id, Path: fmt.Sprint("a", id)})
			}
			return all
		},
		Run: func(r *crash.Run) (err error) {
			object := uint32(r.Process)
			name := fmt.Sprint("a", object)
			f, next, err := r.Open(name, count+object)
			if err != nil {
				return err
			}
			if err := f.Close(); err != nil {
				return err
			}
			set, err := newSet(r, files.Options{Policy: r.Policy, Handles: 8})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, set.Close()) }()
			s := newStream(r, count+object, next[0])
			for made := uint64(1); r.More(int(made)); made++ {
				if s.rand.IntN(2) == 0 {
					if err := set.Append(context.Background(), r.Path(name), s.record()); err != nil {
						return err
					}
					s.accepted(r.Policy)
					continue
				}
				n := uint64(r.Number+1)<<32 | made
				r.Note(crash.Begun, object, n)
				data := crash.Record{ID: object, N: n, At: time.Now().UnixNano(), Size: 600 + s.rand.IntN(6000)}.Append(nil)
				if _, err := set.WriteFile(context.Background(), r.Path(fmt.Sprint("o", object)), data, files.Replace); err != nil {
					return err
				}
				r.Note(crash.Accepted, object, n)
			}
			return nil
		}}
}
