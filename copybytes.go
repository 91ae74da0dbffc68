package holdfast

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/holdfast-go/holdfast/internal/sys"
)

var errNoRoom = syscall.ENOSPC

const (
	// smallCopy is up to what size a file is read and written at once: looking for a
	// better way takes longer than that, and on xfs so does sharing.
	smallCopy = 64 << 10

	// copyPiece is how much the kernel is asked to copy at a time, so that a copy can be
	// stopped soon. Between 8 and 64 MiB no difference was measured.
	copyPiece = 16 << 20

	// copyBuffer is the buffer of read and write for large files. Of 64 KiB to 4 MiB, on
	// ext4 and xfs, 512 KiB and 1 MiB were the fastest.
	copyBuffer = 1 << 20

	// worthAllocating is from what size on it is faster to allocate before.
	worthAllocating = 1 << 20
)

// A mover is how bytes get from the source to the copy.
type mover struct {
	method CopyMethod
	buffer []byte
	lent   *[]byte // that the buffer is a part of, if it is to be used again
	at     int64   // the position that sendfile will write at; -1: not known
	r, w   int     // a pipe, if piped
	piped  bool
	by     [len(copyMethodNames)]int64 // bytes
}

// copyBytes makes the copy hold what the source does, from j.done on.
func (j *copyJob) copyBytes() error {
	defer j.endMoving()
	j.moving.at = -1
	if j.worthCloning() {
		if cloned, err := j.clone(); cloned || err != nil {
			return err
		}
	}
	if err := j.roomFor(dataBytes(j.was.Size, j.was.Blocks) - j.done); err != nil {
		return err
	}
	j.moving.method = j.firstMethod()
	err := j.copyData()
	if err == nil && j.was.Size == 0 {
		err = j.copyUnsized()
	}
	return err
}

// worthCloning reports whether it is to be tried to share the source's bytes. A small
// file is read and written in less time, but not if it has to be read from the disk, or
// on btrfs, where what is written holds up the files that are made next.
func (j *copyJob) worthCloning() bool {
	switch {
	case j.o.Method != MethodAuto:
		return j.o.Method == MethodReflink
	case j.was.Size > smallCopy:
		return true
	case j.was.Size == 0: // it may hold something nevertheless
		return false
	case j.disk.IsCold(j.in):
		return true
	}
	return j.copier.sharing.of(j.was.Device, func() bool { return j.disk.SharesFaster(j.in, j.was.Device) })
}

// A deviceAnswer remembers what was answered of the last device of each kind: it is
// asked of every small file.
type deviceAnswer struct{ yes, no atomic.Uint64 }

func (a *deviceAnswer) of(device uint64, ask func() bool) bool {
	switch {
	case device == 0: // not known
		return false
	case device == a.yes.Load():
		return true
	case device == a.no.Load():
		return false
	}
	yes := ask()
	if yes {
		a.yes.Store(device)
	} else {
		a.no.Store(device)
	}
	return yes
}

// dataBytes is at most what a file holds without its holes, as far as is known: its
// blocks are of 512 bytes, or -1.
func dataBytes(size, blocks int64) int64 {
	if blocks < 0 {
		return size
	}
	return min(size, blocks*512)
}

// firstMethod is how the copying begins. copy_file_range is taken where the bytes then
// stay at the other end of a network. On local disks it and sendfile copy in steps of 16
// pages, and splice in those of our pipe: it was as fast as read and write with the best
// buffer for large files, and faster where the memory for that buffer counts.
func (j *copyJob) firstMethod() CopyMethod {
	switch {
	case j.o.Method != MethodAuto:
		return j.o.Method
	case j.was.Size <= smallCopy:
		return MethodReadWrite
	case j.disk.CopiesRanges(j.in):
		return MethodCopyRange
	}
	return MethodSplice
}

// endMoving gives back what the moving took, and says how it was done.
func (j *copyJob) endMoving() {
	j.closePipe()
	if b := j.moving.lent; b != nil {
		buffersOf(len(*b)).Put(b)
	}
	for method, n := range j.moving.by {
		j.r.Copied += n
		if n > j.moving.by[j.r.Method] {
			j.r.Method = CopyMethod(method)
		}
	}
}

