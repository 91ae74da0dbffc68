//go:build go1.25

package readahead_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/readahead"
)

// FuzzReader reads its input as a program of calls. Its source gives short
// pieces, nothing for a while, and perhaps an error in the middle. Beside it runs a model so simple
// that it can only be right: the bytes that are left, and the error after them.
func FuzzReader(f *testing.F) {
	for ahead := range byte(3) {
		for block := range byte(20) {
			f.Add([]byte{ahead, block, 90, 3, 200, 0, 10, 1, 5, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255})
			f.Add([]byte{ahead, block, 200, 200, 77, 5, 9, 5, 9, 5, 9, 3, 40, 5, 9, 1, 5, 9, 4, 0, 0, 0, 11, 6, 1})
			f.Add([]byte{ahead, block, 33, 1, 255, 8, 8, 8, 8, 8, 8, 8, 8, 2, 1, 2, 1, 2, 1, 9, 9, 9, 9, 9, 9, 10, 7})
		}
	}
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) < 5 || len(program) > 400 {
			return
		}
		hang := time.AfterFunc(time.Minute, func() { panic(fmt.Sprintf("hangs: %q", program)) })
		defer hang.Stop()
		m := newReadModel(program)
		for len(m.program) > 0 && m.problem == "" {
			m.step()
		}
		if err := m.r.Close(); err != nil {
			m.fail("Close = %v", err)
		}
		if wrong := m.source.Violations(); len(wrong) > 0 || !m.source.Closed() {
			m.fail("%q, closed %v", wrong, m.source.Closed())
		}
		if m.problem != "" {
			t.Errorf("%s\n%s", m.problem, m.story)
		}
	})
}

// A readModel runs a program.
type readModel struct {
	program []byte
	r       *readahead.Reader
	source  *fault.Source
	left    []byte // the bytes not yet consumed
	size    int    // how much the source gives
	end     error  // the error after them
	block   int
	maxLine int
	last    byte // the last ReadByte's byte
	story   string
	problem string

	// hasLast says that this call was a ReadByte that succeeded, mayUnread that
	// the one before was.
	hasLast, mayUnread bool
}

func newReadModel(program []byte) *readModel {
	m := &readModel{program: program, end: io.EOF}
	ahead := readahead.Mode(m.next() % 3)
	m.block = m.next()%20 + 1
	m.size = m.next()
	pieces, most := m.next(), m.next()
	m.maxLine = most/4 + 1
	m.left = text(m.size)
	m.source = fault.NewSource(m.left, m.turns(pieces)...)
	if pieces%2 == 1 {
		m.end = syscall.EIO
	}
	m.source.EndWith(m.end)
	m.r = readahead.NewReader(m.source, readahead.Options{
		Buffer: holdfast.Size(m.block), MaxLine: holdfast.Size(m.maxLine), ReadAhead: ahead,
	})
	return m
}

// turns gives some pieces, nothing in between, and then all there is.
func (m *readModel) turns(pieces int) (turns []fault.Turn) {
	for i := range pieces % 64 {
		turns = append(turns, fault.Turn{Take: pieces * i % 7})
	}
	return turns
}

// next takes a byte of the program; a program that ended goes on with zeros.
func (m *readModel) next() int {
	if len(m.program) == 0 {
		return 0
	}
	b := m.program[0]
	m.program = m.program[1:]
	return int(b)
}

func (m *readModel) fail(format string, args ...any) {
	if m.problem == "" {
		m.problem = fmt.Sprintf(format, args...)
	}
}

// take consumes n bytes.
func (m *readModel) take(n int) []byte {
	taken := m.left[:n]
	m.left = m.left[n:]
	return taken
}

// same compares bytes.
func (m *readModel) same(call string, got, want []byte) {
	if !bytes.Equal(got, want) {
		m.fail("%s gives %q, want %q", call, got, want)
	}
}

// ended judges an error that comes where nothing is left.
func (m *readModel) ended(call string, err error) {
	var failed *readahead.Error
	switch {
	case m.end == io.EOF && err == io.EOF:
	case m.end != io.EOF && errors.As(err, &failed) && errors.Is(err, m.end) && failed.Offset == int64(m.size):
	default:
		m.fail("%s: %v at the end, want %v", call, err, m.end)
	}
}

// short judges a call that wanted n bytes, and got these.
func (m *readModel) short(call string, want, got int, err error) {
	if got < want {
		m.ended(call, err)
	} else if err != nil {
		m.fail("%s: %v, want none", call, err)
	}
}

func (m *readModel) step() {
	call := []func(){
		m.read, m.readByte, m.readByte, m.readLine, m.readLine, m.peek,
		m.discard, m.unreadByte, m.blocks, m.bytes, m.writeTo,
	}
	m.mayUnread, m.hasLast = m.hasLast, false
	call[m.next()%len(call)]()
}

