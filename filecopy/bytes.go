package filecopy

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

var errNoRoom = syscall.ENOSPC

const (
	// smallCopy is the size up to which a file is read and written at once. Looking for a better
	// way takes longer; on xfs so does sharing.
	smallCopy = 64 << 10

	// copyPiece is the number of bytes per call of the kernel, so that a copy can be stopped soon.
	// Between 8 and 64 MiB no difference was measured.
	copyPiece = 16 << 20

	// copyBuffer is the buffer of read and write for large files. Of 64 KiB to 4 MiB, on
	// ext4 and xfs, 512 KiB and 1 MiB were the fastest.
	copyBuffer = 1 << 20

	// worthAllocating is the least size for which allocating before writing is faster.
	worthAllocating = 1 << 20

	// worthLooking is the least size for which the free space on the disk is checked first.
	worthLooking = 1 << 20
)

// A mover holds the method and the buffers by which bytes get from the source to the copy.
type mover struct {
	method Method
	buffer []byte
	lent   *[]byte // the pooled slice of the buffer, or nil
	r, w   int     // a pipe, if piped
	piped  bool
	by     [len(copyMethodNames)]int64 // bytes
}

// copyBytes copies the source's bytes from j.done on.
func (j *copyJob) copyBytes() error {
	defer func() {
		j.closePipe()
		if b := j.moving.lent; b != nil {
			buffersOf(len(*b)).Put(b)
		}
		for method, n := range j.moving.by {
			j.r.Copied += n
			if n > j.moving.by[j.r.Method] {
				j.r.Method = Method(method)
			}
		}
	}()
	if j.worthCloning() {
		if cloned, err := j.clone(); cloned || err != nil {
			return err
		}
	}
	// A large file that does not fit on the disk is refused. Only statfs decides that: a
	// compressing file system may have room for it. Holes don't count.
	if bytes := dataBytes(j.was.Size, j.was.Blocks) - j.done; bytes >= worthLooking {
		if free, err := j.disk.Free(j.out); err == nil && bytes > free {
			asked, left := tooLarge(bytes, free)
			return j.failed("allocate", -1, fmt.Errorf("%w: it takes %s and %s are free; make room, or name another destination", errNoRoom, asked, left))
		}
	}
	j.moving.method = j.firstMethod()
	err := j.copyData()
	// Files of /proc report a size of 0. They are copied up to their end.
	for whole := j.was.Size == 0; err == nil && whole; {
		whole, err = j.move(sys.Range{At: j.done, End: j.done + copyPiece})
	}
	return err
}

// worthCloning reports whether to try to share the source's bytes. Reading and writing a small file
// takes less time, except if it has to be read from the disk, or on btrfs, where written bytes
// delay the files that are made next.
func (j *copyJob) worthCloning() bool {
	switch {
	case j.o.Method != Auto:
		return j.o.Method == Reflink
	case j.was.Size > smallCopy:
		return true
	case j.was.Size == 0: // it may have bytes all the same
		return false
	}
	if j.sharesFaster() {
		return true
	}
	cache, ok := j.disk.(vfs.PageCache)
	return ok && cache.IsCold(j.in)
}

func (j *copyJob) sharesFaster() bool {
	disk, clones := j.disk.(vfs.Cloner)
	return clones && j.copier.sharing.of(j.was.Device, func() bool { return disk.SharesFaster(j.in, j.was.Device) })
}

// A deviceAnswer caches the last device with each answer, because the question comes up for every
// small file.
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

// dataBytes returns the most bytes of a file without its holes. Blocks have 512 bytes; -1 means
// that their number is not known.
func dataBytes(size, blocks int64) int64 {
	if blocks < 0 {
		return size
	}
	return min(size, blocks*512)
}

// firstMethod returns the first method to try: copy_file_range if the bytes can then stay on a
// network server. On local disks copy_file_range copies in steps of 16 pages, and splice in steps
// of our pipe. For large files splice was as fast as read and write with the best buffer, and
// faster if the memory of that buffer counts.
func (j *copyJob) firstMethod() Method {
	switch {
	case j.o.Method != Auto:
		return j.o.Method
	case j.was.Size <= smallCopy:
		return ReadWrite
	}
	disk, moves := j.disk.(vfs.Mover)
	switch {
	case !moves:
		return ReadWrite
	case disk.CopiesRanges(j.in):
		return CopyRange
	}
	return Splice
}

