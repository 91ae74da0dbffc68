package main

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A truth says whether a program keeps what it acknowledged at a level.
type truth int

const (
	yes truth = iota
	no
	either // it depends on which call fails, or when: both verdicts are right
)

// A program stores records. Its behaviour at an end that no level makes does not matter.
type program struct {
	name, truth string
	keeps       [3]truth // at levels kill, fault, power
	run         func(ack func(n int)) error
	read        func(found func(n int)) error // nil is of cells in the file log
}

func find(name string) program {
	for _, p := range programs {
		if p.name == name {
			return p
		}
	}
	panic("there is no program " + name)
}

func (p program) reads(found func(n int)) error {
	if p.read != nil {
		return p.read(found)
	}
	return readCells("log", 0, found)
}

var (
	always   = [3]truth{yes, yes, yes}
	notPower = [3]truth{yes, yes, no}
	never    = [3]truth{no, no, no}
)

const cellSize = 64

// cell is a record with its checksum.
func cell(n int) []byte {
	b := fmt.Appendf(nil, "%016d", n)
	b = fmt.Appendf(b, "%08x", crc32.ChecksumIEEE(b))
	return append(b, bytes.Repeat([]byte{'.'}, cellSize-len(b))...)
}

// numberOf is the number of a cell that is whole, or 0.
func numberOf(b []byte) int {
	n, err := strconv.Atoi(string(b[:min(16, len(b))]))
	if err != nil || !bytes.HasPrefix(b, cell(n)) {
		return 0
	}
	return n
}

// readCells finds the cells of a file in their order, from a number on.
func readCells(name string, first int, found func(n int)) error {
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for n := first + 1; len(b) >= cellSize && numberOf(b) == n; n++ {
		found(n)
		b = b[cellSize:]
	}
	return err
}

func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// do takes steps until one fails.
func do(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func at(n int) int64 { return int64(n-1) * cellSize }

func write(f *os.File, n int) error {
	_, err := f.WriteAt(cell(n), at(n))
	return err
}

func sync(f *os.File, _ int) error { return f.Sync() }

// last is how many records there are.
func last(read func(func(int)) error) (n int, err error) {
	err = read(func(found int) { n = found })
	return n, err
}

type step = func(f *os.File, n int) error

func then(steps ...step) step {
	return func(f *os.File, n int) error {
		for _, s := range steps {
			if err := s(f, n); err != nil {
				return err
			}
		}
		return nil
	}
}

// opened opens the log, whose name is on the disk then, and makes what a crash has left durable before it is built on.
func opened(flags int) (f *os.File, n int, err error) {
	if f, err = os.OpenFile("log", os.O_RDWR|os.O_CREATE|flags, 0o666); err != nil {
		return nil, 0, err
	}
	n, err = last(func(found func(int)) error { return readCells("log", 0, found) })
	return f, n, errors.Join(err, f.Sync(), syncDir("."))
}

// cells is a program that takes steps for each record, which goes behind the others of one file, and acknowledges it.
func cells(flags int, steps ...step) func(ack func(int)) error {
	return func(ack func(int)) error {
		f, n, err := opened(flags)
		for ; err == nil; n++ {
			if err = then(steps...)(f, n+1); err == nil {
				ack(n + 1)
			}
		}
		return err
	}
}

// values is a program that replaces a value by the next one.
func values(step func(n int) error) func(ack func(int)) error {
	return func(ack func(int)) error {
		n, err := last(readValues)
		err = errors.Join(err, syncDir("."))
		for ; err == nil; n++ {
			if err = step(n + 1); err == nil {
				ack(n + 1)
			}
		}
		return err
	}
}

// readValues finds the highest of the values in the directory, and says that those before it were there.
func readValues(found func(n int)) error {
	entries, err := os.ReadDir(".")
	most := 0
	for _, e := range entries {
		b, readErr := os.ReadFile(e.Name())
		if err = errors.Join(err, readErr); !strings.HasPrefix(e.Name(), "tmp") {
			most = max(most, numberOf(append(b, make([]byte, 16)...)))
		}
	}
	for n := range most {
		found(n + 1)
	}
	return err
}

func newFile(name string, n int, sync bool) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(cell(n))
	if sync {
		err = errors.Join(err, f.Sync())
	}
	return errors.Join(err, f.Close())
}

