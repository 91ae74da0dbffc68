package crash

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/crash/syscallfault"
)

// A trace fills a log with programs' changes to the files below a directory. It is told of each call before the call is made, and
// checks the effect of the thread's call before it: so the log has each write, each change of names and each sync in their order.
// It reads what is there, so that writes through mapped memory and of io_uring are in it too, when a sync or the end finds them.
//
// It can't see a sync of io_uring or io_submit: a loss that such a one may have kept is not known. See unseen.
type trace struct {
	dir     string
	log     *Log
	disk    *disk        // before the next entry of the log
	printed func() int64 // how many bytes of notes there are
	noted   int64
	numbers map[uint64]uint64 // of inodes
	last    uint64
	names   map[Edit]uint64     // as the kernel has them
	open    map[uint64]*os.File // to read
	pinned  []pin               // files without a name: their inodes must not become others'
	effects map[int]effect      // by thread: what its last call does
	unseen  map[string]bool     // calls whose effect is not known
	starts  []int               // the entries before which a program was started again
	ends    bool                // it is about what the end of a process leaves: each note has all that is there then
	err     error
}

// An effect is a call's change.
type effect struct {
	names    string // the path of the directory whose names it changes; "." is any
	file     uint64
	from, to int64
	durable  bool // its bytes are on the disk when it returns
}

type pin struct {
	file  *os.File
	inode uint64
}

// traced are the calls that a trace must be told of.
var traced = []syscallfault.Kind{syscallfault.Write, syscallfault.Sync, syscallfault.Open, syscallfault.Rename, syscallfault.Link, syscallfault.Unlink,
	syscallfault.Allocate, syscallfault.Make, syscallfault.Unseen}

const (
	mostOpen   = 128
	mostPinned = 512
	pageBytes  = 4096 // a page reaches the disk as a whole, also where a part of it was synced
	largest    = 256 << 20
)

// newTrace begins with the present files, which are on the disk.
func newTrace(dir string, naming bool, printed func() int64) *trace {
	t := &trace{dir: dir, log: &Log{Sector: 512, Naming: naming, Links: map[uint64]string{}}, printed: printed, numbers: map[uint64]uint64{}, last: Root, names: map[Edit]uint64{},
		open: map[uint64]*os.File{}, effects: map[int]effect{}, unseen: map[string]bool{}}
	t.disk = newDisk(t.log, nil)
	if info, err := os.Stat(dir); err == nil {
		t.numbers[statOf(info).Ino] = Root
	}
	t.scan(".")
	t.readAll()
	t.add(Entry{Op: Flush, UpTo: len(t.log.Entries)})
	t.log.Start = len(t.log.Entries)
	return t
}

func statOf(info fs.FileInfo) *syscall.Stat_t { return info.Sys().(*syscall.Stat_t) }

func (t *trace) add(e Entry) {
	t.log.Add(e)
	t.disk.advance()
}

func (t *trace) fail(err error) {
	if err != nil && !ofKilled(err) {
		t.err = errors.Join(t.err, err)
	}
}

// ofKilled reports whether an error is of a program that was killed meanwhile. Until its directory in /proc is gone, its
// descriptors are refused.
func ofKilled(err error) bool {
	if at := (*fs.PathError)(nil); errors.Is(err, unix.EACCES) && errors.As(err, &at) {
		_, err = os.Lstat(at.Path)
	}
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH)
}

