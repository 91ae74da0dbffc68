package powercut

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/crash"
)

// The requests of include/uapi/linux/fuse.h that are answered.
const (
	opLookup      = 1
	opForget      = 2
	opGetattr     = 3
	opSetattr     = 4
	opMknod       = 8
	opMkdir       = 9
	opUnlink      = 10
	opRmdir       = 11
	opRename      = 12
	opLink        = 13
	opOpen        = 14
	opRead        = 15
	opWrite       = 16
	opStatfs      = 17
	opRelease     = 18
	opFsync       = 20
	opFlush       = 25
	opInit        = 26
	opOpendir     = 27
	opReaddir     = 28
	opReleasedir  = 29
	opFsyncdir    = 30
	opCreate      = 35
	opInterrupt   = 36
	opDestroy     = 38
	opBatchForget = 42
	opFallocate   = 43
	opRename2     = 45
	opTmpfile     = 51
)

const (
	inHeader   = 40
	outHeader  = 16
	mostWrite  = 1 << 20 // of one write
	bigWrites  = 1 << 5  // FUSE_BIG_WRITES
	maxPages   = 1 << 22 // FUSE_MAX_PAGES
	minorKnown = 31      // of the protocol: FUSE_WRITEBACK_CACHE and others stay off
	initExt    = 1 << 30 // FUSE_INIT_EXT: there are flags2
	// flags2: FUSE_REQUEST_TIMEOUT, Linux 6.15. A request without an answer for this number of
	// seconds makes the kernel abort the connection, whatever the server and its program wait for.
	// Older kernels ignore it.
	requestTimeout = 1 << (42 - 32)
	answerSeconds  = 20
	forEver        = 1 << 30 // seconds that the kernel may remember attributes
	openNoFlush    = 1 << 5  // FOPEN_NOFLUSH, Linux 5.16: a process that closes its copy in execve(2) does not wait for the server
)

// A server answers the kernel's requests on a mount by FUSE, and keeps a log of the changes, in the kernel's
// order. It knows the protocol of fuse(4) as far as a disk and a tree need it.
//
// It is a process of its own that never touches its own mount. A Go program that does both may stop
// for ever: its runtime waits for a thread that waits for the server. So POLL has the answer ENOSYS.
type server struct {
	device int           // of /dev/fuse, see mountDisk and mountTree
	file   int           // a descriptor of the file that gets the entries
	notes  func() uint64 // how many acknowledgements there are
	out    []byte
	entry  []byte
}

// A request is one request of the kernel.
type request struct {
	op   uint32
	node uint64 // of a tree: the file or directory
	in   []byte // behind the header
}

// serve answers the kernel until the mount has ended or the connection was aborted. answer appends
// the answer to the server's out, unless it returns an error's number. Its error ends the server.
func (d *server) serve(answer func(request) (unix.Errno, error)) error {
	in := make([]byte, mostWrite+4096)
	for {
		n, err := unix.Read(d.device, in)
		switch {
		case err == unix.EINTR || err == unix.EAGAIN || err == unix.ENOENT: // ENOENT: the request was interrupted
			continue
		case err == unix.ENODEV || err == unix.ECONNABORTED: // unmounted or aborted, the latter also while a request is taken
			return nil
		case err != nil:
			return fmt.Errorf("read of /dev/fuse: %w", err)
		case n < inHeader:
			return errors.New("read of /dev/fuse: less than a request")
		}
		q := request{binary.LittleEndian.Uint32(in[4:]), binary.LittleEndian.Uint64(in[16:]), in[inHeader:n]}
		unique := binary.LittleEndian.Uint64(in[8:])
		d.out = append(d.out[:0], make([]byte, outHeader)...)
		errno, err := answer(q)
		if err != nil {
			return err
		}
		if q.op == opForget || q.op == opBatchForget || q.op == opInterrupt {
			continue // these have no answer
		}
		if errno != 0 {
			d.out = d.out[:outHeader]
		}
		binary.LittleEndian.PutUint32(d.out, uint32(len(d.out)))
		binary.LittleEndian.PutUint32(d.out[4:], uint32(-int32(errno)))
		binary.LittleEndian.PutUint64(d.out[8:], unique)
		if _, err := unix.Write(d.device, d.out); err != nil && err != unix.ENOENT && err != unix.EINTR && err != unix.ENODEV {
			return fmt.Errorf("write of /dev/fuse: %w", err)
		}
	}
}

