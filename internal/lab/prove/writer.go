package prove

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

const log0 = "log"

// Workload writer is several goroutines that write to one Writer. Now and then one of them calls
// Flush or Sync.
func (all *catalogue) writer() {
	const writers = 3
	*all = append(*all, &Workload{Name: "writer", About: "three goroutines, one Writer: Write, Flush, Sync",
		Cleans: true, Targets: streamTargets(log0, writers),
		Run: func(r *Run) error {
			return r.onWriter(writers, func(w *holdfast.Writer, s *stream) error {
				if _, err := w.Write(s.record()); err != nil {
					return err
				}
				s.accepted(r.Policy)
				return s.asks(w)
			})
		}})
}

// Workload enqueue gives records without waiting, and waits for some, or looks at Durable.
func (all *catalogue) enqueue() {
	const writers = 2
	*all = append(*all, &Workload{Name: "enqueue", About: "Enqueue, then WaitDurable or a look at Durable",
		Cleans: true, Targets: streamTargets(log0, writers),
		Run: func(r *Run) error {
			waiting := make([][]int64, writers) // ends of the records that are not durable yet
			return r.onWriter(writers, func(w *holdfast.Writer, s *stream) error {
				first := s.next - uint64(len(waiting[s.id]))
				end, err := w.Enqueue(s.record())
				if err != nil {
					return err
				}
				s.next++
				s.made++
				waiting[s.id] = append(waiting[s.id], end)
				durable := w.Durable()
				if s.rand.IntN(8) == 0 {
					if err := w.WaitDurable(context.Background(), end); err != nil {
						return err
					}
					durable = end
				}
				done := below(waiting[s.id], durable)
				waiting[s.id] = waiting[s.id][done:]
				if done > 0 {
					r.Note(Durable, s.id, first+uint64(done))
				}
				if r.Pause != nil {
					r.Pause(s.rand)
				}
				return nil
			})
		}})
}

// Workload create makes new files, each with one record.
func (all *catalogue) create() {
	const paths = 40
	*all = append(*all, &Workload{Name: "create", About: "holdfast.Create of 40 files", Files: true, Slow: 2 * time.Millisecond,
		Targets: func(p holdfast.Policy) (all []Target) {
			for id := range uint32(paths) {
				all = append(all, Target{ID: id, Path: fmt.Sprint("n", id), Object: true, Synced: p.Sync.Mode != holdfast.SyncNever})
			}
			return all
		},
		Loss: func(holdfast.Policy) holdfast.Loss {
			none := holdfast.Bound{Bytes: holdfast.Unlimited, Time: holdfast.Unlimited}
			return holdfast.Loss{Process: none, Power: none} // but for what is acknowledged
		},
		Run: func(r *Run) error {
			for id := range uint32(paths) {
				data, err := r.ReadFile(fmt.Sprint("n", id))
				if err != nil {
					return err
				}
				if data != nil {
					continue
				}
				if !r.more(0) {
					return nil
				}
				w, err := holdfast.Create(r.Path(fmt.Sprint("n", id)), r.Policy)
				if err != nil {
					return err
				}
				n := uint64(r.Number+1) << 32
				r.Note(Begun, id, n)
				_, err = w.Write(Record{ID: id, N: n, At: time.Now().UnixNano(), Size: 600}.Append(nil))
				if err == nil && r.Policy.Sync.Mode != holdfast.SyncNever {
					if err = w.Sync(); err == nil {
						r.Note(Durable, id, n)
					}
				}
				if err := errors.Join(err, w.Close()); err != nil {
					return err
				}
				r.Note(Flushed, id, n)
				if r.Pause != nil {
					r.Pause(nil)
				}
			}
			return nil
		}})
}

// onWriter runs a step again and again in each of some goroutines, on one Writer.
func (r *Run) onWriter(writers int, step func(*holdfast.Writer, *stream) error) (err error) {
	var ids []uint32
	for id := range writers {
		ids = append(ids, uint32(id))
	}
	f, next, err := r.open(log0, ids...)
	if err != nil {
		return err
	}
	w, err := holdfast.New(f, r.Policy)
	if err != nil {
		return err
	}
	streams, errs := make([]*stream, writers), make([]error, writers)
	var group sync.WaitGroup
	for id := range writers {
		s := r.stream(uint32(id), next[id])
		streams[id] = s
		group.Go(func() {
			for errs[id] == nil && r.more(s.made) {
				errs[id] = step(w, s)
			}
		})
	}
	group.Wait()
	for _, e := range errs {
		if e != nil && err == nil {
			err = e
		}
	}
	closed := w.Close()
	if err == nil && closed == nil {
		kind := Durable
		if r.Policy.Sync.Mode == holdfast.SyncNever {
			kind = Flushed
		}
		for _, s := range streams {
			r.Note(kind, s.id, s.next)
		}
	}
	if err != nil {
		return err
	}
	return closed
}

// asks calls Flush or Sync now and then, which acknowledge what was written before.
func (s *stream) asks(w *holdfast.Writer) error {
	switch s.rand.IntN(256) {
	case 0:
		if err := w.Flush(); err != nil {
			return err
		}
		s.run.Note(Flushed, s.id, s.next)
	case 1:
		if err := w.Sync(); err != nil {
			return err
		}
		s.run.Note(Durable, s.id, s.next)
	}
	return nil
}
