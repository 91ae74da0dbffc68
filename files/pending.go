package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/bufpool"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/permission"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/temporary"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// A Pending is a file that is being written, and takes its name when it is whole: [Replace],
// with a stream in place of a slice. Until Commit the path names the old file, or none.
//
// Each Write goes to the kernel; a program that writes little pieces puts a bufio.Writer in
// front. A Pending holds one descriptor beside [Options].Handles until Commit or Discard.
// Any goroutine may call its methods, one after the other.
type Pending struct {
	set   *Set
	batch *Batch // that it is of, or nil

	mu     sync.Mutex
	writer fileWriter // its file, where it is to be, and its result
	record record
	own    temporaryFile
	dir    keyed.Key
	base   sys.Name
	mark   *temporary.Mark
	at     int64 // where the next Write goes
	failed error // of a write: part of the bytes is missing
	done   bool  // committed or discarded
}

// Pending begins a file that is to replace the one at path, or to be made. It may be written
// in any order and at any pace. Nothing is at path before [Pending.Commit], and nothing ever
// if the program ends before.
//
// Permissions, owners, attributes and links are as for [Replace]: the old file's are kept, and a new
// file gets Options.Perm before umask. Close of the Set discards a file that is not committed. A relative
// path is resolved now. A path that is not there or not permitted is a *fs.PathError, all other errors of
// a Pending are an [Error].
func (f *Set) Pending(path string) (*Pending, error) { return f.pending(f.fixed(path), nil) }

// fixed returns a path that is used later, and leads to the same name then: the program may change its
// working directory. Where that is unknown, the open fails.
func (g *ground) fixed(path string) string {
	if absolute, err := g.pathOf(path); err == nil {
		return absolute
	}
	return path
}

