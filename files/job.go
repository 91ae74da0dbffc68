package files

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/handles"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// A Write is a file that [Set.WriteAll] is to write.
type Write struct {
	Path string
	Data []byte // all of the file, or what is to be appended; it may not change until WriteAll returns
	Mode Mode

	// File is a file that the caller has opened, of any kind, in place of a Path, which may be
	// empty, and a Mode. Data is written where its descriptor stands. It is not closed. A
	// policy that syncs has it synced by itself: its bytes are durable then, and its name
	// where the caller made that durable.
	File *os.File
}

// A job is a file that is to be written as a whole, and its place in the queue of
// its path.
type job struct {
	name   fileName
	data   []byte
	mode   Mode
	file   *os.File // the caller's, or nil
	ticket keyed.Ticket
	later  *replacement // the rename that it leaves to its batch, if any
	result *record
	next   *job   // in its batch
	memory []byte // of the name, and of the next file's
}

// A fileWriter writes whole files, one at a time, for Write or for a batch.
type fileWriter struct {
	files *Set
	ctx   context.Context
	era   int64
	part  *part // of the batch; nil for a Write

	own       job // the job of a Write
	ownResult record

	// Of the file under way:
	*job
	dir             *handles.Dir
	syncMode        syncMode
	errseq          *durable.Errseq // of a Batch: open before the first byte, or nil
	losses          int             // of the directory, before the file had its name there
	tries           retry.Tries
	narrow, starved bool         // see onceInNarrow
	ident           keyed.Ticket // in the queue of the device and inode
	fresh           *freshGroup

	old bool // the last file was there before: so may be the next
}

// starves reports whether err means that no descriptor is left, and none of ours can be
// spared. It does so once for a file.
func (s *fileWriter) starves(err error) bool {
	s.starved = !s.narrow && retry.RemedyFor(retry.OpOpen, err) == retry.AfterSpare && !s.files.handles.CanSpare()
	return s.starved
}

// refuse sets the result of a file that was not begun, or is again as it was.
func (s *fileWriter) refuse(op retry.Op, err error) {
	s.result.bytes = 0
	s.result.fail(op, err, holdfast.OutcomeUntouched)
}

func (s *fileWriter) leaveDir() {
	if s.dir != nil {
		s.files.handles.Rest(&s.dir.Handle)
		s.dir = nil
	}
}

// enterDir gets hold of an open directory, which may be made for it.
func (s *fileWriter) enterDir(path string) (op retry.Op, err error) {
	made := false
	for {
		op = retry.OpOpen
		if s.dir, err = s.files.handles.UseDir(path, s.era); err == nil {
			s.dir, op, err = s.files.settled(s.ctx, s.dir, s.era)
		}
		switch {
		case err == nil:
			s.tries.Progress()
			return op, nil
		case op != retry.OpOpen:
			return op, err
		case errors.Is(err, fs.ErrNotExist) && s.files.options.MkdirAll && !made:
			if err = s.files.makeDirs(s.ctx, path); err != nil {
				s.starves(err)
				return retry.OpMkdir, err
			}
			made = true
		case s.starves(err) || !s.tries.Again(s.ctx, retry.OpOpen, &err):
			return retry.OpOpen, err
		}
	}
}

// finish syncs and closes a file that was written, and sets its result.
func (s *fileWriter) finish(fd int) {
	op, err := s.syncAndClose(fd)
	switch {
	case err != nil:
		s.result.fail(op, err, holdfast.OutcomeUncertain)
	case s.syncMode == unsynced:
		s.result.outcome = holdfast.OutcomeWritten
	case s.syncMode == alone:
		s.syncName()
	default:
		s.result.outcome = holdfast.OutcomeWritten
		s.part.wrote(s.result, s.dir, s.syncMode)
	}
}

// syncAndClose syncs a file, if it is to be synced by itself, and closes it. A Batch does both later.
func (s *fileWriter) syncAndClose(fd int) (op retry.Op, err error) {
	if s.syncMode == file && s.part.keep != nil {
		s.later.group = s.part.keep(keptFile{OpenFile: durable.OpenFile{Errseq: s.errseq}, fd: fd, result: s.result, dir: s.dir.Key()})
		return "", nil
	}
	if s.syncMode == alone || s.syncMode == file {
		if err := s.files.syncFile(fd, s.result.path); err != nil {
			s.files.failFile(fd, s.dir.Key())
			s.files.disk.Close(fd) // a failed sync is final
			return retry.OpSync, err
		}
	}
	return retry.OpClose, s.files.disk.Close(fd)
}

// syncName makes the file's name durable, and with it the file.
func (s *fileWriter) syncName() {
	if err := s.files.syncNamesIn(s.dir, s.losses); err != nil {
		s.result.fail(retry.OpSync, err, holdfast.OutcomeUncertain)
		return
	}
	s.files.named(s.result, s.dir.Key(), s.dir.LacksJournal)
}

// follow goes to the directory to which the path's symbolic links lead.
func (s *fileWriter) follow(base *sys.Name) (op retry.Op, err error) {
	name, err := s.files.resolve(s.ctx, &s.tries, s.name.path)
	if err != nil {
		return retry.OpResolve, err
	}
	s.leaveDir() // a turn is for one directory
	if op, err := s.enterDir(name.dir); err != nil {
		return op, err
	}
	*base = name.base
	s.setSyncMode()
	s.losses = s.files.names.Losses(s.dir.Key())
	return "", nil
}