// meet is told of a call before it is made.
func (t *trace) meet(c *syscallfault.Call) {
	thread, printed := c.Thread(), int64(0)
	if t.printed != nil {
		printed = t.printed()
	}
	before, called := t.effects[thread]
	delete(t.effects, thread)
	if called {
		t.look(before)
	}
	if printed > t.noted || c.Kind == syscallfault.Sync { // the acknowledged write may be another thread's
		for _, e := range t.effects {
			t.look(e)
		}
		if printed > t.noted && t.ends { // mapped memory and io_uring make no calls
			t.scan(".")
			t.readAll()
		}
		t.note(printed)
	}
	var e effect
	switch c.Kind {
	case syscallfault.Unseen:
		t.unseen[c.Name] = true
		return
	case syscallfault.Sync:
		t.sync(c)
		return
	case syscallfault.Write:
		e = t.write(c)
	case syscallfault.Open:
		flags := c.Opens()
		if flags&(unix.O_CREAT|unix.O_TRUNC) == 0 {
			return
		}
		name := c.Path
		if flags&unix.O_EXCL == 0 || flags&unix.O_CREAT == 0 {
			name = t.followed(name)
		}
		e = effect{names: t.dirOf(name), file: t.at(name), to: math.MaxInt64}
		if e.file != 0 && flags&unix.O_TRUNC == 0 {
			return // it is there, and stays as it is
		}
	case syscallfault.Rename:
		t.pin(c.Path)
		e.names = "."
	case syscallfault.Unlink:
		t.pin(c.Path)
		e.names = t.dirOf(c.Path)
	case syscallfault.Link, syscallfault.Make:
		e.names = t.dirOf(c.Path)
	case syscallfault.Allocate:
		if e = (effect{file: t.at(t.followed(c.Path)), to: math.MaxInt64}); c.Name != "truncate" {
			e.file = t.descriptor(c)
		}
	}
	if t.effects[thread] = e; len(t.effects) > 256 { // threads end
		maps.DeleteFunc(t.effects, func(thread int, _ effect) bool {
			return unix.Access(fmt.Sprintf("/proc/%d", thread), unix.F_OK) != nil
		})
	}
}

// write returns what a writing call will do.
func (t *trace) write(c *syscallfault.Call) effect {
	e := effect{file: t.descriptor(c), to: math.MaxInt64}
	position, flags, err := c.Descriptor()
	if e.file == 0 || err != nil {
		return effect{}
	}
	e.durable = c.Durable(flags)
	size := int64(len(t.disk.file(e.file).kernel))
	if f := t.open[e.file]; f != nil && flags&unix.O_APPEND != 0 {
		if info, err := f.Stat(); err == nil {
			size = min(size, info.Size())
		}
	}
	if from, to, ok := c.Range(position, flags, size); ok {
		e.from, e.to = from, to
	}
	return e
}

// descriptor returns the number of the file of a call's descriptor, and keeps it open to be read; 0 is no regular file.
func (t *trace) descriptor(c *syscallfault.Call) uint64 {
	link := c.Link()
	info, err := os.Stat(link)
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	n := t.number(info)
	t.keep(n, link)
	return n
}

// keep opens a file to be read later, however it is called then.
func (t *trace) keep(n uint64, name string) *os.File {
	if f := t.open[n]; f != nil {
		return f
	}
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOATIME, 0)
	if errors.Is(err, unix.EPERM) { // somebody else's
		f, err = os.Open(name)
	}
	if err != nil {
		t.fail(err)
		return nil
	}
	for other, f := range t.open {
		if len(t.open) < mostOpen {
			break
		}
		t.fail(f.Close())
		delete(t.open, other)
	}
	t.open[n] = f
	return f
}

// number is a file's or a directory's in the log.
func (t *trace) number(info fs.FileInfo) uint64 {
	inode := statOf(info).Ino
	n := t.numbers[inode]
	if n == 0 {
		t.last++
		if n = t.last; info.IsDir() {
			n |= DirBit
		}
		t.numbers[inode] = n
	}
	return n
}

// inside is a path as it is below the directory.
func (t *trace) inside(name string) string {
	rest, err := filepath.Rel(t.dir, name)
	if err != nil {
		return "."
	}
	return filepath.ToSlash(rest)
}

// dirOf is the directory of a path, as it is below the directory.
func (t *trace) dirOf(name string) string { return path.Dir(t.inside(t.withoutLinks(name))) }

