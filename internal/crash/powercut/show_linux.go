package powercut

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash"
)

// block returns the bytes that are written: one page, which no file system keeps beside its inode.
func block(name string) []byte {
	b := make([]byte, pageSize)
	for n := 0; n < len(b); {
		n += copy(b[n:], name+"\n")
	}
	return b
}

// Names of blocks that the disk, or who reads its log, knows. A letter follows.
const (
	refused = "holdfast refuses "
	traced  = "holdfast traces "
)

// refusesOnce chooses the first write of each block that is to be refused: a file system that
// tries again has success.
func refusesOnce() func(crash.Entry) bool {
	known := map[byte]bool{}
	return func(e crash.Entry) bool {
		at := bytes.Index(e.Data, []byte(refused)) + len(refused)
		if at < len(refused) || at >= len(e.Data) || known[e.Data[at]] {
			return false
		}
		known[e.Data[at]] = true
		return true
	}
}

// shown calls fn in the directory of a new file system on a served disk. Then, if after is not nil,
// it mounts the image that is left, by itself, and calls after there.
func (r *room) shown(c *cell, how string, fn func(dir string, d *disk) error, after func(dir string) error) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(c.dir)) }()
	image, err := r.makeImage(ctx, c, c.size())
	if err != nil {
		return err
	}
	defer image.Close()
	if err := r.served(ctx, c, image, how, fn); err != nil || after == nil {
		return err
	}
	c.step("second mount")
	unmount, err := mount(image, c.in("mount"), c.kind, c.kind.Options)
	if err != nil {
		return err
	}
	return errors.Join(after(c.in("mount")), unmount())
}

// A refusal is one way to write a block that the disk refuses.
type refusal struct {
	writes string
	at     int64 // where in the file the block is
	before int64 // the size of the file before
	holes  bool  // its blocks are only reserved, and never written
	again  bool  // it is written again before the second sync
	ours   bool  // by a Writer of holdfast
}

var refusals = []refusal{
	{writes: "appended", at: pageSize, before: pageSize},
	{writes: "overwritten", before: pageSize},
	{writes: "preallocated", before: pageSize, holes: true},
	{writes: "written again", at: pageSize, before: pageSize, again: true},
	{writes: "by holdfast", at: pageSize, before: pageSize, ours: true},
}

// refusals shows what becomes of blocks that the disk of a cell refuses.
func (r *room) refusals(c *cell) (all []Refusal, err error) {
	old := block("old")
	name := func(i int) string { return fmt.Sprint("file", i) }
	letter := func(i int) []byte { return block(refused + string(rune('a'+i))) }
	var cases []int // the ones that this file system can have
	write := func(dir string) error {
		for i, x := range refusals {
			c.step("files of blocks that the disk refuses")
			switch err := x.prepare(filepath.Join(dir, name(i)), old); {
			case err == nil:
				cases = append(cases, i)
			case !x.holes || !errors.Is(err, unix.EOPNOTSUPP):
				return err
			}
		}
		if err := syncAll(dir); err != nil {
			return err
		}
		for _, i := range cases {
			c.step("write of a block that the disk refuses")
			path := filepath.Join(dir, name(i))
			first, second := refusals[i].write(path, letter(i))
			all = append(all, Refusal{FS: c.kind.Name, Writes: refusals[i].writes, First: first, Second: second,
				Before: refusals[i].found(path, old, letter(i))})
		}
		return nil
	}
	read := func(dir string) error {
		for n, i := range cases {
			all[n].After = refusals[i].found(filepath.Join(dir, name(i)), old, letter(i))
		}
		return nil
	}
	err = r.shown(c, refusesWrites, func(dir string, _ *disk) error { return write(dir) }, read)
	return all, err
}

// prepare makes the file as it is before the block is written.
func (x refusal) prepare(path string, old []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if x.holes {
		err = unix.Fallocate(int(f.Fd()), 0, 0, x.before)
	} else {
		_, err = f.Write(old)
	}
	return errors.Join(err, f.Close())
}

// write writes the block and syncs twice, and returns how that went. A block may be written again in between. A file system that has failed before takes
// no write.
func (x refusal) write(path string, block []byte) (first, second string) {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return outcome(err), "-"
	}
	defer f.Close()
	if !x.ours {
		if _, err := f.WriteAt(block, x.at); err != nil {
			return outcome(err), "-"
		}
		first = outcome(f.Sync())
		if x.again {
			if _, err := f.WriteAt(block, x.at); err != nil {
				return first, outcome(err)
			}
		}
		return first, outcome(f.Sync())
	}
	_, err = f.Seek(x.at, io.SeekStart)
	var w *holdfast.Writer
	if err == nil {
		w, err = holdfast.New(f, holdfast.Buffered(64*holdfast.KiB))
	}
	if err == nil {
		_, err = w.Write(block)
	}
	if err != nil {
		return outcome(err), "-"
	}
	first, second = outcome(w.Sync()), outcome(w.Sync())
	_ = w.Close() // it reports the same again
	return first, second
}

