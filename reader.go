package holdfast

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
)

// ReadOptions say how a [Reader] reads. The zero value is safe, and fast for
// files that are read from one end to the other.
type ReadOptions struct {
	// Buffer is how many bytes are asked of the source at once; 0 is 256 KiB. A
	// file that is smaller gets a smaller one.
	Buffer Size

	// MaxLine is the longest line that ReadLine and Lines return, its "\n" not
	// counted; 0 is 64 MiB. Their memory grows to some twice the longest line that
	// there is.
	MaxLine Size

	// ReadAhead says who reads the next block.
	ReadAhead ReadAhead

	// DropBehind asks the kernel to drop what was read from the page cache, so
	// that reading a large file once does not push out what is read often. It
	// drops pages that were cached before, too. It does something for regular
	// files on Linux, and is ignored elsewhere.
	DropBehind bool
}

const (
	defaultBlock   = 256 * KiB
	defaultMaxLine = 64 * MiB

	// smallestBlock is a page: the least that is asked of a small file.
	smallestBlock = 4 * KiB
)

func (o ReadOptions) validate() error {
	switch {
	case o.Buffer < 0:
		return fmt.Errorf("reader: buffer of %d bytes is negative; use 0 for %v", o.Buffer, defaultBlock)
	case o.Buffer > maxBuffer:
		return fmt.Errorf("reader: buffer=%v is more than %v; a Reader holds twice its buffer in memory", o.Buffer, maxBuffer)
	case o.MaxLine < 0:
		return fmt.Errorf("reader: longest line of %d bytes is negative; use 0 for %v", o.MaxLine, defaultMaxLine)
	case o.ReadAhead < ReadAheadFiles || o.ReadAhead > ReadAheadNever:
		return fmt.Errorf("reader: read-ahead %d is not known; use ReadAheadFiles, ReadAheadAlways or ReadAheadNever", o.ReadAhead)
	}
	return nil
}

func (o ReadOptions) withDefaults() ReadOptions {
	if o.Buffer == 0 {
		o.Buffer = defaultBlock
	}
	if o.MaxLine == 0 {
		o.MaxLine = defaultMaxLine
	}
	return o
}

// A Reader reads a file, or another [io.Reader], from where it stands to its
// end: by bytes, lines, blocks, or as an io.Reader. The ways may be mixed; each
// goes on where the last one stopped, and no byte comes twice or is left out.
//
// A Reader is for one goroutine at a time. A call blocks as long as the source's
// Read does. In steady state nothing is allocated.
//
// A slice that ReadLine, Lines, Blocks or Peek gives lies in the Reader's memory:
// it is valid until the next call of any method, and must not be changed.
//
// Errors: the end is a bare [io.EOF]. Any other error of the source is a
// [ReadError] with the offset at which it happened. Either comes after all bytes
// before it, and then at every call: the source is not asked again.
//
// A file that shrinks while it is read ends early, and one that grows may end
// late; neither is an error.
//
// A Reader must be closed. No goroutine is left after Close.
type Reader struct {
	// view[pos:] was read and not consumed yet. These come first, and pos is an
	// index and not cut off from view, because ReadByte is inlined only if it is
	// no larger than it is.
	view []byte
	pos  int

	// low is how far UnreadByte may take pos back.
	low int

	// err is what comes after view, nil while that is not known.
	err error

	block   int // how many bytes are asked of the source at once
	head    int // the room before a block in mem
	most    int // what Peek gives at most
	maxLine int
	source  source

	// mem is a block with room before it, for what is left of the one before,
	// so that a line or a Peek across both is one slice. view lies in mem, in
	// long if that room is not enough, or in single.
	mem    []byte
	long   []byte
	single [1]byte

	pace  pace
	ahead *ahead // nil where the caller reads

	closed   bool
	closeErr error
	last     error // what Err said before Close
}

