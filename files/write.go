package files

import (
	"context"
	"errors"
	"io"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/retry"
)

// write writes p to the stream's file, with retries, or says how far it came. The
// caller is busy with the stream: it has set that.
func (o *openFiles) write(ctx context.Context, s *stream, p []byte, once bool) (n int, fail *Error) {
	tries := o.tries(s.given)
	if once {
		tries.Limits.Attempts = 1
	}
	for {
		n, op, err := o.writeOnce(ctx, s, p, &tries)
		if err == nil {
			return n, nil
		}
		if err == errGone {
			continue
		}
		// Calls that make directories and resolve links have tried again themselves.
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
func (o *openFiles) writeOnce(ctx context.Context, s *stream, p []byte, tries *retry.Tries) (n int, op retry.Op, err error) {
	h := &o.handles
	if err := h.Begin(ctx); err != nil {
		return 0, opWait, err
	}
	defer h.End()
	x, op, err := o.use(ctx, s)
	if err != nil {
		return 0, op, err
	}
	defer h.Rest(&x.Handle)
	if x.key != (keyed.Key{}) {
		turns := &o.turns
		turns.Join(x.key, &s.ticket)
		defer turns.Leave(&s.ticket)
		if err := turns.Await(ctx, &s.ticket); err != nil {
			return 0, opWait, err
		}
	}
	if o.handles.IsGone(&x.Handle) {
		return 0, retry.OpOpen, errGone
	}
	if op, err := o.endLine(ctx, x, tries); err != nil {
		return 0, op, err
	}
	n, op, err = o.writeAll(ctx, x.Fd, p, tries)
	// All of it is known before the turn ends, for others write to the file then, and
	// before the descriptor may be evicted.
	var torn *Error
	if err != nil && n > 0 {
		torn = flushError(s, op, *tries, err)
		x.ended = !s.exclusive // the rest of the accepted bytes follows, with its line feed
	}
	o.credit(s, n, torn)
	return n, op, err
}

// errGone has the file opened anew by its path: the name may be another file's by now.
var errGone = errors.New("the file is being closed")

func (o *openFiles) writeAll(ctx context.Context, fd int, p []byte, tries *retry.Tries) (n int, op retry.Op, err error) {
	for n < len(p) {
		k, err := o.disk.Write(fd, p[n:])
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
// the descriptor. Earlier bytes are not ours, but for a piece that was begun.
func (o *openFiles) endLine(ctx context.Context, x *streamFile, tries *retry.Tries) (retry.Op, error) {
	if !o.options.Lines || x.ended {
		return "", nil
	}
	s := x.stream
	if s.exclusive || s.begun == 0 {
		torn, op, err := o.isTorn(x.Fd)
		if err != nil || !torn {
			x.ended = err == nil
			return op, err
		}
		if _, op, err := o.writeAll(ctx, x.Fd, lineFeed, tries); err != nil {
			return op, err
		}
		o.mu.Lock()
		o.healed++
		o.mu.Unlock()
		if log := o.options.Logger; log != nil {
			log.Warn("heal", "path", s.given)
		}
	}
	x.ended = true
	return "", nil
}

var lineFeed = []byte{'\n'}

// isTorn reports whether a file ends without a line feed.
func (o *openFiles) isTorn(fd int) (bool, retry.Op, error) {
	is, err := o.disk.StatFD(fd)
	if err != nil || is.Size == 0 {
		return false, retry.OpStat, err
	}
	reader, ok := o.disk.(interface {
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
func (o *openFiles) credit(s *stream, n int, torn *Error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s.flushed += int64(n)
	if s.exclusive {
		s.accepted += int64(n)
	} else {
		s.begun += n
		if torn != nil {
			s.failed = torn
		}
	}
	o.countLocked(s)
	o.wrote()
}
