package filecopy

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// evictTries is the most requests to the kernel to drop pages. It keeps pages on a CPU's list of
// new pages until it is asked again.
const evictTries = 3

// verify reads the copy back from the disk, and the source again, and compares them.
func (j *copyJob) verify() error {
	if !j.o.Verify || !j.sync {
		return nil
	}
	j.made.partial = false // a wrong copy must not be resumed
	if err := j.evict(); err != nil {
		return j.failed("verify", -1, err)
	}
	at, err := j.firstDifference(j.done)
	switch {
	case err != nil:
		return err
	case at >= 0 && j.r.Changed:
		return j.failed("verify", at, errors.New("it differs from the source, which was written to meanwhile; copy it again"))
	case at >= 0:
		return j.failed("verify", at, errors.New("what was read back from the disk differs from the source"))
	}
	j.r.Verified = true
	return nil
}

// evict drops the copy from the page cache, and fails unless no page is left.
func (j *copyJob) evict() error {
	cache, ok := j.disk.(vfs.PageCache)
	if !ok {
		return fmt.Errorf("the copy can't be dropped from the page cache: %w", errors.ErrUnsupported)
	}
	var left int64
	for range evictTries {
		if err := sys.Uninterrupted(func() error { return cache.Evict(j.out) }); err != nil {
			return fmt.Errorf("the copy can't be dropped from the page cache: %w", err)
		}
		err := sys.Uninterrupted(func() (err error) {
			left, err = cache.Cached(j.out, j.done)
			return err
		})
		if err != nil {
			return fmt.Errorf("whether the copy is in the page cache is not known: %w", err)
		}
		if left == 0 {
			return nil
		}
	}
	return fmt.Errorf("the page cache keeps %d of the copy's pages, so that the disk would not be read; leave Verify out on this file system", left)
}

// firstDifference compares the beginnings of source and copy. It returns -1 if they are
// equal.
func (j *copyJob) firstDifference(size int64) (int64, error) {
	source, copied := make([]byte, copyBuffer), make([]byte, copyBuffer)
	for at := int64(0); at < size; {
		if j.ctx.Err() != nil {
			return 0, j.stopped()
		}
		n := min(copyBuffer, size-at)
		got, err := j.readFull(j.in, source[:n], at)
		if err != nil {
			return 0, j.failed("read", at+int64(got), err)
		}
		back, err := j.readFull(j.out, copied[:n], at)
		if err != nil {
			return 0, j.failed("read back", at+int64(back), err)
		}
		if !bytes.Equal(source[:got], copied[:back]) {
			return at + int64(differAt(source[:got], copied[:back])), nil
		}
		if got == 0 {
			break
		}
		at += int64(got)
	}
	return -1, nil
}

// differAt returns the index of the first difference of two slices.
func differAt(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// readFull reads until p is full or the file ends.
func (j *copyJob) readFull(fd int, p []byte, at int64) (got int, err error) {
	for got < len(p) {
		var n int
		err := sys.Uninterrupted(func() (err error) {
			n, err = j.disk.ReadAt(fd, p[got:], at+int64(got))
			return err
		})
		if err != nil || n == 0 {
			return got, err
		}
		got += n
	}
	return got, nil
}
