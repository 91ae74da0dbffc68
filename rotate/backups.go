package rotate

import (
	"cmp"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// A backup is the file of one rotation: plain, compressed, or both after an interrupted
// compression.
type backup struct {
	at    time.Time
	age   time.Duration
	plain sys.Name   // not compressed, or ""
	part  sys.Name   // left by an interrupted compression, or ""
	inode uint64     // of plain
	files []sys.Name // all of them
	bytes int64      // without part
}

// clock is the system's time, which may jump. A test sets it.
var clock = time.Now

// tendLocked starts the background work on backups, if an option asks for any.
func (f *File) tendLocked() {
	if f.options.Compress || f.options.limits() {
		f.tendOnceLocked()
	}
}

// tendOnceLocked is tendLocked without the check of options: a killed process may have left an
// incomplete compression.
func (f *File) tendOnceLocked() {
	f.again = true
	if f.tending || f.closed {
		return
	}
	f.tending = true
	f.background.Add(1)
	go func() {
		defer f.background.Done()
		f.mu.Lock()
		defer f.mu.Unlock()
		for f.again && !f.closed {
			f.again = false
			f.mu.Unlock()
			f.tend()
			f.mu.Lock()
		}
		f.tending = false
	}()
}

// errStopped ends a compression because the log is closed.
var errStopped = errors.New("the log is closed")

// prune removes backups beyond the limits. It is the work that Close does not leave to the next
// Open: a program that lives shortly may have no time for it before.
func (f *File) prune() {
	if !f.options.limits() {
		return
	}
	if p, _, ok := f.pruned(); ok {
		f.disk.Close(p.dir) // nothing was written to it
	}
}

// pruned removes backups beyond the limits. It returns all backups, without plain if they are
// removed. The caller closes the directory of p if ok.
func (f *File) pruned() (p place, all []*backup, ok bool) {
	p, err := findPlace(f.disk, f.names, f.path, &f.options)
	if err == nil {
		losses := f.names.Losses(p.key)
		if all, err = f.backups(p); err != nil {
			f.disk.Close(p.dir) // nothing was written to it
		}
		if losses > f.losses && len(all) > 0 {
			f.doubted = all[0].at
		}
		f.losses = losses
	}
	if err != nil {
		f.tendLater(&Error{Op: "remove", Path: f.path, Err: err})
		return p, nil, false
	}
	f.over("compress", "remove")
	o, total := f.options, int64(0)
	for i, b := range all {
		if i > 0 || b.plain == "" || !o.Compress { // the newest counts when it is compressed
			total += b.bytes
		}
		if (o.MaxBackups == 0 || i < o.MaxBackups) && (o.MaxTotal == 0 || total <= int64(o.MaxTotal)) &&
			(o.MaxAge == 0 || b.age <= o.MaxAge) {
			continue
		}
		err := error(nil)
		kept := false
		for _, name := range b.files {
			if keep := o.Keep; keep != nil && keep(p.of(name)) {
				kept = true
				continue
			}
			if failed := f.discardBackup(p, b, name); failed != nil && !errors.Is(failed, fs.ErrNotExist) {
				err = failed
				f.tendLater(&Error{Op: "remove", Path: name.String(), Err: err})
			}
		}
		if kept {
			continue
		}
		b.plain = ""
		if err == nil {
			f.count(func(s *Stats) { s.Removed++ })
		}
	}
	return p, all, true
}

// discardBackup removes a file of a backup, unless another process is at work on it.
func (f *File) discardBackup(p place, b *backup, name sys.Name) error {
	if name != b.part {
		return f.disk.Remove(p.dir, name)
	}
	err := f.removePart(p, name)
	if err == errTaken {
		return nil
	}
	return err
}

// tend removes backups beyond the limits, and compresses the others.
func (f *File) tend() {
	p, all, ok := f.pruned()
	if !ok {
		return
	}
	defer f.disk.Close(p.dir) // nothing was written to it
	o := f.options
	for _, b := range slices.Backward(all) {
		if b.plain == "" || !o.Compress && len(b.files) == 1 {
			continue
		}
		if o.Policy.Sync.Mode == holdfast.SyncNever && !b.at.After(f.doubted) { // nothing has made its name durable
			continue
		}
		err := f.compress(p, b)
		f.count(func(s *Stats) {
			s.Compressing = ""
			if err == nil {
				s.Compressed++
			}
		})
		switch {
		case f.options.Shared && (err == errTaken || errors.Is(err, fs.ErrNotExist)): // another process does it, or has removed it
		case err == errStopped:
			return
		case err != nil:
			f.tendLater(&Error{Op: "compress", Path: b.plain.String(), Err: err})
		case o.MaxTotal > 0: // its size has changed, and there may be new backups
			f.mu.Lock()
			defer f.mu.Unlock()
			f.again = true
			return
		}
	}
}

// tendLater reports a failure, and sets the timer to try again.
func (f *File) tendLater(e *Error) {
	f.note(e)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.tendAt = time.Now().Add(longestPause)
		f.armLocked(time.Now())
	}
}