func (d *server) put32(all ...uint32) {
	for _, x := range all {
		d.out = binary.LittleEndian.AppendUint32(d.out, x)
	}
}

func (d *server) put64(all ...uint64) {
	for _, x := range all {
		d.out = binary.LittleEndian.AppendUint64(d.out, x)
	}
}

// init answers the kernel's first request.
func (d *server) init(in []byte) {
	// fuse_init_out: major, minor, max_readahead, flags, max_background and
	// congestion_threshold, max_write, time_gran, max_pages and map_alignment, flags2,
	// max_stack_depth, request_timeout, the rest
	d.put32(7, minorKnown, binary.LittleEndian.Uint32(in[8:]), bigWrites|maxPages|initExt, 16|12<<16, mostWrite, 1, mostWrite/4096,
		requestTimeout, 0, answerSeconds)
	d.out = append(d.out, make([]byte, 64-44)...)
}

// statfs answers with a size of blocks, and with how many there are and are free.
func (d *server) statfs(size uint32, blocks, free uint64) {
	d.put64(blocks, free, free, 1<<20, 1<<20)
	d.put32(size, 255, size, 0, 0, 0, 0, 0, 0, 0)
}

// log appends an entry, before the kernel has its answer.
func (d *server) log(e crash.Entry) error {
	e.At = time.Now().UnixNano()
	d.entry = (&logged{e, d.notes()}).append(d.entry[:0])
	n, err := unix.Write(d.file, d.entry)
	if err == nil && n < len(d.entry) {
		err = unix.ENOSPC
	}
	if err != nil {
		return fmt.Errorf("write of the log: %w", err)
	}
	return nil
}

// A diskServer serves a file.
type diskServer struct {
	server
	image int // a descriptor of the bytes
	// Refuse, if there is one, chooses the writes that fail with EIO and never reach the disk.
	refuse func(crash.Entry) bool
}

// serve answers the kernel until the file is unmounted or the connection aborted.
func (d *diskServer) serve() error {
	var stat unix.Stat_t
	if err := unix.Fstat(d.image, &stat); err != nil {
		return err
	}
	return d.server.serve(func(q request) (unix.Errno, error) { return d.answer(q.op, q.in, stat.Size) })
}

// answer appends the answer to a request. A change that the log can't keep is an error of the server.
func (d *diskServer) answer(op uint32, in []byte, size int64) (unix.Errno, error) {
	switch op {
	case opInit:
		d.init(in)
	case opGetattr, opSetattr: // the kernel sets times; nobody else may set anything
		d.put64(forEver, 0)                             // fuse_attr_out
		d.put64(1, uint64(size), uint64(size)/512)      // ino, size, blocks
		d.put64(0, 0, 0)                                // times
		d.put32(0, 0, 0)                                // their nanoseconds
		d.put32(unix.S_IFREG|0o600, 1, 0, 0, 0, 512, 0) // mode, nlink, uid, gid, rdev, blksize, flags
	case opOpen:
		d.put64(1)
		d.put32(openNoFlush, 0) // through the page cache
	case opRead:
		at, n := int64(binary.LittleEndian.Uint64(in[8:])), int(binary.LittleEndian.Uint32(in[16:]))
		d.out = append(d.out, make([]byte, min(n, mostWrite))...)
		n, err := unix.Pread(d.image, d.out[outHeader:], at)
		if err != nil {
			return unix.EIO, nil
		}
		d.out = d.out[:outHeader+n]
	case opWrite:
		at, n := int64(binary.LittleEndian.Uint64(in[8:])), binary.LittleEndian.Uint32(in[16:])
		data := in[40:][:n]
		e := crash.Entry{Op: crash.Write, Offset: at, Data: data}
		if d.refuse != nil && d.refuse(e) {
			return unix.EIO, d.log(crash.Entry{Op: crash.Lose, Offset: at})
		}
		if err := d.log(e); err != nil {
			return 0, err
		}
		for done := 0; done < len(data); {
			m, err := unix.Pwrite(d.image, data[done:], at+int64(done))
			if err != nil {
				return unix.EIO, fmt.Errorf("write of the image: %w", err)
			}
			done += m
		}
		d.put32(n, 0)
	case opFsync:
		if err := d.log(crash.Entry{Op: crash.Flush}); err != nil {
			return 0, err
		}
	case opStatfs:
		d.statfs(512, uint64(size)/512, 0)
	case opRelease, opFlush, opDestroy:
	default: // POLL too, so that the kernel asks for it no more
		return unix.ENOSYS, nil
	}
	return 0, nil
}