func remove(name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// renamed replaces the value by rename.
func renamed(syncs, syncsDir bool) func(n int) error {
	return func(n int) error {
		return do(
			func() error { return newFile("tmp", n, syncs) },
			func() error { return os.Rename("tmp", "value") },
			func() error { return dirIf(syncsDir) })
	}
}

func dirIf(syncs bool) error {
	if syncs {
		return syncDir(".")
	}
	return nil
}

// linked gives each value a name of its own by a hard link.
func linked(syncsDir bool) func(n int) error {
	return func(n int) error {
		return do(
			func() error { return remove("tmp") }, // it may be a value's other name
			func() error { return newFile("tmp", n, true) },
			func() error { return remove(fmt.Sprint("v", n)) },
			func() error { return os.Link("tmp", fmt.Sprint("v", n)) },
			func() error { return dirIf(syncsDir) },
			func() error { return remove(fmt.Sprint("v", n-2)) })
	}
}

// tmpFile is a file without a name until it is linked.
func tmpFile(n int) error {
	fd, err := unix.Open(".", unix.O_TMPFILE|unix.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "tmpfile")
	name := fmt.Sprint("v", n)
	return errors.Join(do(
		func() error { _, err := f.Write(cell(n)); return err },
		f.Sync,
		func() error { return remove(name) },
		func() error {
			return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW)
		},
		func() error { return syncDir(".") },
		func() error { return remove(fmt.Sprint("v", n-2)) }), f.Close())
}

// symlinked names each value by a symbolic link.
func symlinked(n int) error {
	return do(
		func() error { return newFile(fmt.Sprint("v", n), n, true) },
		func() error { return remove("tmp") },
		func() error { return os.Symlink(fmt.Sprint("v", n), "tmp") },
		func() error { return syncDir(".") }, // or the link may be there before what it names
		func() error { return os.Rename("tmp", "value") },
		func() error { return syncDir(".") },
		func() error { return remove(fmt.Sprint("v", n-2)) })
}

func readLink(found func(n int)) error {
	b, err := os.ReadFile("value")
	if _, none := os.Lstat("value"); errors.Is(none, fs.ErrNotExist) {
		return nil
	}
	for n := range numberOf(append(b, make([]byte, 16)...)) {
		found(n + 1)
	}
	return err
}

// rwf writes with flags of its own.
func rwf(flags int) step {
	return func(f *os.File, n int) error {
		wrote, err := unix.Pwritev2(int(f.Fd()), [][]byte{cell(n)}, at(n), flags)
		if err == nil && wrote < cellSize {
			err = io.ErrShortWrite
		}
		return err
	}
}

func mapped(flags int) step {
	return func(f *os.File, n int) error {
		size := (at(n) + cellSize + 4095) / 4096 * 4096
		if err := f.Truncate(size); err != nil {
			return err
		}
		m, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			return err
		}
		copy(m[at(n):], cell(n))
		if flags != 0 {
			err = unix.Msync(m, flags)
		}
		return errors.Join(err, unix.Munmap(m))
	}
}

// sent brings a record from another file by the kernel.
func sent(f *os.File, n int) error {
	from, err := os.OpenFile("tmp", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	zero := int64(0)
	if _, err = from.Write(cell(n)); err == nil {
		_, err = f.Seek(at(n), io.SeekStart)
	}
	if err == nil {
		var did int
		if did, err = unix.Sendfile(int(f.Fd()), int(from.Fd()), &zero, cellSize); err == nil && did < cellSize {
			err = io.ErrShortWrite
		}
	}
	return errors.Join(err, from.Close())
}

const sector = 4096

// direct writes each record to a block of its own, past the page cache.
func direct(ack func(int)) error {
	n, err := last(readBlocks)
	f, openErr := os.OpenFile("log", os.O_RDWR|os.O_CREATE|unix.O_DIRECT|unix.O_DSYNC, 0o666)
	if err = errors.Join(err, openErr); err != nil {
		return err
	}
	block, err := unix.Mmap(-1, 0, sector, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE) // aligned
	err = errors.Join(err, f.Sync(), syncDir("."))
	for ; err == nil; n++ {
		copy(block, cell(n+1))
		if _, err = f.WriteAt(block, int64(n)*sector); err == nil {
			ack(n + 1)
		}
	}
	return err
}

func readBlocks(found func(n int)) error {
	b, err := os.ReadFile("log")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for n := 1; len(b) >= sector && numberOf(b) == n; n++ {
		found(n)
		b = b[sector:]
	}
	return err
}

// segments is a log of files with ten records each. sealed is called with the name of a full one.
func segments(syncsDir bool, sealed func(name string) error) func(ack func(int)) error {
	return func(ack func(int)) error {
		n, err := last(readSegments)
		err = errors.Join(err, dirIf(syncsDir))
		for err == nil {
			name := fmt.Sprintf("s%06d", n/perSegment)
			f, openErr := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666)
			if err = openErr; err == nil {
				err = errors.Join(f.Sync(), dirIf(syncsDir))
			}
			for err == nil {
				if err = do(func() error { _, err := f.WriteAt(cell(n+1), int64(n%perSegment)*cellSize); return err }, f.Sync); err == nil {
					n++
					ack(n)
				}
				if n%perSegment == 0 {
					break
				}
			}
			if err == nil {
				err = errors.Join(f.Close(), sealed(name))
			}
		}
		return err
	}
}

