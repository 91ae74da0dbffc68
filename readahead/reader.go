// Package readahead reads a file or another source by bytes, lines or blocks, and reads ahead if
// that is faster. Start with [Open] or [NewReader].
package readahead

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// Options configure a [Reader]. The zero value is safe, and fast for files that are read from start
// to end.
type Options struct {
	// Buffer is the size of the Reader's reads; 0 is 256 KiB. A smaller file gets a smaller buffer.
	Buffer holdfast.Size

	// MaxLine is the longest line that ReadLine and Lines return, without its "\n"; 0 is
	// 64 MiB. Their memory grows to about twice the longest line of the source.
	MaxLine holdfast.Size

	// ReadAhead says who reads the next block: the caller, or a goroutine.
	ReadAhead Mode

	// DropBehind asks the kernel to drop bytes from the page cache after they were read. So reading
	// a large file once does not push out pages that are read often. It also drops pages that were
	// cached before. It works for regular files on Linux only.
	DropBehind bool
}

const (
	defaultBlock   = 256 * holdfast.KiB
	defaultMaxLine = 64 * holdfast.MiB

	// smallestBlock is a page: the smallest read of a small file.
	smallestBlock = 4 * holdfast.KiB

	// mostBuffer keeps a mistaken unit from taking all memory.
	mostBuffer = min(holdfast.GiB, holdfast.Size(math.MaxInt/2))
)

