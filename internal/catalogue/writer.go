//go:build go1.25

package catalogue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/policies"
)

const log0 = "log"

// writing is several goroutines that write to one Writer. Now and then one of them calls Flush or Sync.
func writing(name, about string, shape policies.Shape) *crash.Workload {
	const writers = 3
	under := shape // the policies that the generated cases have for it
	if shape == policies.Mixed {
		under = "" // all
	}
	return &crash.Workload{Name: name, About: about, Shape: under, Parts: bypasses(shape), Periods: periods,
		Cleans: true, Targets: streamTargets(log0, writers),
		Run: func(r *crash.Run) error {
			return onWriter(r, writers, func(w *holdfast.Writer, s *stream) error {
				if _, err := w.Write(s.shaped(shape)); err != nil {
					return err
				}
				s.accepted(r.Policy)
				return s.asks(w)
			})
		}}
}

// bypasses returns which policies let Writes of a shape bypass memory. Such a Write returns how much of a record the disk
// took, and others go on behind that part.
func bypasses(shape policies.Shape) func(holdfast.Policy) bool {
	return func(p holdfast.Policy) bool {
		return p.Buffer == 0 || p.Sync.Mode == holdfast.SyncEach || shape == policies.Large || shape == policies.Mixed
	}
}

// enqueue gives records without waiting, and waits for some, or looks at Durable.
func enqueue() *crash.Workload {
	const writers = 2
	return &crash.Workload{Name: "enqueue", About: "Enqueue, then WaitDurable or a look at Durable", Shape: policies.Enqueue, Parts: bypasses(policies.Enqueue),
		Cleans: true, Targets: streamTargets(log0, writers),
		Run: func(r *crash.Run) error {
			waiting := make([][]int64, writers) // ends of the records that are not durable yet
			return onWriter(r, writers, func(w *holdfast.Writer, s *stream) error {
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
					r.Note(crash.Durable, s.id, first+uint64(done))
				}
				if r.Pause != nil {
					r.Pause(s.rand)
				}
				return nil
			})
		}}
}

// create makes new files, each with one record.
func create() *crash.Workload {
	const paths = 40
	return &crash.Workload{Name: "create", About: "holdfast.Create of 40 files", Files: true, Slow: 2 * time.Millisecond,
		Targets: func(p holdfast.Policy) (all []crash.Target) {
			for id := range uint32(paths) {
				all = append(all, crash.Target{ID: id, Path: fmt.Sprint("n", id), Object: true, Synced: p.Sync.Mode != holdfast.SyncNever})
			}
			return all
		},
		Loss: flushedOrAcknowledged,
		Run: func(r *crash.Run) error {
			for id := range uint32(paths) {
				data, err := r.ReadFile(fmt.Sprint("n", id))
				if err != nil {
					return err
				}
				if data != nil {
					continue
				}
				if !r.More(0) {
					return nil
				}
				w, err := holdfast.Create(r.Path(fmt.Sprint("n", id)), r.Policy)
				if err != nil {
					return err
				}
				n := uint64(r.Number+1) << 32
				r.Note(crash.Begun, id, n)
				_, err = w.Write(crash.Record{ID: id, N: n, At: time.Now().UnixNano(), Size: 600}.Append(nil))
				synced := r.Policy.Sync.Mode != holdfast.SyncNever
				if err == nil && synced && id%2 == 0 {
					if err = w.Sync(); err == nil {
						r.Note(crash.Durable, id, n)
					}
				}
				if err := errors.Join(err, w.Close()); err != nil {
					return err
				}
				if synced { // Close alone acknowledges every second file
					r.Note(crash.Durable, id, n)
				}
				r.Note(crash.Flushed, id, n)
				if r.Pause != nil {
					r.Pause(nil)
				}
			}
			return nil
		}}
}

// below returns how many ends are not above an offset.
func below(ends []int64, at int64) int {
	n, _ := slices.BinarySearch(ends, at+1)
	return n
}

// onWriter runs a step again and again in each of some goroutines, on one Writer.
func onWriter(r *crash.Run, writers int, step func(*holdfast.Writer, *stream) error) (err error) {
	var ids []uint32
	for id := range writers {
		ids = append(ids, uint32(id))
	}
	f, next, err := r.Open(log0, ids...)
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
		s := newStream(r, uint32(id), next[id])
		streams[id] = s
		group.Go(func() {
			for errs[id] == nil && r.More(s.made) {
				if errs[id] = step(w, s); s.made > len(s.ends) {
					s.ends = append(s.ends, w.Written())
				}
			}
		})
	}
	group.Wait()
	for _, e := range errs {
		if e != nil && err == nil {
			err = e
		}
	}
	awaitDue(r, w, streams)
	closed := w.Close()
	if err == nil && closed == nil {
		kind := crash.Durable
		if r.Policy.Sync.Mode == holdfast.SyncNever {
			kind = crash.Flushed
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
func awaitDue(r *crash.Run, w *holdfast.Writer, streams []*stream) {
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
				if !r.Policy.Sync.Waits() { // else accepted records are durable, and enqueued ones are not accepted
					r.Note(crash.Flushed, s.id, first+uint64(below(s.ends, flushed)))
				}
				r.Note(crash.Durable, s.id, first+uint64(below(s.ends, durable)))
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
		s.run.Note(crash.Flushed, s.id, s.next)
	case 1:
		if err := w.Sync(); err != nil {
			return err
		}
		s.run.Note(crash.Durable, s.id, s.next)
	}
	return nil
}
