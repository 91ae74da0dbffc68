package filecopy

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// progressEvery is the least time between two calls of Progress.
const progressEvery = time.Second / 20

// progress reports the call's progress until the returned function is called, which reports it once
// more.
func (t *copyTree) progress() (end func()) {
	if t.o.Progress == nil {
		return func() {}
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	ahead := &copyAhead{t: t, ended: make(chan struct{})}
	if t.o.Filter != nil { // it is asked once for each name
		close(ahead.ended)
	} else {
		go ahead.walk(t.roots)
	}
	go func() {
		defer close(ended)
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				t.report.reportProgress(ahead, false)
			case <-stop:
				t.report.reportProgress(ahead, !t.stopped())
				return
			}
		}
	}()
	return func() {
		close(stop)
		<-ended
		ahead.quit.Store(true)
		<-ahead.ended
	}
}

// reportProgress reports the call's progress; whole says that all was done. No total is below its
// part done: the count ahead may be late, and files may have grown.
func (r *copyReport) reportProgress(ahead *copyAhead, whole bool) {
	p := Progress{
		Files: int(r.files.Load()), Bytes: r.done.Load(),
		Listed: whole || ahead.listed.Load(), Elapsed: time.Since(r.began),
	}
	p.FilesTotal = max(int(ahead.files.Load()), p.Files)
	p.BytesTotal = max(ahead.bytes.Load(), p.Bytes)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at != nil {
		p.Source = r.at.pathOf(atSource, r.name)
	}
	r.progress(p)
}

// A copyAhead counts the files to copy, ahead of the workers. It has one directory open at a time,
// and keeps the names of the directories not counted yet.
type copyAhead struct {
	t      *copyTree
	files  atomic.Int64
	bytes  atomic.Int64
	listed atomic.Bool
	quit   atomic.Bool
	ended  chan struct{}
	buf    []byte
	names  []sys.DirEntry
}

// walk counts all roots.
func (a *copyAhead) walk(roots []*copyRoot) {
	defer close(a.ended)
	a.buf = make([]byte, namesBuffer)
	whole := true
	for _, root := range roots {
		if root.job.names != nil {
			a.files.Add(1)
			a.bytes.Add(root.size)
			continue
		}
		whole = a.tree(root.job.node.sides[atSource].path) && whole
	}
	a.listed.Store(whole)
}

// An aheadLevel is a directory above the current one.
type aheadLevel struct {
	id      fileID
	subdirs []sys.Name
}

// tree counts a tree, and reports whether it reached the end.
func (a *copyAhead) tree(path string) bool {
	name, err := sys.NewName(path)
	if err != nil {
		return false
	}
	fd, err := a.t.disk.OpenDir(name)
	if err != nil {
		return false
	}
	whole := true
	levels := []aheadLevel{a.count(fd)}
	for len(levels) > 0 && !a.quit.Load() && a.t.ctx.Err() == nil {
		level := &levels[len(levels)-1]
		next := dirAboveName
		if n := len(level.subdirs); n > 0 {
			next, level.subdirs = level.subdirs[n-1], level.subdirs[:n-1]
		} else if levels = levels[:len(levels)-1]; len(levels) == 0 {
			break
		}
		to, err := a.t.disk.OpenDirIn(fd, next)
		if err != nil {
			whole = false
			if next == dirAboveName {
				break // the current directory is unknown
			}
			continue
		}
		a.t.disk.Close(fd)
		fd = to
		if next != dirAboveName {
			levels = append(levels, a.count(fd))
		} else if is, err := a.t.disk.StatFD(fd); err != nil || idOf(is) != levels[len(levels)-1].id {
			whole = false
			break
		}
	}
	a.t.disk.Close(fd)
	return whole && len(levels) == 0
}

// count adds the files and links of an open directory.
func (a *copyAhead) count(fd int) (level aheadLevel) {
	if is, err := a.t.disk.StatFD(fd); err == nil {
		level.id = idOf(is)
	}
	if a.t.overlap.isEntry(level.id) {
		return level
	}
	for {
		names, err := a.t.disk.ReadNames(fd, a.buf, a.names[:0])
		if err != nil || len(names) == 0 || a.quit.Load() {
			return level
		}
		a.names = names
		for _, e := range names {
			is, err := a.t.disk.Stat(fd, e.Name)
			switch {
			case err != nil:
			case is.Mode&vfs.KindMask == kindDir:
				// Clone: the names of a call share their memory.
				level.subdirs = append(level.subdirs, sys.Name(strings.Clone(string(e.Name))))
			case a.t.o.Special == SkipSpecial && is.Mode&vfs.KindMask != vfs.KindRegular && is.Mode&vfs.KindMask != vfs.KindLink:
			default:
				a.files.Add(1)
				if is.Mode&vfs.KindMask == vfs.KindRegular {
					a.bytes.Add(is.Size)
				}
			}
		}
	}
}
