package crash

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// A Recorder is a disk in memory that logs what reaches it. It makes its calls on a [fault.Disk],
// which judges how it is used.
type Recorder struct {
	Calls
	Faults *fault.Disk       // the same
	Alter  func(*Entry) bool // a planted bug: changes an entry, or drops it by false
	log    *Log
	delay  time.Duration // of each write and each sync
	names  durable.NameSyncs

	mu     sync.Mutex // held while a call has its effect and is logged, so that both are in one order
	open   map[int]*opened
	apart  map[uint64]bool   // files of another file system
	known  map[uint64]uint64 // numbers in the log of files and directories that an earlier run has left, by their inodes
	short  bool              // some writes take half of their bytes
	writes int
}

// Calls are the operations of a disk in memory.
type Calls interface {
	vfs.Disk
	vfs.FileSystems
	vfs.Attributes
}

// opened is a descriptor: the number of its file, and where it writes.
type opened struct {
	file   uint64
	offset int64
	append bool
}

// memory is the System on it.
type memory struct{ d *Recorder }

const memoryDir = "/d"

// newMemory returns a system that has these directories and a tree's, with its files, and adds them to the log. Mounted ones are of
// another file system.
func newMemory(l *Log, delay time.Duration, dirs []string, there Tree, mounted ...string) (memory, error) {
	disk := fault.NewDisk()
	disk.SetOwner(uint32(os.Geteuid())) // only its owner, or root, removes what a crash has left
	d := &Recorder{Calls: disk, Faults: disk, log: l, delay: delay, open: map[int]*opened{}, apart: map[uint64]bool{}}
	m := memory{d}
	err := errors.Join(disk.MkdirAll(memoryDir), disk.Mount("/other"))
	number := map[string]uint64{".": Root}
	dirs = slices.Concat(dirs, there.Dirs)
	slices.Sort(dirs)
	for _, name := range slices.Compact(dirs) {
		err = errors.Join(err, disk.MkdirAll(m.Path(name)))
		s, statErr := d.StatPath(nameOf(m.Path(name)))
		err = errors.Join(err, statErr)
		number[name] = d.number(s)
		l.Add(Entry{Op: Name, Edits: []Edit{{number[path.Dir(name)], path.Base(name), number[name]}}})
	}
	put := func(name string, apart bool) {
		p, data := m.Path(name), there.Files[name]
		if apart {
			at := "/other/" + name
			err = errors.Join(err, disk.WriteFile(at, data, 0o644), disk.Bind(at, p))
		} else {
			err = errors.Join(err, disk.WriteFile(p, data, 0o644))
		}
		s, statErr := d.StatPath(nameOf(p))
		err = errors.Join(err, statErr)
		d.apart[s.Inode] = apart
		l.Add(Entry{Op: Write, File: s.Inode, Data: data})
		l.Add(Entry{Op: Name, Edits: []Edit{{number[path.Dir(name)], path.Base(name), s.Inode}}})
	}
	for name := range there.Files {
		if !slices.Contains(mounted, name) {
			put(name, false)
		}
	}
	for _, name := range mounted {
		put(name, true)
	}
	l.Start = l.Add(Entry{Op: Flush, UpTo: l.Len()})
	return m, err
}

// nextMemory returns a system with all that the process of a first log saw, when it was killed before an entry. The log goes on
// behind that.
func nextMemory(l *Log, delay time.Duration, first *Log, at int) (memory, error) {
	l.Entries = slices.Clone(first.Entries[:at])
	l.Add(Entry{Op: Killed})
	l.Start = len(l.Entries)
	before := newDisk(first, nil)
	for before.position < at {
		before.advance()
	}
	there, numbers := before.numbered(&State{Crash: Process, Keep: len(before.pending)})
	var fresh Log
	m, err := newMemory(&fresh, delay, nil, there)
	m.d.log, m.d.known = l, map[uint64]uint64{}
	for name, number := range numbers {
		s, statErr := m.d.StatPath(nameOf(m.Path(name)))
		err = errors.Join(err, statErr)
		m.d.known[s.Inode] = number
	}
	return m, err
}

