package prove

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
)

// WriteAll in each of its modes, in two goroutines, a batch of files after the other. One workload makes a directory for
// each batch too.
func init() {
	const batch, writers = 4, 2
	for _, name := range []string{"create", "create-dirs", "truncate", "append", "replace"} {
		var mode files.Mode
		if err := mode.UnmarshalText([]byte(strings.TrimSuffix(name, "-dirs"))); err != nil {
			panic(err) // they are of this list
		}
		path := func(id uint32) string { return fmt.Sprintf("w%d", id) }
		dirs := strings.HasSuffix(name, "-dirs")
		if dirs {
			path = func(id uint32) string { return fmt.Sprintf("m%d/w%d", id/batch, id) }
		}
		paths, slow := writers*batch, time.Duration(0)
		if mode == files.Create {
			paths, slow = 10*batch, 2*time.Millisecond // each is made once
		}
		var mounted []string
		if mode == files.Truncate || mode == files.Append { // the others give names
			mounted = []string{path(1)}
		}
		workloads = append(workloads, &Workload{
			Name: "whole-" + name, About: fmt.Sprintf("files.WriteAll of %d files, mode %v, in %d goroutines", batch, mode, writers), Mounted: mounted,
			Slow: slow, Cleans: true, Files: dirs, // the disk in memory has one directory
			Targets: func(p holdfast.Policy) (targets []Target) {
				for id := range paths {
					targets = append(targets, Target{ID: uint32(id), Path: path(uint32(id)), Object: mode != files.Append,
						Whole: mode == files.Replace, Synced: p.Sync.Mode != holdfast.SyncNever})
				}
				return targets
			},
			// WriteAll leaves nothing in memory when it returns. What a power cut may take is said by
			// what it acknowledges as durable.
			Loss: func(holdfast.Policy) holdfast.Loss {
				return holdfast.Loss{Power: holdfast.Bound{Bytes: holdfast.Unlimited, Time: holdfast.Unlimited}}
			},
			Run: func(r *Run) error {
				set, err := r.Set(files.Options{Policy: r.Policy, Handles: 16, Workers: 2, MkdirAll: mode == files.Create})
				if err != nil {
					return err
				}
				errs := make([]error, writers)
				var group sync.WaitGroup
				for n := range writers {
					group.Go(func() { errs[n] = writeWhole(r, set, mode, n*paths/writers, (n+1)*paths/writers, batch, path) })
				}
				group.Wait()
				return errors.Join(errors.Join(errs...), set.Close())
			},
		})
	}
}

// writeWhole writes the files of a range, so many at a time.
func writeWhole(r *Run, set *files.Set, mode files.Mode, first, end, batch int, path func(id uint32) string) error {
	streams := make([]*stream, end)
	var absent []uint32 // which Create makes
	for id := first; id < end; id++ {
		streams[id] = r.stream(uint32(id), 0)
		data, err := r.ReadFile(path(uint32(id)))
		if err != nil {
			return err
		}
		switch {
		case mode == files.Append:
			p := newParse()
			p.extend(data)
			streams[id].next = uint64(len(p.ends[uint32(id)]))
			if p.end == int64(len(data)) {
				continue
			}
			f, err := r.System.Append(path(uint32(id)), p.end)
			if err != nil {
				return err
			}
			if err := f.Close(); err != nil {
				return err
			}
		case data == nil:
			absent = append(absent, uint32(id))
		}
	}
	for made := 0; r.more(30 * made); made++ {
		var ids []uint32
		for id := range batch {
			ids = append(ids, uint32(first+id))
		}
		if mode == files.Create {
			ids = absent[:min(batch, len(absent))]
			absent = absent[len(ids):]
		}
		if len(ids) == 0 {
			return nil
		}
		results, err := set.WriteAll(context.Background(), func(yield func(files.Write) bool) {
			for _, id := range ids {
				s := streams[id]
				n, size := s.next+1, 600+s.rand.IntN(3000)
				record := Record{ID: id, N: s.next, At: time.Now().UnixNano(), Size: size}
				if mode != files.Append {
					n = uint64(r.Number+1)<<32 | uint64(made+1)
					record.N = n
				}
				r.Note(Begun, id, n)
				s.next = n
				if !yield(files.Write{Path: r.Path(path(id)), Data: record.Append(nil), Mode: mode}) {
					return
				}
			}
		})
		for i, result := range results.All() { // where one file failed, the others keep their word
			if result.Err == nil {
				r.Note(Accepted, ids[i], streams[ids[i]].next)
			}
			if result.Durable() {
				r.Note(Durable, ids[i], streams[ids[i]].next)
			}
		}
		if err != nil {
			return err
		}
		if r.Pause != nil {
			r.Pause(streams[first].rand)
		}
	}
	return nil
}