const perSegment = 10

func keepSegment(string) error { return nil }

// rewritten writes a segment anew in its place.
func rewritten(name string) error {
	b, err := os.ReadFile(name)
	if err == nil {
		err = os.WriteFile(name, b, 0o666) // it is emptied first
	}
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func readSegments(found func(n int)) (err error) {
	n := 0
	for before := -1; before < n && err == nil; {
		before = n
		err = readCells(fmt.Sprintf("s%06d", n/perSegment), n, func(is int) { n = is; found(n) })
		if n%perSegment != 0 {
			break
		}
	}
	return err
}

// late acknowledges ten records behind the one that it syncs.
func late(ack func(int)) error {
	const behind = 10
	f, n, err := opened(0)
	for first := n; err == nil; n++ {
		if err = then(write, sync)(f, n+1); err == nil && n+1-behind > first {
			ack(n + 1 - behind)
		}
	}
	return err
}

// ring has two pages, of which one is a hole.
func ring(ack func(int)) error {
	f, _, err := opened(0)
	n, lastErr := last(readRing)
	err = errors.Join(err, lastErr)
	for ; err == nil; n++ {
		next := n + 1
		err = do(
			func() error { _, err := f.WriteAt(cell(next), int64(next%2)*4096); return err },
			f.Sync,
			func() error {
				return unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, int64((next+1)%2)*4096, 4096)
			})
		if err == nil {
			ack(next)
		}
	}
	return err
}

func readRing(found func(n int)) error {
	b, err := os.ReadFile("log")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	b = append(b, make([]byte, 8192)...)
	for n := range max(numberOf(b), numberOf(b[4096:])) {
		found(n + 1)
	}
	return err
}

// slow recovers for a second when it finds records.
func slow(ack func(int)) error {
	if info, err := os.Stat("log"); err == nil && info.Size() > 0 {
		time.Sleep(time.Second)
	}
	return cells(0, write, sync)(ack)
}

// inBackground syncs each ten milliseconds, whatever it has acknowledged.
func inBackground(ack func(int)) error {
	f, n, err := opened(0)
	go func() {
		for range time.Tick(10 * time.Millisecond) {
			_ = f.Sync() // its error is ignored
		}
	}()
	for ; err == nil; n++ {
		if err = write(f, n+1); err == nil {
			ack(n + 1)
		}
	}
	return err
}

// anew empties the file and writes all that it had, and one more.
func anew(ack func(int)) error {
	_, n, err := opened(0)
	for ; err == nil; n++ {
		var all []byte
		for i := range n%100 + 1 { // a window, so that it stays small
			all = append(all, cell(n-n%100+i+1)...)
		}
		if err = os.WriteFile("log", all, 0o666); err == nil {
			err = syncFile("log")
		}
		if err == nil {
			ack(n + 1)
		}
		if n%100 == 99 {
			time.Sleep(time.Second) // enough was seen
			n--
		}
	}
	return err
}