// NameSyncs is the record of failed syncs. A process has one, however often it opens a log.
func (d *Recorder) NameSyncs() *durable.NameSyncs { return &d.names }

func nameOf(p string) sys.Name {
	n, err := sys.NewName(p)
	if err != nil {
		panic(err) // the paths are of this package
	}
	return n
}

func (m memory) Path(name string) string { return memoryDir + "/" + name }

func (m memory) ReadFile(name string) ([]byte, error) {
	data, err := m.d.Faults.ReadFile(m.Path(name))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return append([]byte{}, data...), err
}

func (m memory) Files(name string) (map[string][]byte, error) {
	all := map[string][]byte{}
	for p, data := range m.d.Faults.ProcessCrash().Files {
		if path.Dir(p) == path.Clean(m.Path(name)) {
			all[path.Base(p)] = data
		}
	}
	return all, nil
}

func (m memory) Disk() vfs.ReadDisk { return m.d }

// A memoryFile is one that a Writer writes to.
type memoryFile struct {
	d  *Recorder
	fd int
}

func (f memoryFile) Write(p []byte) (int, error) {
	n, err := f.d.Write(f.fd, p)
	if n < len(p) && err == nil {
		err = io.ErrShortWrite
	}
	return n, err
}

func (f memoryFile) Sync() error  { return f.d.Sync(f.fd) }
func (f memoryFile) Close() error { return f.d.Close(f.fd) }

func (m memory) Append(name string, size int64) (holdfast.File, error) {
	dir, err := m.d.OpenDir(nameOf(memoryDir))
	if err != nil {
		return nil, err
	}
	fd, err := m.d.OpenFile(dir, nameOf(name), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err == nil {
		err = m.d.Sync(dir)
	}
	if s, _ := m.d.StatFD(fd); err == nil && s.Size != size {
		err = m.d.Truncate(fd, size)
	}
	if err == nil {
		err = m.d.Sync(fd)
	}
	if err = errors.Join(err, m.d.Close(dir)); err != nil {
		return nil, err
	}
	return memoryFile{m.d, fd}, nil
}

func (m memory) WriteFile(name string, data []byte, sync bool) (err error) {
	dir, err := m.d.OpenDir(nameOf(memoryDir))
	if err != nil {
		return err
	}
	fd, err := m.d.OpenFile(dir, nameOf(name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err == nil {
		_, err = m.d.Write(fd, data)
	}
	if err == nil && sync {
		err = m.d.Sync(fd)
	}
	return errors.Join(err, m.d.Close(fd), m.d.Close(dir))
}

func (m memory) Rename(from, to string) error {
	dir, err := m.d.OpenDir(nameOf(memoryDir))
	if err != nil {
		return err
	}
	return errors.Join(m.d.Rename(dir, nameOf(from), nameOf(to)), m.d.Close(dir))
}

func (m memory) SyncDir() error {
	dir, err := m.d.OpenDir(nameOf(memoryDir))
	if err != nil {
		return err
	}
	return errors.Join(m.d.Sync(dir), m.d.Close(dir))
}

func (d *Recorder) add(e Entry) {
	if d.Alter == nil || d.Alter(&e) {
		d.log.Add(e)
	}
}

// number is a file's or a directory's in the log.
func (d *Recorder) number(s sys.Stat) uint64 {
	const new = 1 << 40 // behind the numbers of all that an earlier run had
	if n, ok := d.known[s.Inode]; ok {
		return n
	}
	if d.known != nil {
		s.Inode += new
	}
	if s.Mode&vfs.KindMask != vfs.KindRegular {
		if top, err := d.Calls.StatPath(nameOf(memoryDir)); err == nil && (top.Inode == s.Inode || d.known != nil && top.Inode+new == s.Inode) {
			return Root
		}
		return s.Inode | DirBit
	}
	return s.Inode
}

// opening notes what a new descriptor is of.
func (d *Recorder) opening(fd int, err error, flag int) (int, error) {
	if err != nil {
		return fd, err
	}
	s, err := d.Calls.StatFD(fd)
	d.open[fd] = &opened{file: d.number(s), append: flag&os.O_APPEND != 0}
	return fd, err
}

func (d *Recorder) OpenDir(p sys.Name) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fd, err := d.Calls.OpenDir(p)
	return d.opening(fd, err, 0)
}

func (d *Recorder) OpenForNames(p sys.Name) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fd, err := d.Calls.OpenForNames(p)
	return d.opening(fd, err, 0)
}

func (d *Recorder) OpenDirIn(dir int, name sys.Name) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fd, err := d.Calls.OpenDirIn(dir, name)
	return d.opening(fd, err, 0)
}