// withoutLinks is a path whose directories are no symbolic links.
func (t *trace) withoutLinks(name string) string {
	if len(t.log.Links) > 0 && name != t.dir {
		if dir, err := filepath.EvalSymlinks(filepath.Dir(name)); err == nil {
			return filepath.Join(dir, filepath.Base(name))
		}
	}
	return name
}

// followed is the path of the file that a call opens by a path: where the path ends in a symbolic link, it is another one.
func (t *trace) followed(name string) string {
	const most = 40 // as Linux has it
	for range most {
		if len(t.log.Links) == 0 {
			break
		}
		target, err := os.Readlink(name)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(t.withoutLinks(name)), target)
		}
		name = target
	}
	return name
}

// at is the number of a path's inode, as far as it was seen.
func (t *trace) at(name string) uint64 {
	if name = t.inside(t.withoutLinks(name)); name == "." {
		return Root
	}
	return lookUp(name, func(x Edit) uint64 { return t.names[x] })
}

// pin keeps the inode of a file that is about to lose its name. So no other file has its number as long as its name is
// in the log.
func (t *trace) pin(name string) {
	f, err := os.OpenFile(name, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return // there is nothing
	}
	info, err := f.Stat()
	if err != nil {
		t.fail(errors.Join(err, f.Close()))
		return
	}
	if t.pinned = append(t.pinned, pin{f, statOf(info).Ino}); len(t.pinned) > mostPinned {
		t.unpin(t.pinned[0])
		t.pinned = t.pinned[1:]
	}
}

func (t *trace) unpin(p pin) {
	if info, err := p.file.Stat(); err == nil && statOf(info).Nlink == 0 {
		delete(t.numbers, p.inode)
	}
	t.fail(p.file.Close())
}

// look logs what a call has done, or has done so far.
func (t *trace) look(e effect) {
	if e.names != "" {
		t.scan(e.names)
	}
	if e.file == 0 || e.file&DirBit != 0 {
		return
	}
	t.read(e.file, e.from, e.to)
	if e.durable {
		from := e.from / pageBytes * pageBytes
		to := min(e.to, math.MaxInt64-pageBytes)
		to = (to + pageBytes - 1) / pageBytes * pageBytes
		t.add(Entry{Op: Flush, File: e.file, Offset: from, Length: to - from, UpTo: len(t.log.Entries)})
	}
}

// note logs that a program has printed n bytes.
func (t *trace) note(printed int64) {
	if printed > t.noted {
		t.noted = printed
		t.add(Entry{Op: Noted, Note: &Note{Kind: Durable, N: uint64(printed)}})
	}
}

// read logs what has changed in a part of a file, a page at a time.
func (t *trace) read(n uint64, from, to int64) {
	f := t.open[n]
	if f == nil {
		name := t.pathOf(n)
		if name == "" {
			return // it is gone, or was never opened to be read
		}
		if f = t.keep(n, name); f == nil {
			return
		}
	}
	info, err := f.Stat()
	if err != nil || info.Size() > largest {
		t.fail(err)
		if err == nil {
			t.unseen[fmt.Sprintf("a file of more than %d MiB", largest>>20)] = true
		}
		return
	}
	known := t.disk.file(n)
	if size := info.Size(); size < int64(len(known.kernel)) {
		t.add(Entry{Op: Resize, File: n, Offset: size})
	}
	from = from / pageBytes * pageBytes
	to = min(to, info.Size())
	var page [pageBytes]byte
	for at := from; at < to; {
		data, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
		if err == unix.ENXIO || err == nil && data >= to {
			data = to
		} else if err != nil {
			data = at
		}
		// A hole has zeros: it matters where there was something.
		hole := min(data/pageBytes*pageBytes, int64(len(known.kernel)))
		for ; at < hole; at += pageBytes {
			t.page(n, at, page[:min(pageBytes, int64(len(known.kernel))-at)])
		}
		if at = max(at, data/pageBytes*pageBytes); data >= to {
			break
		}
		end, err := unix.Seek(int(f.Fd()), data, unix.SEEK_HOLE)
		if err != nil || end > to {
			end = to
		}
		for ; at < end; at += pageBytes {
			got, err := f.ReadAt(page[:], at)
			if err != nil && err != io.EOF {
				t.fail(err)
				return
			}
			t.page(n, at, page[:got])
		}
		clear(page[:])
	}
	if size := info.Size(); size > int64(len(known.kernel)) {
		t.add(Entry{Op: Resize, File: n, Offset: size})
	}
}

