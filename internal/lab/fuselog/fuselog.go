// Package fuselog serves a disk to the kernel through FUSE, and keeps a log of what reaches it.
//
// The disk is one file, for a loop device with a real file system on it. Each write and each
// sync is an [Entry], in the order in which the kernel asked for it, with the number of
// acknowledgements that a program had noted by then.
//
// The server is a process of its own that never touches its own mount. A Go program that does
// both may stop for ever: its runtime waits for a thread that waits for the server. So Serve
// answers POLL with ENOSYS, and uses no file of the mount.
//
// It knows the protocol of fuse(4) as far as such a file needs it, and no file system.
//
// Start with [Mount] and [Serve].
package fuselog

import (
	"encoding/binary"
	"errors"
)

// An Op is what the kernel asked for.
type Op uint32

// The operations.
const (
	Write Op = iota + 1
	Sync     // all that was written before is on the disk
)

// An Entry is one step of the disk.
type Entry struct {
	Op     Op
	Notes  uint64 // how many acknowledgements there were
	At     int64  // in nanoseconds
	Offset int64
	Data   []byte
}

// entrySize is of an entry in a file, without its data: the operation and the size of the data in
// 4 bytes each, notes, time and offset in 8, all little-endian.
const entrySize = 32

// Parse reads the entries of a log. A part of one at its end is none: it is being written.
func Parse(b []byte) (all []Entry, err error) {
	for len(b) >= entrySize {
		e := Entry{Op: Op(binary.LittleEndian.Uint32(b)), Notes: binary.LittleEndian.Uint64(b[8:]),
			At: int64(binary.LittleEndian.Uint64(b[16:])), Offset: int64(binary.LittleEndian.Uint64(b[24:]))}
		size := int(binary.LittleEndian.Uint32(b[4:]))
		if e.Op != Write && e.Op != Sync {
			return all, errors.New("this is no log of a disk")
		}
		if size > len(b)-entrySize {
			break
		}
		e.Data, b = b[entrySize:entrySize+size:entrySize+size], b[entrySize+size:]
		all = append(all, e)
	}
	return all, nil
}