func (d *Recorder) OpenFile(dir int, name sys.Name, flag int, perm uint32) (int, error) {
	d.wait(shortly)
	d.mu.Lock()
	defer d.mu.Unlock()
	old, missing := d.Calls.Stat(dir, name)
	fd, err := d.Calls.OpenFile(dir, name, flag, perm)
	fd, err = d.opening(fd, err, flag)
	if err != nil {
		return fd, err
	}
	in, file := d.open[dir], d.open[fd]
	switch {
	case missing != nil && in != nil:
		d.add(Entry{Op: Name, Edits: []Edit{{in.file, name.String(), file.file}}})
	case flag&os.O_TRUNC != 0 && old.Size > 0:
		d.add(Entry{Op: Resize, File: file.file})
	}
	return fd, nil
}

func (d *Recorder) Write(fd int, p []byte) (int, error) {
	d.wait(shortly)
	d.mu.Lock()
	defer d.mu.Unlock()
	o := d.open[fd]
	if o != nil && o.append {
		s, _ := d.Calls.StatFD(fd)
		o.offset = s.Size
	}
	if d.writes++; d.short && d.writes%16 == 0 && len(p) > 1 {
		p = p[:len(p)/2]
	}
	n, err := d.Calls.Write(fd, p)
	if o != nil && n > 0 {
		d.add(Entry{Op: Write, File: o.file, Offset: o.offset, Data: bytes.Clone(p[:n])})
		o.offset += int64(n)
	}
	return n, err
}

// WriteAt writes all that it is given, or fails.
func (d *Recorder) WriteAt(fd int, p []byte, at int64) (int, error) {
	d.wait(shortly)
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := d.Calls.WriteAt(fd, p, at)
	d.wrote(fd, p[:n], at)
	return n, err
}

func (d *Recorder) wrote(fd int, p []byte, at int64) {
	if o := d.open[fd]; o != nil && len(p) > 0 {
		d.add(Entry{Op: Write, File: o.file, Offset: at, Data: bytes.Clone(p)})
	}
}

// WriteAtDurably is of a system that can, in every second run.
func (d *Recorder) WriteAtDurably(fd int, p []byte, at int64) (int, error) {
	if d.log.Seed%2 == 1 {
		return 0, errors.ErrUnsupported
	}
	d.wait(long)
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := d.Faults.WriteAtDurably(fd, p, at)
	d.wrote(fd, p[:n], at)
	if o := d.open[fd]; o != nil && err != nil {
		d.add(Entry{Op: Lose, File: o.file, UpTo: d.log.Len()})
	} else if o != nil {
		d.add(Entry{Op: Flush, File: o.file, Offset: at, Length: int64(n), UpTo: d.log.Len()})
	}
	return n, err
}

func (d *Recorder) ReadAt(fd int, p []byte, at int64) (int, error) { return d.Faults.ReadAt(fd, p, at) }

func (d *Recorder) OpenSource(dir int, name sys.Name) (int, error) {
	return d.OpenFile(dir, name, os.O_RDONLY|sys.NoFollow, 0)
}

func (d *Recorder) StatFile(fd int) (s sys.FileStat, err error) {
	s.Stat, err = d.StatFD(fd)
	return s, err
}

func (d *Recorder) StatDir(int) (sys.DirStat, error) { return sys.DirStat{}, errors.ErrUnsupported }