// page logs the sectors of a page from the first that has changed to the last.
func (t *trace) page(n uint64, at int64, is []byte) {
	var was []byte
	if kernel := t.disk.file(n).kernel; at < int64(len(kernel)) {
		was = kernel[at:min(int64(len(kernel)), at+pageBytes)]
	}
	if bytes.Equal(was, is) || len(is) == 0 {
		return
	}
	first, end := len(is), 0
	for from := 0; from < len(is); from += int(t.log.Sector) {
		to := min(from+int(t.log.Sector), len(is))
		if from >= len(was) || !bytes.Equal(is[from:to], was[from:min(to, len(was))]) {
			first, end = min(first, from), to
		}
	}
	if first < end {
		t.add(Entry{Op: Write, File: n, Offset: at + int64(first), Data: bytes.Clone(is[first:end])})
	}
}

// pathOf is one of the paths of a file.
func (t *trace) pathOf(n uint64) string {
	for x, file := range t.names {
		if file == n {
			if x.Dir == Root {
				return filepath.Join(t.dir, x.Name)
			}
			if dir := t.pathOf(x.Dir); dir != "" {
				return filepath.Join(dir, x.Name)
			}
		}
	}
	return ""
}

// scan logs the changes of names in a directory, and in new ones below it; "." is in all.
func (t *trace) scan(dir string) {
	was, is := map[Edit]uint64{}, map[Edit]uint64{}
	var walk func(n uint64, name string, deep bool)
	walk = func(n uint64, name string, deep bool) {
		for x, file := range t.names {
			if x.Dir == n {
				was[x] = file
			}
		}
		entries, err := os.ReadDir(name)
		if err != nil {
			t.fail(err)
			return
		}
		for _, e := range entries {
			info, err := e.Info()
			if err != nil {
				t.fail(err)
				continue
			}
			link := info.Mode()&fs.ModeSymlink != 0
			if !info.Mode().IsRegular() && !info.IsDir() && !link {
				continue // pipes and sockets keep nothing
			}
			x := Edit{Dir: n, Name: e.Name()}
			file := t.number(info)
			if link {
				target, err := linkAt(t.dir, filepath.Join(name, e.Name()))
				if err != nil {
					t.fail(err)
					continue
				}
				t.log.Links[file] = target
			}
			is[x] = file
			if info.IsDir() && (deep || t.names[x] != file) {
				walk(file, filepath.Join(name, e.Name()), deep)
			}
		}
	}
	n := uint64(Root)
	if dir != "." {
		n = lookUp(dir, func(x Edit) uint64 { return t.names[x] })
		info, err := os.Stat(filepath.Join(t.dir, filepath.FromSlash(dir)))
		if n == 0 || err != nil || t.numbers[statOf(info).Ino] != n { // it was moved meanwhile: its names are elsewhere, and not gone
			dir, n = ".", Root
		}
	}
	begin := func() { walk(n, filepath.Join(t.dir, filepath.FromSlash(dir)), dir == ".") }
	begin()
	// Another thread's rename may be under way: half of it must not be seen.
	for tries := 0; tries < 20 && t.renaming(); tries++ {
		before := is
		is = map[Edit]uint64{}
		if begin(); maps.Equal(is, before) {
			break
		}
	}
	var edits []Edit
	for x, file := range was {
		if file != 0 && is[x] == 0 {
			edits = append(edits, Edit{x.Dir, x.Name, 0})
		}
	}
	for x, file := range is {
		if was[x] != file {
			edits = append(edits, Edit{x.Dir, x.Name, file})
		}
	}
	slices.SortFunc(edits, compareEdits)
	for _, e := range together(edits, was) {
		t.add(Entry{Op: Name, Edits: e})
		for _, x := range e {
			set(t.names, x)
		}
	}
}

