package prove

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/policies"
)

const log0 = "log"

// Workloads writer, writer-large and writer-mixed are several goroutines that write to one Writer. Now and then one
// of them calls Flush or Sync.
func (all *catalogue) writer() {
	const writers = 3
	writing := func(name, about string, shape policies.Shape) {
		*all = append(*all, &Workload{Name: name, About: about, Shape: shape,
			Cleans: true, Targets: streamTargets(log0, writers),
			Run: func(r *Run) error {
				return r.onWriter(writers, func(w *holdfast.Writer, s *stream) error {
					if _, err := w.Write(s.shaped(shape)); err != nil {
						return err
					}
					s.accepted(r.Policy)
					return s.asks(w)
				})
			}})
	}
	writing("writer", "three goroutines, one Writer: Write, Flush, Sync", policies.Small)
	writing("writer-large", "the same with Writes that bypass memory", policies.Large)
	writing("writer-mixed", "the same with Writes that do and Writes that don't", policies.Mixed)
}

// Workload enqueue gives records without waiting, and waits for some, or looks at Durable.
func (all *catalogue) enqueue() {
	const writers = 2
	*all = append(*all, &Workload{Name: "enqueue", About: "Enqueue, then WaitDurable or a look at Durable", Shape: policies.Enqueue,
		Cleans: true, Targets: streamTargets(log0, writers),
		Run: func(r *Run) error {
			waiting := make([][]int64, writers) // ends of the records that are not durable yet
			return r.onWriter(writers, func(w *holdfast.Writer, s *stream) error {
				first := s.next - uint64(len(waiting[s.id]))
				end, err := w.Enqueue(s.shaped(policies.Enqueue))
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
		group.Add(1)
		go func() {
			defer group.Done()
			for errs[id] == nil && r.more(s.made) {
				if errs[id] = step(w, s); s.made > len(s.ends) {
					s.ends = append(s.ends, w.Written())
				}
			}
		}()
	}
	group.Wait()
	for _, e := range errs {
		if e != nil && err == nil {
			err = e
		}
	}
	r.awaitDue(w, streams)
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

// awaitDue makes no call that helps the Writer. It waits until its policy's times and bytes have moved what they must, and
// notes that as acknowledged. Where the Writer does nothing for long it notes it all the same: what did not move is lost.
// Policies of a longer period are for tests in fake time.
func (r *Run) awaitDue(w *holdfast.Writer, streams []*stream) {
	const longest, patience, failures = 100 * time.Millisecond, 5000, 20
	due := r.Policy.Due()
	if max(due.Flush, due.Sync) > longest {
		return
	}
	var final *holdfast.SyncError
	for idle, tries, before := 0, 0, int64(0); ; idle++ {
		flushed, durable := w.Flushed(), w.Durable()
		if due.Flush > 0 {
			flushed = w.Written()
		}
		if due.Sync > 0 {
			durable = flushed
		} else if due.SyncBytes > 0 {
			durable = max(durable, flushed-int64(due.SyncBytes)+1)
		}
		if w.Flushed() >= flushed && w.Durable() >= durable || idle == patience {
			for _, s := range streams {
				first := s.next - uint64(len(s.ends))
				if !r.Policy.Sync.Waits() { // else what was accepted is durable, and what was enqueued is not accepted
					r.Note(Flushed, s.id, first+uint64(below(s.ends, flushed)))
				}
				r.Note(Durable, s.id, first+uint64(below(s.ends, durable)))
			}
			return
		}
		if s := w.Stats(); s.Flushes+s.Syncs != before {
			if before, idle, tries = s.Flushes+s.Syncs, 0, tries+1; tries == failures && w.Err() != nil { // the disk goes on failing
				return
			}
		}
		if errors.As(w.Err(), &final) {
			return
		}
		time.Sleep(time.Millisecond)
	}
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