func (d *Recorder) Mkdir(p sys.Name, perm uint32) error {
	d.wait(shortly)
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.Calls.Mkdir(p, perm)
	if err != nil {
		return err
	}
	s, err := d.Calls.StatPath(p)
	above, aboveErr := d.Calls.StatPath(nameOf(path.Dir(p.String())))
	if err == nil && aboveErr == nil {
		d.add(Entry{Op: Name, Edits: []Edit{{d.number(above), path.Base(p.String()), d.number(s)}}})
	}
	return nil
}

func (d *Recorder) Truncate(fd int, size int64) error {
	d.wait(shortly)
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.Calls.Truncate(fd, size)
	if o := d.open[fd]; err == nil && o != nil {
		d.add(Entry{Op: Resize, File: o.file, Offset: size})
	}
	return err
}

func (d *Recorder) Sync(fd int) error     { return d.sync(fd, false, d.Calls.Sync) }
func (d *Recorder) Datasync(fd int) error { return d.sync(fd, false, d.Calls.Datasync) }
func (d *Recorder) SyncAll(fd int) error  { return d.sync(fd, true, d.Calls.SyncAll) }

// sync logs that what was done before it began is on the disk, or is lost.
func (d *Recorder) sync(fd int, all bool, call func(int) error) error {
	d.mu.Lock()
	e := Entry{Op: Flush, UpTo: d.log.Len()}
	o := d.open[fd]
	if o != nil && !all {
		e.File = o.file
	}
	d.mu.Unlock()
	d.wait(long)
	err := call(fd)
	if err != nil {
		e.Op = Lose
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !all || o == nil || !slices.Contains(slices.Collect(maps.Values(d.apart)), true) {
		d.add(e)
		return err
	}
	covered := map[uint64]bool{} // the files of one of two file systems, each by itself
	for _, x := range d.open {
		covered[x.file] = d.apart[x.file] == d.apart[o.file]
	}
	for _, e.File = range slices.Sorted(maps.Keys(covered)) {
		if covered[e.File] {
			d.add(e)
		}
	}
	return err
}

// wait is how long the disk takes. Other goroutines go on meanwhile: some, or, while a sync runs, as far as they can. In fake time no call
// sleeps by itself: a goroutine that waits for a mutex of the sleeping one would stop the clock.
func (d *Recorder) wait(most yields) {
	if d.delay > 0 {
		time.Sleep(d.delay)
		return
	}
	for range 1 << rand.IntN(int(most)) {
		runtime.Gosched()
	}
}

// yields bound how often a call lets others go on, by a power of two.
type yields int

const (
	shortly yields = 4
	long    yields = 7
)

// mending returns a function that mends the disk 10 ms later. The fault comes again behind some more calls, a number of times.
func (d *Recorder) mending(x fault.DiskFault) func() {
	const times, calls = 8, 32
	again, mended := 0, atomic.Bool{}
	return func() {
		if !mended.CompareAndSwap(false, true) {
			return
		}
		time.AfterFunc(10*time.Millisecond, func() {
			d.Faults.Mend()
			if again++; again < times {
				x.First = 1 + rand.IntN(calls)
				mended.Store(false)
				d.Faults.Add(x)
			}
		})
	}
}

func (d *Recorder) Rename(dir int, from, to sys.Name) error {
	d.wait(shortly)
	d.mu.Lock()
	defer d.mu.Unlock()
	s, _ := d.Calls.Stat(dir, from)
	err := d.Calls.Rename(dir, from, to)
	if in := d.open[dir]; err == nil && in != nil {
		d.add(Entry{Op: Name, Edits: []Edit{{in.file, from.String(), 0}, {in.file, to.String(), d.number(s)}}})
	}
	return err
}

func (d *Recorder) Remove(dir int, name sys.Name) error {
	d.wait(shortly)
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.Calls.Remove(dir, name)
	if in := d.open[dir]; err == nil && in != nil {
		d.add(Entry{Op: Name, Edits: []Edit{{in.file, name.String(), 0}}})
	}
	return err
}