func (o Options) validate() error {
	switch {
	case o.Buffer < 0:
		return fmt.Errorf("reader: buffer of %d bytes is negative; use 0 for %v", o.Buffer, defaultBlock)
	case o.Buffer > mostBuffer:
		return fmt.Errorf("reader: buffer=%v is more than %v; a Reader holds twice its buffer in memory", o.Buffer, mostBuffer)
	case o.MaxLine < 0:
		return fmt.Errorf("reader: longest line of %d bytes is negative; use 0 for %v", o.MaxLine, defaultMaxLine)
	case o.ReadAhead < Regular || o.ReadAhead > Never:
		return fmt.Errorf("reader: read-ahead %d is not known; use Regular, Always or Never", o.ReadAhead)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.Buffer == 0 {
		o.Buffer = defaultBlock
	}
	if o.MaxLine == 0 {
		o.MaxLine = defaultMaxLine
	}
	return o
}

// A Reader reads a file, or another [io.Reader], from its position to its end: by bytes, lines,
// blocks, or as an io.Reader. These may be mixed; each continues where the last one stopped, and no
// byte is read twice or left out.
//
// A Reader is for one goroutine at a time. A call blocks as long as the source's Read does. In
// steady state it does not allocate.
//
// A slice of ReadLine, Lines, Blocks or Peek aliases the Reader's memory. It is valid until the
// next call of any method, and must not be changed.
//
// Errors: the end is a bare [io.EOF]. Any other error of the source is an [Error] with its offset.
// The Reader returns all bytes before it first, then the error at every call, and does not read the
// source again. If the source's Read panics, or ends its goroutine, so does the call that needs its
// bytes, even if a goroutine reads ahead. Later calls return an Error that says so.
//
// A file that shrinks while it is read ends early, and one that grows may end late; neither is an
// error.
//
// A Reader must be closed. No goroutine is left after Close.
type Reader struct {
	// view[pos:] holds the unconsumed bytes. These two fields come first, and pos is an index into
	// view and not cut off from it: otherwise ReadByte is too large to be inlined.
	view []byte
	pos  int

	// low is the least pos that UnreadByte may restore.
	low int

	// err is the error after view, nil while it is not known.
	err error

	block   int // the size of a read of the source
	head    int // the size of the room before a block in mem
	most    int // the most bytes that Peek returns
	maxLine int
	source  source

	// mem is a block with room before it for the rest of the last block, so a line or a Peek across
	// both is one slice. view lies in mem, in long if that room is too small, or in single.
	mem    []byte
	long   []byte
	single [1]byte

	pace  pace
	ahead *ahead // nil while the caller reads

	closed   bool
	closeErr error
	last     error // the value of Err before Close
}

// NewReader returns a Reader that reads r from its position. Close closes r if it is an
// [io.Closer]. Until then nothing else may read r: the Reader reads more of it than it has
// returned.
//
// If the options are invalid, every call except Close returns an error that says so, unless it asks
// for 0 bytes.
func NewReader(r io.Reader, o Options) *Reader {
	if err := o.validate(); err != nil {
		return &Reader{source: source{reader: r}, most: math.MaxInt, err: fmt.Errorf("holdfast: %w", err)}
	}
	o = o.withDefaults()
	s, remaining := newSource(r, o.DropBehind)
	block := int(o.Buffer)
	if remaining > 0 {
		// One byte more than the file has finds its end in the same Read.
		block = int(min(o.Buffer, max(smallestBlock, holdfast.Size(remaining)+1)))
	}
	return &Reader{
		block:   block,
		head:    max(1, block/4),
		most:    int(o.Buffer),
		maxLine: int(min(o.MaxLine, math.MaxInt)),
		source:  s,
		pace:    newPace(o.ReadAhead, s.regular),
	}
}

// Open opens the file path and returns a Reader on it, which Close closes. A refusal of the system is
// os.Open's own error.
func Open(path string, o Options) (*Reader, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("holdfast: %w", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return NewReader(f, o), nil
}

// Read reads up to len(p) bytes. If the Reader holds bytes, it returns them without a Read of the
// source. If it holds none and p is as large as its buffer, the source reads into p and nothing is
// copied.
func (r *Reader) Read(p []byte) (n int, err error) {
	if r.pos == len(r.view) {
		switch {
		case r.err != nil:
			return 0, r.err
		case len(p) == 0:
			return 0, nil
		case len(p) >= r.block && r.ahead == nil:
			return r.readBypassing(p)
		}
		if err := r.more(); err != nil {
			return 0, err
		}
	}
	n = copy(p, r.view[r.pos:])
	r.pos += n
	return n, nil
}

// readBypassing reads from the source into p, past the Reader's memory.
func (r *Reader) readBypassing(p []byte) (n int, err error) {
	n, err = r.read(p)
	r.err = err
	if n == 0 {
		return 0, r.err
	}
	r.single[0] = p[n-1]
	r.view, r.pos, r.low = r.single[:], 1, 0
	return n, nil
}

// ReadByte reads one byte; with an error it returns 0.
//
// The compiler inlines it, and a test checks that. For this, fill leaves a byte in view even on an
// error.
func (r *Reader) ReadByte() (c byte, err error) {
	if r.pos == len(r.view) {
		err = r.fill()
	}
	c = r.view[r.pos]
	r.pos++
	return
}

// fill puts a byte into view for ReadByte; on an error the byte is 0 and not part of the source.
func (r *Reader) fill() error {
	err := r.more()
	if err != nil {
		r.single[0] = 0
		r.view, r.pos, r.low = r.single[:], 0, 1
	}
	return err
}

// UnreadByte unreads the last byte consumed by any call. It succeeds once after a ReadByte without
// an error. If the byte is no longer in memory it returns [bufio.ErrInvalidUnreadByte].
func (r *Reader) UnreadByte() error {
	if r.pos <= r.low {
		if r.most == math.MaxInt { // the Reader is closed, or its options are invalid
			return r.err
		}
		return bufio.ErrInvalidUnreadByte
	}
	r.pos--
	return nil
}

// Peek returns the next n bytes without consuming them. If fewer are left it returns these and the
// error after them. If n is larger than the Buffer of the options, it returns an error that wraps
// [bufio.ErrBufferFull].
func (r *Reader) Peek(n int) ([]byte, error) {
	switch {
	case n < 0:
		return nil, fmt.Errorf("holdfast: peek of %d bytes: %w", n, bufio.ErrNegativeCount)
	case n > r.most:
		return nil, fmt.Errorf("holdfast: peek of %d bytes is more than the buffer of %d; open the Reader with a larger one: %w", n, r.most, bufio.ErrBufferFull)
	}
	for r.buffered() < n {
		if err := r.more(); err != nil {
			return r.view[r.pos:], err
		}
	}
	return r.view[r.pos : r.pos+n : r.pos+n], nil
}

// Discard consumes the next n bytes and returns their number: n, or fewer with the error after
// them.
func (r *Reader) Discard(n int) (discarded int, err error) {
	if n < 0 {
		return 0, fmt.Errorf("holdfast: discard of %d bytes: %w", n, bufio.ErrNegativeCount)
	}
	for {
		k := min(n-discarded, r.buffered())
		r.pos += k
		discarded += k
		if discarded == n {
			return n, nil
		}
		if err := r.more(); err != nil {
			return discarded, err
		}
	}
}

// WriteTo writes all remaining bytes to w, block by block, and returns their number. At the end of
// the source the error is nil. If w fails, the bytes that it did not take are not consumed.
func (r *Reader) WriteTo(w io.Writer) (n int64, err error) {
	for {
		for r.buffered() > 0 {
			k, err := w.Write(r.view[r.pos:])
			if k < 0 || k > r.buffered() {
				return n, fmt.Errorf("holdfast: writer says that it wrote %d of %d bytes", k, r.buffered())
			}
			r.pos += k
			n += int64(k)
			if err == nil && r.buffered() > 0 {
				err = io.ErrShortWrite
			}
			if err != nil {
				return n, err
			}
		}
		if err := r.more(); err != nil {
			return n, notEOF(err)
		}
	}
}

// Err returns the error that ended the reading. It is nil before that, and at the end of the
// source. After Close it returns the same as before.
func (r *Reader) Err() error {
	if r.closed {
		return r.last
	}
	if r.buffered() > 0 {
		return nil
	}
	return notEOF(r.err)
}

func notEOF(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// Close stops the background goroutine, closes the source if it is an [io.Closer], and returns the
// error of that. A second Close returns the same error. Every later call except Err returns an
// error that wraps os.ErrClosed, unless it asks for 0 bytes.
//
// Close waits for a Read in the background. A Read of a regular file ends by itself. Close ends a
// Read of a pipe, a socket or another source with deadlines at once. Other sources are read in the
// background only with [Always], and their Reads may take long.
func (r *Reader) Close() error {
	if r.closed {
		return r.closeErr
	}
	r.last = r.Err()
	r.closed = true
	r.closeErr = r.end()
	r.err = errReaderClosed
	r.view, r.pos, r.low = nil, 0, 0
	r.mem, r.long, r.most = nil, nil, math.MaxInt
	return r.closeErr
}

// end stops the background goroutine and closes the source, in the order that ends a Read soonest.
func (r *Reader) end() error {
	if r.ahead == nil {
		return r.source.close()
	}
	r.ahead.stop()
	if !r.source.closeEndsRead() {
		r.ahead.wait()
		return r.source.close()
	}
	err := r.source.close()
	r.ahead.wait()
	return err
}

const errReaderClosed = sys.Closed("holdfast: reader is closed")

func (r *Reader) buffered() int { return len(r.view) - r.pos }
