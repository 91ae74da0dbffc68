//go:build go1.25

package catalogue

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/crash"
)

// whole is WriteAll in one of its modes, a batch of files after the other. It makes a directory for each batch
// too, if dirs says so.
func whole(name string, mode files.Mode, dirs bool) *crash.Workload {
	const batch = 4
	path := func(id uint32) string { return fmt.Sprintf("w%d", id) }
	if dirs {
		path = func(id uint32) string { return fmt.Sprintf("m%d/w%d", id/batch, id) }
	}
	paths, slow := batch, time.Duration(0)
	if mode == files.Create {
		paths, slow = 10*batch, 2*time.Millisecond // each is made once
	}
	var mounted []string
	if mode == files.Truncate || mode == files.Append { // the others give names
		mounted = []string{path(1)}
	}
	return &crash.Workload{
		Name: name, About: fmt.Sprintf("files.WriteAll of %d files, mode %v", batch, mode), Mounted: mounted, Whole: true,
		Slow: slow, Cleans: true,
		Targets: func(p holdfast.Policy) (targets []crash.Target) {
			for id := range paths {
				targets = append(targets, crash.Target{ID: uint32(id), Path: path(uint32(id)), Object: mode != files.Append,
					Whole: mode == files.Replace, Synced: p.Sync.Mode != holdfast.SyncNever})
			}
			return targets
		},
		Loss: onlyAcknowledged,
		Run: func(r *crash.Run) error {
			return writeWhole(r, mode, paths, func() (count, step int) { return batch, 1 }, path)
		},
	}
}

// many is WriteAll of batches of any size over many directories. A run may leave the temporaries of a crash: it removes the ones in
// the directories that it writes in.
func many() *crash.Workload { return manyOf("whole-many", 96, 8) }

// thousands is the same with more than are synced one by one.
func thousands() *crash.Workload {
	w := manyOf("whole-thousands", 5000, 50)
	w.InMemory, w.Policies = true, []holdfast.Policy{holdfast.Durable()}
	return w
}

func manyOf(name string, most, dirs int) *crash.Workload {
	perDir := most / dirs
	path := func(id uint32) string { return fmt.Sprintf("m%d/w%d", int(id)/perDir, id) }
	w := &crash.Workload{Name: name, About: fmt.Sprintf("files.WriteAll of 1 to %d files over 1 to %d directories, mode replace", most, dirs), Whole: true,
		Loss: onlyAcknowledged,
		Targets: func(p holdfast.Policy) (targets []crash.Target) {
			for id := range uint32(most) {
				targets = append(targets, crash.Target{ID: id, Path: path(id), Object: true, Whole: true, Synced: p.Sync.Mode != holdfast.SyncNever})
			}
			return targets
		},
		Run: func(r *crash.Run) error {
			random := r.Random(1 << 20)
			return writeWhole(r, files.Replace, most, func() (count, step int) {
				if count = int(math.Pow(float64(most), random.Float64())); count <= dirs && random.IntN(2) == 0 {
					return count, perDir // each in a directory of its own
				}
				return count, 1
			}, path)
		}}
	for dir := range dirs {
		w.Dirs = append(w.Dirs, fmt.Sprint("m", dir))
	}
	return w
}

func writeWhole(r *crash.Run, mode files.Mode, paths int, batch func() (count, step int), path func(id uint32) string) (err error) {
	set, err := newSet(r, files.Options{Policy: r.Policy, Handles: 8, Workers: 2, MkdirAll: mode == files.Create || paths > 40})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	if err := r.SyncDir(); err != nil { // of directories that a killed run has made
		return err
	}
	streams := make([]*stream, paths)
	var absent []uint32 // which Create makes
	for id := range paths {
		streams[id] = newStream(r, uint32(id), 0)
		data, err := r.ReadFile(path(uint32(id)))
		if err != nil {
			return err
		}
		switch {
		case mode == files.Append:
			end, count, _ := crash.Records(data)
			streams[id].next = count(uint32(id))
			if end == int64(len(data)) {
				continue
			}
			f, err := r.System.Append(path(uint32(id)), end)
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
	each := max(30, paths/50) // records that a batch stands for
	for made := 0; r.More(each * made); made++ {
		var ids []uint32
		count, step := batch()
		first := streams[0].rand.IntN(paths - step*(count-1))
		for id := range count {
			ids = append(ids, uint32(first+step*id))
		}
		if mode == files.Create {
			ids = absent[:min(count, len(absent))]
			absent = absent[len(ids):]
		}
		if len(ids) == 0 {
			return nil
		}
		results, err := set.WriteAll(context.Background(), func(yield func(files.Write) bool) {
			for _, id := range ids {
				s := streams[id]
				n, size := s.next+1, 600+s.rand.IntN(3000)
				record := crash.Record{ID: id, N: s.next, At: time.Now().UnixNano(), Size: size}
				if mode != files.Append {
					n = uint64(r.Number+1)<<32 | uint64(made+1)
					record.N = n
				}
				r.Note(crash.Begun, id, n)
				s.next = n
				if !yield(files.Write{Path: r.Path(path(id)), Data: record.Append(nil), Mode: mode}) {
					return
				}
			}
		})
		for i, result := range results.All() { // where one file failed, the others keep their word
			if result.Err == nil {
				r.Note(crash.Accepted, ids[i], streams[ids[i]].next)
			}
			if result.Durable() {
				r.Note(crash.Durable, ids[i], streams[ids[i]].next)
			}
		}
		if err != nil {
			return err
		}
		if r.Pause != nil {
			r.Pause(streams[0].rand)
		}
	}
	return nil
}
