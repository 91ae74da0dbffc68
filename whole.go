package holdfast

import (
	"context"
	"errors"
	"io/fs"
	"sync/atomic"
	"time"
)

// A whole is a file that is to be written as a whole, and its place in the queue of
// its path.
type whole struct {
	name   Name
	data   []byte
	mode   Mode
	ticket ticket
	later  *replacement // what it leaves for its batch to do, if it leaves a rename
	result *record
	next   *whole // in its batch
}

// turn returns the file's place in the queue of its path.
func (w *whole) turn() *ticket {
	if w.later != nil {
		return &w.later.ticket
	}
	return &w.ticket
}

// wholeCounts counts what Write and WriteAll have done.
type wholeCounts struct{ files, syncs atomic.Int64 }

// Write writes one file as a whole, as the mode says, in the caller's goroutine. It
// returns the result, and the result's Err again.
//
// If Err is nil all of data is in the file of that name, and durable, with its name,
// if the policy's Sync is not never. Else the Outcome says what is known. A file
// that ModeCreate could not write whole is removed again, and untouched if that
// succeeds; one that others have added to stays, and is partial. ModeTruncate and ModeAppend may leave it partial. ModeReplace leaves
// the old file whole, unless its folder's sync fails: then it is uncertain which of
// the two a crash leaves.
//
// Only regular files are written; a pipe or a device is refused, and never waited
// for. Any number of goroutines may call Write. Calls with the same path are done in
// their order. Write waits for these, for a descriptor, for the pauses of
// [FilesOptions].Retry, and for the disk. If ctx ends it returns after the system
// call under way.
func (f *Files) Write(ctx context.Context, path string, data []byte, mode Mode) (FileResult, error) {
	s := f.spareScribes.take()
	defer f.giveScribe(s)
	w := &s.own
	w.result = &s.ownResult
	if err := f.enter(); err != nil {
		w.result.path = path
		w.result.fail(opOpen, err, OutcomeUntouched)
		return w.result.told()
	}
	defer f.leave()
	if w.prepare(FileWrite{Path: path, Data: data, Mode: mode}) {
		s.files, s.ctx, s.era = f, ctx, f.era.Add(1)
		s.writeAlone(w)
	}
	return w.result.told()
}

// writeAlone writes a file that belongs to no batch, or to one that has no other.
func (s *scribe) writeAlone(w *whole) {
	s.files.turns.queue(turnKey{path: w.name.path}, &w.ticket)
	s.write(w)
}

// prepare fills in what is to be written, or the result if that can't be.
func (w *whole) prepare(given FileWrite) bool {
	w.name, w.data, w.mode = given.Name, given.Data, given.Mode
	w.result.path = given.Name.path
	err := given.Mode.Validate()
	if w.name.base == "" {
		w.result.path = given.Path
		if err == nil {
			w.name, err = NewName(given.Path)
		}
	}
	if err != nil {
		w.result.fail(opOpen, err, OutcomeUntouched)
	}
	return err == nil
}

// A scribe writes whole files, one at a time, for Write or for a batch.
type scribe struct {
	files *Files
	ctx   context.Context
	era   int64
	batch *batch // nil for a Write

	own       whole // what a Write writes
	ownResult record

	// Of the file under way:
	*whole
	folder          *folder
	manner          manner
	losses          int // of the folder, before the file had its name there
	tries           tries
	narrow, starved bool   // see onceInNarrow
	ident           ticket // in the queue of the device and inode
	fresh           *freshGroup

	old bool // the last file was there before: so may be the next
}

// A manner is how a file is made durable.
type manner int8

const (
	unsynced manner = iota
	alone           // it is synced, and then its folder, before the next
	file            // it is synced, and its folder with those of the whole batch
	together        // it is synced with all that is on its disk, at the end of the batch
)