// backups returns the log's backups, the newest first. It removes a partial compression without its
// plain file.
func (f *File) backups(p place) ([]*backup, error) {
	all, err := f.list(p)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.passLocked(all)
	f.agesLocked(all)
	current := f.current.Load().file.inode.Load() // read after the list: an earlier file is closed
	return slices.DeleteFunc(all, func(b *backup) bool {
		if b.plain == "" && b.part != "" {
			_ = f.removePart(p, b.part) // the next call tries again
			b.files = slices.DeleteFunc(b.files, func(name sys.Name) bool { return name == b.part })
		}
		// The log's own file has a backup's name after a failed rotation, or by another program.
		isLog := b.inode != 0 && b.inode == current.Inode
		return isLog || len(b.files) == 0
	}), nil
}

// list returns all files with a backup's name, the newest first.
func (f *File) list(p place) ([]*backup, error) {
	fd, err := f.disk.OpenDirIn(p.dir, sys.Name(".\x00"))
	if err != nil {
		return nil, err
	}
	defer f.disk.Close(fd) // nothing was written to it
	before, behind := parts(p.base)
	size := len(time.Time{}.Format(f.layout))
	found := map[string]*backup{}
	var all []*backup
	buf := make([]byte, 16<<10)
	for {
		names, err := f.disk.ReadNames(fd, buf, nil)
		if err != nil {
			return nil, err
		}
		if len(names) == 0 {
			break
		}
		for _, e := range names {
			text, ok := strings.CutPrefix(e.Name.String(), before)
			if !ok || len(text) < size {
				continue
			}
			kind, ok := strings.CutPrefix(text[size:], behind)
			text = text[:size]
			at, bad := time.Parse(f.layout, text)
			made, isPart := strings.CutSuffix(kind, partly)
			known := kind == "" || made == packed || made == f.packed()
			if !ok || bad != nil || at.Format(f.layout) != text || at.Add(f.step).Year() > lastYear || !known {
				continue
			}
			is, err := f.disk.Stat(p.dir, e.Name)
			if err != nil || is.Mode&vfs.KindMask != vfs.KindRegular {
				continue // it is gone, or not ours
			}
			b := found[text]
			if b == nil {
				b = &backup{at: at}
				found[text] = b
				all = append(all, b)
			}
			b.files = append(b.files, e.Name)
			if isPart {
				b.part = e.Name
				continue
			}
			b.bytes += is.Size
			if kind == "" {
				b.plain, b.inode = e.Name, is.Inode
			}
		}
	}
	slices.SortFunc(all, func(a, b *backup) int { return b.at.Compare(a.at) })
	return all, nil
}

// keepBackup makes the log's file where there is none, and keeps it from the only durable name of the last backup: a process may
// have been killed behind the rename of its rotation. If it can't make the backup's name durable, it gives the log's name back, which
// is the one on the disk. In a shared log it waits for another process's rotation first.
func (f *File) keepBackup(p place, since int, open func(create int) error) error {
	create := func() error {
		if err := f.nameBackup(p, since); err != nil {
			return err
		}
		return open(os.O_CREATE)
	}
	if f.options.Shared {
		return f.openMissing(p, open, create)
	}
	return create()
}

// nameBackup makes the last backup's name durable, or gives it the log's name back. Since is as in syncDir.
func (f *File) nameBackup(p place, since int) error {
	if f.options.Policy.Sync.Mode == holdfast.SyncNever {
		return nil
	}
	if err := p.syncDir(since); err == nil || errors.As(err, new(*durable.RefusedError)) {
		return nil // a refusal is told by the sync of the new name
	}
	all, err := f.list(p)
	if err == nil && len(all) > 0 && all[0].plain != "" { // the disk has a compressed one by another name
		err = f.renameBack(&logFile{place: p}, all[0].plain)
	}
	if errors.Is(err, fs.ErrExist) { // by another program
		return nil
	}
	return err
}

// passLocked makes the next backup's name later than all of these, even if the clock was set back.
func (f *File) passLocked(all []*backup) {
	if len(all) > 0 && all[0].at.After(f.last) {
		f.last = all[0].at
	}
}

