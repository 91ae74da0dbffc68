package files

import (
	"context"
	"errors"
	"io"
	"math/bits"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/retry"
)

// opWait, opAppend and opDiscard are what an Error has for calls that never came to a
// system call.
const (
	opWait    retry.Op = "wait"
	opAppend  retry.Op = "append"
	opDiscard retry.Op = "discard"
)

// flushLocked hands what the stream holds below end to the kernel, or waits for the call
// that does.
func (t *streams) flushLocked(ctx context.Context, s *stream, end int64) error {
	for s.flushed < end {
		if s.busy {
			if err := t.awaitStreamLocked(ctx, s); err != nil {
				return err
			}
			continue
		}
		if err := t.flushStepLocked(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// awaitStreamLocked waits until something has changed about the stream.
func (t *streams) awaitStreamLocked(ctx context.Context, s *stream) error {
	s.users++
	err := t.awaitLocked(ctx, &s.changed)
	s.users--
	if err != nil {
		return appendError(s.given, opWait, err)
	}
	return nil
}

// flushStepLocked hands a block of the stream's bytes to the kernel, without the
// lock. No call may be busy with the stream.
func (t *streams) flushStepLocked(ctx context.Context, s *stream) error {
	// A stuck stream is tried once at each call, and so is every other stream meanwhile.
	// Most failures that pass are a full disk, which fails all streams.
	once := t.stuck.oldest != nil
	since := s.since
	s.busy = true
	s.leaveLocked()
	if s.flight == nil {
		s.flight, s.wait = s.wait, nil
	} else if s.wait != nil {
		t.waiting.addLocked(s)
	}
	hopes := 0
	if s.failed == nil {
		hopes = 1
	}
	t.flights, t.hopes = t.flights+1, t.hopes+hopes
	t.mu.Unlock()
	start := time.Now()
	_, fail := t.write(ctx, s, s.flight.bytes[s.begun:], once)
	took := time.Since(start)
	t.mu.Lock()
	t.flights, t.hopes = t.flights-1, t.hopes-hopes
	s.busy = false
	t.flushedLocked(s, took, fail)
	if s.begun == len(s.flight.bytes) {
		t.memory.giveLocked(s.flight)
		s.flight, s.begun = nil, 0
	}
	t.landLocked(s, fail, since)
	s.changed.wakeLocked()
	t.ended.wakeLocked()
	t.due.armLocked()
	if t.overLocked(s) {
		t.background.Add(1)
		go func() { // what came meanwhile
			defer t.background.Done()
			t.mu.Lock()
			defer t.mu.Unlock()
			if t.overLocked(s) {
				t.flushBehindLocked(context.Background(), s)
			}
		}()
	}
	t.tidyLocked(s)
	if fail != nil {
		return fail
	}
	return nil
}

// landLocked puts the stream after a flush into the queue where it belongs.
func (t *streams) landLocked(s *stream, fail *Error, since time.Time) {
	switch {
	case fail == nil:
		s.failed = nil
		return
	case fail.Op != string(opWait):
		s.failed = fail
	}
	s.leaveLocked()
	if s.failed != nil {
		s.since = t.due.now()
		t.stuck.addLocked(s)
	} else {
		s.since = since
		t.waiting.addFirstLocked(s)
	}
}

// noteLocked keeps what failed in the background for the next call for the path. A
// failure that repeats the one before was returned already, or is kept.
func (s *stream) noteLocked(err error, again bool) {
	if err != nil && !again && s.unreported == nil && s.failed != nil {
		s.unreported = err
	}
}

// flushBehindLocked is flushStepLocked for calls that concern other streams: the next call
// for this stream returns a failure.
func (t *streams) flushBehindLocked(ctx context.Context, s *stream) error {
	again := s.failed != nil
	s.users++
	err := t.flushStepLocked(ctx, s)
	s.noteLocked(err, again)
	t.restLocked(s)
	return err
}

// write writes p to the stream's file, with retries, or says how far it came. The
// caller is busy with the stream: it has set that.
func (t *streams) write(ctx context.Context, s *stream, p []byte, once bool) (n int, fail *Error) {
	tries := t.files.tries(s.given)
	if once {
		tries.Limits.Attempts = 1
	}
	for {
		n, op, err := t.writeOnce(ctx, s, p, &tries)
		if err == nil {
			return n, nil
		}
		if err == errGone {
			continue
		}
		// Those that make directories and resolve links have tried again themselves.
		if n > 0 || op == retry.OpMkdir || op == retry.OpResolve || !tries.Again(ctx, op, &err) {
			return n, flushError(s, op, tries, err)
		}
	}
}

func flushError(s *stream, op retry.Op, tries retry.Tries, err error) *Error {
	return &Error{Path: s.given, Op: string(op), Attempts: tries.Attempts(), Outcome: holdfast.OutcomeUncertain, Err: err}
}

// writeOnce writes p in one turn. Between two turns other calls may write to the file. So
// once a part of p is written, it keeps the turn during pauses.
func (t *streams) writeOnce(ctx context.Context, s *stream, p []byte, tries *retry.Tries) (n int, op retry.Op, err error) {
	h := &t.files.handles
	if err := h.Begin(ctx); err != nil {
		return 0, opWait, err
	}
	defer h.End()
	x, op, err := t.useFile(ctx, s)
	if err != nil {
		return 0, op, err
	}
	defer h.Rest(&x.Handle)
	if x.key != (keyed.Key{}) {
		turns := &t.files.turns
		turns.Join(x.key, &s.ticket)
		defer turns.Leave(&s.ticket)
		if err := turns.Await(ctx, &s.ticket); err != nil {
			return 0, opWait, err
		}
	}
	if t.files.handles.IsGone(&x.Handle) {
		return 0, retry.OpOpen, errGone
	}
	if op, err := t.endLine(ctx, x, tries); err != nil {
		return 0, op, err
	}
	n, op, err = t.writeAll(ctx, x.Fd, p, tries)
	// All of it is known before the turn ends, for others write to the file then, and
	// before the descriptor may be evicted.
	var torn *Error
	if err != nil && n > 0 {
		torn = flushError(s, op, *tries, err)
		x.ended = !s.exclusive // the rest of what was accepted follows, with its line feed
	}
	t.credit(s, n, torn)
	return n, op, err
}

// errGone is that a file has to be opened anew: its name may be another file's by now.
var errGone = errors.New("the file is being closed")

func (t *streams) writeAll(ctx context.Context, fd int, p []byte, tries *retry.Tries) (n int, op retry.Op, err error) {
	for n < len(p) {
		k, err := t.files.disk.Write(fd, p[n:])
		n += k
		if k > 0 {
			tries.Progress()
		}
		if err == nil && k == 0 {
			err = io.ErrShortWrite
		}
		if err != nil && n < len(p) && (n == 0 || !tries.Again(ctx, retry.OpWrite, &err)) {
			return n, retry.OpWrite, err
		}
	}
	return n, "", nil
}

// endLine ends a torn line of a file of lines with a line feed, before the first write to
// the descriptor. What was there is not ours, but for a piece that was begun.
func (t *streams) endLine(ctx context.Context, x *streamFile, tries *retry.Tries) (retry.Op, error) {
	if !t.files.options.Lines || x.ended {
		return "", nil
	}
	s := x.stream
	if s.exclusive || s.begun == 0 {
		torn, op, err := t.isTorn(x.Fd)
		if err != nil || !torn {
			x.ended = err == nil
			return op, err
		}
		if _, op, err := t.writeAll(ctx, x.Fd, lineFeed, tries); err != nil {
			return op, err
		}
		t.mu.Lock()
		t.healed++
		t.mu.Unlock()
		if log := t.files.options.Logger; log != nil {
			log.Warn("heal", "path", s.given)
		}
	}
	x.ended = true
	return "", nil
}

var lineFeed = []byte{'\n'}

// isTorn reports whether a file ends without a line feed.
func (t *streams) isTorn(fd int) (bool, retry.Op, error) {
	is, err := t.files.disk.StatFD(fd)
	if err != nil || is.Size == 0 {
		return false, retry.OpStat, err
	}
	reader, ok := t.files.disk.(interface {
		ReadAt(fd int, p []byte, at int64) (n int, err error)
	})
	if !ok {
		return false, retry.OpRead, errors.ErrUnsupported
	}
	var last [1]byte
	n, err := reader.ReadAt(fd, last[:], is.Size-1)
	return n == 1 && last[0] != '\n', retry.OpRead, err
}

// credit counts n bytes as the kernel's. torn is why the rest did not follow, or nil.
func (t *streams) credit(s *stream, n int, torn *Error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.flushed += int64(n)
	if s.exclusive {
		s.accepted += int64(n)
	} else {
		s.begun += n
		if torn != nil {
			s.failed = torn
		}
	}
	t.countLocked(s)
}

// streamMemory is the blocks of memory in which bytes gather. Their sizes are powers of
// two from leastBlock on, and the largest is the policy's Buffer. All blocks together, in
// use or free, never take more than limit.
type streamMemory struct {
	largest int64 // what a stream's bytes may take at most before they are flushed
	limit   int64
	used    int64 // by blocks in use
	spare   int64 // by blocks in free
	free    []*block
	most    int64 // the most that used ever was
}

// leastBlock is small against the rest of a stream's memory, and holds some lines.
const leastBlock = 512

// A block is memory in which bytes of one stream gather.
type block struct {
	bytes []byte // of a capacity that no append exceeds
	next  *block // in its list of free ones
}

func (m *streamMemory) init(buffer, limit int64) {
	m.limit = limit
	m.largest = min(buffer, limit)
	m.free = make([]*block, m.class(m.largest)+1)
}

// class returns which of the sizes holds n bytes.
func (m *streamMemory) class(n int64) int {
	return bits.Len64(uint64(max(n-1, 0) / leastBlock))
}

func (m *streamMemory) size(class int) int64 {
	return min(leastBlock<<class, m.largest)
}

// takeLocked returns an empty block for n bytes, at most largest, or nil if the
// memory is used up.
func (m *streamMemory) takeLocked(n int64) *block {
	class := m.class(n)
	size := m.size(class)
	b := m.free[class]
	switch {
	case b != nil:
		m.free[class], b.next = b.next, nil
		m.spare -= size
	case m.used+size > m.limit:
		return nil
	default:
		m.trimLocked(m.limit - m.used - size)
		b = &block{bytes: make([]byte, 0, size)}
	}
	m.used += size
	m.most = max(m.most, m.used)
	return b
}

// giveLocked takes a block back.
func (m *streamMemory) giveLocked(b *block) {
	size := int64(cap(b.bytes))
	class := m.class(size)
	b.bytes = b.bytes[:0]
	b.next, m.free[class] = m.free[class], b
	m.used -= size
	m.spare += size
}

// trimLocked lets go of free blocks until they take at most n bytes.
func (m *streamMemory) trimLocked(n int64) {
	for class := range m.free {
		for m.spare > n && m.free[class] != nil {
			m.free[class] = m.free[class].next
			m.spare -= m.size(class)
		}
	}
}

// putLocked copies data into the stream's memory, or returns false if that takes
// more memory than there is.
func (t *streams) putLocked(s *stream, data []byte) bool {
	if s.wait == nil || len(s.wait.bytes)+len(data) > cap(s.wait.bytes) {
		n, old := len(data), s.wait
		if old != nil {
			n += len(old.bytes)
		}
		b := t.memory.takeLocked(int64(n))
		if b == nil {
			return false
		}
		if old != nil {
			b.bytes = append(b.bytes, old.bytes...)
			t.memory.giveLocked(old)
		}
		s.wait = b
	}
	s.age.Begin()
	s.wait.bytes = append(s.wait.bytes, data...)
	s.accepted += int64(len(data))
	return true
}