// found says what reading the block finds.
func (x refusal) found(path string, old, written []byte) string {
	f, err := os.Open(path)
	if err != nil {
		return outcome(err)
	}
	defer f.Close()
	b := make([]byte, pageSize)
	n, err := f.ReadAt(b, x.at)
	switch b = b[:n]; {
	case n == pageSize && bytes.Equal(b, written):
		return "the record"
	case n == pageSize && bytes.Equal(b, old):
		return "the old one"
	case n == pageSize && len(bytes.TrimLeft(b, "\x00")) == 0:
		return "zeros"
	case n == 0 && errors.Is(err, io.EOF):
		return "the file ends before it"
	case n < pageSize:
		return outcome(err)
	}
	return "something else"
}

// outcome is an error as a table shows it.
func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	if errno := unix.Errno(0); errors.As(err, &errno) {
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

// A tracing is calls whose writes and flushes are shown.
type tracing struct {
	calls string
	do    func(dir string, f *os.File, round int) error
}

// tracedPages is how long the file is that is written, and rounds how often each is done.
const (
	tracedPages = 64
	rounds      = 5
)

func tracings() []tracing {
	data := block(traced)
	written := func(f *os.File, at int64, sync func(fd int) error) error {
		_, err := f.WriteAt(data, at)
		return errors.Join(err, sync(int(f.Fd())))
	}
	return []tracing{
		{"append + fsync", func(_ string, f *os.File, round int) error {
			return written(f, int64(tracedPages+round)*pageSize, unix.Fsync)
		}},
		{"overwrite + fsync", func(_ string, f *os.File, round int) error {
			return written(f, int64(round)*pageSize, unix.Fsync)
		}},
		{"overwrite + fdatasync", func(_ string, f *os.File, round int) error {
			return written(f, int64(rounds+round)*pageSize, unix.Fdatasync)
		}},
		{"create + fsync + rename + fsync dir", func(dir string, _ *os.File, _ int) error {
			path := filepath.Join(dir, "new")
			f, err := os.Create(path + ".tmp")
			if err != nil {
				return err
			}
			if err := errors.Join(written(f, 0, unix.Fsync), f.Close(), os.Rename(path+".tmp", path)); err != nil {
				return err
			}
			d, err := os.Open(dir)
			if err != nil {
				return err
			}
			return errors.Join(unix.Fsync(int(d.Fd())), d.Close())
		}},
	}
}

// syncs shows what calls send to the disk of a cell.
func (r *room) syncs(c *cell) (all []Sync, err error) {
	trace := func(dir string, d *disk) error {
		f, err := os.Create(filepath.Join(dir, "log"))
		if err != nil {
			return err
		}
		defer f.Close()
		for range tracedPages {
			if _, err := f.Write(block("old")); err != nil {
				return err
			}
		}
		for _, x := range tracings() {
			var seen []Sync
			for round := range rounds + 1 {
				c.step(x.calls)
				if err := syncAll(dir); err != nil { // earlier calls send nothing more
					return err
				}
				before, err := d.entries()
				if err != nil {
					return err
				}
				if err := x.do(dir, f, round); err != nil {
					return fmt.Errorf("%s: %w", x.calls, err)
				}
				after, err := d.entries()
				if err != nil {
					return err
				}
				if round > 0 { // the first may make what the others find
					seen = append(seen, sent(after[len(before):]))
				}
			}
			most := usual(seen)
			most.FS, most.Calls = c.kind.Name, x.calls
			all = append(all, most)
		}
		return nil
	}
	return all, r.shown(c, onlyServes, trace, nil)
}

// sent sums up what reached a disk.
func sent(entries []logged) (s Sync) {
	type part struct {
		what  string
		bytes int
	}
	var parts []part
	for _, e := range entries {
		what := "other"
		switch {
		case e.Op == crash.Flush:
			what = "flush"
			s.Flushes++
		case bytes.Contains(e.Data, []byte(traced)):
			what = "data"
			s.Data++
		default:
			s.Other++
		}
		s.Bytes += len(e.Data)
		if n := len(parts) - 1; n >= 0 && parts[n].what == what && what != "flush" {
			parts[n].bytes += len(e.Data)
		} else {
			parts = append(parts, part{what, len(e.Data)})
		}
	}
	var words []string
	for _, p := range parts {
		if p.bytes > 0 {
			p.what += fmt.Sprintf(" %v", holdfast.Size(p.bytes))
		}
		words = append(words, p.what)
	}
	s.Order = strings.Join(words, ", ")
	return s
}

// usual returns the most frequent of several, and of these the shortest.
func usual(seen []Sync) Sync {
	times := map[Sync]int{}
	for _, s := range seen {
		times[s]++
	}
	most := slices.MaxFunc(slices.Collect(maps.Keys(times)), func(a, b Sync) int {
		return cmp.Or(cmp.Compare(times[a], times[b]), cmp.Compare(b.Bytes, a.Bytes), strings.Compare(b.Order, a.Order))
	})
	n := times[most]
	most.Times, most.Of = n, len(seen)
	return most
}