// NewReader returns a Reader that reads r from where it stands. The Reader closes
// r in Close if r is an [io.Closer]. Nobody else may read r until then: the
// Reader asks it for more than it has given so far.
//
// Of options that make no sense, every call tells.
func NewReader(r io.Reader, o ReadOptions) *Reader {
	if err := o.validate(); err != nil {
		return &Reader{source: source{reader: r}, most: math.MaxInt, err: fmt.Errorf("holdfast: %w", err)}
	}
	o = o.withDefaults()
	s, remaining := newSource(r, o.DropBehind)
	block := int(o.Buffer)
	if remaining > 0 {
		// One more byte than it has finds the end in the same Read.
		block = int(min(o.Buffer, max(smallestBlock, Size(remaining)+1)))
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

// Open opens the file path and returns a Reader on it, which Close closes.
func Open(path string, o ReadOptions) (*Reader, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("holdfast: %w", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("holdfast: %w", err)
	}
	return NewReader(f, o), nil
}

// Read reads up to len(p) bytes, those that are there without another Read of
// the source if there are any. It copies nothing where p is as large as the
// Reader's buffer and that is empty.
func (r *Reader) Read(p []byte) (n int, err error) {
	if r.pos == len(r.view) {
		switch {
		case r.err != nil:
			return 0, r.err
		case len(p) == 0:
			return 0, nil
		case len(p) >= r.block && r.ahead == nil:
			return r.readStraight(p)
		}
		if err := r.more(); err != nil {
			return 0, err
		}
	}
	n = copy(p, r.view[r.pos:])
	r.pos += n
	return n, nil
}

// readStraight reads into the caller's memory, past the Reader's.
func (r *Reader) readStraight(p []byte) (n int, err error) {
	n, r.err = r.source.read(p)
	if n == 0 {
		return 0, r.err
	}
	r.single[0] = p[n-1]
	r.view, r.pos, r.low = r.single[:], 1, 0
	return n, nil
}

// ReadByte reads one byte; with an error it is 0.
//
// The compiler inlines it, as a test holds: that is why fill
// leaves a byte to read even where there is none.
func (r *Reader) ReadByte() (c byte, err error) {
	if r.pos == len(r.view) {
		err = r.fill()
	}
	c = r.view[r.pos]
	r.pos++
	return
}

// fill makes ReadByte find a byte, on an error one that does not count.
func (r *Reader) fill() error {
	err := r.more()
	if err != nil {
		r.single[0] = 0
		r.view, r.pos, r.low = r.single[:], 0, 1
	}
	return err
}

// UnreadByte makes the byte that was consumed last be read again, however it was
// consumed. It is sure to succeed once after a ReadByte that did; where there is
// no such byte any more it returns [bufio.ErrInvalidUnreadByte].
func (r *Reader) UnreadByte() error {
	if r.pos <= r.low {
		return bufio.ErrInvalidUnreadByte
	}
	r.pos--
	return nil
}

// Peek returns the next n bytes without consuming them. If there are fewer it
// returns these, and the error that comes after them. n may be as large as the
// Buffer of the options; for more it returns an error that wraps
// [bufio.ErrBufferFull].
func (r *Reader) Peek(n int) ([]byte, error) {
	if err := r.peekable(n); err != nil {
		return nil, err
	}
	for r.buffered() < n {
		if err := r.more(); err != nil {
			return r.view[r.pos:], err
		}
	}
	return r.view[r.pos : r.pos+n : r.pos+n], nil
}

func (r *Reader) peekable(n int) error {
	if n < 0 {
		return fmt.Errorf("holdfast: peek of %d bytes: %w", n, bufio.ErrNegativeCount)
	}
	if n > r.most {
		return fmt.Errorf("holdfast: peek of %d bytes is more than the buffer of %d; open the Reader with a larger one: %w", n, r.most, bufio.ErrBufferFull)
	}
	return nil
}

// Discard consumes the next n bytes, and returns how many there were: n, or
// fewer with the error that comes after them.
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

// WriteTo writes all that is left to w, a block at a time, and returns how much
// that was. At the end of the source the error is nil. What w did not take when
// it failed is not consumed.
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

// Err returns the error that ended the reading: nil before that, and if it was
// the end of the source. Close does not change what it returns.
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

// Close ends the background, closes the source if it is an [io.Closer], and
// returns what that said. A second Close returns the same. Every other call
// returns an error that wraps os.ErrClosed from then on.
//
// If a Read is under way in the background, Close waits for it. Those of regular
// files end by themselves, and Close ends those of pipes, sockets and whatever
// else has deadlines at once. Of other sources they are under way only with
// [ReadAheadAlways], and may take long.
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

// end stops the background and closes the source, in the order that ends a Read
// soonest.
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

var errReaderClosed = fmt.Errorf("holdfast: reader is closed: %w", os.ErrClosed)

func (r *Reader) buffered() int { return len(r.view) - r.pos }
