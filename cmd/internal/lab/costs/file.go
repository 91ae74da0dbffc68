package costs

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/probe"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
	"github.com/holdfast-go/holdfast/internal/sys"
)

const (
	warmBytes = 4 << 20
	coldBytes = 64 << 20
)

// numbered fills blocks with pages that begin with their number, the first with the
// first of all.
func numbered() func(block []byte) {
	next := uint64(0)
	return func(block []byte) {
		for page := range slices.Chunk(block, study.PageBytes) {
			binary.LittleEndian.PutUint64(page, next)
			next++
		}
	}
}

// checkPages reads a file back whose pages shall bear their numbers, and no more.
func checkPages(path string, pages int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r, page := bufio.NewReaderSize(f, 64<<10), make([]byte, study.PageBytes)
	for i := range pages {
		if _, err := io.ReadFull(r, page); err != nil {
			return &trial.ContentError{Offset: i * study.PageBytes, Reason: fmt.Sprintf("page %d of %d: %v", i, pages, err)}
		}
		if err := checkPage(page, i); err != nil {
			return err
		}
	}
	return checkEnd(r, pages*study.PageBytes)
}

func checkEnd(r io.Reader, at int64) error {
	if n, _ := io.ReadFull(r, make([]byte, 1)); n > 0 {
		return &trial.ContentError{Offset: at, Reason: "the file goes on"}
	}
	return nil
}

func checkPage(page []byte, number int64) error {
	if got := binary.LittleEndian.Uint64(page); got != uint64(number) {
		return &trial.ContentError{Offset: number * study.PageBytes, Reason: fmt.Sprintf("page %d has the number %d", number, got)}
	}
	return nil
}

// theRecord is the record of 40 bytes that recordsTask writes.
const theRecord = "a record of 40 bytes, its newline too..\n"

// recordsTask writes records to a new file: each by a call, or through a buffer.
func recordsTask(buffered bool) func(n int64) trial.Task {
	return func(n int64) trial.Task {
		n = max(n, turns) / turns * turns
		return trial.Task{
			Writes: n * int64(len(theRecord)),
			Do: func(_ context.Context, c *trial.Clock) error {
				f, err := os.Create(c.Path)
				if err != nil {
					return err
				}
				record := []byte(theRecord)
				with := func(n int) error {
					for range n {
						if _, err := f.Write(record); err != nil {
							return err
						}
					}
					return nil
				}
				if buffered {
					with = bufferedRecords(f)
				}
				err = difference{with: with, without: emptyLoop}.measure(c, trial.Write, n)
				return errors.Join(err, f.Close())
			},
			Check: func(path string) error {
				f, err := os.Open(path)
				if err != nil {
					return err
				}
				defer f.Close()
				r, got := bufio.NewReaderSize(f, 64<<10), make([]byte, len(theRecord))
				for i := range n {
					if _, err := io.ReadFull(r, got); err != nil || string(got) != theRecord {
						return &trial.ContentError{Offset: i * int64(len(got)), Reason: fmt.Sprintf("record %d is %q (%v)", i, got, err)}
					}
				}
				return checkEnd(r, n*int64(len(got)))
			},
		}
	}
}

func bufferedRecords(f *os.File) loop {
	record, w := []byte(theRecord), bufio.NewWriterSize(f, 4<<10)
	return func(n int) error {
		for range n {
			if _, err := w.Write(record); err != nil {
				return err
			}
		}
		return w.Flush()
	}
}

// readsTask reads a warm file from its beginning to its end, and again.
func readsTask(size int) func(n int64) trial.Task {
	return func(n int64) trial.Task {
		return trial.Task{
			Make: func(path string) error { return trial.NewFile(path, warmBytes, numbered()) },
			Do: func(_ context.Context, c *trial.Clock) error {
				// This reading warms the cache and checks the bytes.
				if err := checkPages(c.Path, warmBytes/study.PageBytes); err != nil {
					return err
				}
				f, err := os.Open(c.Path)
				if err != nil {
					return err
				}
				r := warmReading{f: f, into: make([]byte, size)}
				err = difference{with: r.loop, without: emptyLoop}.measure(c, trial.Read, n)
				return errors.Join(err, r.check(), f.Close())
			},
		}
	}
}

// A warmReading goes through a file by reads of one size.
type warmReading struct {
	f    *os.File
	into []byte
	at   int64 // where the next read is; the file's size is a multiple of all sizes
}

// loop makes n reads. One call more, a seek, goes back to the beginning at the
// end of the file: of reads of 4 KiB one in a thousand.
func (r *warmReading) loop(n int) error {
	for range n {
		got, err := r.f.Read(r.into)
		if err != nil {
			return err
		}
		if got != len(r.into) {
			return fmt.Errorf("%s: a read of %d bytes brought %d", r.f.Name(), len(r.into), got)
		}
		if r.at += int64(got); r.at == warmBytes {
			r.at = 0
			if _, err := r.f.Seek(0, io.SeekStart); err != nil {
				return err
			}
		}
	}
	return nil
}

