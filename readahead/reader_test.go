//go:build go1.25

package readahead_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/readahead"
)

// text returns n bytes of lines of all lengths, some of them with "\r\n".
func text(n int) []byte {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	var b bytes.Buffer
	for b.Len() < n {
		for range r.IntN(1 + r.IntN(40)) {
			b.WriteByte(byte('a' + r.IntN(26)))
		}
		b.WriteString([]string{"\n", "\n", "\r\n", "\r\r\n"}[r.IntN(4)])
	}
	return b.Bytes()[:n]
}

// A readWay reads all that is left, and returns it with the error that ended it:
// nil for the end of the source.
type readWay struct {
	name string
	read func(r *readahead.Reader) ([]byte, error)
}

var readWays = []readWay{
	{"Read 1", readBy(1)},
	{"Read 7", readBy(7)},
	{"Read 64", readBy(64)},
	{"Read 1000", readBy(1000)},
	{"ReadByte", func(r *readahead.Reader) (data []byte, err error) {
		for {
			c, err := r.ReadByte()
			if err != nil {
				return data, notEOF(err)
			}
			data = append(data, c)
		}
	}},
	{"ReadByte and UnreadByte", func(r *readahead.Reader) (data []byte, err error) {
		for {
			first, err := r.ReadByte()
			if err != nil {
				return data, notEOF(err)
			}
			if err := r.UnreadByte(); err != nil {
				return data, fmt.Errorf("UnreadByte after ReadByte: %w", err)
			}
			again, err := r.ReadByte()
			if first != again || err != nil {
				return data, fmt.Errorf("ReadByte = %q and after UnreadByte %q, %v", first, again, err)
			}
			data = append(data, again)
		}
	}},
	{"Bytes", func(r *readahead.Reader) (data []byte, err error) {
		for c := range r.Bytes() {
			data = append(data, c)
		}
		return data, r.Err()
	}},
	{"Bytes left early", func(r *readahead.Reader) (data []byte, err error) {
		for more := true; more; {
			more = false
			left := len(data)%5 + 1
			for c := range r.Bytes() {
				data, more, left = append(data, c), true, left-1
				if left == 0 {
					break
				}
			}
		}
		return data, r.Err()
	}},
	{"Blocks", func(r *readahead.Reader) (data []byte, err error) {
		for block, err := range r.Blocks() {
			data = append(data, block...)
			if err != nil {
				return data, err
			}
		}
		return data, nil
	}},
	{"Blocks left early", func(r *readahead.Reader) (data []byte, err error) {
		for more := true; more; {
			more = false
			for block, err := range r.Blocks() {
				data = append(data, block...)
				if err != nil {
					return data, err
				}
				more = true
				break
			}
		}
		return data, nil
	}},
	{"WriteTo", func(r *readahead.Reader) ([]byte, error) {
		var b bytes.Buffer
		n, err := r.WriteTo(&b)
		if n != int64(b.Len()) {
			return b.Bytes(), fmt.Errorf("WriteTo = %d, and %d were written", n, b.Len())
		}
		return b.Bytes(), err
	}},
	{"Peek and Discard", func(r *readahead.Reader) (data []byte, err error) {
		for size := 0; ; size = (size + 1) % 14 {
			peeked, err := r.Peek(size)
			data = append(data, peeked...)
			n, discardErr := r.Discard(len(peeked))
			if n != len(peeked) || discardErr != nil {
				return data, fmt.Errorf("Discard(%d) = %d, %v", len(peeked), n, discardErr)
			}
			if err != nil {
				return data, notEOF(err)
			}
		}
	}},
}

func readBy(size int) func(r *readahead.Reader) ([]byte, error) {
	return func(r *readahead.Reader) (data []byte, err error) {
		for p := make([]byte, size); ; {
			n, err := r.Read(p)
			data = append(data, p[:n]...)
			if err != nil {
				return data, notEOF(err)
			}
			if n == 0 {
				return data, errors.New("Read = 0, nil")
			}
		}
	}
}

