//go:build go1.25

package catalogue

import (
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/policies"
)

// A stream makes the records of one writer, and notes what becomes of them.
type stream struct {
	run  *crash.Run
	id   uint32
	next uint64
	made int
	rand *rand.Rand
	buf  []byte
	ends []int64 // of a Writer: an offset behind each record that this run made
}

func newStream(r *crash.Run, id uint32, next uint64) *stream {
	return &stream{run: r, id: id, next: next, rand: r.Random(id)}
}

// record makes the next record, which is good until the one after it.
func (s *stream) record() []byte { return s.recordOf(crash.HeaderSize + s.rand.IntN(200)) }

func (s *stream) recordOf(size int) []byte {
	s.run.Note(crash.Begun, s.id, s.next+1)
	s.buf = crash.Record{ID: s.id, N: s.next, At: time.Now().UnixNano(), Size: size}.Append(s.buf[:0])
	return s.buf
}

// shaped makes the next record in a size that a Writer treats as a shape says.
func (s *stream) shaped(shape policies.Shape) []byte {
	size := crash.HeaderSize + s.rand.IntN(200)
	switch most := int(min(s.run.Policy.Buffer, 64*holdfast.KiB-1)); {
	case shape == policies.Large, shape == policies.Mixed && s.rand.IntN(3) == 0:
		size += most
	case most > 0:
		size = min(size, most)
	}
	return s.recordOf(size)
}

// accepted notes that the record was accepted, as durable as a policy makes it then.
func (s *stream) accepted(p holdfast.Policy) {
	s.next++
	s.made++
	s.run.Tell(crash.Note{Kind: crash.Accepted, ID: s.id, N: s.next, Bytes: int64(len(s.buf))})
	if p.Sync.Waits() {
		s.run.Note(crash.Durable, s.id, s.next)
	}
	switch {
	case s.run.Pause != nil:
		s.run.Pause(s.rand)
	case s.run.Disk() != nil && s.rand.IntN(8) == 0: // between bursts what is done in the background comes to its end
		time.Sleep(200 * time.Microsecond)
	}
}

// streamTargets are the targets of some writers to one file.
func streamTargets(path string, writers int) func(holdfast.Policy) []crash.Target {
	return func(holdfast.Policy) (all []crash.Target) {
		for id := range writers {
			all = append(all, crash.Target{ID: uint32(id), Path: path})
		}
		return all
	}
}

func noteAll(r *crash.Run, kind crash.NoteKind, streams []*stream) {
	for _, s := range streams {
		r.Note(kind, s.id, s.next)
	}
}
