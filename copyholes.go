package holdfast

import (
	"errors"
	"syscall"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// copyData copies the ranges that hold data, leaves holes as holes, and gives the copy
// room where the source has room that was never written.
func (j *copyJob) copyData() error {
	hole, sparse, err := j.firstHole()
	if err != nil {
		return err
	}
	if !sparse {
		return j.copyRange(sys.Range{At: j.done, End: hole})
	}
	if err := j.copySparse(); err != nil {
		return err
	}
	if j.done < j.was.Size {
		return nil // it has ended early
	}
	return j.endSparse()
}

// firstHole says whether there is a hole to keep. Of a small file that has as many
// blocks as bytes it is not asked.
func (j *copyJob) firstHole() (at int64, sparse bool, err error) {
	size := j.was.Size
	if size == 0 || size <= smallCopy && (j.was.Blocks < 0 || j.was.Blocks*512 >= size) {
		return size, false, nil
	}
	at, err = j.seek(j.disk.SeekHole, j.in, 0)
	switch {
	case cannot(err):
		return size, false, nil
	case errors.Is(err, syscall.ENXIO): // it shrank to nothing
		return size, false, nil
	case err != nil:
		return 0, false, j.failed("look for holes", 0, err)
	}
	return size, at < size, nil
}

func (j *copyJob) seek(call func(int, int64) (int64, error), fd int, at int64) (found int64, err error) {
	err = uninterrupted(func() (err error) {
		found, err = call(fd, at)
		return err
	})
	return found, err
}

// copySparse copies the data and sets j.done to the end of the file, if it is that far.
func (j *copyJob) copySparse() error {
	room, err := j.unwritten(j.done)
	if err != nil {
		return err
	}
	from := j.done
	for from < j.was.Size {
		data, err := j.nextData(from)
		if err != nil {
			return err
		}
		if room, err = j.allocateIn(room, sys.Range{At: from, End: data.At}); err != nil {
			return err
		}
		j.progress(data.At)
		if err := j.copyRange(data); err != nil || j.done < data.End {
			return err
		}
		from = data.End
	}
	return nil
}

// nextData returns the next range of data from at on, which is empty and at the end of
// the file if there is none.
func (j *copyJob) nextData(at int64) (sys.Range, error) {
	size := j.was.Size
	begin, err := j.seek(j.disk.SeekData, j.in, at)
	if errors.Is(err, syscall.ENXIO) {
		return sys.Range{At: size, End: size}, nil
	}
	if err != nil {
		return sys.Range{}, j.failed("look for data", at, err)
	}
	begin = min(begin, size)
	end, err := j.seek(j.disk.SeekHole, j.in, begin)
	if errors.Is(err, syscall.ENXIO) {
		return sys.Range{At: begin, End: size}, nil
	}
	if err != nil {
		return sys.Range{}, j.failed("look for holes", begin, err)
	}
	return sys.Range{At: begin, End: min(end, size)}, nil
}

// unwritten returns where the source has room from a byte on that was never written.
// Where the system does not tell, such ranges become holes.
func (j *copyJob) unwritten(from int64) (all []sys.Range, err error) {
	for next := from; next >= 0 && next < j.was.Size; {
		err := uninterrupted(func() (err error) {
			all, next, err = j.disk.Unwritten(j.in, next, all)
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

// allocateIn gives the copy the room that the source has in a range without data. It
// returns the room that may reach behind that.
func (j *copyJob) allocateIn(room []sys.Range, hole sys.Range) (rest []sys.Range, err error) {
	for len(room) > 0 && room[0].At < hole.End {
		if r := cutRange(room[0], hole); r.At < r.End {
			if err := j.allocate(r, false); err != nil {
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
	err := uninterrupted(func() error { return j.disk.Allocate(j.out, r.At, r.End-r.At, grow) })
	if err != nil && !cannot(err) {
		return j.failed("allocate", r.At, err)
	}
	return nil
}

// copyRange copies a range of data, for which the room is allocated before if it is
// faster so. What is there of a copy that may be resumed must have been written: its
// size does not grow before.
func (j *copyJob) copyRange(r sys.Range) error {
	if n := r.End - r.At; n >= worthAllocating && j.disk.AllocatesFaster(j.out) {
		if err := j.allocate(r, !j.resumes()); err != nil {
			return err
		}
	}
	whole, err := j.move(r)
	if err == nil && !whole {
		return j.truncate(j.done) // what was allocated is not to be seen
	}
	return err
}

// endSparse gives the copy the source's size, which ends it with a hole if that does.
func (j *copyJob) endSparse() error { return j.truncate(j.was.Size) }
