//go:build go1.25

package catalogue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/crash"
)

const batchPaths, batchDirs = 24, 3

func batchPath(id uint32) string { return fmt.Sprintf("b%d/f%d", id%batchDirs, id) }

// replacing is a workload of one goroutine that gives some files of three directories new versions. step does that for some of them, and
// nil acknowledges all of these.
func replacing(name, about string, step func(r *crash.Run, set *files.Set, random *rand.Rand, ids []uint32, record func(id uint32) []byte) error) *crash.Workload {
	w := &crash.Workload{Name: name, About: about, Whole: true, Loss: onlyAcknowledged,
		Targets: func(p holdfast.Policy) (all []crash.Target) {
			for id := range uint32(batchPaths) {
				all = append(all, crash.Target{ID: id, Path: batchPath(id), Object: true, Whole: true, Synced: p.Sync.Mode != holdfast.SyncNever})
			}
			return all
		}}
	for dir := range batchDirs {
		w.Dirs = append(w.Dirs, fmt.Sprint("b", dir))
	}
	w.Run = func(r *crash.Run) (err error) {
		set, err := newSet(r, files.Options{Policy: r.Policy, Handles: 8, Workers: 2, MkdirAll: true})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, set.Close()) }()
		random := r.Random(0)
		for made := 0; r.More(4 * made); made++ {
			n := uint64(r.Number+1)<<32 | uint64(made+1)
			var ids []uint32
			for _, id := range random.Perm(batchPaths)[:1+random.IntN(8)] {
				ids = append(ids, uint32(id))
			}
			err := step(r, set, random, ids, func(id uint32) []byte {
				r.Note(crash.Begun, id, n)
				return crash.Record{ID: id, N: n, At: time.Now().UnixNano(), Size: 600 + random.IntN(6000)}.Append(nil)
			})
			if err != nil {
				return err
			}
			for _, id := range ids {
				r.Note(crash.Accepted, id, n)
				if r.Policy.Sync.Mode != holdfast.SyncNever {
					r.Note(crash.Durable, id, n)
				}
			}
			if r.Pause != nil {
				r.Pause(random)
			}
		}
		return nil
	}
	return w
}

// inPieces writes a file in two parts, the second one first, and commits it.
func inPieces(p *files.Pending, data []byte) error {
	half := int64(len(data) / 2)
	_, err := p.Seek(half, 0)
	if err == nil {
		_, err = p.Write(data[half:])
	}
	if err == nil {
		_, err = p.Seek(0, 0)
	}
	if err == nil {
		_, err = p.Write(data[:half])
	}
	if err != nil {
		return errors.Join(err, p.Discard())
	}
	return p.Commit(context.Background())
}

func exists(path string) error { _, err := os.Stat(path); return err }

// added writes a file, and adds it to a batch.
func added(b *files.Batch, path string, data []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = b.Add(f)
	}
	return errors.Join(err, f.Close())
}

func pendingFiles() *crash.Workload {
	return replacing("pending", "files.Pending, written in any order", func(r *crash.Run, set *files.Set, _ *rand.Rand, ids []uint32, record func(uint32) []byte) error {
		for _, id := range ids {
			p, err := set.Pending(r.Path(batchPath(id)))
			if err != nil {
				return err
			}
			if err := inPieces(p, record(id)); err != nil {
				return err
			}
		}
		return nil
	})
}

func batches() *crash.Workload {
	return replacing("batch", "files.Begin: Write, Create, Add and Rename of up to 8 files over 3 directories, then Commit", func(r *crash.Run, set *files.Set, random *rand.Rand, ids []uint32, record func(uint32) []byte) error {
		b := set.Begin()
		for _, id := range ids {
			path := r.Path(batchPath(id))
			var err error
			other := r.Path(batchPath(id+1)) + ".new" // by way of another directory
			how := random.IntN(4)
			if r.Disk() != nil || exists(filepath.Dir(path)) != nil || exists(filepath.Dir(other)) != nil {
				how = random.IntN(2) // the Set makes directories, and these two alone take a disk in memory
			}
			switch how {
			case 0:
				err = b.Write(path, record(id))
			case 1:
				var p *files.Pending
				if p, err = b.Create(path); err == nil {
					err = inPieces(p, record(id))
				}
			case 2: // a file that the program has written
				if err = added(b, other, record(id)); err == nil {
					err = b.Rename(other, path)
				}
			default:
				if err = b.Write(other, record(id)); err == nil {
					err = b.Rename(other, path)
				}
			}
			if err != nil {
				return errors.Join(err, b.Discard())
			}
		}
		_, err := b.Commit(context.Background())
		return err
	})
}