// clone shares the source's bytes. If it can't be done the other ways are to be tried.
func (j *copyJob) clone() (cloned bool, err error) {
	if j.done > 0 {
		return false, nil
	}
	err = uninterrupted(func() error { return j.disk.Clone(j.out, j.in) })
	switch {
	case err == nil:
	case cannot(err) && j.o.Method == MethodAuto:
		return false, nil
	case cannot(err):
		return false, j.cannotForced(0, err)
	default:
		return false, j.failed("reflink", 0, err)
	}
	j.r.Method = MethodReflink
	if err := j.cutClone(); err != nil {
		return true, err
	}
	return true, j.roomOfClone()
}

// roomOfClone gives the copy the room that the source has and never wrote: xfs shares
// only what was written, so that a copy without holes lacks none. (btrfs shares both;
// there it changes nothing.) To look for holes takes a tenth to a quarter of FIEMAP.
func (j *copyJob) roomOfClone() error {
	if hole, err := j.seek(j.disk.SeekHole, j.out, 0); err == nil && hole >= j.done {
		return nil
	}
	room, err := j.unwritten(0)
	if err != nil {
		return err
	}
	_, err = j.allocateIn(room, sys.Range{At: 0, End: j.done})
	return err
}

// cutClone leaves of a source that has grown before it was cloned what it was.
func (j *copyJob) cutClone() error {
	if err := j.lookAtCopy(); err != nil {
		return err
	}
	if j.has.Size > j.was.Size {
		if err := j.truncate(j.was.Size); err != nil {
			return err
		}
	}
	j.progress(min(j.has.Size, j.was.Size))
	return nil
}

func (j *copyJob) truncate(size int64) error {
	if err := uninterrupted(func() error { return j.disk.Truncate(j.out, size) }); err != nil {
		return j.failed("truncate", size, err)
	}
	return nil
}

func (j *copyJob) cannotForced(at int64, err error) error {
	return j.failed(j.o.Method.String(), at, fmt.Errorf("these files can't be copied that way: %w; use MethodAuto", err))
}

// progress says that the copy is good up to a byte.
func (j *copyJob) progress(to int64) {
	if j.copier.moved != nil && to > j.done {
		j.copier.moved(to - j.done)
	}
	j.done = to
}

// move copies a range of data. It ends early where the source does.
func (j *copyJob) move(r sys.Range) (whole bool, err error) {
	j.progress(r.At)
	for j.done < r.End {
		if err := j.stopped(); err != nil {
			return false, err
		}
		n, op, err := j.step(j.done, r.End-j.done)
		if n > 0 {
			j.moving.by[j.moving.method] += int64(n)
			j.progress(j.done + int64(n))
		}
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil && j.moving.method != MethodReadWrite && cannot(err) || err == nil && n == 0 && j.moving.method != MethodReadWrite:
			if err := j.fallBack(err); err != nil {
				return false, err
			}
		case err != nil:
			return false, j.failed(op, j.done, err)
		case n == 0:
			return false, nil
		}
	}
	return true, nil
}

// fallBack goes on with read and write, if the method was not asked for. The kernel's
// ways copy nothing of files that are made when they are read, such as those of /proc,
// whatever the size that these have.
func (j *copyJob) fallBack(err error) error {
	if j.o.Method == MethodAuto {
		j.moving.method = MethodReadWrite
		return nil
	}
	if err == nil { // there may be nothing more
		n, err := j.readFull(j.in, make([]byte, 1), j.done)
		if n == 0 && err == nil {
			j.moving.method = MethodReadWrite
			return nil
		}
		return j.cannotForced(j.done, errors.New("it copies nothing"))
	}
	return j.cannotForced(j.done, err)
}

// step moves up to n bytes. If it fails it says on which call.
func (j *copyJob) step(at, n int64) (moved int, op string, err error) {
	piece := int(min(n, copyPiece))
	switch j.moving.method {
	case MethodCopyRange:
		moved, err = j.disk.CopyRange(j.out, j.in, at, piece)
	case MethodSendfile:
		moved, err = j.sendFile(at, piece)
	case MethodSplice:
		moved, err = j.splice(at, piece)
	default:
		return j.readWrite(at, n)
	}
	return moved, j.moving.method.String(), err
}