// clone shares the source's bytes. If cloned is false, the other methods are tried.
func (j *copyJob) clone() (cloned bool, err error) {
	if j.done > 0 {
		return false, nil
	}
	err = errors.ErrUnsupported
	if disk, ok := j.disk.(vfs.Cloner); ok {
		err = sys.Uninterrupted(func() error { return disk.Clone(j.out, j.in) })
	}
	switch {
	case err == nil:
	case cannot(err) && j.o.Method == Auto:
		return false, nil
	case cannot(err):
		return false, j.cannotForced(0, err)
	default:
		return false, j.failed("reflink", 0, err)
	}
	j.r.Method = Reflink
	if err := j.lookAtCopy(); err != nil {
		return true, err
	}
	if j.has.Size > j.was.Size { // the source has grown since it was opened
		if err := j.truncate(j.was.Size); err != nil {
			return true, err
		}
	}
	j.progress(min(j.has.Size, j.was.Size))
	// The copy gets the unwritten allocated ranges of the source too. xfs shares written bytes
	// only, so a copy without holes lacks none. btrfs shares both, and a small file is not searched
	// there. Looking for holes takes a tenth to a quarter of the time of FIEMAP.
	if j.was.Size <= smallCopy && j.sharesFaster() {
		return true, nil
	}
	if hole, err := j.seek(vfs.Holes.SeekHole, j.out, 0); err == nil && hole >= j.done {
		return true, nil
	}
	room, err := j.unwritten(0)
	if err == nil {
		_, err = j.allocateIn(room, sys.Range{At: 0, End: j.done})
	}
	return true, err
}

// copyData copies the ranges of data, keeps holes, and allocates the ranges that the source has
// allocated and never written.
func (j *copyJob) copyData() error {
	size, sparse := j.was.Size, false
	// A small file with as many blocks as bytes is not searched for holes.
	if size > smallCopy || size > 0 && j.was.Blocks >= 0 && j.was.Blocks*512 < size {
		hole, err := j.seek(vfs.Holes.SeekHole, j.in, 0)
		switch {
		case err == nil:
			sparse = hole < size
		case cannot(err):
		case errors.Is(err, syscall.ENXIO): // it shrank to nothing
		default:
			return j.failed("look for holes", 0, err)
		}
	}
	if !sparse {
		return j.copyRange(sys.Range{At: j.done, End: size})
	}
	room, err := j.unwritten(j.done)
	if err != nil {
		return err
	}
	for from := j.done; from < size; {
		data, err := j.nextData(from)
		if err != nil {
			return err
		}
		if room, err = j.allocateIn(room, sys.Range{At: from, End: data.At}); err != nil {
			return err
		}
		j.progress(data.At)
		if err := j.copyRange(data); err != nil || j.done < data.End {
			return err // nil: the source has ended early
		}
		from = data.End
	}
	// The copy gets the source's size, and so a hole at its end if the source has one.
	return j.truncate(size)
}

// nextData returns the next range of data from at on. If there is none, the range is empty and
// at the end of the file.
func (j *copyJob) nextData(at int64) (sys.Range, error) {
	size := j.was.Size
	begin, err := j.seek(vfs.Holes.SeekData, j.in, at)
	if errors.Is(err, syscall.ENXIO) {
		return sys.Range{At: size, End: size}, nil
	}
	if err != nil {
		return sys.Range{}, j.failed("look for data", at, err)
	}
	begin = min(begin, size)
	end, err := j.seek(vfs.Holes.SeekHole, j.in, begin)
	if errors.Is(err, syscall.ENXIO) {
		return sys.Range{At: begin, End: size}, nil
	}
	if err != nil {
		return sys.Range{}, j.failed("look for holes", begin, err)
	}
	return sys.Range{At: begin, End: min(end, size)}, nil
}

func (j *copyJob) truncate(size int64) error {
	if err := sys.Uninterrupted(func() error { return j.disk.Truncate(j.out, size) }); err != nil {
		return j.failed("truncate", size, err)
	}
	return nil
}

func (j *copyJob) cannotForced(at int64, err error) error {
	return j.failed(j.o.Method.String(), at, fmt.Errorf("these files can't be copied that way: %w; use filecopy.Auto", err))
}

// progress records that the copy is complete up to a byte.
func (j *copyJob) progress(to int64) {
	if j.copier.moved != nil && to > j.done {
		j.copier.moved(to - j.done)
	}
	j.done = to
}