func (f *Set) pending(path string, b *Batch) (*Pending, error) {
	p := &Pending{set: f, batch: b, record: record{path: path}}
	s := &p.writer
	*s = fileWriter{files: f, ctx: context.Background(), era: f.era.Add(1), narrow: true}
	s.job, s.own.result = &s.own, &p.record
	if b != nil {
		s.part = &b.part
	}
	if err := f.enter(); err != nil {
		s.refuse(retry.OpOpen, err)
		return nil, p.record.err
	}
	defer f.leave()
	if !s.prepare(Write{Path: path, Mode: Replace}, new(strings.Builder), 0) {
		return nil, p.record.err
	}
	f.whole.files.Add(1)
	s.tries = f.tries(path)
	op, err := p.open()
	if err != nil && b != nil && retry.RemedyFor(op, err) == retry.AfterSpare {
		b.release()
		op, err = p.open()
	}
	if err != nil {
		s.refuse(op, err)
		return nil, asPathError(p.record.err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unfinished[p] = struct{}{}
	return p, nil
}

// unfinished is discarded by Close: a Pending, or a Batch.
type unfinished interface{ abandon() error }

// forget removes a finished one from the list that Close discards.
func (f *Set) forget(u unfinished) {
	f.mu.Lock()
	delete(f.unfinished, u)
	f.mu.Unlock()
}

// pendingFlags open a file that is not written in order.
const pendingFlags = freshFlags &^ os.O_APPEND

// open makes the temporary file.
func (p *Pending) open() (op retry.Op, err error) {
	s := &p.writer
	if err := p.set.handles.Begin(s.ctx); err != nil {
		return retry.OpOpen, err
	}
	defer p.set.handles.End()
	defer s.leaveDir()
	if op, err := s.enterDir(s.name.dir); err != nil {
		return op, err
	}
	s.setSyncMode()
	p.base = s.name.base
	old, op, err := s.lookUp(&p.base) // it may go to the directory where a link leads
	if err != nil {
		return op, err
	}
	p.mark = p.set.marks.Take(s.dir)
	p.set.handles.Reserve()
	p.own, op, err = s.makeTemporary(p.base, old, p.mark != nil, pendingFlags)
	p.set.handles.Release() // from now on it is the caller's
	if err != nil {
		p.set.marks.GiveBack(p.mark)
		return op, err
	}
	p.dir, s.name.dir = s.dir.Key(), s.dir.Path
	return "", nil
}

// Write writes b where the Pending stands. After an error the file can't be committed.
func (p *Pending) Write(b []byte) (n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.writeLocked(b)
}

func (p *Pending) writeLocked(b []byte) (n int, err error) {
	if err := p.usableLocked(retry.OpWrite); err != nil {
		return 0, err
	}
	for tries := p.set.tries(p.record.path); n < len(b); {
		var k int
		k, err = p.set.disk.WriteAt(p.own.fd, b[n:], p.at)
		n += k
		p.at += int64(k)
		p.record.bytes += int64(k)
		if k > 0 {
			tries.Progress()
		} else if err == nil {
			err = io.ErrShortWrite
		}
		if err != nil && n < len(b) && !tries.Again(p.writer.ctx, retry.OpWrite, &err) {
			p.failed = p.errorOf(retry.OpWrite, err, tries.Attempts())
			return n, p.failed
		}
	}
	return n, nil
}

// ReadFrom writes all that r gives.
func (p *Pending) ReadFrom(r io.Reader) (n int64, err error) {
	buf := bufpool.Get(pendingBuffer)
	if buf == nil {
		buf = make([]byte, pendingBuffer)
	}
	defer bufpool.Put(buf)
	for {
		k, err := r.Read(buf)
		if k > 0 {
			k, failed := p.Write(buf[:k])
			n += int64(k)
			if failed != nil {
				return n, failed
			}
		}
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

const pendingBuffer = 128 << 10

// Seek sets where the next Write goes. Left-out bytes are zeros.
func (p *Pending) Seek(offset int64, whence int) (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.usableLocked(opSeek); err != nil {
		return 0, err
	}
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		offset += p.at
	case io.SeekEnd:
		is, err := p.set.disk.StatFD(p.own.fd)
		if err != nil {
			return 0, p.errorOf(retry.OpStat, err, 1)
		}
		offset += is.Size
	default:
		return 0, p.errorOf(opSeek, fmt.Errorf("whence %d is none; use io.SeekStart, io.SeekCurrent or io.SeekEnd", whence), 1)
	}
	if offset < 0 {
		return 0, p.errorOf(opSeek, fmt.Errorf("the offset %d is before the file's beginning", offset), 1)
	}
	p.at = offset
	return offset, nil
}

const opSeek retry.Op = "seek"

// Truncate makes the file size bytes long. Where the next Write goes stays.
func (p *Pending) Truncate(size int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.usableLocked(retry.OpTruncate); err != nil {
		return err
	}
	if size < 0 {
		return p.errorOf(retry.OpTruncate, fmt.Errorf("the size %d is negative", size), 1)
	}
	return p.call(retry.OpTruncate, func() error { return p.set.disk.Truncate(p.own.fd, size) })
}

// Chmod has the file get exactly these permissions at Commit, whatever umask and the old file
// say. Until then only its owner may read it.
func (p *Pending) Chmod(mode fs.FileMode) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.usableLocked(retry.OpChmod); err != nil {
		return err
	}
	if mode&^permBits != 0 {
		return p.errorOf(retry.OpChmod, fmt.Errorf("mode %v has bits that are no permissions; use one such as 0644", mode), 1)
	}
	if err := p.call(retry.OpChmod, func() error { return p.set.disk.Chmod(p.own.fd, permission.Private) }); err != nil {
		return err
	}
	p.own.has, p.own.perm = permission.Private, unixPerm(mode)
	return nil
}

// call makes a system call with retries.
func (p *Pending) call(op retry.Op, do func() error) error {
	tries := p.set.tries(p.record.path)
	if err := tries.Insist(p.writer.ctx, op, do); err != nil {
		return p.errorOf(op, err, tries.Attempts())
	}
	return nil
}

// Stat describes the file as it is now, under the name that it is to get.
func (p *Pending) Stat() (fs.FileInfo, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.usableLocked(retry.OpStat); err != nil {
		return nil, err
	}
	is, err := p.set.disk.StatFD(p.own.fd)
	full := sys.FileStat{Stat: is}
	if source, ok := p.set.disk.(vfs.Source); ok && err == nil {
		full, err = source.StatFile(p.own.fd)
	}
	if err != nil {
		return nil, p.errorOf(retry.OpStat, err, 1)
	}
	if p.own.has != p.own.perm {
		full.Mode = full.Mode&vfs.KindMask | p.own.perm
	}
	return fileInfo{filepath.Base(p.record.path), full}, nil
}

// Commit makes the file the one at its path, in one step, as [Set.WriteFile] does with
// [Replace]: nil says that it is there whole and, unless the policy's Sync is never, durable
// with its name. After an error the old file stays, but if the sync of the directory failed. Either
// way the Pending is finished. One of a [Batch] is handed over, and [Batch.Commit] says what
// became of it.
func (p *Pending) Commit(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.usableLocked(retry.OpRename); err != nil {
		if p.failed != nil {
			_ = p.discardLocked() // the failure of the write is told
		}
		return err
	}
	if err := p.set.enter(); err != nil {
		return p.errorOf(retry.OpRename, err, 0)
	}
	defer p.set.leave()
	s := &p.writer
	s.ctx, s.era, s.tries = ctx, p.set.era.Add(1), p.set.tries(p.record.path)
	if p.batch != nil {
		return p.batch.took(p.record.path, func() *record {
			if !p.batch.leavesRename(&s.own) {
				p.finishInTurnLocked()
			} else if op, err := p.commitLocked(); err != nil {
				p.failLocked(op, err)
			}
			p.record.attempts = int32(s.tries.Attempts())
			return &p.record
		})
	}
	p.finishInTurnLocked()
	if p.record.err != nil {
		return p.record.err
	}
	return nil
}

// finishInTurnLocked ends the file and renames it, after other calls with its path.
func (p *Pending) finishInTurnLocked() {
	s := &p.writer
	p.set.turns.Join(keyed.Key{Path: s.name.path}, &s.ticket)
	defer p.set.turns.Leave(&s.ticket)
	op, err := retry.OpRename, p.set.turns.Await(s.ctx, &s.ticket)
	if err == nil {
		op, err = p.commitLocked()
	}
	if err != nil {
		p.failLocked(op, err)
	}
}

// failLocked sets the result of a file that was not renamed, and removes it if it is there.
func (p *Pending) failLocked(op retry.Op, err error) {
	if !p.done {
		err = stillThere(err, p.discardLocked(), p.own.name)
	}
	p.writer.refuse(op, err)
	p.record.err.Attempts = p.writer.tries.Attempts()
}

// commitLocked ends the file in its turn, and renames it, or leaves that to the batch. If it returns an error before the file is closed, p is not done.
func (p *Pending) commitLocked() (op retry.Op, err error) {
	s := &p.writer
	if err := context.Cause(s.ctx); err != nil {
		return retry.OpRename, err
	}
	if err := p.set.flusher.settle(s.ctx, s.name.path); err != nil {
		return retry.OpWrite, err
	}
	if err := p.set.handles.Begin(s.ctx); err != nil {
		return retry.OpRename, err
	}
	defer p.set.handles.End()
	defer s.leaveDir()
	if op, err := p.inDirLocked(); err != nil {
		return op, err
	}
	s.losses = p.set.names.Losses(s.dir.Key())
	now, err := s.stat(p.base)
	if err != nil {
		now = sys.Stat{} // none is there; another failure is the rename's too
	}
	p.endLocked()
	if op, err := s.endTemporary(p.own); err != nil {
		p.set.marks.GiveBack(p.mark)
		return op, err
	}
	if s.later != nil {
		s.later.base, s.later.temporary, s.later.mark, s.later.old = p.base, p.own.name, p.mark, now
		s.part.renameLater(s.later, s.dir, s.syncMode)
		return "", nil
	}
	s.renameNow(p.own.name, p.base, now)
	p.set.marks.GiveBack(p.mark)
	return "", nil
}

// inDirLocked opens the file's directory again.
func (p *Pending) inDirLocked() (op retry.Op, err error) {
	s := &p.writer
	if s.dir, err = p.set.handles.UseDir(s.name.dir, s.era); err != nil {
		return retry.OpOpen, err
	}
	if s.dir.Key() != p.dir {
		s.leaveDir()
		return retry.OpOpen, errDirMoved
	}
	return "", nil
}

// Discard gives the file up and removes what was written. After Commit or another Discard it
// does nothing. An error names the temporary file that stays.
func (p *Pending) Discard() error {
	if err := p.set.enter(); err != nil {
		return nil // the Set's Close does it
	}
	defer p.set.leave()
	return p.abandon()
}

// Close is Discard: a Pending that no Commit has made a file is none. So a deferred Close
// never puts a part in place of the whole.
func (p *Pending) Close() error { return p.Discard() }

func (p *Pending) abandon() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done {
		return nil
	}
	name := p.own.name
	if err := p.discardLocked(); err != nil {
		return p.errorOf(opRemove, fmt.Errorf("%w; %s is left in that directory", err, name), 1)
	}
	return nil
}

const opRemove retry.Op = "remove"

// discardLocked closes the temporary file and removes it.
func (p *Pending) discardLocked() error {
	p.endLocked()
	p.set.disk.Close(p.own.fd) // it is removed
	defer p.set.marks.GiveBack(p.mark)
	s := &p.writer
	s.ctx, s.era = context.Background(), p.set.era.Add(1)
	if err := p.set.handles.Begin(s.ctx); err != nil {
		return err
	}
	defer p.set.handles.End()
	defer s.leaveDir()
	if _, err := p.inDirLocked(); err != nil {
		return err
	}
	return p.set.discard(s.dir.Fd, p.own.name)
}

// endLocked notes that nothing more is written.
func (p *Pending) endLocked() {
	p.done = true
	p.set.forget(p)
	if p.batch != nil {
		p.batch.open.Add(-1)
	}
}

// usableLocked returns why nothing more can be done with the file, or nil.
func (p *Pending) usableLocked(op retry.Op) error {
	if p.done && p.failed == nil {
		return p.errorOf(op, errPendingDone, 0)
	}
	return p.failed
}

const errPendingDone = sys.Closed("holdfast: the pending file was committed or discarded")

func (p *Pending) errorOf(op retry.Op, err error, attempts int) *Error {
	return &Error{Path: p.record.path, Op: string(op), Attempts: attempts, Outcome: holdfast.OutcomeUntouched, Err: err}
}

type fileInfo struct {
	name string
	is   sys.FileStat
}

func (i fileInfo) Name() string       { return i.name }
func (i fileInfo) Size() int64        { return i.is.Size }
func (i fileInfo) ModTime() time.Time { return i.is.Modified }
func (i fileInfo) IsDir() bool        { return false }
func (i fileInfo) Sys() any           { return nil }

func (i fileInfo) Mode() fs.FileMode {
	mode := fs.FileMode(i.is.Mode & 0o777)
	for k, special := range specialBits {
		if i.is.Mode&(0o1000<<k) != 0 {
			mode |= special
		}
	}
	return mode
}

// WriteFile writes one file as [Set.WriteFile] does with [Replace], durable with its name when
// it returns nil: os.WriteFile, with the old file whole or the new one at any crash. An
// existing file keeps its permissions; perm is a new one's, before umask. A program with many files uses a [Set].
func WriteFile(path string, data []byte, perm fs.FileMode) error {
	return withSetOf(perm, func(f *Set) error {
		_, err := f.WriteFile(context.Background(), path, data, Replace)
		return err
	})
}

// WriteFileFunc is [WriteFile] with the bytes that write writes. If write returns an error, or panics, the
// old file stays.
func WriteFileFunc(path string, perm fs.FileMode, write func(io.Writer) error) error {
	return withSetOf(perm, func(f *Set) error {
		p, err := f.Pending(path)
		if err != nil {
			return err
		}
		defer p.Discard() // its error is less than the one that is returned
		if err := write(p); err != nil {
			return err
		}
		return p.Commit(context.Background())
	})
}

// withSetOf calls do with a Set for one file.
func withSetOf(perm fs.FileMode, do func(*Set) error) (err error) {
	if perm == 0 {
		return errors.New("files: perm=0 lets nobody read the file; use permissions such as 0644")
	}
	f, err := New(Options{Policy: holdfast.Durable(), Perm: perm})
	if err != nil {
		return err
	}
	defer func() { // also where do panics: a Set keeps the directory open
		if failed := f.Close(); err == nil { // else Close has no other: nothing was appended
			err = failed
		}
	}()
	return do(f)
}
