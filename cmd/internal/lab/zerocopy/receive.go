package zerocopy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/holdfast-go/holdfast/cmd/internal/lab/copysource"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// receiveRole is the work of the process at the other end of the connection.
const receiveRole = "receive"

// mostReceived bounds the bytes of one receive, and mostSent the bytes of a whole transfer: the
// receiver keeps them in memory.
const (
	mostReceived = 1 << 20
	mostSent     = 64 << 30
)

// A zeroSource is a Source that the receiver can acknowledge.
type zeroSource struct {
	*copysource.Source
	lock sync.Mutex
	crcs map[int64]uint32 // by size
}

// crc is CRC-32C of the source's first bytes.
func (s *zeroSource) crc(size int64) uint32 {
	s.lock.Lock()
	defer s.lock.Unlock()
	crc, ok := s.crcs[size]
	if !ok {
		h := crc32.New(crc32.MakeTable(crc32.Castagnoli))
		_, _ = io.Copy(h, io.LimitReader(rand.NewChaCha8(s.Seed), size)) // neither ever fails
		crc = h.Sum32()
		s.crcs[size] = crc
	}
	return crc
}

// A receipt is the receiver's report after it has read everything.
type receipt struct {
	Bytes int64   `json:"bytes"` // one more where there was more than announced
	CRC   uint32  `json:"crc"`
	Calls int64   `json:"calls"`  // that received
	CPU   float64 `json:"cpu_ns"` // from the first byte awaited to the last; 0 where the system has no such count
}

// socketTask sends a file.
func (w zeroWay) socketTask(size int64, source *zeroSource) trial.Task {
	return trial.Task{
		Make:   func(path string) error { return source.Make(path, size) },
		Within: filepath.Join("..", copysource.Name(size)), Cache: result.Warm,
		Do: func(ctx context.Context, c *trial.Clock) error {
			got, err := w.send(ctx, c, size)
			if err != nil {
				return w.named(err)
			}
			return got.check(size, source.crc(size))
		},
	}
}

func (r receipt) check(size int64, crc uint32) error {
	switch {
	case r.Bytes != size:
		return &trial.ContentError{Offset: min(r.Bytes, size), Reason: fmt.Sprintf("%d bytes were received of %d", r.Bytes, size)}
	case r.CRC != crc:
		return &trial.ContentError{Reason: "what was received is not what is in the file"}
	}
	return nil
}

// send starts a receiver, sends it the file, and returns what it got. Nothing of it
// is left.
func (w zeroWay) send(ctx context.Context, c *trial.Clock, size int64) (got receipt, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, err := study.StartCompanion(ctx, c, receiveRole, strconv.FormatInt(size, 10))
	if err != nil {
		return got, err
	}
	out := json.NewDecoder(r.Out)
	err = w.sendTo(ctx, c, out, size)
	if err == nil {
		err = out.Decode(&got)
	}
	if err != nil {
		cancel() // it may wait for bytes that never come
	}
	_ = r.In.Close()
	if died := r.Wait(); died != nil {
		err = errors.Join(err, died)
	}
	if err == nil {
		c.Tell(toldReceives, float64(got.Calls))
		if got.CPU > 0 {
			c.Tell(toldReceiver, got.CPU)
		}
	}
	return got, err
}

// sendTo connects to the receiver; the clock covers it. The connection's descriptor
// blocks: the runtime's poller has no part in it.
func (w zeroWay) sendTo(ctx context.Context, c *trial.Clock, out *json.Decoder, size int64) error {
	var address string
	if err := out.Decode(&address); err != nil {
		return fmt.Errorf("the receiving process: %w", err)
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	tcp := conn.(*net.TCPConn)
	to, err := blocking(tcp)
	if err != nil {
		return err
	}
	c.Start()
	used := startUsage()
	from, err := os.Open(copysource.Of(c.Path, size))
	if err != nil {
		return errors.Join(err, to.Close())
	}
	c.Lap(trial.Open)
	calls, err := w.move(ctx, int(to.Fd()), int(from.Fd()), size)
	c.Lap(trial.Write)
	if err == nil {
		err = tcp.CloseWrite()
	}
	if err == nil {
		_, err = io.ReadFull(to, make([]byte, 1)) // the receiver has all
	}
	err = errors.Join(err, to.Close(), from.Close())
	c.Lap(trial.Close)
	c.Tell(toldCalls, float64(calls))
	used.report(c)
	return err
}

// blocking returns a file that is the connection too, and must be closed besides it:
// calls on its descriptor wait.
func blocking(conn *net.TCPConn) (*os.File, error) {
	f, err := conn.File()
	if err != nil {
		return nil, err
	}
	f.Fd() // makes it block
	return f, nil
}

// receive is the second process. It prints its address, accepts one connection,
// receives args[0] bytes from it, answers with one byte, and prints a receipt. It also
// ends if stdin ends before there is a connection.
func receive(_ context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("a receiver takes a number of bytes, and has %d arguments", len(args))
	}
	size, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil || size < 1 || size > mostSent {
		return fmt.Errorf("%q bytes can't be received", args[0])
	}
	// The kernel gives the memory now, and not in the clock.
	memory := make([]byte, size+1)
	for i := range memory {
		memory[i] = 0xff // not 0: the memory of a receiver that got nothing is 0
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	go func() {
		_, _ = io.Copy(io.Discard, stdin) // whatever ends it, nothing more comes
		_ = l.Close()
	}()
	report := json.NewEncoder(stdout)
	if err := report.Encode(l.Addr().String()); err != nil {
		return err
	}
	conn, err := l.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	from, err := blocking(conn.(*net.TCPConn))
	if err != nil {
		return err
	}
	r, err := receiveInto(memory, from)
	if err = errors.Join(err, from.Close()); err != nil {
		return err
	}
	return report.Encode(r)
}

// receiveInto receives until memory has room for one byte or no more comes, answers,
// and looks that nothing more comes.
func receiveInto(memory []byte, from io.ReadWriter) (r receipt, err error) {
	used := startUsage()
	size := int64(len(memory)) - 1
	for r.Bytes < size && err == nil {
		n := 0
		n, err = from.Read(memory[r.Bytes:min(size, r.Bytes+mostReceived)])
		r.Bytes += int64(n)
		r.Calls++
	}
	if cpu, ok := used.since(); ok {
		r.CPU = float64(cpu)
	}
	if err == nil || errors.Is(err, io.EOF) {
		_, err = from.Write([]byte{1})
	}
	if err == nil {
		n := 0
		n, err = from.Read(memory[size:])
		r.Bytes += int64(n)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	r.CRC = crc32.Checksum(memory[:min(r.Bytes, size)], crc32.MakeTable(crc32.Castagnoli))
	return r, err
}

// Roles are the work of the study's second process.
var Roles = map[string]study.Role{receiveRole: receive}
