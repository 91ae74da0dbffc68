package filecopy

import (
	"errors"
	"io/fs"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/handles"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// A fileID identifies a file of this machine.
type fileID struct{ device, inode uint64 }

func idOf(is sys.Stat) fileID { return fileID{is.Device, is.Inode} }

// is reports whether two files are known to be one. Some systems don't report that.
func (id fileID) is(other fileID) bool { return id == other && id != fileID{} }

// A copyNode is a directory that is being copied. What it knows of the two directories is
// there when its names are read. They may be closed meanwhile, and opened again.
type copyNode struct {
	above *copyNode   // nil for one that is opened by its path
	names [2]sys.Name // in the one above
	sides [2]copySide
	root  *copyRoot // nil for one that lends its names to several
	own   *copyMark // of one that does

	// lender: only single files are copied from the one directory to the other.
	lender bool
	filled bool     // both directories were opened
	made   bool     // the destination was made by this call
	is     sys.Stat // the source
	perm   uint32   // of the source, without its access control list
	has    uint32   // permissions that the destination has until its names are there
	group  uint32   // of the destination

	accessed, modified time.Time
	began              time.Time

	// left counts what is left to do: the reading of the names, and each
	// directory in it. It also counts each file that another worker has or that
	// waits for its rename.
	left atomic.Int32
	cut  atomic.Bool // not all of it was begun

	place durable.Place // the destination, since it was opened first
}

// An end is one of the two directories of a copyNode.
type end int

const (
	atSource end = iota
	atDestination
)

type copySide struct {
	open *handles.Handle // nil or gone: closed; guarded by handles.mu
	// entered: crossings knows that it is being copied
	entered bool
	is      fileID // what it was when it was opened first
	path    string // "" where it would be long
}

// longestKept bounds the length of the path that a directory keeps. A longer one is put
// together when it is needed, so that deep trees don't take memory by the square of their depth.
const longestKept = 1024

// newCopyNode returns a directory of a directory, with its own names left to be read.
func newCopyNode(above *copyNode, name sys.Name) *copyNode {
	n := &copyNode{above: above, names: [2]sys.Name{name, name}, root: above.root, began: time.Now()}
	for at := range n.sides {
		if p := above.sides[at].path; p != "" && len(p)+len(name) < longestKept {
			n.sides[at].path = joinPath(p, name.String())
		}
	}
	n.left.Store(1)
	above.left.Add(1)
	return n
}

func joinPath(dir, name string) string {
	if strings.HasSuffix(dir, "/") {
		return dir + name
	}
	return dir + "/" + name
}

// path returns the directory's path.
func (n *copyNode) path(at end) string {
	var names []string
	for n.sides[at].path == "" {
		names = append(names, n.names[at].String())
		n = n.above
	}
	path := n.sides[at].path
	if len(names) == 0 {
		return path
	}
	var b strings.Builder
	b.WriteString(strings.TrimSuffix(path, "/"))
	for i := len(names) - 1; i >= 0; i-- {
		b.WriteByte('/')
		b.WriteString(names[i])
	}
	return b.String()
}

// pathOf returns the path of a name in the directory.
func (n *copyNode) pathOf(at end, name sys.Name) string { return joinPath(n.path(at), name.String()) }

var errDirReplaced = errors.New("the directory was moved away meanwhile, and another is in its place")

// use returns one of a node's directories, open and in use until handles.Rest. If it was
// closed meanwhile, use opens it again by its name in the one above.
func (t *copyTree) use(n *copyNode, at end) (*handles.Handle, error) {
	side := &n.sides[at]
	if h := t.openAlready(side); h != nil {
		return h, nil
	}
	fd, err := t.openAgain(n, at)
	if err != nil {
		return nil, err
	}
	is, err := t.disk.StatFD(fd)
	if err == nil && idOf(is) != side.is {
		err = errDirReplaced
	}
	if err != nil {
		t.closeDir(fd)
		return nil, err
	}
	return t.keep(side, fd), nil
}

// openAgain opens a directory. Its descriptor is reserved, but not known to be the one.
func (t *copyTree) openAgain(n *copyNode, at end) (fd int, err error) {
	if n.above == nil {
		name, err := sys.NewName(n.sides[at].path)
		if err != nil {
			return -1, err
		}
		fd, err = t.reserved(func() (int, error) { return t.disk.OpenDir(name) })
		// One that may not be read, and is neither listed nor synced, is opened for the names
		// that are known in it.
		onlyNames := n.lender && (at == atSource || !t.batch.each && !t.batch.inSteps)
		if onlyNames && errors.Is(err, fs.ErrPermission) {
			return t.reserved(func() (int, error) { return t.disk.OpenForNames(name) })
		}
		return fd, err
	}
	above, err := t.use(n.above, at)
	if err != nil {
		return -1, err
	}
	defer t.handles.Rest(above)
	return t.openIn(above, n.names[at])
}

// openIn opens a directory of an open directory.
func (t *copyTree) openIn(above *handles.Handle, name sys.Name) (fd int, err error) {
	return t.reserved(func() (int, error) { return t.disk.OpenDirIn(above.Fd, name) })
}

// reserved opens a descriptor, which is closed by closeDir, or after keep by handles.
func (t *copyTree) reserved(open func() (int, error)) (fd int, err error) {
	t.handles.Reserve()
	err = t.insist(retry.OpOpen, func() (err error) {
		fd, err = open()
		return err
	})
	if err != nil {
		t.handles.Release()
		return -1, err
	}
	return fd, nil
}

func (t *copyTree) closeDir(fd int) {
	t.disk.Close(fd) // nothing was written to it
	t.handles.Release()
}

func (t *copyTree) openAlready(side *copySide) *handles.Handle {
	t.handles.Mu.Lock()
	defer t.handles.Mu.Unlock()
	h := side.open
	if h == nil || h.Gone {
		return nil
	}
	t.handles.UseLocked(h)
	return h
}

// keep makes a descriptor the open one of its side. If another worker was faster, it closes the
// descriptor and returns the other one.
func (t *copyTree) keep(side *copySide, fd int) *handles.Handle {
	h := &handles.Handle{Fd: fd, Users: 1}
	h.Drop = func() { t.closeDir(fd) }
	t.handles.Mu.Lock()
	other := side.open
	if other == nil || other.Gone {
		side.open = h
		t.handles.Mu.Unlock()
		return h
	}
	t.handles.UseLocked(other)
	t.handles.Mu.Unlock()
	t.closeDir(fd)
	return other
}

// leave closes one of a node's directories when no worker uses it any more.
func (t *copyTree) leave(n *copyNode, at end) {
	side := &n.sides[at]
	t.handles.Mu.Lock()
	h := side.open
	side.open = nil
	if h == nil || h.Gone {
		t.handles.Mu.Unlock()
		return
	}
	h.Gone = true
	idle := h.Users == 0
	if idle {
		t.handles.Idle.Remove(h)
	}
	t.handles.Mu.Unlock()
	if idle {
		h.Drop()
	}
}

var dirAboveName = sys.Name("..\x00")

// openAbove opens the directory above by way of this one, if it was closed. It is needed
// next, and opening it by its own path may take as many calls as it is deep.
func (t *copyTree) openAbove(n *copyNode, at end) {
	above := n.above
	if above == nil {
		return
	}
	if h := t.openAlready(&above.sides[at]); h != nil {
		t.handles.Rest(h)
		return
	}
	below := t.openAlready(&n.sides[at])
	if below == nil {
		return
	}
	defer t.handles.Rest(below)
	fd, err := t.openIn(below, dirAboveName)
	if err != nil {
		return // the worker that needs it gets the error
	}
	if is, err := t.disk.StatFD(fd); err != nil || idOf(is) != above.sides[at].is {
		t.closeDir(fd)
		return
	}
	t.handles.Rest(t.keep(&above.sides[at], fd))
}
