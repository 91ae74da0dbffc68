package holdfast

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// A whole is a file that is to be written as a whole, and its place in the queue of
// its path.
type whole struct {
	name   Name
	data   []byte
	mode   Mode
	ticket ticket
	later  *replacement // what it leaves for its batch to do, if it leaves a rename
	result *FileResult
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
// succeeds. ModeTruncate and ModeAppend may leave it partial. ModeReplace leaves
// the old file whole, unless its folder's sync fails: then it is uncertain which of
// the two a crash leaves.
//
// Only regular files are written; a pipe or a device is refused, and never waited
// for. Any number of goroutines may call Write. Calls with the same path are done in
// their order. Write waits for these, for a descriptor, for the pauses of
// [FilesOptions].Retry, and for the disk. If ctx ends it returns after the system
// call under way.
func (f *Files) Write(ctx context.Context, path string, data []byte, mode Mode) (FileResult, error) {
	w := &whole{data: data, mode: mode, result: &FileResult{Path: path}}
	if err := f.enter(); err != nil {
		fail(w.result, opOpen, err, OutcomeUntouched)
		return *w.result, w.result.Err
	}
	defer f.leave()
	if w.prepare(FileWrite{Path: path, Data: data, Mode: mode}) {
		f.turns.queue(turnKey{path: w.name.path}, &w.ticket)
		s := scribe{files: f, ctx: ctx, era: f.era.Add(1)}
		s.write(w)
	}
	return *w.result, w.result.Err
}

// prepare fills in what is to be written, or the result if that can't be.
func (w *whole) prepare(given FileWrite) bool {
	w.name, w.data, w.mode = given.Name, given.Data, given.Mode
	w.result.Path = given.Name.path
	err := given.Mode.Validate()
	if w.name.base == "" {
		w.result.Path = given.Path
		if err == nil {
			w.name, err = NewName(given.Path)
		}
	}
	if err != nil {
		fail(w.result, opOpen, err, OutcomeUntouched)
	}
	return err == nil
}

// fail puts an error into a result.
func fail(r *FileResult, op fileOp, err error, became Outcome) {
	r.Outcome = became
	r.Err = &FileError{Path: r.Path, Op: string(op), Offset: r.Bytes, Attempts: int(r.Attempts), Outcome: became, Err: err}
}

// A scribe writes whole files, one at a time, for Write or for a batch.
type scribe struct {
	files *Files
	ctx   context.Context
	era   int64
	batch *batch // nil for a Write

	// Of the file under way:
	*whole
	folder          *folder
	manner          manner
	losses          int // of the folder, before the file had its name there
	tries           tries
	narrow, starved bool   // see onceInNarrow
	ident           ticket // in the queue of the device and inode
}

// A manner is how a file is made durable.
type manner int8

const (
	unsynced manner = iota
	alone           // it is synced, and then its folder, before the next
	file            // it is synced, and its folder with those of the whole batch
	together        // it is synced with all that is on its disk, at the end of the batch
)

// write writes the file, fills in its result and leaves its queue, unless it is left
// to the batch to rename it.
func (s *scribe) write(w *whole) {
	began := time.Now()
	s.files.whole.files.Add(1)
	s.whole = w
	s.tries = s.files.tries()
	s.try()
	w.result.Elapsed = time.Since(began)
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
	s.result.Attempts = 1
	s.inFolder()
	s.result.Attempts = int32(s.tries.attempts())
	if e, ok := s.result.Err.(*FileError); ok {
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
		s.result.Attempts = 0
		s.refuse(opOpen, context.Cause(s.ctx))
		return
	}
	defer func() { <-s.files.narrow }()
	s.narrow = true
	*s.result = FileResult{Path: s.result.Path}
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
	s.result.Bytes = 0
	fail(s.result, op, err, OutcomeUntouched)
}

// inFolder writes the file with its folder open.
func (s *scribe) inFolder() {
	defer s.leaveFolder()
	if err := s.enterFolder(s.name.folder); err != nil {
		s.refuse(opOpen, err)
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
func (s *scribe) enterFolder(path string) (err error) {
	made := false
	for {
		s.folder, err = s.files.handles.useFolder(path, s.era)
		switch {
		case err == nil:
			s.tries.progress()
			return s.files.awaitFolders(s.ctx)
		case errors.Is(err, fs.ErrNotExist) && s.files.options.Folders && !made:
			if err = s.files.makeFolders(s.ctx, path); err != nil {
				return err
			}
			made = true
		case s.starves(err) || !s.tries.again(s.ctx, opOpen, &err):
			return err
		}
	}
}

// Files are opened so that each write goes to their end, whoever else writes. One
// that is to be emptied is so when nobody else writes to it, not when it is opened.
const (
	openFlags  = os.O_WRONLY | os.O_APPEND | os.O_CREATE
	freshFlags = openFlags | os.O_EXCL
)

// writeInPlace writes the file under its own name.
func (s *scribe) writeInPlace() {
	s.files.handles.reserve()
	defer s.files.handles.release()
	perm := unixPerm(s.files.options.Perm)
	fd, err := -1, error(fs.ErrExist)
	if s.mode != ModeAppend {
		if fd, err = s.openFresh(perm); err == nil {
			s.writeFresh(fd)
			return
		}
	}
	if s.mode != ModeCreate && errors.Is(err, fs.ErrExist) {
		if fd, err = s.open(s.name.base, openFlags, perm); err == nil {
			s.writeExisting(fd)
			return
		}
	}
	s.refuse(opOpen, asRefusal(err))
}

// openFresh makes a file that is not there, and then holds files.fresh. Such a file
// is empty, regular and has one name, and need not be looked at. That saves more than
// the call: Linux gives a file that was looked at a time of its own at the next write.
func (s *scribe) openFresh(perm uint32) (fd int, err error) {
	for {
		s.files.fresh.RLock()
		fd, err = s.files.disk.OpenFile(s.folder.fd, s.name.base, freshFlags, perm)
		if err == nil {
			s.tries.progress()
			return fd, nil
		}
		s.files.fresh.RUnlock()
		if s.starves(err) || !s.tries.again(s.ctx, opOpen, &err) {
			s.tries.progress()
			return fd, err
		}
	}
}

// writeFresh fills a file that openFresh has made. Who opens it by another path waits
// until files.fresh is let go, and that is when all is written, by one call, or when
// there is a place in the queue of those who write to it.
func (s *scribe) writeFresh(fd int) {
	err := s.writeOnce(fd)
	if err == nil && s.unwritten() == 0 {
		s.files.fresh.RUnlock()
		s.finish(fd)
		return
	}
	is, _ := s.files.disk.StatFD(fd) // if it can't be looked at nobody else can either
	s.queueIdent(is)
	s.files.fresh.RUnlock()
	if err == nil || s.tries.again(s.ctx, opWrite, &err) {
		if err = s.awaitIdent(is); err == nil {
			err = s.writeBytes(fd)
		}
	}
	s.leaveIdent(is)
	s.end(fd, is, opWrite, err)
}

// writeExisting fills a file that may have been there before.
func (s *scribe) writeExisting(fd int) {
	s.files.awaitFresh()
	is, err := s.look(fd)
	if err != nil {
		s.end(fd, is, opStat, err)
		return
	}
	if err := refuseKind(is); err != nil {
		s.files.disk.Close(fd) // nothing was written to it
		s.refuse(opOpen, err)
		return
	}
	s.queueIdent(is)
	op, err := s.fill(fd, is)
	s.leaveIdent(is)
	s.end(fd, is, op, err)
}

// awaitFresh waits until those who are making files have written them, or can be
// met in the queue of the file.
func (f *Files) awaitFresh() {
	f.fresh.Lock()
	defer f.fresh.Unlock()
}

// end says what became of a file that is written, or was to be.
func (s *scribe) end(fd int, is sys.Stat, op fileOp, err error) {
	if err == nil {
		s.finish(fd)
		return
	}
	s.files.disk.Close(fd) // what the error says is not made better by it
	s.undo(is, op, err)
}

// open opens or makes a file of the folder.
func (s *scribe) open(name sys.Name, flags int, perm uint32) (fd int, err error) {
	for {
		fd, err = s.files.disk.OpenFile(s.folder.fd, name, flags, perm)
		if err == nil || s.starves(err) || !s.tries.again(s.ctx, opOpen, &err) {
			s.tries.progress()
			return fd, err
		}
	}
}

func (s *scribe) look(fd int) (is sys.Stat, err error) {
	for {
		is, err = s.files.disk.StatFD(fd)
		if err == nil || !s.tries.again(s.ctx, opStat, &err) {
			s.tries.progress()
			return is, err
		}
	}
}

// The kinds of files in st_mode.
const (
	kindMask    = 0o170000
	kindRegular = 0o100000
	kindLink    = 0o120000
	permMask    = 0o7777
)

var errNotRegular = errors.New("it is no regular file; write whole files only to regular ones")

func refuseKind(is sys.Stat) error {
	if is.Mode&kindMask != kindRegular {
		return errNotRegular
	}
	return nil
}

// asRefusal says why a pipe that nobody reads, or a device that is not there, can't be opened.
func asRefusal(err error) error {
	if errors.Is(err, syscall.ENXIO) {
		return fmt.Errorf("%w (%w)", errNotRegular, err)
	}
	return err
}

// queueIdent takes a place in the queue of those who write to a file, by whatever
// path, unless the system does not tell which file it is.
func (s *scribe) queueIdent(is sys.Stat) {
	if is.Inode != 0 {
		s.files.turns.queue(turnKey{device: is.Device, inode: is.Inode}, &s.ident)
	}
}

func (s *scribe) awaitIdent(is sys.Stat) error {
	if is.Inode == 0 {
		return nil
	}
	return s.files.turns.await(s.ctx, &s.ident)
}

func (s *scribe) leaveIdent(is sys.Stat) {
	if is.Inode != 0 {
		s.files.turns.leave(&s.ident)
	}
}

// fill writes the bytes when nobody else writes to the file. It returns what failed.
func (s *scribe) fill(fd int, is sys.Stat) (op fileOp, err error) {
	if err := s.awaitIdent(is); err != nil {
		return opOpen, err
	}
	if s.mode == ModeTruncate && is.Size == 0 {
		if is, err = s.look(fd); err != nil { // others may have written to it meanwhile
			return opStat, err
		}
	}
	if s.mode == ModeTruncate && is.Size > 0 {
		if err := s.truncate(fd); err != nil {
			return opTruncate, err
		}
	}
	return opWrite, s.writeBytes(fd)
}

func (s *scribe) truncate(fd int) error {
	for {
		err := s.files.disk.Truncate(fd, 0)
		if err == nil || !s.tries.again(s.ctx, opTruncate, &err) {
			s.tries.progress()
			if err == nil {
				s.result.Outcome = OutcomePartial
			}
			return err
		}
	}
}

// unwritten returns how many bytes of the data are not written.
func (s *scribe) unwritten() int { return len(s.data) - int(s.result.Bytes) }

// writeBytes writes the data, from the byte on where a write before it ended.
func (s *scribe) writeBytes(fd int) error {
	for s.unwritten() > 0 {
		if err := s.writeOnce(fd); err != nil && !s.tries.again(s.ctx, opWrite, &err) {
			return err
		}
	}
	return nil
}

// writeOnce writes what the system takes of the data in one call.
func (s *scribe) writeOnce(fd int) error {
	if s.unwritten() == 0 {
		return nil
	}
	n, err := s.files.disk.Write(fd, s.data[s.result.Bytes:])
	if n > 0 {
		s.result.Bytes += int64(n)
		s.tries.progress()
	}
	if n == 0 && err == nil {
		err = io.ErrShortWrite
	}
	return err
}

// leftAs says what became of a file of which not all was written. If it was empty
// it can't be told from one that was made.
func (s *scribe) leftAs(was sys.Stat) Outcome {
	if s.result.Bytes == 0 && was.Size > 0 && s.result.Outcome != OutcomePartial {
		return OutcomeUntouched
	}
	return OutcomePartial
}

// undo removes a file that ModeCreate has made, if it still is that one, so that
// nobody takes a part for the whole, and says what became of it.
func (s *scribe) undo(is sys.Stat, op fileOp, err error) {
	became := s.leftAs(is)
	if s.mode == ModeCreate {
		now, statErr := s.files.disk.Stat(s.folder.fd, s.name.base)
		same := statErr == nil && now.Device == is.Device && now.Inode == is.Inode
		if same && s.files.disk.Remove(s.folder.fd, s.name.base) == nil {
			s.refuse(op, err)
			return
		}
		became = OutcomePartial
	}
	fail(s.result, op, err, became)
}

// finish syncs and closes a file that was written, and says what became of it.
func (s *scribe) finish(fd int) {
	op, err := s.syncAndClose(fd)
	switch {
	case err != nil:
		fail(s.result, op, err, OutcomeUncertain)
	case s.manner == unsynced:
		s.result.Outcome = OutcomeWritten
	case s.manner == alone:
		s.syncName()
	default:
		s.result.Outcome = OutcomeWritten
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

var errFolderLost = errors.New("another sync of the folder failed meanwhile")

// syncNamesIn makes the names in a folder durable that came when so many syncs of it
// had failed. After another failure it can't be told whose names were lost, and the
// descriptor is not synced again.
func (f *Files) syncNamesIn(d *folder, losses int) error {
	if f.handles.losses(d) != losses {
		return errFolderLost
	}
	if err := f.sync(d.fd); err != nil {
		f.handles.lost(d)
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
		fail(s.result, opSync, err, OutcomeUncertain)
		return
	}
	s.result.Outcome = OutcomeDurable
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