func notEOF(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// readSizes stand at and beside the ends of blocks.
func readSizes(block int) []int {
	return []int{0, 1, 2, block - 1, block, block + 1, 2*block - 1, 2 * block, 2*block + 1, 5*block + 3, 127, 1009}
}

const testBlock = 13

// readAheads are all there are, with small blocks.
var readAheads = []readahead.Options{
	{Buffer: testBlock},
	{Buffer: testBlock, ReadAhead: readahead.Always},
	{Buffer: testBlock, ReadAhead: readahead.Never},
	{Buffer: 1, ReadAhead: readahead.Always},
	{},
}

// readSources give the same bytes in different pieces.
var readSources = []struct {
	name string
	open func(t *testing.T, data []byte) io.Reader
}{
	{"file", func(t *testing.T, data []byte) io.Reader { return fileOf(t, data) }},
	{"whole", func(t *testing.T, data []byte) io.Reader { return fault.NewSource(data) }},
	{"short", func(t *testing.T, data []byte) io.Reader { return fault.NewSource(data, shortTurns(len(data))...) }},
	{"one by one", func(t *testing.T, data []byte) io.Reader { return iotest.OneByteReader(bytes.NewReader(data)) }},
	{"end with the last bytes", func(t *testing.T, data []byte) io.Reader { return iotest.DataErrReader(bytes.NewReader(data)) }},
}

// shortTurns give 0 to 9 bytes a Read.
func shortTurns(n int) (turns []fault.Turn) {
	for i := range n {
		turns = append(turns, fault.Turn{Take: i * 7 % 10})
	}
	return turns
}

func fileOf(t *testing.T, data []byte) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestEveryWayReadsEveryByteOnce(t *testing.T) {
	for _, source := range readSources {
		for _, o := range readAheads {
			t.Run(fmt.Sprintf("%s/%+v", source.name, o), func(t *testing.T) {
				for _, size := range readSizes(testBlock) {
					for _, way := range readWays {
						checkReads(t, way, text(size), source.open(t, text(size)), o)
					}
				}
			})
		}
	}
}

func checkReads(t *testing.T, way readWay, want []byte, source io.Reader, o readahead.Options) {
	t.Helper()
	if o.Buffer == 1 && strings.HasPrefix(way.name, "Peek") {
		return // it looks further ahead
	}
	r := readahead.NewReader(source, o)
	got, err := way.read(r)
	if !bytes.Equal(got, want) || err != nil {
		t.Errorf("%s of %d bytes: got %d: %q, %v; want %q", way.name, len(want), len(got), got, err, want)
	}
	if err := errors.Join(r.Err(), r.Close(), r.Err()); err != nil {
		t.Errorf("%s: Err, Close or Err after it: %v", way.name, err)
	}
	if s, ok := source.(*fault.Source); ok && (len(s.Violations()) > 0 || !s.Closed()) {
		t.Errorf("%s: violations %q, closed %v", way.name, s.Violations(), s.Closed())
	}
}

func TestReaderGoesOnWhereTheFileStands(t *testing.T) {
	f := fileOf(t, []byte("0123456789"))
	if _, err := f.Seek(4, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r := readahead.NewReader(f, readahead.Options{DropBehind: true})
		if got, err := readBy(3)(r); string(got) != "456789" || err != nil {
			t.Errorf("got %q, %v; want what lies behind the offset", got, err)
		}
		if _, err := f.Seek(4, io.SeekStart); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEveryBreakComesAfterItsBytes has the source fail at each byte of some
// blocks, alone and with bytes.
func TestEveryBreakComesAfterItsBytes(t *testing.T) {
	data := text(3*testBlock + 2)
	check := func(way readWay, o readahead.Options, at int, turns ...fault.Turn) {
		t.Helper()
		s := fault.NewSource(data, turns...)
		r := readahead.NewReader(s, o)
		got, err := way.read(r)
		if !bytes.Equal(got, data[:at]) {
			t.Errorf("%s, %+v, broken at %d: got %d bytes", way.name, o, at, len(got))
		}
		var failed *readahead.Error
		if !errors.As(err, &failed) || failed.Offset != int64(at) || !errors.Is(err, syscall.EIO) {
			t.Errorf("%s, %+v, broken at %d: %v", way.name, o, at, err)
		}
		if _, again := r.ReadByte(); again != err {
			t.Errorf("%s, %+v: %v, and then %v", way.name, o, err, again)
		}
		if r.Err() != err {
			t.Errorf("%s, %+v: Err = %v, want %v", way.name, o, r.Err(), err)
		}
		if err := r.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
		if wrong := s.Violations(); len(wrong) > 0 {
			t.Errorf("%s, %+v: %q", way.name, o, wrong)
		}
	}
	for _, o := range readAheads[:3] {
		for _, way := range readWays {
			for at := range len(data) {
				pieces := piecesOf(at, testBlock)
				check(way, o, at, append(pieces, fault.Turn{Err: syscall.EIO})...)
				if len(pieces) > 0 {
					pieces[len(pieces)-1].Err = syscall.EIO
					check(way, o, at, pieces...)
				}
			}
		}
	}
}

// piecesOf gives n bytes in turns of some.
func piecesOf(n, some int) (turns []fault.Turn) {
	for n > 0 {
		turns = append(turns, fault.Turn{Take: min(n, some)})
		n -= min(n, some)
	}
	return turns
}

// TestErrComesAfterTheBytesAndOutlivesClose has bytes and a failure come from one Read.
func TestErrComesAfterTheBytesAndOutlivesClose(t *testing.T) {
	broken := errors.New("the cable is out")
	source := iotest.DataErrReader(io.MultiReader(strings.NewReader("ab"), iotest.ErrReader(broken)))
	r := readahead.NewReader(source, readahead.Options{})
	for range 2 {
		if err := r.Err(); err != nil {
			t.Errorf("before the bytes are read: %v", err)
		}
		if _, err := r.ReadByte(); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Err(); !errors.Is(err, broken) {
		t.Errorf("after the bytes: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if err := r.Err(); !errors.Is(err, broken) {
		t.Errorf("after Close: %v", err)
	}
}

func TestErrorNamesFileAndOffset(t *testing.T) {
	r, err := readahead.Open(t.TempDir(), readahead.Options{})
	if err != nil {
		t.Skipf("a directory can't be opened here: %v", err)
	}
	defer r.Close()
	_, err = r.ReadByte()
	var failed *readahead.Error
	if !errors.As(err, &failed) || failed.Path == "" || failed.Offset != 0 || !strings.Contains(err.Error(), failed.Path) {
		t.Errorf("ReadByte of a directory: %v", err)
	}
}

func TestSourceMayGiveNothingForAWhile(t *testing.T) {
	check := func(empty int, want string, wantErr error) {
		t.Helper()
		r := readahead.NewReader(fault.NewSource([]byte("x"), make([]fault.Turn, empty)...), readahead.Options{})
		got, err := readBy(3)(r)
		if string(got) != want || !errors.Is(err, wantErr) {
			t.Errorf("%d times nothing: got %q, %v; want %q, %v", empty, got, err, want, wantErr)
		}
	}
	check(99, "x", nil)
	check(100, "", io.ErrNoProgress)
}

func TestBrokenSourceIsNamed(t *testing.T) {
	check := func(lie int, want string) {
		t.Helper()
		s := fault.NewSource([]byte("abcdef"), fault.Turn{Take: 2}, fault.Turn{Take: 2, Lie: lie})
		r := readahead.NewReader(s, readahead.Options{Buffer: 4})
		got, err := readWays[4].read(r)
		if string(got) != "ab" || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("lie of %d: got %q, %v; want ab and %q", lie, got, err, want)
		}
	}
	check(-3, "read -1 bytes into")
	check(100, "read 102 bytes into")
}

func TestFileThatShrinksEndsEarly(t *testing.T) {
	for _, o := range readAheads[:3] {
		f := fileOf(t, text(1000))
		r := readahead.NewReader(f, o)
		head := make([]byte, 100)
		if _, err := io.ReadFull(r, head); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(f.Name(), 50); err != nil {
			t.Skipf("a file that is read can't be truncated here: %v", err)
		}
		rest, err := readBy(10)(r)
		// The bytes read before are returned; nothing is made up behind them.
		if all := append(head, rest...); !bytes.HasPrefix(text(1000), all) || err != nil || len(rest) > 3*testBlock {
			t.Errorf("%+v: %d bytes after the truncation, %v", o, len(rest), err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestBytesOfAPipeComeBeforeItsEnd(t *testing.T) {
	for _, o := range readAheads {
		from, to, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r := readahead.NewReader(from, o)
		for i := range 50 {
			want := fmt.Sprintf("request %d", i)
			fmt.Fprintln(to, want)
			if line, err := r.ReadLine(); string(line) != want || err != nil {
				t.Errorf("%+v: ReadLine = %q, %v; want %q", o, line, err, want)
			}
		}
		to.Close()
		if _, err := r.ReadLine(); err != io.EOF {
			t.Errorf("%+v: ReadLine = %v, want io.EOF", o, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A waitingPipe reports when a Read begins to wait and when it ends.
type waitingPipe struct {
	*os.File
	began, ended chan struct{}
}

func (p *waitingPipe) Read(b []byte) (int, error) {
	p.began <- struct{}{}
	n, err := p.File.Read(b)
	p.ended <- struct{}{}
	return n, err
}

func TestCloseEndsAReadOfAPipe(t *testing.T) {
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	if err := from.SetReadDeadline(time.Time{}); err != nil {
		t.Skipf("Close does not end the Read of a pipe here: %v", err)
	}
	p := &waitingPipe{from, make(chan struct{}, 10), make(chan struct{}, 10)}
	fmt.Fprint(to, strings.Repeat("x", 2*testBlock))
	r := readahead.NewReader(p, readahead.Options{Buffer: testBlock, ReadAhead: readahead.Always})
	if n, err := r.Discard(testBlock + 1); n != testBlock+1 || err != nil {
		t.Fatal(n, err)
	}
	for range 3 {
		<-p.began
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if len(p.ended) != 3 || len(p.began) != 0 {
		t.Errorf("%d reads have ended and %d more begun, want 3 and 0", len(p.ended), len(p.began))
	}
	if _, err := from.Stat(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the pipe after Close: %v, want os.ErrClosed", err)
	}
}

// TestCloseLeavesNoGoroutine lets Close come at every moment of a background that
// is slow: synctest fails if a goroutine stays.
func TestCloseLeavesNoGoroutine(t *testing.T) {
	for consumed := range 4 * testBlock {
		for wait := range 4 {
			synctest.Test(t, func(t *testing.T) {
				slow := make([]fault.Turn, 4)
				for i := range slow {
					slow[i] = fault.Turn{Take: fault.All, Delay: time.Second}
				}
				s := fault.NewSource(text(4*testBlock-3), slow...)
				r := readahead.NewReader(s, readahead.Options{Buffer: testBlock, ReadAhead: readahead.Always})
				r.Discard(consumed)
				time.Sleep(time.Duration(wait) * 600 * time.Millisecond) // of fake time
				if err := r.Close(); err != nil {
					t.Error(err)
				}
				reads := s.Reads()
				time.Sleep(time.Minute)
				if wrong := s.Violations(); len(wrong) > 0 || s.Reads() != reads || !s.Closed() {
					t.Errorf("%q, %d reads after Close, closed %v", wrong, s.Reads()-reads, s.Closed())
				}
			})
		}
	}
}

func TestAtMostTwoBlocksAreReadAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fault.NewSource(text(100 * testBlock))
		r := readahead.NewReader(s, readahead.Options{Buffer: testBlock, ReadAhead: readahead.Always})
		defer r.Close()
		for i := range 20 {
			if n, err := r.Discard(testBlock); n != testBlock || err != nil {
				t.Fatal(n, err)
			}
			synctest.Wait()
			if ahead := s.Reads() - (i + 1); ahead > 2 || i > 0 && ahead < 1 {
				t.Errorf("after %d blocks %d more were read", i+1, ahead)
			}
		}
	})
}

func TestNothingIsReadBeforeItIsNeeded(t *testing.T) {
	for _, o := range readAheads[:3] {
		synctest.Test(t, func(t *testing.T) {
			s := fault.NewSource(text(100))
			r := readahead.NewReader(s, o)
			synctest.Wait()
			none := s.Reads()
			r.ReadByte()
			synctest.Wait()
			if none != 0 || s.Reads() != 1 {
				t.Errorf("%+v: %d reads by NewReader, %d with the first byte; want 0, 1", o, none, s.Reads())
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestLargeReadsAreNotCopied(t *testing.T) {
	s := fault.NewSource(text(1000), fault.Turn{Take: 3}, fault.Turn{Take: fault.All})
	r := readahead.NewReader(s, readahead.Options{Buffer: testBlock})
	defer r.Close()
	p := make([]byte, 600)
	for _, want := range []int{3, 600} {
		if n, err := r.Read(p); n != want || err != nil {
			t.Errorf("Read = %d, %v; want %d", n, err, want)
		}
	}
	if err := r.UnreadByte(); err != nil {
		t.Fatal(err)
	}
	if c, err := r.ReadByte(); c != p[599] || err != nil {
		t.Errorf("ReadByte after UnreadByte = %q, %v; want %q", c, err, p[599])
	}
	if n, err := r.Read(p); n != 397 || err != nil {
		t.Errorf("Read = %d, %v; want the rest", n, err)
	}
	if c, err := r.ReadByte(); c != 0 || err != io.EOF {
		t.Errorf("ReadByte at the end = %q, %v; want 0", c, err)
	}
}

func TestUnreadByteKnowsItsLimits(t *testing.T) {
	r := readahead.NewReader(strings.NewReader("ab"), readahead.Options{})
	defer r.Close()
	refused := func(when string) {
		t.Helper()
		if err := r.UnreadByte(); err != bufio.ErrInvalidUnreadByte {
			t.Errorf("UnreadByte %s: %v", when, err)
		}
	}
	refused("before a byte")
	if _, err := r.Peek(1); err != nil {
		t.Fatal(err)
	}
	refused("after Peek")
	r.Discard(2)
	r.ReadByte()
	refused("after a ReadByte that failed")
}

// A boaster says that it wrote more than it was given.
type boaster struct{}

func (boaster) Write(p []byte) (int, error) { return len(p) + 1, nil }

func TestWriterThatSaysTooMuchIsAnError(t *testing.T) {
	r := readahead.NewReader(strings.NewReader("ab"), readahead.Options{})
	defer r.Close()
	if n, err := r.WriteTo(boaster{}); n != 0 || err == nil || !strings.Contains(err.Error(), "3 of 2 bytes") {
		t.Errorf("%d, %v", n, err)
	}
}

func TestPeekGivesNoMoreThanTheBuffer(t *testing.T) {
	r := readahead.NewReader(bytes.NewReader(text(100)), readahead.Options{Buffer: 16})
	defer r.Close()
	if _, err := r.Discard(7); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Peek(16); !bytes.Equal(got, text(100)[7:23]) || err != nil {
		t.Errorf("Peek(16) = %q, %v", got, err)
	}
	if _, err := r.Peek(17); !errors.Is(err, bufio.ErrBufferFull) {
		t.Errorf("Peek(17): %v", err)
	}
	if _, err := r.Peek(-1); !errors.Is(err, bufio.ErrNegativeCount) {
		t.Errorf("Peek(-1): %v", err)
	}
	if _, err := r.Discard(-1); !errors.Is(err, bufio.ErrNegativeCount) {
		t.Errorf("Discard(-1): %v", err)
	}
	if n, err := r.Discard(200); n != 93 || err != io.EOF {
		t.Errorf("Discard(200) = %d, %v; want 93, io.EOF", n, err)
	}
}

// A smallWriter takes some bytes, and then some more after an error.
type smallWriter struct {
	bytes.Buffer
	take int
	err  error
}

func (w *smallWriter) Write(p []byte) (int, error) {
	n := min(w.take, len(p))
	w.Buffer.Write(p[:n])
	return n, w.err
}

func TestWriteToConsumesWhatWasTaken(t *testing.T) {
	check := func(w *smallWriter, want error) {
		t.Helper()
		r := readahead.NewReader(bytes.NewReader(text(50)), readahead.Options{Buffer: testBlock})
		defer r.Close()
		n, err := r.WriteTo(w)
		if n != int64(w.take) || !errors.Is(err, want) {
			t.Errorf("WriteTo = %d, %v; want %d, %v", n, err, w.take, want)
		}
		rest, err := readBy(8)(r)
		if !bytes.Equal(rest, text(50)[w.take:]) || err != nil {
			t.Errorf("after WriteTo: %q, %v", rest, err)
		}
	}
	check(&smallWriter{take: 3, err: syscall.ENOSPC}, syscall.ENOSPC)
	check(&smallWriter{take: 5}, io.ErrShortWrite)
}

func TestCloseClosesTheSourceOnce(t *testing.T) {
	s := fault.NewSource(text(10))
	s.FailClose(syscall.EIO)
	r := readahead.NewReader(s, readahead.Options{})
	for range 2 {
		if err := r.Close(); !errors.Is(err, syscall.EIO) {
			t.Errorf("Close = %v, want EIO", err)
		}
	}
	if wrong := s.Violations(); len(wrong) > 0 {
		t.Error(wrong)
	}
}

func TestClosedReaderRefusesEveryCall(t *testing.T) {
	for _, o := range readAheads {
		r := readahead.NewReader(strings.NewReader("abc"), o)
		r.ReadByte()
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		refused(t, r, os.ErrClosed.Error())
		if err := r.Err(); err != nil {
			t.Errorf("Err after Close = %v", err)
		}
	}
}

// refused checks that every call that reads fails with such an error.
func refused(t *testing.T, r *readahead.Reader, want string) {
	t.Helper()
	check := func(name string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	_, err := r.Read(make([]byte, 1))
	check("Read", err)
	_, err = r.ReadByte()
	check("ReadByte", err)
	_, err = r.ReadLine()
	check("ReadLine", err)
	_, err = r.Peek(1 << 30)
	check("Peek", err)
	_, err = r.Discard(1)
	check("Discard", err)
	check("UnreadByte", r.UnreadByte())
	_, err = r.WriteTo(io.Discard)
	check("WriteTo", err)
	for _, err := range r.Blocks() {
		check("Blocks", err)
	}
	for _, err := range r.Lines() {
		check("Lines", err)
	}
	for range r.Bytes() {
		t.Error("Bytes gives a byte")
	}
}

func TestOptionsThatMakeNoSenseAreNamed(t *testing.T) {
	check := func(o readahead.Options, want string) {
		t.Helper()
		_, err := readahead.Open("file", o)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open with %+v: %v, want %q", o, err, want)
		}
		r := readahead.NewReader(strings.NewReader("abc"), o)
		refused(t, r, want)
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	check(readahead.Options{Buffer: -1}, "buffer of -1 bytes is negative")
	largest := min(holdfast.GiB, holdfast.Size(math.MaxInt/2)) // where int has 32 bits, a byte less
	check(readahead.Options{Buffer: largest + 1}, "is more than "+largest.String())
	check(readahead.Options{MaxLine: -1}, "longest line of -1 bytes is negative")
	check(readahead.Options{ReadAhead: 3}, "read-ahead 3 is not known")
}

func TestOpenNamesAFileThatIsNotThere(t *testing.T) {
	_, err := readahead.Open(filepath.Join(t.TempDir(), "none"), readahead.Options{})
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "none") {
		t.Errorf("Open: %v", err)
	}
}

// lineStream is an endless source of lines.
type lineStream struct{ at int }

func (s *lineStream) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
		if s.at++; s.at%71 == 0 {
			p[i] = '\n'
		}
	}
	return len(p), nil
}

func TestSteadyReadingAllocatesNothing(t *testing.T) {
	if isolate.RaceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, mode := range []readahead.Mode{readahead.Never, readahead.Always} {
		r := readahead.NewReader(&lineStream{}, readahead.Options{Buffer: 1000, ReadAhead: mode})
		p := make([]byte, 100)
		for name, step := range map[string]func(){
			"ReadByte":         func() { r.ReadByte() },
			"Read":             func() { r.Read(p) },
			"ReadLine":         func() { r.ReadLine() },
			"Peek and Discard": func() { r.Peek(600); r.Discard(500) },
			"Bytes": func() {
				n := 0
				for range r.Bytes() {
					if n++; n == 1500 {
						break
					}
				}
			},
			"Blocks": func() {
				n := 0
				for range r.Blocks() {
					if n++; n == 3 {
						break
					}
				}
			},
		} {
			r.Discard(10000)
			if n := isolate.Least(0, func() float64 { return testing.AllocsPerRun(1000, step) }); n != 0 {
				t.Errorf("read-ahead %d: %s allocates %v times", mode, name, n)
			}
		}
		r.Close()
	}
}

// TestPeekIsNoRoomToAppendTo: that would change the bytes behind it.
func TestPeekIsNoRoomToAppendTo(t *testing.T) {
	r := readahead.NewReader(strings.NewReader("abcdef"), readahead.Options{})
	defer r.Close()
	p, err := r.Peek(3)
	_ = append(p, "XYZ"...)
	if all, e := r.Peek(6); err != nil || e != nil || string(all) != "abcdef" {
		t.Errorf("%q, %v, %v", all, err, e)
	}
}

// TestAReaderOfAClosedFileReturnsItsError when it reads, and not before.
func TestAReaderOfAClosedFileReturnsItsError(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	r := readahead.NewReader(f, readahead.Options{})
	defer r.Close()
	if _, err := r.ReadByte(); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
}