func syncFile(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// unchecked has records of 1,000 bytes without a checksum, one behind the other.
func unchecked(ack func(int)) error {
	f, _, err := opened(0)
	n, lastErr := last(readUnchecked)
	err = errors.Join(err, lastErr)
	for ; err == nil; n++ {
		record := fmt.Appendf(nil, "%08d%0992d", n+1, n+1)
		err = do(func() error { _, err := f.WriteAt(record, int64(n)*1000); return err }, f.Sync)
		if err == nil {
			ack(n + 1)
		}
	}
	return err
}

// readUnchecked takes each record whose beginning is there for whole. One whose end is another record's is garbage.
func readUnchecked(found func(n int)) error {
	b, err := os.ReadFile("log")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for n := 1; len(b) >= 8; n++ {
		is, err := strconv.Atoi(string(b[:8]))
		if err != nil || is == 0 {
			break
		}
		if len(b) < 1000 || string(b[992:1000]) != string(b[:8]) {
			return fmt.Errorf("record %d has another's end", is)
		}
		found(is)
		b = b[1000:]
	}
	return err
}

// damaging writes over a record that is there when it is opened again, or before a moment of its life.
func damaging(damage func(f *os.File, n int) error) func(ack func(int)) error {
	return func(ack func(int)) error {
		f, n, err := opened(0)
		if err == nil && n > 2 {
			err = damage(f, n)
		}
		for ; err == nil; n++ {
			if err = then(write, sync)(f, n+1); err == nil {
				ack(n + 1)
			}
		}
		return err
	}
}

// readCount finds as many records as the file has cells, whatever they are.
func readCount(found func(n int)) error {
	b, err := os.ReadFile("log")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for ; len(b) >= cellSize && numberOf(b) > 0; b = b[cellSize:] {
		found(numberOf(b))
	}
	return err
}

// hasty acknowledges a record before it is written if now says so, and waits between the two.
func hasty(now func(n int, lived time.Duration) (bool, time.Duration)) func(ack func(int)) error {
	return func(ack func(int)) error {
		began := time.Now()
		f, n, err := opened(0)
		for ; err == nil; n++ {
			early, wait := now(n+1, time.Since(began))
			if early {
				ack(n + 1)
				time.Sleep(wait)
			}
			if err = then(write, sync)(f, n+1); err == nil && !early {
				ack(n + 1)
			}
		}
		return err
	}
}

// dead ends, or not, when it finds records.
func dead(how func() error) func(ack func(int)) error {
	return func(ack func(int)) error {
		if _, n, err := opened(0); err != nil || n > 0 {
			return errors.Join(err, how())
		}
		return cells(0, write, sync)(ack)
	}
}

// daemon leaves its process group, its session and its environment.
func daemon(ack func(int)) error {
	const stage = "DAEMON"
	if os.Getenv(stage) == "" {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		cmd := exec.Command("env", "-i", stage+"=1", "setsid", self, "run", os.Args[2])
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		return cmd.Run()
	}
	return cells(0, write, sync)(ack)
}

// deaf takes a failed sync for a good one. stubborn tries it again, until it is one.
func deaf(f *os.File, _ int) error {
	_ = f.Sync()
	return nil
}

func stubborn(f *os.File, _ int) error {
	for f.Sync() != nil {
		time.Sleep(time.Millisecond)
	}
	return nil
}

// A uring is the least of io_uring: one call at a time.
type uring struct {
	fd         int
	sq, cq     []byte
	entries    []byte
	parameters struct {
		sqEntries, cqEntries, flags, threadCPU, threadIdle, features, wq uint32
		_                                                                [3]uint32
		sqOff                                                            [10]uint32 // head, tail, mask, entries, flags, dropped, array
		cqOff                                                            [10]uint32 // head, tail, mask, entries, overflow, entries' place
	}
}

func newRing() (*uring, error) {
	r := &uring{}
	fd, _, e := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&r.parameters)), 0)
	if e != 0 {
		return nil, fmt.Errorf("io_uring_setup: %w", e)
	}
	r.fd = int(fd)
	var errs [3]error
	const size, rights = 4096, unix.PROT_READ | unix.PROT_WRITE
	r.sq, errs[0] = unix.Mmap(r.fd, 0, size, rights, unix.MAP_SHARED)
	r.cq, errs[1] = unix.Mmap(r.fd, 0x8000000, size, rights, unix.MAP_SHARED)
	r.entries, errs[2] = unix.Mmap(r.fd, 0x10000000, size, rights, unix.MAP_SHARED)
	return r, errors.Join(errs[:]...)
}

func word(b []byte, at uint32) *uint32 { return (*uint32)(unsafe.Pointer(&b[at])) }

