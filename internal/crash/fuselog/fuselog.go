// Package fuselog serves a disk or a tree of files to the kernel through FUSE, and keeps a log of
// what reaches it.
//
// A [Disk] is one file, for a loop device with a real file system on it. A [Tree] is files and
// directories in memory, for programs. Each write, each change of names and each sync is an
// [Entry], in the kernel's order. It has the number of acknowledgements that a program had noted by
// then.
//
// The server is a process of its own that never touches its own mount. A Go program that does
// both may stop for ever: its runtime waits for a thread that waits for the server. So Serve
// answers POLL with ENOSYS, and uses no file of the mount.
//
// It knows the protocol of fuse(4) as far as they need it.
//
// Start with [Mount] and [Disk.Serve], or with [MountTree] and [Tree.Serve].
package fuselog

import (
	"encoding/binary"
	"errors"
)

// An Op is what the kernel asked for.
type Op uint32

// The operations.
const (
	Write  Op = iota + 1
	Sync      // all that was written before is on the disk; of a tree, what concerns the file or directory
	Resize    // of a tree: a file has a new size, which is the offset
	Name      // of a tree: names change, all together
	ops
)

// An Entry is one step of the disk or tree.
type Entry struct {
	Op     Op
	Notes  uint64 // how many acknowledgements there were
	At     int64  // in nanoseconds
	File   uint64 // of a tree: the number of the file or directory
	Offset int64
	Data   []byte
	Edits  []Edit // of a Name
}

// An Edit gives a name of a directory to a file or directory; 0 is none.
type Edit struct {
	Dir  uint64
	Name string
	File uint64
}

// Root is the number of a tree's first directory. Those of other directories have DirBit.
const (
	Root   = 1
	DirBit = 1 << 62
)

// entrySize is of an entry in a file, without its data. The operation and the size of the data have
// 4 bytes each; notes, time, file and offset have 8. All are little-endian. The data of a Name is
// its edits: directory and file in 8 bytes, the name's length in 4, the name.
const (
	entrySize = 40
	editSize  = 20
)

// Parse reads the entries of a log. A part of one at its end is none: it is being written.
func Parse(b []byte) (all []Entry, err error) {
	for len(b) >= entrySize {
		e := Entry{Op: Op(binary.LittleEndian.Uint32(b)), Notes: binary.LittleEndian.Uint64(b[8:]),
			At: int64(binary.LittleEndian.Uint64(b[16:])), File: binary.LittleEndian.Uint64(b[24:]), Offset: int64(binary.LittleEndian.Uint64(b[32:]))}
		size := int(binary.LittleEndian.Uint32(b[4:]))
		if e.Op == 0 || e.Op >= ops {
			return all, errLog
		}
		if size > len(b)-entrySize {
			break
		}
		e.Data, b = b[entrySize:entrySize+size:entrySize+size], b[entrySize+size:]
		if e.Op == Name {
			if e.Edits, err = parseEdits(e.Data); err != nil {
				return all, err
			}
			e.Data = nil
		}
		all = append(all, e)
	}
	return all, nil
}

var errLog = errors.New("this is no log of a disk")

func parseEdits(b []byte) (all []Edit, err error) {
	for len(b) > 0 {
		if len(b) < editSize || uint64(len(b)-editSize) < uint64(binary.LittleEndian.Uint32(b[16:])) {
			return nil, errLog
		}
		end := editSize + int(binary.LittleEndian.Uint32(b[16:]))
		all = append(all, Edit{binary.LittleEndian.Uint64(b), string(b[editSize:end]), binary.LittleEndian.Uint64(b[8:])})
		b = b[end:]
	}
	return all, nil
}