// move copies a range of data. It ends early at the end of the source.
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
		case err != nil && n == 0 && j.moving.method == CopyRange && (errors.Is(err, syscall.EIO) || errors.Is(err, syscall.EACCES)) && j.o.Method == Auto:
			// Some FUSE and SMB servers say so when they can't copy. If the disk has failed, the
			// next read or write says that.
			j.moving.method = ReadWrite
		case err != nil && j.moving.method != ReadWrite && cannot(err) || err == nil && n == 0 && j.moving.method != ReadWrite:
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

// fallBack changes to read and write, if the options name no method. Some files, such as those in
// /proc, are made when they are read: the kernel's methods copy nothing of them, at any size.
func (j *copyJob) fallBack(err error) error {
	if j.o.Method == Auto {
		j.moving.method = ReadWrite
		return nil
	}
	if err == nil { // the file may have ended
		n, err := j.readFull(j.in, make([]byte, 1), j.done)
		if n == 0 && err == nil {
			j.moving.method = ReadWrite
			return nil
		}
		return j.cannotForced(j.done, errors.New("it copies nothing"))
	}
	return j.cannotForced(j.done, err)
}

// step moves up to n bytes. On an error op is the failed call.
func (j *copyJob) step(at, n int64) (moved int, op string, err error) {
	piece := int(min(n, copyPiece))
	switch j.moving.method {
	case CopyRange:
		err = errors.ErrUnsupported
		if disk, ok := j.disk.(vfs.Mover); ok {
			moved, err = disk.CopyRange(j.out, j.in, at, piece)
		}
	case Splice:
		err = errors.ErrUnsupported
		if disk, ok := j.disk.(vfs.Mover); ok {
			moved, err = j.splice(disk, at, piece)
		}
	default:
		return j.readWrite(at, n)
	}
	return moved, j.moving.method.String(), err
}

// splice moves as many bytes as a pipe takes. If some of them do not leave the pipe, it closes the
// pipe.
func (j *copyJob) splice(disk vfs.Mover, at int64, n int) (moved int, err error) {
	if !j.moving.piped {
		if j.moving.r, j.moving.w, err = disk.Pipe(); err != nil {
			return 0, fmt.Errorf("%w: no pipe: %w", errors.ErrUnsupported, err) // too many files are open, for instance
		}
		j.moving.piped = true
	}
	n, err = disk.Splice(j.moving.w, -1, j.in, at, n)
	for err == nil && moved < n {
		var out int
		out, err = disk.Splice(j.out, at+int64(moved), j.moving.r, -1, n-moved)
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
		j.disk.Close(j.moving.r) // its bytes are not needed
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
	for moved < got {
		n, err := j.disk.WriteAt(j.out, b[moved:got], at+int64(moved))
		moved += n
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return moved, "write", err
		}
		if n == 0 && err == nil {
			return moved, "write", io.ErrShortWrite
		}
		if j.o.SyncWrites && n > 0 {
			if err := sys.Uninterrupted(func() error { return j.disk.Sync(j.out) }); err != nil {
				j.made.partial = false // the disk's part of it is not known
				return moved, "sync", err
			}
		}
	}
	return moved, "write", nil
}

// buffer returns the memory for read and write. Its size is the policy's, or fits the file's.
func (j *copyJob) buffer() []byte {
	if j.moving.buffer != nil {
		return j.moving.buffer
	}
	if size := j.o.Policy.Buffer; size > 0 {
		j.moving.buffer = make([]byte, size)
		return j.moving.buffer
	}
	size := min(j.was.Size/4, copyBuffer)
	switch source := j.was.Size; {
	case source == 0 || smallCopy < source && source < 4*smallCopy: // at 0 the size is unknown
		size = smallCopy
	case source <= smallCopy:
		size = source
	}
	j.moving.lent = buffersOf(int(size)).Get().(*[]byte)
	j.moving.buffer = (*j.moving.lent)[:size]
	return j.moving.buffer
}

// Unused buffers, shared by all calls: making and clearing one takes longer than copying a small
// file through it.
var (
	smallBuffers = sync.Pool{New: func() any { b := make([]byte, smallCopy); return &b }}
	largeBuffers = sync.Pool{New: func() any { b := make([]byte, copyBuffer); return &b }}
)

func buffersOf(size int) *sync.Pool {
	if size <= smallCopy {
		return &smallBuffers
	}
	return &largeBuffers
}