// do makes a call and returns its result.
func (r *uring) do(op uint8, f *os.File, data []byte, offset int64) error {
	type entry struct {
		op, flags byte
		priority  uint16
		fd        int32
		offset    uint64
		address   uint64
		length    uint32
		_         [36]byte
	}
	e := entry{op: op, fd: int32(f.Fd()), offset: uint64(offset), length: uint32(len(data))}
	if len(data) > 0 {
		e.address = uint64(uintptr(unsafe.Pointer(&data[0])))
	}
	*(*entry)(unsafe.Pointer(&r.entries[0])) = e
	*word(r.sq, r.parameters.sqOff[6]) = 0
	*word(r.sq, r.parameters.sqOff[1])++
	head, tail := word(r.cq, r.parameters.cqOff[0]), word(r.cq, r.parameters.cqOff[1])
	for submit := uintptr(1); atomic.LoadUint32(tail) == *head; { // a signal ends a wait
		took, _, e := unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(r.fd), submit, 1, 1, 0, 0)
		if e != 0 && e != unix.EINTR {
			return fmt.Errorf("io_uring_enter: %w", e)
		}
		if e == 0 {
			submit -= min(submit, took)
		}
	}
	at := r.parameters.cqOff[5] + 16*(*head&*word(r.cq, r.parameters.cqOff[2]))
	result := int32(*word(r.cq, at+8))
	*head++
	switch {
	case result < 0:
		return unix.Errno(-result)
	case int(result) < len(data):
		return io.ErrShortWrite
	}
	return nil
}

// ringed writes by io_uring, and syncs by it too if it says so.
func ringed(syncs bool) func(ack func(int)) error {
	return func(ack func(int)) error {
		const opFsync, opWrite = 3, 23
		f, n, err := opened(0)
		r, ringErr := newRing()
		err = errors.Join(err, ringErr)
		for ; err == nil; n++ {
			if err = r.do(opWrite, f, cell(n+1), at(n+1)); err == nil && syncs {
				err = r.do(opFsync, f, nil, 0)
			}
			if err == nil {
				ack(n + 1)
			}
		}
		return err
	}
}

// hidden acknowledges one record in three hundred two milliseconds too early.
func hidden(n int, _ time.Duration) (bool, time.Duration) { return n%300 == 0, 2 * time.Millisecond }