// renaming reports whether a call that changes names may be under way.
func (t *trace) renaming() bool {
	for _, e := range t.effects {
		if e.names != "" {
			return true
		}
	}
	return false
}

// compareEdits sorts new names before removed ones.
func compareEdits(a, b Edit) int {
	return cmp.Or(cmp.Compare(min(b.File, 1), min(a.File, 1)), cmp.Compare(a.File, b.File), cmp.Compare(a.Dir, b.Dir), strings.Compare(a.Name, b.Name))
}

// together joins the edits of one rename, which gives a file a name where another of its names goes. An exchange is two.
func together(edits []Edit, was map[Edit]uint64) (all [][]Edit) {
	old := func(x Edit) uint64 { return was[Edit{Dir: x.Dir, Name: x.Name}] }
	done := make([]bool, len(edits))
	for i := range edits {
		if done[i] {
			continue
		}
		one := []int{i}
		done[i] = true
		for k := 0; k < len(one); k++ {
			x := edits[one[k]]
			for j, y := range edits {
				if !done[j] && (x.File != 0 && old(y) == x.File || y.File != 0 && old(x) == y.File) {
					done[j] = true
					one = append(one, j)
				}
			}
		}
		var group []Edit
		for _, k := range one {
			group = append(group, edits[k])
		}
		slices.SortStableFunc(group, func(a, b Edit) int { return cmp.Compare(min(a.File, 1), min(b.File, 1)) }) // as in a rename
		all = append(all, group)
	}
	return all
}

// readAll logs what has changed in any file that has a name.
func (t *trace) readAll() {
	for _, n := range slices.Compact(slices.Sorted(maps.Values(t.names))) {
		if _, link := t.log.Links[n]; n&DirBit == 0 && !link {
			t.read(n, 0, math.MaxInt64)
		}
	}
}

// sync logs a sync that is about to be made.
func (t *trace) sync(c *syscallfault.Call) {
	e := Entry{Op: Flush}
	switch c.Name {
	case "sync_file_range":
		return // it promises nothing
	case "sync", "syncfs":
		t.scan(".")
		t.readAll()
	case "msync":
		const async = 1 // MS_ASYNC
		for _, part := range c.Mapped {
			if e.File = t.numbers[part.Inode]; e.File == 0 || c.Arg(2)&async != 0 {
				continue
			}
			t.read(e.File, 0, math.MaxInt64)
			e.Offset, e.Length, e.UpTo = part.From, part.To-part.From, len(t.log.Entries)
			t.add(e)
		}
		return
	default:
		info, err := os.Stat(c.Link())
		if err != nil {
			t.fail(err)
			return
		}
		switch {
		case info.IsDir():
			e.File = t.number(info)
			t.scan(t.inside(c.Path))
		case info.Mode().IsRegular():
			e.File = t.descriptor(c)
			t.scan(t.dirOf(c.Path))
			t.read(e.File, 0, math.MaxInt64)
		default:
			return
		}
	}
	e.UpTo = len(t.log.Entries)
	t.add(e)
}

// killed logs the files when the processes have ended, and their output by then.
func (t *trace) killed() {
	for _, e := range t.effects {
		t.look(e)
	}
	clear(t.effects)
	t.scan(".")
	t.readAll()
	if t.printed != nil {
		t.note(t.printed())
	}
	t.starts = append(t.starts, len(t.log.Entries))
}

// end closes what it has open.
func (t *trace) end() error {
	for _, f := range t.open {
		t.fail(f.Close())
	}
	for _, p := range t.pinned {
		t.fail(p.file.Close())
	}
	return t.err
}
