package powercut

import (
	"encoding/binary"
	"errors"

	"github.com/holdfast-go/holdfast/internal/crash"
)

// A logged is an entry as the process that serves a disk or a tree writes it. It is a Write, a Flush, a Resize,
// a Name or the Lose of a disk, without UpTo. A Flush of a tree has the number of the file or directory.
type logged struct {
	crash.Entry
	notes uint64 // how many acknowledgements there were
}

// entrySize is of an entry in a file, without its data. The operation and the size of the data have
// 4 bytes each; notes, time, file and offset have 8. All are little-endian. The data of a Name is
// its edits: directory and file in 8 bytes, the name's length in 4, the name.
const (
	entrySize = 40
	editSize  = 20
)

// append appends the entry as it stands in a log.
func (e *logged) append(b []byte) []byte {
	data := e.Data
	for _, x := range e.Edits {
		data = binary.LittleEndian.AppendUint64(data, x.Dir)
		data = binary.LittleEndian.AppendUint64(data, x.File)
		data = binary.LittleEndian.AppendUint32(data, uint32(len(x.Name)))
		data = append(data, x.Name...)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(e.Op))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(data)))
	for _, x := range []uint64{e.notes, uint64(e.At), e.File, uint64(e.Offset)} {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	return append(b, data...)
}

// parseLog reads the entries of a log. A part of one at its end is none: it is being written.
func parseLog(b []byte) (all []logged, err error) {
	for len(b) >= entrySize {
		op, size := binary.LittleEndian.Uint32(b), int(binary.LittleEndian.Uint32(b[4:]))
		e := logged{notes: binary.LittleEndian.Uint64(b[8:])}
		e.Op, e.At, e.File, e.Offset = crash.Op(op), int64(binary.LittleEndian.Uint64(b[16:])), binary.LittleEndian.Uint64(b[24:]), int64(binary.LittleEndian.Uint64(b[32:]))
		if op == 0 || op > uint32(crash.Lose) {
			return all, errLog
		}
		if size > len(b)-entrySize {
			break
		}
		e.Data, b = b[entrySize:entrySize+size:entrySize+size], b[entrySize+size:]
		if e.Op == crash.Name {
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

func parseEdits(b []byte) (all []crash.Edit, err error) {
	for len(b) > 0 {
		if len(b) < editSize || uint64(len(b)-editSize) < uint64(binary.LittleEndian.Uint32(b[16:])) {
			return nil, errLog
		}
		end := editSize + int(binary.LittleEndian.Uint32(b[16:]))
		all = append(all, crash.Edit{Dir: binary.LittleEndian.Uint64(b), Name: string(b[editSize:end]), File: binary.LittleEndian.Uint64(b[8:])})
		b = b[end:]
	}
	return all, nil
}