var programs = []program{
	{name: "fsync", truth: "keeps", keeps: always, run: cells(0, write, sync)},
	{name: "fdatasync", truth: "keeps", keeps: always, run: cells(0, write, func(f *os.File, _ int) error { return unix.Fdatasync(int(f.Fd())) })},
	{name: "O_DSYNC", truth: "keeps", keeps: always, run: cells(unix.O_DSYNC, write)},
	{name: "O_SYNC", truth: "keeps", keeps: always, run: cells(unix.O_SYNC, write)},
	{name: "RWF_DSYNC", truth: "keeps", keeps: always, run: cells(0, rwf(unix.RWF_DSYNC))},
	{name: "O_DIRECT, O_DSYNC", truth: "keeps", keeps: always, run: direct, read: readBlocks},
	{name: "mmap, msync", truth: "keeps", keeps: always, run: cells(0, mapped(unix.MS_SYNC))},
	{name: "sync(2)", truth: "keeps on Linux", keeps: always, run: cells(0, write, func(*os.File, int) error { unix.Sync(); return nil })},
	{name: "syncfs", truth: "keeps", keeps: always, run: cells(0, write, func(f *os.File, _ int) error { return unix.Syncfs(int(f.Fd())) })},
	{name: "io_uring, fsync by it", truth: "keeps", keeps: always, run: ringed(true)},
	{name: "O_TMPFILE, linkat", truth: "keeps", keeps: always, run: values(tmpFile), read: readValues},
	{name: "hard link", truth: "keeps", keeps: always, run: values(linked(true)), read: readValues},
	{name: "symbolic link", truth: "keeps", keeps: always, run: values(symlinked), read: readLink},
	{name: "rename", truth: "keeps", keeps: always, run: values(renamed(true, true)), read: readValues},
	{name: "sendfile, fsync", truth: "keeps", keeps: always, run: cells(0, sent, sync)},
	{name: "segments", truth: "keeps", keeps: always, run: segments(true, keepSegment), read: readSegments},
	{name: "acknowledges ten late", truth: "keeps", keeps: always, run: late},
	{name: "ring with punched holes", truth: "keeps", keeps: always, run: ring, read: readRing},
	{name: "recovers for a second", truth: "keeps", keeps: always, run: slow},
	{name: "leaves its group, session, environment", truth: "keeps", keeps: always, run: daemon},

	{name: "no sync", truth: "loses at a power cut", keeps: notPower, run: cells(0, write)},
	{name: "syncs in the background", truth: "loses at a power cut, or by a failed sync", keeps: [3]truth{yes, either, no}, run: inBackground},
	{name: "sync_file_range", truth: "loses at a power cut", keeps: notPower, run: cells(0, write, func(f *os.File, n int) error {
		const whole = 7 // SYNC_FILE_RANGE_WAIT_BEFORE, WRITE, WAIT_AFTER
		return unix.SyncFileRange(int(f.Fd()), at(n), cellSize, whole)
	})},
	{name: "mmap without msync", truth: "loses at a power cut", keeps: notPower, run: cells(0, mapped(0))},
	{name: "mmap, MS_ASYNC", truth: "loses at a power cut", keeps: notPower, run: cells(0, mapped(unix.MS_ASYNC))},
	{name: "io_uring without fsync", truth: "loses at a power cut", keeps: notPower, run: ringed(false)},
	{name: "rename without fsync", truth: "loses at a power cut, or by a failed sync", keeps: [3]truth{yes, either, no}, run: values(renamed(false, true)), read: readValues},
	{name: "rename without the directory", truth: "loses at a power cut", keeps: notPower, run: values(renamed(true, false)), read: readValues},
	{name: "hard link without the directory", truth: "loses at a power cut", keeps: notPower, run: values(linked(false)), read: readValues},
	{name: "segments without the directory", truth: "loses at a power cut", keeps: notPower, run: segments(false, keepSegment), read: readSegments},
	{name: "truncates and writes anew", truth: "loses at any crash", keeps: never, run: anew},
	{name: "writes a full segment anew", truth: "loses at any crash", keeps: never, run: segments(true, rewritten), read: readSegments},
	{name: "no checksum, 1,000 bytes", truth: "garbage of a torn write", keeps: [3]truth{either, either, no}, run: unchecked, read: readUnchecked},

	{name: "loses the first record when opened again", truth: "broken", keeps: never, run: damaging(func(f *os.File, _ int) error { _, err := f.WriteAt(cell(2), 0); return err }), read: readCount},
	{name: "exchanges two records when opened again", truth: "broken", keeps: never, run: damaging(func(f *os.File, _ int) error {
		_, err := f.WriteAt(append(cell(3), cell(2)...), cellSize)
		return err
	}), read: readCount},
	{name: "damages a record when opened again", truth: "broken", keeps: never, run: damaging(func(f *os.File, _ int) error { _, err := f.WriteAt([]byte("x"), cellSize+4); return err })},
	{name: "acknowledges before write", truth: "broken for some µs a record", keeps: never, run: hasty(func(int, time.Duration) (bool, time.Duration) { return true, 0 })},
	{name: "one record in 300 too early", truth: "broken for 2 ms", keeps: [3]truth{no, either, no}, run: hasty(hidden)},
	{name: "too early from 500 ms on", truth: "broken from then on", keeps: [3]truth{no, either, either}, run: hasty(func(_ int, lived time.Duration) (bool, time.Duration) { return lived > 500*time.Millisecond, 0 })},
	{name: "loses the third segment", truth: "broken from then on", keeps: never, run: segments(true, func(name string) error {
		if filepath.Base(name) == "s000002" {
			return os.Remove(name)
		}
		return nil
	}), read: readSegments},
	{name: "hangs behind a crash", truth: "dead", keeps: never, run: dead(func() error { time.Sleep(time.Hour); return nil })},
	{name: "fails behind a crash", truth: "dead", keeps: never, run: dead(func() error { return errors.New("log needs repair") })},
	{name: "panics behind a crash", truth: "dead", keeps: never, run: dead(func() error { panic("index out of range") })},
	{name: "does not hear a failed sync", truth: "loses where a sync fails", keeps: [3]truth{yes, no, yes}, run: cells(0, write, deaf)},
	{name: "syncs again where it failed", truth: "loses where a sync fails", keeps: [3]truth{yes, no, yes}, run: cells(0, write, stubborn)},
}
