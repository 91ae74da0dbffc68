//go:build go1.25

package catalogue

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/crash"
)

// openedFiles is WriteAll of files that the program has opened itself, to their ends. Each is synced by itself.
func openedFiles() *crash.Workload {
	const paths = 4
	path := func(id uint32) string { return fmt.Sprint("u", id) }
	return &crash.Workload{Name: "whole-opened", About: "files.WriteAll of 4 files that the program has opened", Files: true, Whole: true, Loss: onlyAcknowledged,
		Targets: func(holdfast.Policy) (all []crash.Target) {
			for id := range uint32(paths) {
				all = append(all, crash.Target{ID: id, Path: path(id)})
			}
			return all
		},
		Run: func(r *crash.Run) (err error) {
			set, err := newSet(r, files.Options{Policy: r.Policy, Workers: 2})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, set.Close()) }()
			streams, opened := make([]*stream, paths), make([]*os.File, paths)
			for id := range uint32(paths) {
				f, next, err := r.Open(path(id), id)
				if err != nil {
					return err
				}
				if err := f.Close(); err != nil {
					return err
				}
				if opened[id], err = os.OpenFile(r.Path(path(id)), os.O_WRONLY|os.O_APPEND, 0); err != nil {
					return err
				}
				defer opened[id].Close() // what was written has been synced, or is not acknowledged
				streams[id] = newStream(r, id, next[0])
			}
			for made := 0; r.More(made); made += paths {
				results, err := set.WriteAll(context.Background(), func(yield func(files.Write) bool) {
					for id, s := range streams {
						if !yield(files.Write{File: opened[id], Data: s.record()}) {
							return
						}
					}
				})
				for id, result := range results.All() {
					if s := streams[id]; result.Err == nil {
						s.next++
						r.Note(crash.Accepted, s.id, s.next)
						if result.Durable() {
							r.Note(crash.Durable, s.id, s.next)
						}
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
		}}
}
