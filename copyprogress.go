package holdfast

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/sys"
)

const (
	progressEvery = time.Second / 20
	rateOver      = 3 * time.Second
)

// A copyRate is how many bytes were copied when, of the last seconds.
type copyRate struct {
	at    []time.Duration
	bytes []int64
}

// add returns the bytes a second since the oldest sample that is kept.
func (r *copyRate) add(at time.Duration, bytes int64) float64 {
	for len(r.at) > 1 && at-r.at[0] > rateOver {
		r.at, r.bytes = r.at[1:], r.bytes[1:]
	}
	r.at, r.bytes = append(r.at, at), append(r.bytes, bytes)
	over := at - r.at[0]
	if over <= 0 {
		return 0
	}
	return float64(bytes-r.bytes[0]) / over.Seconds()
}

// progress tells how far the call is until the function that it returns is called,
// which tells it once more.
func (t *copyTree) progress() (end func()) {
	if t.o.Progress == nil {
		return func() {}
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	ahead := &copyAhead{t: t, ended: make(chan struct{})}
	go ahead.walk(t.roots)
	go func() {
		defer close(ended)
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		var rate copyRate
		for {
			select {
			case <-tick.C:
				t.report.tellProgress(ahead, &rate, false)
			case <-stop:
				t.report.tellProgress(ahead, &rate, !t.stopped())
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

// tellProgress tells how far the call is; whole says that all of it was done. Who counts
// ahead may be behind, and what was counted may have grown: no total is below what is done.
func (r *copyReport) tellProgress(ahead *copyAhead, rate *copyRate, whole bool) {
	p := CopyProgress{
		Files: int(r.files.Load()), Bytes: r.done.Load(),
		Listed: whole || ahead.listed.Load(), Elapsed: time.Since(r.began),
	}
	p.FilesTotal = max(int(ahead.files.Load()), p.Files)
	p.BytesTotal = max(ahead.bytes.Load(), p.Bytes)
	p.Rate = rate.add(p.Elapsed, p.Bytes)
	if p.Listed && p.Rate > 0 && p.BytesTotal > p.Bytes {
		p.Left = time.Duration(float64(p.BytesTotal-p.Bytes) / p.Rate * float64(time.Second))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at != nil {
		p.Source = r.at.pathOf(atSource, r.name)
	}
	r.progress(p)
}

// A copyAhead counts what there is to copy, ahead of those who copy it. It has one
// folder open at a time, and keeps the names of the folders that it has not counted.
type copyAhead struct {
	t      *copyTree
	files  atomic.Int64
	bytes  atomic.Int64
	listed atomic.Bool
	quit   atomic.Bool
	ended  chan struct{}
	buf    []byte
	names  []sys.FolderEntry
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

// An aheadLevel is a folder above the one that is being counted.
type aheadLevel struct {
	id   fileID
	kids []sys.Name
}

// tree counts a tree, and reports whether it came to its end.
func (a *copyAhead) tree(path string) bool {
	name, err := sys.NewName(path)
	if err != nil {
		return false
	}
	fd, err := a.t.disk.OpenFolder(name)
	if err != nil {
		return false
	}
	whole := true
	levels := []aheadLevel{a.count(fd)}
	for len(levels) > 0 && !a.quit.Load() && a.t.ctx.Err() == nil {
		level := &levels[len(levels)-1]
		next := folderAboveName
		if n := len(level.kids); n > 0 {
			next, level.kids = level.kids[n-1], level.kids[:n-1]
		} else if levels = levels[:len(levels)-1]; len(levels) == 0 {
			break
		}
		to, err := a.t.disk.OpenFolderIn(fd, next)
		if err != nil {
			whole = false
			if next == folderAboveName {
				break // it is not known where we are
			}
			continue
		}
		a.t.disk.Close(fd)
		fd = to
		if next != folderAboveName {
			levels = append(levels, a.count(fd))
		} else if is, err := a.t.disk.StatFD(fd); err != nil || idOf(is) != levels[len(levels)-1].id {
			whole = false
			break
		}
	}
	a.t.disk.Close(fd)
	return whole && len(levels) == 0
}

// count adds the files and links of an open folder.
func (a *copyAhead) count(fd int) (level aheadLevel) {
	if is, err := a.t.disk.StatFD(fd); err == nil {
		level.id = idOf(is)
	}
	if a.t.crossings.isWayIn(level.id) {
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
			case is.Mode&kindMask == kindFolder:
				// A copy, because the names of a call share their memory.
				level.kids = append(level.kids, sys.Name(strings.Clone(string(e.Name))))
			default:
				a.files.Add(1)
				if is.Mode&kindMask == kindRegular {
					a.bytes.Add(is.Size)
				}
			}
		}
	}
}
