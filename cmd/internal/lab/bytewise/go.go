package bytewise

import (
	"bufio"
	"errors"
	"os"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/cstdio"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/readahead"
)

// goFile is the way with a system call a byte in Go.
const goFile = "go_file"

// goWays are the ways to read and write a byte a call in Go.
var goWays = []byteWay{
	{
		name: goFile, block: 1,
		calls: map[direction]string{toRead: "os.File.Read", toWrite: "os.File.Write"},
		open:  openWith(fileReads),
		over: overWith(func(f *os.File) (goWrites, error) {
			all := func(n int64) (int64, error) {
				one := make([]byte, 1)
				for i := range n {
					if _, err := f.Write(one); err != nil {
						return i, err
					}
					one[0] = cstdio.After(one[0])
				}
				return n, nil
			}
			return goWrites{all, func() error { return nil }, f.Close}, nil
		}),
	},
	{
		name: "bufio", block: study.StdioBuffer,
		calls: map[direction]string{toRead: "bufio.ReadByte", toWrite: "bufio.WriteByte"},
		open:  openWith(bufioReads),
		over:  overWith(func(f *os.File) (goWrites, error) { return bufioWrites(f), nil }),
	},
	{
		name: "holdfast_reader", block: study.StdioBuffer,
		calls: map[direction]string{toRead: "Reader.ReadByte"},
		open:  openWith(holdfastReads),
	},
	{
		name: "holdfast_range", block: study.StdioBuffer, toEnd: true,
		calls: map[direction]string{toRead: "range Reader.Bytes()"},
		open:  openWith(holdfastRanges(study.StdioBuffer)),
	},
	{
		name: "holdfast_default", block: 256 << 10, toEnd: true,
		calls: map[direction]string{toRead: "range Reader.Bytes(), its own buffer"},
		open:  openWith(holdfastRanges(0)),
	},
	{
		name: "holdfast_writer", block: study.StdioBuffer,
		calls: map[direction]string{toWrite: "Writer.Write"},
		over:  overWith(holdfastWrites),
	},
	{
		name: "holdfast_bufio", block: study.StdioBuffer,
		calls: map[direction]string{toWrite: "bufio.WriteByte over a Writer"},
		over:  overWith(holdfastBufioWrites),
	},
}

// goReads are the ways to read a file's first n bytes; each returns their sum.
type goReads struct {
	all   func(n int64) (cstdio.Sum, int64, error)
	close func() error
}

// A goReader is a byteReader in Go.
type goReader struct {
	goReads
	sum cstdio.Sum
}

func (r *goReader) Read(n int64) (read int64, err error) {
	r.sum, read, err = r.all(n)
	return read, err
}
func (r *goReader) Sum() cstdio.Sum { return r.sum }
func (r *goReader) Close() error    { return r.close() }

// openWith opens a file for those reads.
func openWith(of func(*os.File) goReads) func(string) (byteReader, error) {
	return func(path string) (byteReader, error) {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		return &goReader{goReads: of(f)}, nil
	}
}

func fileReads(f *os.File) goReads {
	return goReads{func(n int64) (cstdio.Sum, int64, error) { return sumFile(f, n) }, f.Close}
}

func bufioReads(f *os.File) goReads {
	r := bufio.NewReaderSize(f, study.StdioBuffer)
	return goReads{func(n int64) (cstdio.Sum, int64, error) { return sumBufio(r, n) }, f.Close}
}

// holdfastReads are by ReadByte, with a buffer as large as the others have.
func holdfastReads(f *os.File) goReads {
	r := readahead.NewReader(f, readahead.Options{Buffer: study.StdioBuffer})
	return goReads{func(n int64) (cstdio.Sum, int64, error) { return sumReadByte(r, n) }, r.Close}
}

// holdfastRanges are by the iterator; a buffer of 0 is the Reader's own choice.
func holdfastRanges(buffer holdfast.Size) func(*os.File) goReads {
	return func(f *os.File) goReads {
		r := readahead.NewReader(f, readahead.Options{Buffer: buffer})
		return goReads{func(int64) (cstdio.Sum, int64, error) { return sumRange(r) }, r.Close}
	}
}

// The loops are functions of their own, each for one type. So the compiler keeps the
// sum in registers and inlines what it can, as it does in code that uses the type.

func sumFile(f *os.File, n int64) (sum cstdio.Sum, read int64, err error) {
	one := make([]byte, 1)
	for read < n {
		if _, err := f.Read(one); err != nil {
			return sum, read, err
		}
		sum.Add(one[0])
		read++
	}
	return sum, read, nil
}

func sumBufio(r *bufio.Reader, n int64) (sum cstdio.Sum, read int64, err error) {
	for read < n {
		b, err := r.ReadByte()
		if err != nil {
			return sum, read, err
		}
		sum.Add(b)
		read++
	}
	return sum, read, nil
}

func sumReadByte(r *readahead.Reader, n int64) (sum cstdio.Sum, read int64, err error) {
	for read < n {
		b, err := r.ReadByte()
		if err != nil {
			return sum, read, err
		}
		sum.Add(b)
		read++
	}
	return sum, read, nil
}

// sumRange reads all that there is.
func sumRange(r *readahead.Reader) (sum cstdio.Sum, read int64, err error) {
	for b := range r.Bytes() {
		sum.Add(b)
		read++
	}
	return sum, read, r.Err()
}

// goWrites are how a file is written: the pattern's first n bytes.
type goWrites struct {
	all          func(n int64) (int64, error)
	flush, close func() error
}

func (w goWrites) Write(n int64) (int64, error) { return w.all(n) }
func (w goWrites) Flush() error                 { return w.flush() }
func (w goWrites) Close() error                 { return w.close() }

// overWith opens a file to write over what is in it.
func overWith(of func(*os.File) (goWrites, error)) func(string) (byteWriter, error) {
	return func(path string) (byteWriter, error) {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		w, err := of(f)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return w, nil
	}
}

func holdfastWrites(f *os.File) (goWrites, error) {
	w, err := holdfast.New(f, holdfast.Buffered(study.StdioBuffer))
	if err != nil {
		return goWrites{}, err
	}
	all := func(n int64) (int64, error) {
		one := make([]byte, 1)
		for i := range n {
			if _, err := w.Write(one); err != nil {
				return i, err
			}
			one[0] = cstdio.After(one[0])
		}
		return n, nil
	}
	return goWrites{all, w.Flush, w.Close}, nil
}

func bufioWrites(f *os.File) goWrites {
	w := bufio.NewWriterSize(f, study.StdioBuffer)
	return goWrites{func(n int64) (int64, error) { return writeBufio(w, n) }, w.Flush, f.Close}
}

// holdfastBufioWrites gather bytes in a bufio.Writer, as one goroutine may. A full one is as long
// as the Writer's buffer, and so it is one write of the file.
func holdfastBufioWrites(f *os.File) (goWrites, error) {
	w, err := holdfast.New(f, holdfast.Buffered(study.StdioBuffer))
	if err != nil {
		return goWrites{}, err
	}
	b := bufio.NewWriterSize(w, study.StdioBuffer)
	flush := func() error { return errors.Join(b.Flush(), w.Flush()) }
	return goWrites{func(n int64) (int64, error) { return writeBufio(b, n) }, flush, w.Close}, nil
}

func writeBufio(w *bufio.Writer, n int64) (int64, error) {
	b := byte(0)
	for i := range n {
		if err := w.WriteByte(b); err != nil {
			return i, err
		}
		b = cstdio.After(b)
	}
	return n, nil
}