func (j *copyJob) sendFile(at int64, n int) (int, error) {
	if j.moving.at != at {
		if err := j.disk.SeekTo(j.out, at); err != nil {
			return 0, err
		}
	}
	moved, err := j.disk.SendFile(j.out, j.in, at, n)
	j.moving.at = at + int64(moved)
	return moved, err
}

// splice moves what a pipe takes. If not all of that gets out of it again, it is given up.
func (j *copyJob) splice(at int64, n int) (moved int, err error) {
	if !j.moving.piped {
		if j.moving.r, j.moving.w, err = j.disk.Pipe(); err != nil {
			return 0, fmt.Errorf("%w: no pipe: %w", errors.ErrUnsupported, err) // too many files are open, for instance
		}
		j.moving.piped = true
	}
	n, err = j.disk.Splice(j.moving.w, -1, j.in, at, n)
	for err == nil && moved < n {
		var out int
		out, err = j.disk.Splice(j.out, at+int64(moved), j.moving.r, -1, n-moved)
		if out == 0 && err == nil {
			err = io.ErrShortWrite
		}
		moved += out
	}
	if moved < n {
		j.closePipe()
	}
	return moved, err
}

func (j *copyJob) closePipe() {
	if j.moving.piped {
		j.disk.Close(j.moving.r) // what is in it is not needed
		j.disk.Close(j.moving.w)
		j.moving.piped = false
	}
}

// readWrite reads a buffer and writes it.
func (j *copyJob) readWrite(at, n int64) (moved int, op string, err error) {
	b := j.buffer()
	got, err := j.disk.ReadAt(j.in, b[:min(n, int64(len(b)))], at)
	if err != nil {
		return 0, "read", err
	}
	err = j.writeAll(b[:got], at, &moved)
	return moved, "write", err
}

// writeAll writes all of b, or says how much it has written.
func (j *copyJob) writeAll(b []byte, at int64, written *int) error {
	for *written < len(b) {
		n, err := j.disk.WriteAt(j.out, b[*written:], at+int64(*written))
		*written += n
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return err
		}
		if n == 0 && err == nil {
			return io.ErrShortWrite
		}
	}
	return nil
}

// buffer returns the memory to copy through, as large as the policy says or the file's
// size asks for.
func (j *copyJob) buffer() []byte {
	if j.moving.buffer != nil {
		return j.moving.buffer
	}
	if size := j.o.Policy.Buffer; size > 0 {
		j.moving.buffer = make([]byte, size)
		return j.moving.buffer
	}
	size := int(bufferFor(j.was.Size))
	j.moving.lent = buffersOf(size).Get().(*[]byte)
	j.moving.buffer = (*j.moving.lent)[:size]
	return j.moving.buffer
}

// Buffers that are not in use, of any calls: to make and clear one takes longer than to
// copy a small file through it.
var smallBuffers, largeBuffers = buffersFor(smallCopy), buffersFor(copyBuffer)

func buffersFor(size int) *sync.Pool {
	return &sync.Pool{New: func() any { b := make([]byte, size); return &b }}
}

func buffersOf(size int) *sync.Pool {
	if size <= smallCopy {
		return smallBuffers
	}
	return largeBuffers
}

// bufferFor returns the buffer's size for a file of a size; 0 says that this is not known.
func bufferFor(size int64) int64 {
	switch {
	case size == 0 || smallCopy < size && size < 4*smallCopy:
		return smallCopy
	case size <= smallCopy:
		return size
	}
	return min(size/4, copyBuffer)
}

// copyUnsized copies a file that says it is empty until it ends: files of /proc do.
func (j *copyJob) copyUnsized() error {
	for whole := true; whole; {
		var err error
		if whole, err = j.move(sys.Range{At: j.done, End: j.done + copyPiece}); err != nil {
			return err
		}
	}
	return nil
}