// agesLocked sets the ages of backups. The clock gives a backup's age at its first sight, and 0 if
// its name is in the future. From then on a monotonic clock counts, which setting the time does not
// change.
func (f *File) agesLocked(all []*backup) {
	now, ran, made := f.options.wall(clock()), time.Since(f.opened), map[time.Time]time.Duration{}
	for _, b := range all {
		since, known := f.made[b.at]
		if !known {
			since = ran - max(0, now.Sub(b.at))
		}
		b.age, made[b.at] = ran-since, since
	}
	f.made = made
}

// compress replaces a backup by a compressed one, and ignores the remains of an interrupted
// compression. It removes the backup after the new file's bytes and then its name are durable,
// under every policy: the backup may have been on the disk for long.
func (f *File) compress(p place, b *backup) (err error) {
	name := strings.TrimSuffix(string(b.plain), "\x00") + f.packed()
	whole, part := sys.Name(name+"\x00"), sys.Name(name+partly+"\x00")
	from, err := f.disk.OpenSource(p.dir, b.plain)
	if err != nil {
		return err
	}
	closeFrom := sync.OnceFunc(func() { f.disk.Close(from) })
	defer closeFrom()
	is, err := accessOf(f.disk, from)
	if err != nil {
		return err
	}
	f.count(func(s *Stats) {
		s.Compressing, s.CompressedBytes, s.CompressingSize = b.plain.String(), 0, is.Size
	})
	to := &logFile{place: p, fd: -1}
	to.base = part
	if err := f.removePart(p, part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	to.fd, err = f.disk.OpenFile(p.dir, part, os.O_WRONLY|os.O_CREATE|os.O_EXCL|sys.NoFollow, is.private())
	if f.options.Shared && errors.Is(err, fs.ErrExist) {
		return errTaken
	}
	if err != nil {
		return err
	}
	closeTo := sync.OnceValue(func() error { return f.disk.Close(to.fd) })
	defer closeTo()
	if f.options.Shared {
		if err := f.claimBackup(p, b, part, to.fd, from); err != nil {
			return err
		}
	}
	err = to.imitate(&is)
	if err == nil {
		err = f.pack(partFile{f.disk, to.fd}, from)
	}
	if err == nil {
		err = f.disk.Sync(to.fd)
	}
	if !f.options.Shared { // else the lock lasts to the end
		err = cmp.Or(err, closeTo())
	}
	closeFrom() // Windows removes no open file
	// Under sync=never, or of a killed process, the backup's own name may not be durable. A crash that
	// kept only the compressed file's would leave the lines there and in the log.
	if err == nil {
		err = p.syncDir(f.losses)
	}
	if err == nil {
		err = f.disk.Rename(p.dir, part, whole)
	}
	if err != nil {
		f.disk.Remove(p.dir, part) // the first failure is reported
		return err
	}
	if err := p.syncDir(f.losses); err != nil {
		return err
	}
	if err := f.disk.Remove(p.dir, b.plain); err != nil {
		return err
	}
	if call := f.options.Compressed; call != nil {
		plain, compressed := p.of(b.plain), p.of(whole)
		f.after(func() error { return call(plain, compressed) })
	}
	return nil
}

// A partFile is the open file of a compression.
type partFile struct {
	disk disk
	fd   int
}

func (p partFile) Write(b []byte) (n int, err error) { return writeAll(p.disk, p.fd, b) }

// packChunk is the number of bytes compressed between two checks for a closed log.
const packChunk = 64 << 10

// pack compresses the bytes of a file. After each chunk it sleeps for as long as the chunk took,
// also on a busy machine. So it uses at most half of one CPU.
//
// Note: a thread of low priority (nice) is worse. While it does not run, each stop of the world and
// each goroutine that needs a lock of the thread waits for it.
func (f *File) pack(to io.Writer, from int) (err error) {
	z := io.WriteCloser(gzip.NewWriter(to))
	if other := f.options.Compressor.New; other != nil {
		if z, err = other(to); err != nil {
			return err
		}
	}
	defer func() {
		err = cmp.Or(err, z.Close())
	}()
	buf := make([]byte, packChunk)
	for at := int64(0); ; {
		select {
		case <-f.stop:
			return errStopped
		default:
		}
		start := time.Now()
		n, err := f.disk.ReadAt(from, buf, at)
		if err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
		at += int64(n)
		if _, err := z.Write(buf[:n]); err != nil {
			return err
		}
		f.count(func(s *Stats) { s.CompressedBytes = at })
		time.Sleep(time.Since(start))
	}
}

// packed returns the suffix of backups that the log compresses.
func (f *File) packed() string { return cmp.Or(f.options.Compressor.Suffix, packed) }