// check compares the bytes of the last read with the number of its page.
func (r *warmReading) check() error {
	if len(r.into) < study.PageBytes {
		return nil
	}
	last := (r.at - study.PageBytes + warmBytes) % warmBytes
	return checkPage(r.into, last/study.PageBytes)
}

// A stopwatch times operations one by one.
type stopwatch struct {
	total time.Duration
	times *hdrhistogram.Histogram
}

func (s *stopwatch) time(do func() error) error {
	begun := probe.Now()
	err := do()
	took := probe.Since(begun)
	s.total += took
	result.Record(s.times, took)
	return err
}

// report gives the clock what n operations took.
func (s *stopwatch) report(c *trial.Clock, stage trial.Stage, n int64) error {
	c.Took(stage, s.total)
	c.Done(n, 0)
	return c.TellLatency(s.times)
}

// syncTask makes one page after the other durable: of a file that has them all
// already, or at the end of one that grows.
func syncTask(grows bool) func(n int64) trial.Task {
	return func(n int64) trial.Task {
		size := n * study.PageBytes
		if grows {
			size = 0
		}
		return trial.Task{
			Make: func(path string) error { return trial.NewFile(path, size, func([]byte) {}) },
			Do: func(_ context.Context, c *trial.Clock) error {
				f, err := os.OpenFile(c.Path, os.O_RDWR, 0)
				if err != nil {
					return err
				}
				s := stopwatch{times: result.NewHistogram()}
				fill, page := numbered(), make([]byte, study.PageBytes)
				for i := range n {
					fill(page)
					if _, err := f.WriteAt(page, i*study.PageBytes); err != nil {
						return errors.Join(err, f.Close())
					}
					if err := s.time(f.Sync); err != nil {
						return errors.Join(err, f.Close())
					}
				}
				return errors.Join(s.report(c, trial.Sync, n), f.Close())
			},
			Check: func(path string) error { return checkPages(path, n) },
		}
	}
}

// coldTask reads scattered pages of a file that has no page in memory, each once, with
// read-ahead turned off.
func coldTask(n int64) trial.Task {
	n = min(n, coldBytes/study.PageBytes)
	return trial.Task{
		Make:  func(path string) error { return trial.NewFile(path, coldBytes, numbered()) },
		Cache: result.TryCold,
		Do: func(_ context.Context, c *trial.Clock) error {
			f, err := os.Open(c.Path)
			if err != nil {
				return err
			}
			defer f.Close()
			if err := probe.AdviseAccess(f, probe.Random); err != nil {
				return err
			}
			s := stopwatch{times: result.NewHistogram()}
			page := make([]byte, study.PageBytes)
			// The same places in every trial, each time of a new file.
			places := rand.New(rand.NewPCG(coldBytes, uint64(n))).Perm(coldBytes / study.PageBytes)[:n]
			for _, i := range places {
				err := s.time(func() error { _, err := f.ReadAt(page, int64(i)*study.PageBytes); return err })
				if err == nil {
					err = checkPage(page, int64(i))
				}
				if err != nil {
					return err
				}
			}
			if r, err := sys.PageCache(f); err == nil {
				c.Tell(residentPages, float64(r.Resident))
			}
			return s.report(c, trial.Read, n)
		},
	}
}

// residentPages are the file's pages that are in memory after all reads. They are exactly the pages
// read, unless the kernel read ahead, or more were there before.
const residentPages = "resident_after_pages"

const oneByOne = "each timed alone"

var fileRungs = []rung{
	{name: readByteRung, level: &ioLevel, method: "os.File, warm, " + bareLoop, does: "reads 1 byte after the other of a warm file", count: 25_000, each: 300, bytes: warmBytes, task: readsTask(1)},
	{name: readPageRung, level: &ioLevel, method: "os.File, warm, " + bareLoop, does: "reads 4096 bytes after the others of a warm file", count: 25_000, each: 900, bytes: warmBytes, task: readsTask(study.PageBytes)},
	{name: writeRung, level: &ioLevel, method: "os.File, " + bareLoop, does: "appends 40 bytes to a new file", count: 25_000, each: 900, bytes: 1_000_000, task: recordsTask(false)},
	{name: coldRung, level: &seekLevel, method: oneByOne + ", proven cold", does: "reads 4096 bytes at a random place of a file of 64 MiB that is not in the page cache", count: 200, each: 2 * time.Millisecond, disk: true, bytes: coldBytes, cache: result.TryCold, missing: onlyLinux("only Linux can empty the page cache and say what it holds"), task: coldTask},
	{name: syncRung, method: oneByOne, does: "writes a page of an existing file, and syncs; the sync alone is timed", count: 100, each: 500 * time.Microsecond, disk: true, bytes: 800_000, task: syncTask(false)},
	{name: growRung, method: oneByOne, does: "appends a page to a file, and syncs; the sync alone is timed", count: 100, each: 500 * time.Microsecond, disk: true, bytes: 400_000, task: syncTask(true)},
}
