package read

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	klauspost "github.com/klauspost/readahead"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/cstdio"
	"github.com/holdfast-go/holdfast/readahead"
)

// A job is one kind of work on a warm or a cold file.
type job struct {
	work string // the key of the results
	cold bool
}

type (
	readFile = func(path string, size int) (result, error)
	group    = command.Group[job, readFile]
	arm      = command.Arm[readFile]
)

// groups is all that is compared.
func groups() (all []*group) {
	for _, work := range []struct {
		name, title string
		arms        func() []*arm
	}{
		{"bytes", "a sum over each byte, one at a time", byteArms},
		{"lines", "each line of some 80 bytes", lineArms},
		{"blocks", "a checksum (CRC-32) over all", blockArms},
		{"read", "a checksum (CRC-32) over all, by Reads of 1 KiB", readArms},
	} {
		for _, cold := range []bool{false, true} {
			state := map[bool]string{false: "warm", true: "cold"}[cold]
			all = append(all, &group{Name: work.name + "/" + state, Title: work.title + ", " + state, Unit: "byte", Job: job{work.name, cold}, Arms: work.arms()})
		}
	}
	return all
}

func byteArms() []*arm {
	list := []*arm{
		{Name: "holdfast ReadByte", Note: "Reader.ReadByte", Do: withReader(readahead.Options{}, byReadByte)},
		{Name: "holdfast ReadByte (twin)", Note: command.Twin, Do: withReader(readahead.Options{}, byReadByte)},
		{Name: "holdfast Bytes", Note: "range over Reader.Bytes", Do: withReader(readahead.Options{}, byBytes)},
		{Name: "bufio 4KiB", Note: "bufio.Reader.ReadByte", Do: withFile(byteReader(4 << 10))},
		{Name: "bufio 64KiB", Note: "the same with a larger buffer", Do: withFile(byteReader(64 << 10))},
		{Name: "bufio 256KiB", Note: "the same with one as large as ours", Do: withFile(byteReader(256 << 10))},
		{Name: "mmap", Note: "a loop over the mapped file", Do: withMapped(sumOf)},
	}
	for _, m := range []cstdio.Method{cstdio.Getc, cstdio.GetcUnlocked, cstdio.DFgetc} {
		list = append(list, &arm{Name: m.Reads(), Note: "in C, the loop too; a call each byte", Do: inC(m)})
	}
	return list
}

func lineArms() []*arm {
	return []*arm{
		{Name: "holdfast Lines", Note: "range over Reader.Lines", Do: withReader(readahead.Options{}, byLines)},
		{Name: "holdfast Lines (twin)", Note: command.Twin, Do: withReader(readahead.Options{}, byLines)},
		{Name: "holdfast ReadLine", Note: "Reader.ReadLine", Do: withReader(readahead.Options{}, byReadLine)},
		{Name: "bufio.Scanner", Note: "as bufio.NewScanner makes it", Do: withFile(scanLines(0))},
		{Name: "bufio.Scanner 256KiB", Note: "with a buffer as large as ours", Do: withFile(scanLines(256 << 10))},
		{Name: "bufio.Reader 64KiB", Note: "ReadSlice", Do: withFile(sliceLines)},
		{Name: "mmap", Note: "bytes.IndexByte over the mapped file", Do: withMapped(linesOfMapped)},
	}
}

func blockArms() []*arm {
	list := []*arm{
		{Name: "holdfast", Note: "range over Reader.Blocks", Do: withReader(readahead.Options{}, byBlocks)},
		{Name: "holdfast (twin)", Note: command.Twin, Do: withReader(readahead.Options{}, byBlocks)},
		{Name: "holdfast never ahead", Note: "ReadAheadNever", Do: withReader(readahead.Options{ReadAhead: readahead.Never}, byBlocks)},
		{Name: "holdfast always ahead", Note: "ReadAheadAlways", Do: withReader(readahead.Options{ReadAhead: readahead.Always}, byBlocks)},
		{Name: "holdfast drop-behind", Note: "DropBehind; the warm file is cold behind it", Do: withReader(readahead.Options{DropBehind: true}, byBlocks)},
		{Name: "bufio 4KiB", Note: "bufio.Reader, its buffer by Peek and Discard", Do: withFile(peekBlocks(4 << 10))},
		{Name: "bufio 64KiB", Note: "the same with a larger buffer", Do: withFile(peekBlocks(64 << 10))},
		{Name: "readahead", Note: "github.com/klauspost/readahead as it comes, WriteTo", Do: withFile(byReadahead)},
		{Name: "mmap", Note: "the mapped file at once", Do: withMapped(crcOf)},
	}
	for _, size := range []holdfast.Size{4 * holdfast.KiB, 16 * holdfast.KiB, 64 * holdfast.KiB, 128 * holdfast.KiB, 256 * holdfast.KiB, holdfast.MiB, 4 * holdfast.MiB} {
		list = append(list, &arm{Name: fmt.Sprintf("read(2) %v", size), Note: "os.File.Read in a loop", Do: withFile(readBlocks(int(size)))})
	}
	return list
}

func readArms() []*arm {
	return []*arm{
		{Name: "holdfast", Note: "Reader.Read", Do: withReader(readahead.Options{}, byRead)},
		{Name: "holdfast (twin)", Note: command.Twin, Do: withReader(readahead.Options{}, byRead)},
		{Name: "bufio 4KiB", Note: "bufio.Reader.Read", Do: withFile(readBuffered(4 << 10))},
		{Name: "bufio 64KiB", Note: "the same with a larger buffer", Do: withFile(readBuffered(64 << 10))},
		{Name: "bufio 256KiB", Note: "the same with one as large as ours", Do: withFile(readBuffered(256 << 10))},
	}
}

