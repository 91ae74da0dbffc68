package fuselog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// The requests of include/uapi/linux/fuse.h that one file needs.
const (
	opForget      = 2
	opGetattr     = 3
	opSetattr     = 4
	opOpen        = 14
	opRead        = 15
	opWrite       = 16
	opStatfs      = 17
	opRelease     = 18
	opFsync       = 20
	opFlush       = 25
	opInit        = 26
	opInterrupt   = 36
	opDestroy     = 38
	opBatchForget = 42
)

const (
	inHeader   = 40
	outHeader  = 16
	mostBytes  = 1 << 20 // of one write
	bigWrites  = 1 << 5  // FUSE_BIG_WRITES
	maxPages   = 1 << 22 // FUSE_MAX_PAGES
	minorKnown = 31      // of the protocol: FUSE_WRITEBACK_CACHE and others stay off
	initExt    = 1 << 30 // FUSE_INIT_EXT: there are flags2
	// flags2: FUSE_REQUEST_TIMEOUT, Linux 6.15. A request that has no answer for so many seconds
	// makes the kernel abort the connection, whatever the server and its program wait for. Older
	// kernels ignore it.
	requestTimeout = 1 << (42 - 32)
	answerSeconds  = 20
	noFlush        = 1 << 5 // FOPEN_NOFLUSH, Linux 5.16: a process that closes its copy in execve(2) does not wait for the server
)

// A Disk is a file that is served.
type Disk struct {
	Device int           // of /dev/fuse, see Mount
	Image  int           // a descriptor of the bytes
	Log    int           // a descriptor of the file that gets the entries
	Notes  func() uint64 // how many acknowledgements there are
	// Refuse, if there is one, chooses the writes that fail with EIO and never reach the disk.
	Refuse func(Entry) bool
	buf    []byte
	out    []byte
}

// Serve answers the kernel until the file is unmounted or the connection aborted.
func (d *Disk) Serve() error {
	var stat unix.Stat_t
	if err := unix.Fstat(d.Image, &stat); err != nil {
		return err
	}
	d.buf = make([]byte, mostBytes+4096)
	for {
		n, err := unix.Read(d.Device, d.buf)
		switch {
		case err == unix.EINTR || err == unix.EAGAIN || err == unix.ENOENT: // ENOENT: the request was interrupted
			continue
		case err == unix.ENODEV: // unmounted or aborted
			return nil
		case err != nil:
			return fmt.Errorf("read of /dev/fuse: %w", err)
		case n < inHeader:
			return errors.New("read of /dev/fuse: less than a request")
		}
		op, unique := binary.LittleEndian.Uint32(d.buf[4:]), binary.LittleEndian.Uint64(d.buf[8:])
		if op == opForget || op == opBatchForget || op == opInterrupt {
			continue // these have no answer
		}
		d.out = append(d.out[:0], make([]byte, outHeader)...)
		errno, err := d.answer(op, d.buf[inHeader:n], stat.Size)
		if err != nil {
			return err
		}
		if errno != 0 {
			d.out = d.out[:outHeader]
		}
		binary.LittleEndian.PutUint32(d.out, uint32(len(d.out)))
		binary.LittleEndian.PutUint32(d.out[4:], uint32(-int32(errno)))
		binary.LittleEndian.PutUint64(d.out[8:], unique)
		if _, err := unix.Write(d.Device, d.out); err != nil && err != unix.ENOENT && err != unix.EINTR && err != unix.ENODEV {
			return fmt.Errorf("write of /dev/fuse: %w", err)
		}
	}
}

func (d *Disk) put32(all ...uint32) {
	for _, x := range all {
		d.out = binary.LittleEndian.AppendUint32(d.out, x)
	}
}

func (d *Disk) put64(all ...uint64) {
	for _, x := range all {
		d.out = binary.LittleEndian.AppendUint64(d.out, x)
	}
}

// answer appends the answer to a request. What the log can't keep is an error of the server.
func (d *Disk) answer(op uint32, in []byte, size int64) (unix.Errno, error) {
	const forEver = 1 << 30 // seconds that the kernel may remember attributes
	switch op {
	case opInit:
		// fuse_init_out: major, minor, max_readahead, flags, max_background and
		// congestion_threshold, max_write, time_gran, max_pages and map_alignment, flags2,
		// max_stack_depth, request_timeout, the rest
		d.put32(7, minorKnown, binary.LittleEndian.Uint32(in[8:]), bigWrites|maxPages|initExt, 16|12<<16, mostBytes, 1, mostBytes/4096,
			requestTimeout, 0, answerSeconds)
		d.out = append(d.out, make([]byte, 64-44)...)
	case opGetattr, opSetattr: // the kernel sets times; nobody else may set anything
		d.put64(forEver, 0)                             // fuse_attr_out
		d.put64(1, uint64(size), uint64(size)/512)      // ino, size, blocks
		d.put64(0, 0, 0)                                // times
		d.put32(0, 0, 0)                                // their nanoseconds
		d.put32(unix.S_IFREG|0o600, 1, 0, 0, 0, 512, 0) // mode, nlink, uid, gid, rdev, blksize, flags
	case opOpen:
		d.put64(1)
		d.put32(noFlush, 0) // through the page cache
	case opRead:
		at, n := int64(binary.LittleEndian.Uint64(in[8:])), int(binary.LittleEndian.Uint32(in[16:]))
		d.out = append(d.out, make([]byte, min(n, mostBytes))...)
		n, err := unix.Pread(d.Image, d.out[outHeader:], at)
		if err != nil {
			return unix.EIO, nil
		}
		d.out = d.out[:outHeader+n]
	case opWrite:
		at, n := int64(binary.LittleEndian.Uint64(in[8:])), binary.LittleEndian.Uint32(in[16:])
		data := in[40:][:n]
		e := Entry{Op: Write, Offset: at, Data: data}
		if d.Refuse != nil && d.Refuse(e) {
			return unix.EIO, nil
		}
		if err := d.log(e); err != nil {
			return 0, err
		}
		for done := 0; done < len(data); {
			m, err := unix.Pwrite(d.Image, data[done:], at+int64(done))
			if err != nil {
				return unix.EIO, fmt.Errorf("write of the image: %w", err)
			}
			done += m
		}
		d.put32(n, 0)
	case opFsync:
		if err := d.log(Entry{Op: Sync}); err != nil {
			return 0, err
		}
	case opStatfs:
		d.put64(uint64(size)/512, 0, 0, 1, 0)
		d.put32(512, 255, 512, 0, 0, 0, 0, 0, 0, 0)
	case opRelease, opFlush, opDestroy:
	default: // POLL too, so that the kernel asks for it no more
		return unix.ENOSYS, nil
	}
	return 0, nil
}

// log appends an entry, before the kernel has its answer.
func (d *Disk) log(e Entry) error {
	b := make([]byte, 0, entrySize+len(e.Data))
	for _, x := range []uint32{uint32(e.Op), uint32(len(e.Data))} {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	for _, x := range []uint64{d.Notes(), uint64(time.Now().UnixNano()), uint64(e.Offset)} {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	b = append(b, e.Data...)
	n, err := unix.Write(d.Log, b)
	if err == nil && n < len(b) {
		err = unix.ENOSPC
	}
	if err != nil {
		return fmt.Errorf("write of the log: %w", err)
	}
	return nil
}
