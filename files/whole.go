package files

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/retry"
)

// WriteFile writes one file as a whole, as the mode says, in the caller's goroutine. It
// returns the result, and the result's Err again, or in its place a *fs.PathError: see [Error].
//
// If Err is nil all of data is in the file of that name. It is durable, with its name,
// if the policy's Sync is not never. Else the Outcome says what is known. A file
// that Create could not write whole is removed again, and untouched if that
// succeeds; one that others have added to stays, and is partial. Truncate and Append may leave it partial. Replace leaves
// the old file whole, unless its directory's sync fails: then it is uncertain which of
// the two a crash leaves.
//
// Only regular files are written; a pipe or a device is refused, and never waited
// for. Any number of goroutines may call WriteFile. Calls with the same path are done in
// their order. WriteFile waits for these, for a descriptor, for the pauses of
// [Options].Retry, and for the disk. If ctx ends it returns after the system
// call under way.
func (f *Set) WriteFile(ctx context.Context, path string, data []byte, mode Mode) (Result, error) {
	s := fileWriters.Get().(*fileWriter)
	defer giveFileWriter(s)
	w := &s.own
	w.result = &s.ownResult
	if err := f.enter(); err != nil {
		w.result.path = path
		w.result.fail(retry.OpOpen, err, holdfast.OutcomeUntouched)
		return w.result.returned()
	}
	defer f.leave()
	if w.prepare(Write{Path: path, Data: data, Mode: mode}, new(strings.Builder), 0) {
		s.files, s.ctx, s.era = f, ctx, f.era.Add(1)
		s.writeAlone(w)
	}
	return w.result.returned()
}

// writeAlone writes a file that belongs to no batch, or to one that has no other.
func (s *fileWriter) writeAlone(w *job) {
	s.files.turns.Join(keyed.Key{Path: w.name.path}, &w.ticket)
	s.write(w)
}

// prepare fills in the bytes to write, or the result if it can't.
func (w *job) prepare(given Write, block *strings.Builder, size int) bool {
	w.data, w.mode, w.file = given.Data, given.Mode, given.File
	w.result.path = given.Path
	err := given.Mode.Validate()
	switch {
	case err != nil:
	case given.File != nil:
		w.result.path = given.File.Name()
		w.name.path = w.result.path
		if w.mode, err = Append, nil; given.Mode == Truncate || given.Mode == Replace {
			err = fmt.Errorf("mode %v is of a path, and %s is an open file; seek in it or truncate it before", given.Mode, w.result.path)
		}
	case given.Mode == Replace: // the rename may need the name when another file has the slot
		w.name, err = newNameIn(block, given.Path, size)
	default:
		w.name, w.memory, err = newNameOver(w.memory, given.Path)
	}
	if err != nil {
		w.result.fail(retry.OpOpen, err, holdfast.OutcomeUntouched)
	}
	return err == nil
}

// giveFileWriter leaves a fileWriter's memory to the next.
func giveFileWriter(s *fileWriter) {
	*s = fileWriter{own: job{memory: s.own.memory}}
	fileWriters.Put(s)
}

// write writes the file, fills in its result and leaves its queue. It leaves a rename to the batch.
func (s *fileWriter) write(w *job) {
	began := time.Now()
	s.files.whole.files.Add(1)
	s.job = w
	s.tries = s.files.tries(w.result.path)
	s.try()
	w.result.elapsed = time.Since(began)
	if w.later == nil {
		s.files.turns.Leave(&w.ticket)
	}
	s.job = nil
}

// try writes the file when those before it in its queue have left. A replacement is
// written beside them, and renamed in its turn.
func (s *fileWriter) try() {
	if s.later == nil {
		if err := s.files.turns.Await(s.ctx, &s.ticket); err != nil {
			s.refuse(retry.OpOpen, err)
			return
		}
	}
	if s.ctx.Err() != nil {
		s.refuse(retry.OpOpen, context.Cause(s.ctx))
		return
	}
	if s.file != nil {
		s.writeOwn()
		return
	}
	if err := s.files.flusher.settle(s.ctx, s.name.path); err != nil {
		s.refuse(retry.OpWrite, err)
		return
	}
	s.narrow, s.starved = false, false
	s.once()
	if s.starved {
		if s.part != nil && s.part.release != nil {
			s.part.release()
		}
		s.onceInNarrow()
	}
}

// writeOwn writes to a file that the caller has opened, and syncs it if the policy does.
func (s *fileWriter) writeOwn() {
	r, op := s.result, retry.OpWrite
	var err error
	for r.bytes < int64(len(s.data)) {
		var n int
		n, err = s.file.Write(s.data[r.bytes:])
		r.bytes += int64(n)
		if n > 0 {
			s.tries.Progress()
		}
		if err != nil && !s.tries.Again(s.ctx, op, &err) {
			break
		}
	}
	r.attempts, r.outcome = int32(s.tries.Attempts()), holdfast.OutcomeWritten
	switch {
	case err != nil && r.bytes == 0:
		r.fail(op, err, holdfast.OutcomeUntouched)
	case err != nil:
		r.fail(op, err, holdfast.OutcomePartial)
	case s.files.options.Policy.Sync.Mode != holdfast.SyncNever:
		if s.part != nil {
			s.part.waits.Store(true)
		}
		s.files.whole.syncs.Add(1)
		r.outcome = holdfast.OutcomeDurable
		end := s.files.watchSync(r.path)
		err := s.file.Sync()
		end()
		if err != nil {
			r.fail(retry.OpSync, err, holdfast.OutcomeUncertain)
		}
	}
}

// once writes the file, in a turn.
func (s *fileWriter) once() {
	if err := s.files.handles.Begin(s.ctx); err != nil {
		s.refuse(retry.OpOpen, err)
		return
	}
	defer s.files.handles.End()
	s.result.attempts = 1
	s.inDir()
	s.result.attempts = int32(s.tries.Attempts())
	if e := s.result.err; e != nil {
		e.Attempts = s.tries.Attempts()
	}
}

// onceInNarrow writes a file for which the process, or the system, had no descriptor
// left below our own limit. Such fileWriters have given back their descriptors. They go on
// one after the other, so that two do not block each other, each waiting for a second one.
func (s *fileWriter) onceInNarrow() {
	select {
	case s.files.narrow <- struct{}{}:
	case <-s.ctx.Done():
		s.result.attempts = 0
		s.refuse(retry.OpOpen, context.Cause(s.ctx))
		return
	}
	defer func() { <-s.files.narrow }()
	s.narrow = true
	*s.result = record{path: s.result.path}
	s.once()
}

// inDir writes the file with its directory open.
func (s *fileWriter) inDir() {
	defer s.leaveDir()
	if op, err := s.enterDir(s.name.dir); err != nil {
		s.refuse(op, err)
		return
	}
	s.setSyncMode()
	s.losses = s.files.names.Losses(s.dir.Key())
	if s.mode == Replace {
		s.replace()
	} else {
		s.writeInPlace()
	}
}

// fileWriters is memory that calls have left for those to come. It holds nothing of
// theirs, neither names nor data: it is cleared before it is put there.
var fileWriters = sync.Pool{New: func() any { return new(fileWriter) }}