func withReader(o readahead.Options, read func(*readahead.Reader) (result, error)) func(string, int) (result, error) {
	return func(path string, _ int) (result, error) {
		r, err := readahead.Open(path, o)
		if err != nil {
			return result{}, err
		}
		found, err := read(r)
		return found, errors.Join(err, r.Close())
	}
}

func withFile(read func(f *os.File) (result, error)) func(string, int) (result, error) {
	return func(path string, _ int) (result, error) {
		f, err := os.Open(path)
		if err != nil {
			return result{}, err
		}
		found, err := read(f)
		return found, errors.Join(notEOF(err), f.Close())
	}
}

func notEOF(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

func byReadByte(r *readahead.Reader) (result, error) {
	var s cstdio.Sum
	for {
		c, err := r.ReadByte()
		if err != nil {
			return result{s.Ones, s.Twos}, notEOF(err)
		}
		s.Add(c)
	}
}

func byBytes(r *readahead.Reader) (result, error) {
	var s cstdio.Sum
	for c := range r.Bytes() {
		s.Add(c)
	}
	return result{s.Ones, s.Twos}, r.Err()
}

func byteReader(size int) func(f *os.File) (result, error) {
	return func(f *os.File) (result, error) {
		r := bufio.NewReaderSize(f, size)
		var s cstdio.Sum
		for {
			c, err := r.ReadByte()
			if err != nil {
				return result{s.Ones, s.Twos}, err
			}
			s.Add(c)
		}
	}
}

// inC reads in C, with a buffer as large as ours.
func inC(m cstdio.Method) func(string, int) (result, error) {
	return func(path string, size int) (result, error) {
		f, err := cstdio.Open(path, cstdio.Setup{Method: m, Buffer: 256 << 10})
		if err != nil {
			return result{}, err
		}
		_, err = f.Read(int64(size))
		s := f.Sum()
		return result{s.Ones, s.Twos}, errors.Join(err, f.Close())
	}
}

func byLines(r *readahead.Reader) (found result, err error) {
	for l, err := range r.Lines() {
		if err != nil {
			return found, err
		}
		found.line(l)
	}
	return found, nil
}

func byReadLine(r *readahead.Reader) (found result, err error) {
	for {
		l, err := r.ReadLine()
		if err != nil {
			return found, notEOF(err)
		}
		found.line(l)
	}
}

func scanLines(size int) func(f *os.File) (result, error) {
	return func(f *os.File) (found result, err error) {
		s := bufio.NewScanner(f)
		if size > 0 {
			s.Buffer(make([]byte, size), size)
		}
		for s.Scan() {
			found.line(s.Bytes())
		}
		return found, s.Err()
	}
}

func sliceLines(f *os.File) (found result, err error) {
	r := bufio.NewReaderSize(f, 64<<10)
	for {
		l, err := r.ReadSlice('\n')
		if len(l) > 0 {
			found.line(bytes.TrimSuffix(l, []byte("\n")))
		}
		if err != nil {
			return found, err
		}
	}
}

func linesOfMapped(data []byte) (found result) {
	for len(data) > 0 {
		i := bytes.IndexByte(data, '\n')
		if i < 0 {
			i = len(data)
		}
		found.line(data[:i])
		data = data[min(i+1, len(data)):]
	}
	return found
}

func byBlocks(r *readahead.Reader) (result, error) {
	var crc uint32
	for block, err := range r.Blocks() {
		if err != nil {
			return result{}, err
		}
		crc = crc32.Update(crc, crc32.IEEETable, block)
	}
	return result{a: uint64(crc)}, nil
}

func peekBlocks(size int) func(f *os.File) (result, error) {
	return func(f *os.File) (result, error) {
		r := bufio.NewReaderSize(f, size)
		var crc uint32
		for {
			_, err := r.Peek(1)
			if err != nil {
				return result{a: uint64(crc)}, err
			}
			block, _ := r.Peek(r.Buffered())
			crc = crc32.Update(crc, crc32.IEEETable, block)
			r.Discard(len(block))
		}
	}
}

func readBlocks(size int) func(f *os.File) (result, error) {
	return func(f *os.File) (result, error) { return readAll(f, size) }
}

func readBuffered(buffer int) func(f *os.File) (result, error) {
	return func(f *os.File) (result, error) { return readAll(bufio.NewReaderSize(f, buffer), 1<<10) }
}

func byRead(r *readahead.Reader) (result, error) {
	found, err := readAll(r, 1<<10)
	return found, notEOF(err)
}

func readAll(r io.Reader, size int) (result, error) {
	var crc uint32
	for p := make([]byte, size); ; {
		n, err := r.Read(p)
		crc = crc32.Update(crc, crc32.IEEETable, p[:n])
		if err != nil {
			return result{a: uint64(crc)}, err
		}
	}
}

func byReadahead(f *os.File) (result, error) {
	r := klauspost.NewReader(f)
	h := crc32.NewIEEE()
	_, err := io.Copy(h, r)
	return result{a: uint64(h.Sum32())}, errors.Join(err, r.Close())
}

func crcOf(data []byte) result { return result{a: uint64(crc32.ChecksumIEEE(data))} }
