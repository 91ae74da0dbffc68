package readahead

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// source is the reader below a Reader, and the properties that newSource found. One goroutine at a
// time uses it: the caller's, or the one that reads ahead.
type source struct {
	reader  io.Reader
	path    string // the file's name, or ""
	regular bool   // a file whose Reads end by themselves
	offset  int64  // number of bytes read so far
	behind  behind
	failed  error // the error of calls after its Read has panicked or ended the goroutine
}

// newSource returns a source and the number of bytes left in it, or 0 if that is not known.
func newSource(r io.Reader, dropBehind bool) (s source, remaining int64) {
	s = source{reader: r}
	f, ok := r.(*os.File)
	if !ok {
		return s, 0
	}
	s.path = f.Name()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return s, 0
	}
	at, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return s, 0
	}
	s.regular = true
	if dropBehind {
		s.behind = newBehind(f, at)
	}
	return s, info.Size() - at
}

// maxEmptyReads is the most Reads in a row that return no byte and no error.
const maxEmptyReads = 100

// read reads at least one byte into p, which is not empty, or returns an error, or both if the
// source returned both. If the source panics or ends its goroutine, so does read. After that, as
// after an error, it must not be called again.
func (s *source) read(p []byte) (n int, err error) {
	returned := false
	defer func() {
		if !returned {
			s.failLike(recover())
		}
	}()
	n, err = s.readSome(p)
	returned = true
	return n, err
}

// failLike records a panic of the source and panics with the same cause. If cause is nil, the
// source ended its goroutine, which continues to end by itself.
func (s *source) failLike(cause any) {
	format := "Read panicked, and the source is read no more: %v"
	if _, ok := cause.(error); ok {
		format = format[:len(format)-1] + "w"
	}
	if cause == nil {
		s.failed = s.wrap(errors.New("Read called runtime.Goexit, and the source is read no more"))
		return
	}
	s.failed = s.wrap(fmt.Errorf(format, cause))
	panic(cause)
}

func (s *source) readSome(p []byte) (n int, err error) {
	for range maxEmptyReads {
		n, err = s.reader.Read(p)
		if n < 0 || n > len(p) {
			err = fmt.Errorf("source says that it read %d bytes into %d", n, len(p))
			n = 0
		}
		s.offset += int64(n)
		if n > 0 || err != nil {
			s.behind.drop(s.offset, err != nil)
			return n, s.wrap(err)
		}
	}
	return 0, s.wrap(io.ErrNoProgress)
}

// wrap adds the path and the offset to an error. The end is no error.
func (s *source) wrap(err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return &Error{Path: s.path, Offset: s.offset, Err: err}
}

// closeEndsRead reports whether Close may be called during a Read, and ends it. Files and
// connections promise that, and they have deadlines.
func (s *source) closeEndsRead() bool {
	switch s.reader.(type) {
	case interface{ SetReadDeadline(time.Time) error }, *io.PipeReader:
		return true
	}
	return false
}

func (s *source) close() error {
	if c, ok := s.reader.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// behind drops the bytes that were read from the page cache. The zero behind does nothing.
type behind struct {
	advice *sys.ReadAdvice
	begin  int64 // the file offset at which the Reader began
	done   int64 // number of bytes dropped from there
}

func newBehind(f *os.File, begin int64) behind {
	advice, err := sys.NewReadAdvice(f)
	if err != nil {
		return behind{}
	}
	return behind{advice: advice, begin: begin}
}

const (
	// dropStep is the least size of a drop: a call for each small block would cost more than the
	// read.
	dropStep = int64(1 * holdfast.MiB)

	// dropAgain reaches back over the largest folio of the page cache: the last step did
	// not drop a folio that it cut in two.
	dropAgain = int64(2 * holdfast.MiB)
)

// drop drops the bytes up to read if they are at least dropStep, or the last ones. After a failure
// it does not try again.
func (b *behind) drop(read int64, last bool) {
	if b.advice == nil || read-b.done < dropStep && !last {
		return
	}
	from := max(0, b.begin+b.done-dropAgain)
	if err := b.advice.DontNeed(from, b.begin+read-from); err != nil {
		b.advice = nil
	}
	b.done = read
}