// giveScribe leaves a scribe's memory to the next.
func (f *Files) giveScribe(s *scribe) {
	*s = scribe{}
	f.spareScribes.give(s, mostSpareScribes)
}

// write writes the file, fills in its result and leaves its queue, unless it is left
// to the batch to rename it.
func (s *scribe) write(w *whole) {
	began := time.Now()
	s.files.whole.files.Add(1)
	s.whole = w
	s.tries = s.files.tries()
	s.try()
	w.result.elapsed = time.Since(began)
	if w.later == nil || w.later.temporary == "" {
		s.files.turns.leave(w.turn())
	}
	s.whole = nil
}

// try writes the file when those before it in its queue have left, but for a
// replacement, which is written beside them and renamed in its turn.
func (s *scribe) try() {
	if s.later == nil {
		if err := s.files.turns.await(s.ctx, s.turn()); err != nil {
			s.refuse(opOpen, err)
			return
		}
	}
	if s.ctx.Err() != nil {
		s.refuse(opOpen, context.Cause(s.ctx))
		return
	}
	if s.files.streams.any() {
		if err := s.files.streams.settle(s.ctx, s.name.path); err != nil {
			s.refuse(opWrite, err)
			return
		}
	}
	s.narrow, s.starved = false, false
	s.once()
	if s.starved {
		s.onceInNarrow()
	}
}

// once writes the file, in a turn.
func (s *scribe) once() {
	if err := s.files.handles.begin(s.ctx); err != nil {
		s.refuse(opOpen, err)
		return
	}
	defer s.files.handles.end()
	s.result.attempts = 1
	s.inFolder()
	s.result.attempts = int32(s.tries.attempts())
	if e := s.result.err; e != nil {
		e.Attempts = s.tries.attempts()
	}
}

// onceInNarrow writes a file for which the process, or the system, had no descriptor
// left below our own limit. Those to whom that happens have given back what they
// had, and go on one after the other, so that they do not keep each other from a
// second one.
func (s *scribe) onceInNarrow() {
	select {
	case s.files.narrow <- struct{}{}:
	case <-s.ctx.Done():
		s.result.attempts = 0
		s.refuse(opOpen, context.Cause(s.ctx))
		return
	}
	defer func() { <-s.files.narrow }()
	s.narrow = true
	*s.result = record{path: s.result.path}
	s.once()
}

// starves reports whether an error says that there is no descriptor left, and none
// of ours can be spared, for the first time.
func (s *scribe) starves(err error) bool {
	s.starved = !s.narrow && remedyFor(opOpen, err) == afterSpare && !s.files.handles.canSpare()
	return s.starved
}

// refuse says that the file was not begun, or is again as it was.
func (s *scribe) refuse(op fileOp, err error) {
	s.result.bytes = 0
	s.result.fail(op, err, OutcomeUntouched)
}

// inFolder writes the file with its folder open.
func (s *scribe) inFolder() {
	defer s.leaveFolder()
	if op, err := s.enterFolder(s.name.folder); err != nil {
		s.refuse(op, err)
		return
	}
	s.manner = s.files.mannerIn(s.batch, s.folder)
	s.losses = s.files.handles.losses(s.folder)
	if s.mode == ModeReplace {
		s.replace()
	} else {
		s.writeInPlace()
	}
}

func (s *scribe) leaveFolder() {
	if s.folder != nil {
		s.files.handles.rest(&s.folder.handle)
		s.folder = nil
	}
}

// enterFolder gets hold of an open folder, which may be made for it.
func (s *scribe) enterFolder(path string) (op fileOp, err error) {
	made := false
	for {
		op = opOpen
		if s.folder, err = s.files.handles.useFolder(path, s.era); err == nil {
			s.folder, op, err = s.files.settled(s.ctx, s.folder, s.era)
		}
		switch {
		case err == nil:
			s.tries.progress()
			return op, nil
		case op != opOpen:
			return op, err
		case errors.Is(err, fs.ErrNotExist) && s.files.options.Folders && !made:
			if err = s.files.makeFolders(s.ctx, path); err != nil {
				s.starves(err)
				return opMkdir, err
			}
			made = true
		case s.starves(err) || !s.tries.again(s.ctx, opOpen, &err):
			return opOpen, err
		}
	}
}

