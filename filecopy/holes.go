package filecopy

import (
	"errors"

	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

func (j *copyJob) seek(call func(vfs.Holes, int, int64) (int64, error), fd int, at int64) (found int64, err error) {
	disk, ok := j.disk.(vfs.Holes)
	if !ok {
		return 0, errors.ErrUnsupported
	}
	err = sys.Uninterrupted(func() (err error) {
		found, err = call(disk, fd, at)
		return err
	})
	return found, err
}

// unwritten returns the ranges from a byte on that are allocated in the source and were never
// written. If the system does not report them, they become holes.
func (j *copyJob) unwritten(from int64) (all []sys.Range, err error) {
	disk, ok := j.disk.(vfs.Holes)
	for next := from; ok && next >= 0 && next < j.was.Size; {
		err := sys.Uninterrupted(func() (err error) {
			all, next, err = disk.Unwritten(j.in, next, all)
			return err
		})
		if cannot(err) {
			return nil, nil
		}
		if err != nil {
			return nil, j.failed("look for room", -1, err)
		}
	}
	return all, nil
}

// allocateIn allocates in the copy the part of room within a hole of the source. It returns the
// room that may reach beyond the hole.
func (j *copyJob) allocateIn(room []sys.Range, hole sys.Range) (rest []sys.Range, err error) {
	for len(room) > 0 && room[0].At < hole.End {
		both := sys.Range{At: max(room[0].At, hole.At), End: min(room[0].End, hole.End)}
		if both.At < both.End {
			if err := j.allocate(both, false); err != nil {
				return nil, err
			}
		}
		if room[0].End > hole.End {
			break
		}
		room = room[1:]
	}
	return room, nil
}

func (j *copyJob) allocate(r sys.Range, grow bool) error {
	disk, ok := j.disk.(vfs.Allocator)
	if !ok {
		return nil
	}
	err := sys.Uninterrupted(func() error { return disk.Allocate(j.out, r.At, r.End-r.At, grow) })
	if err != nil && !cannot(err) {
		return j.failed("allocate", r.At, err)
	}
	return nil
}

// copyRange copies a range of data. It allocates the range first, if that is faster. It does not in
// a copy that may be resumed: the size of a partial copy counts written bytes only.
func (j *copyJob) copyRange(r sys.Range) error {
	if disk, ok := j.disk.(vfs.Allocator); ok && r.End-r.At >= worthAllocating && disk.AllocatesFaster(j.out) {
		// Under its own name a file must not grow before its bytes are there: a killed copy would leave
		// one of the full size, with zeros.
		if err := j.allocate(r, j.made.temporary != "" && !j.resumes()); err != nil {
			return err
		}
	}
	whole, err := j.move(r)
	if err == nil && !whole {
		return j.truncate(j.done) // cut off the allocated bytes
	}
	return err
}