func (m *readModel) read() {
	p := make([]byte, m.next()%64)
	n, err := m.r.Read(p)
	m.story += fmt.Sprintf("Read(%d) = %d, %v\n", len(p), n, err)
	switch {
	case len(p) == 0:
	case n > len(m.left):
		m.fail("Read gives %d bytes, and %d were left", n, len(m.left))
	case n > 0:
		m.same("Read", p[:n], m.take(n))
		m.short("Read", 1, n, err)
	case len(m.left) > 0:
		m.fail("Read = 0, %v, and %d bytes were left", err, len(m.left))
	default:
		m.ended("Read", err)
	}
}

func (m *readModel) readByte() {
	c, err := m.r.ReadByte()
	m.story += fmt.Sprintf("ReadByte = %q, %v\n", c, err)
	if len(m.left) == 0 {
		m.ended("ReadByte", err)
		return
	}
	m.short("ReadByte", 1, 1, err)
	m.same("ReadByte", []byte{c}, m.take(1))
	m.last, m.hasLast = c, true
}

func (m *readModel) unreadByte() {
	if !m.mayUnread {
		return // it may or may not succeed
	}
	err := m.r.UnreadByte()
	m.story += fmt.Sprintf("UnreadByte = %v\n", err)
	if err != nil {
		m.fail("UnreadByte after ReadByte: %v", err)
	}
	m.left = append([]byte{m.last}, m.left...)
}

func (m *readModel) readLine() {
	line, err := m.r.ReadLine()
	m.story += fmt.Sprintf("ReadLine = %q, %v\n", line, err)
	end := bytes.IndexByte(m.left, '\n')
	length := end
	if end < 0 {
		length = len(m.left)
	}
	switch {
	case len(m.left) == 0:
		m.ended("ReadLine", err)
	case length > m.maxLine:
		if line != nil || !errors.Is(err, readahead.ErrLineTooLong) {
			m.fail("ReadLine gives %q, %v; want ErrLineTooLong", line, err)
		}
	case end >= 0:
		m.short("ReadLine", 0, 0, err)
		m.same("ReadLine", line, bytes.TrimSuffix(m.take(end + 1)[:end], []byte("\r")))
	default:
		m.same("ReadLine", line, m.take(length))
		if m.end == io.EOF {
			m.short("ReadLine", 0, 0, err)
		} else {
			m.ended("ReadLine", err)
		}
	}
}

func (m *readModel) peek() {
	n := m.next() % (m.block + 1)
	p, err := m.r.Peek(n)
	m.story += fmt.Sprintf("Peek(%d) = %q, %v\n", n, p, err)
	m.same("Peek", p, m.left[:min(n, len(m.left))])
	m.short("Peek", n, len(p), err)
}

func (m *readModel) discard() {
	want := m.next() % 64
	n, err := m.r.Discard(want)
	m.story += fmt.Sprintf("Discard(%d) = %d, %v\n", want, n, err)
	if n != min(want, len(m.left)) {
		m.fail("Discard(%d) = %d, and %d bytes were left", want, n, len(m.left))
		return
	}
	m.take(n)
	m.short("Discard", want, n, err)
}

func (m *readModel) blocks() {
	for count := m.next() % 4; ; count-- {
		for block, err := range m.r.Blocks() {
			m.story += fmt.Sprintf("Blocks gives %q, %v\n", block, err)
			if err != nil {
				m.ended("Blocks", err)
				break
			}
			m.same("Blocks", block, m.take(min(len(block), len(m.left))))
			if count <= 0 {
				return
			}
			break
		}
		if count <= 0 {
			return
		}
	}
}

func (m *readModel) bytes() {
	want := m.next()%64 + 1
	var got []byte
	for c := range m.r.Bytes() {
		got = append(got, c)
		if len(got) == want {
			break
		}
	}
	m.story += fmt.Sprintf("Bytes gives %q, Err = %v\n", got, m.r.Err())
	m.same("Bytes", got, m.take(min(want, len(m.left))))
	if err := m.r.Err(); len(got) < want && m.end != io.EOF {
		m.ended("Err", err)
	} else if len(m.left) > 0 && err != nil {
		m.fail("Err = %v, and %d bytes are left", err, len(m.left))
	}
}

// writeTo writes to one that takes some bytes.
func (m *readModel) writeTo() {
	w := &smallWriter{take: m.next() % 64, err: syscall.ENOSPC}
	n, err := m.r.WriteTo(w)
	m.story += fmt.Sprintf("WriteTo = %d, %v\n", n, err)
	if n != int64(w.Len()) || n > int64(len(m.left)) {
		m.fail("WriteTo = %d; %d were written, and %d were left", n, w.Len(), len(m.left))
		return
	}
	atEnd := len(m.left) == 0
	m.same("WriteTo", w.Bytes(), m.take(int(n)))
	switch {
	case !atEnd && !errors.Is(err, syscall.ENOSPC):
		m.fail("WriteTo: %v, want ENOSPC", err)
	case atEnd && m.end == io.EOF && err != nil:
		m.fail("WriteTo: %v at the end, want none", err)
	case atEnd && m.end != io.EOF:
		m.ended("WriteTo", err)
	}
}