// finish syncs and closes a file that was written, and says what became of it.
func (s *scribe) finish(fd int) {
	op, err := s.syncAndClose(fd)
	switch {
	case err != nil:
		s.result.fail(op, err, OutcomeUncertain)
	case s.manner == unsynced:
		s.result.outcome = OutcomeWritten
	case s.manner == alone:
		s.syncName()
	default:
		s.result.outcome = OutcomeWritten
		s.batch.written(s.result, s.folder, s.manner)
	}
}

// syncAndClose syncs a file, if it is to be synced by itself, and closes it.
func (s *scribe) syncAndClose(fd int) (op fileOp, err error) {
	if s.manner == alone || s.manner == file {
		if err := s.files.sync(fd); err != nil {
			s.files.disk.Close(fd) // a failed sync is final
			return opSync, err
		}
	}
	return opClose, s.files.disk.Close(fd)
}

// sync syncs a file or a folder, once whatever comes of it.
func (f *Files) sync(fd int) error {
	f.whole.syncs.Add(1)
	return f.disk.Sync(fd)
}

// syncFolder makes the names durable that a folder has by now. Who comes while another
// waits to sync by the same descriptor shares that sync, and what comes of it.
func (f *Files) syncFolder(d *folder) error {
	s, first := f.handles.nextSync(d)
	if first {
		s.err = f.syncThrough(d, func(fd int) error {
			f.handles.beginSync(d)
			return f.sync(fd)
		})
		close(s.over)
	}
	<-s.over
	return s.err
}

// syncThrough syncs by a folder's descriptor, unless such a sync has failed. There is
// one at a time for each folder, whatever its descriptors: a failure is told to one
// caller of a descriptor alone, or to none of a later one, and who came second would be
// told that all is well before the failure is counted.
func (f *Files) syncThrough(d *folder, sync func(fd int) error) error {
	return f.inTurn(d.key(), func() error {
		if d.syncLost {
			return errFolderLost
		}
		err := sync(d.fd)
		if err != nil {
			d.syncLost = true
			f.handles.lost(d)
		}
		return err
	})
}

// inTurn does what is to be done while nobody else syncs a folder. It waits for the disk
// alone.
func (f *Files) inTurn(folder turnKey, do func() error) error {
	var turn ticket
	f.folderSyncs.queue(folder, &turn)
	defer f.folderSyncs.leave(&turn)
	f.folderSyncs.await(background, &turn)
	return do()
}

var errFolderLost = errors.New("another sync of the folder failed meanwhile")

// syncNamesIn makes the names in a folder durable that came when so many syncs of it
// had failed. After another failure it can't be told whose names were lost, and the
// descriptor is not synced again.
func (f *Files) syncNamesIn(d *folder, losses int) error {
	if f.handles.losses(d) != losses {
		return errFolderLost
	}
	if err := f.syncFolder(d); err != nil {
		return err
	}
	if f.handles.losses(d) != losses {
		return errFolderLost
	}
	return nil
}

// syncName makes the file's name durable, and with it the file.
func (s *scribe) syncName() {
	if err := s.files.syncNamesIn(s.folder, s.losses); err != nil {
		s.result.fail(opSync, err, OutcomeUncertain)
		return
	}
	s.result.outcome = OutcomeDurable
}

// mannerIn says how a file of this folder is made durable.
func (f *Files) mannerIn(b *batch, d *folder) manner {
	switch sync := f.options.Policy.Sync; {
	case sync == SyncNever:
		return unsynced
	case sync == SyncEach, b == nil:
		return alone
	default:
		return b.mannerIn(d)
	}
}
