package trial

import (
	"bufio"
	"errors"
	"os"
	"sync"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/stats"
)

// control returns the workload that runs beside a turn: the same records, written to the same kind of file
// without a Writer. Their ratio differs between two runs if our code changed. The machine, and the addresses of
// the code, affect both alike.
func (a Append) control() Append {
	buffer, waits := int(a.Policy.Buffer), a.Policy.Sync.Waits()
	if waits {
		a.Writers = 1 // each Write is one sync, and other writers would wait for it
	} else {
		a.Policy.Sync = holdfast.Sync{}
	}
	a.Records, a.Turns, a.Control = a.Control, 0, 0
	a.Open = func(path string) (Target, error) { return newPlain(path, buffer, waits) }
	return a
}

// plain is a [Target] without a Writer, as a program would write it: a bufio.Writer behind a mutex, or
// write(2), or write(2) and fdatasync(2).
type plain struct {
	mu     sync.Mutex
	f      *os.File
	b      *bufio.Writer // nil: none
	handle *sys.Handle
	waits  bool // each Write syncs
}

func newPlain(path string, buffer int, waits bool) (Target, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	p := &plain{f: f, waits: waits}
	if p.handle, err = sys.NewHandle(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if buffer > 0 && !waits {
		p.b = bufio.NewWriterSize(f, buffer)
	}
	return p, nil
}

func (p *plain) Write(record []byte) (n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.b != nil {
		return p.b.Write(record)
	}
	if n, err = p.f.Write(record); err == nil && p.waits {
		err = Datasync(p.f, p.handle)
	}
	return n, err
}

func (p *plain) Flush() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.b == nil {
		return nil
	}
	return p.b.Flush()
}

func (p *plain) Sync() error         { return nil }
func (p *plain) Close() error        { return errors.Join(p.Flush(), p.f.Close()) }
func (p *plain) Written() int64      { return 0 }
func (p *plain) Stats() stats.Counts { return stats.Counts{} }

// Datasync is fdatasync(2), or fsync if the system has none. h is on f.
func Datasync(f *os.File, h *sys.Handle) error {
	err := h.Datasync()
	if errors.Is(err, errors.ErrUnsupported) {
		err = f.Sync()
	}
	return err
}
