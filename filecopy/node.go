package filecopy

import (
	"errors"
	"io/fs"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/folding"
	"github.com/holdfast-go/holdfast/internal/handles"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// A fileID identifies a file of this machine.
type fileID struct{ device, inode uint64 }

func idOf(is sys.Stat) fileID { return fileID{is.Device, is.Inode} }

// is reports whether two IDs are known to be the same file. Some systems report no IDs.
func (id fileID) is(other fileID) bool { return id == other && id != fileID{} }

// A copyNode is a directory in progress. Its attributes of the two directories are set before its
// names are read. The directories may be closed meanwhile, and opened again.
type copyNode struct {
	above *copyNode   // nil if it is opened by its path
	names [2]sys.Name // its names in the node above
	sides [2]copySide
	root  *copyRoot // nil for a lender, which serves several roots
	own   *copyMark // a lender's mark

	// lender: only single names are copied from one directory to the other.
	lender bool
	filled bool     // both directories were opened
	made   bool     // the destination was made by this call
	is     sys.Stat // the source
	perm   uint32   // the source's, without its access control list
	has    uint32   // the destination's permissions until its names are there
	group  uint32   // the destination's

	accessed, modified time.Time
	began              time.Time

	// left counts the open work: the reading of the names, each subdirectory, and each file that
	// another worker has or that waits for its rename.
	left atomic.Int32
	cut  atomic.Bool // some of it was not begun

	place durable.Place  // the destination, set at its first open
	given *folding.Names // the names given in it; nil: it tells all names apart
}

// An end is one of the two directories of a copyNode.
type end int

const (
	atSource end = iota
	atDestination
)

type copySide struct {
	open *handles.Handle // nil or gone: closed; guarded by handles.mu
	// entered: it is in copyTree.overlap
	entered bool
	is      fileID // its ID at the first open
	path    string // "" where it would be long
}

// longestKept bounds the path that a directory keeps. A longer one is built when it is needed:
// otherwise deep trees take memory by the square of their depth.
const longestKept = 1024

// newCopyNode returns the node of a subdirectory, whose names must still be read.
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

// use returns one of a node's directories, open and in use until handles.Rest. If it was closed
// meanwhile, use opens it again by its name in the node above.
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

// openAgain opens a directory. Its descriptor is reserved, and its identity is not checked yet.
func (t *copyTree) openAgain(n *copyNode, at end) (fd int, err error) {
	if n.above == nil {
		name, err := sys.NewName(n.sides[at].path)
		if err != nil {
			return -1, err
		}
		fd, err = t.reserved(func() (int, error) { return t.disk.OpenDir(name) })
		// A directory without read permission, which is neither listed nor synced, is opened to use
		// known names only.
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

// openIn opens a subdirectory of an open directory.
func (t *copyTree) openIn(above *handles.Handle, name sys.Name) (fd int, err error) {
	return t.reserved(func() (int, error) { return t.disk.OpenDirIn(above.Fd, name) })
}

// reserved opens a descriptor. closeDir closes it, or handles after keep.
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

// keep makes fd the open directory of its side. If another worker was faster, it closes fd and
// returns the other's.
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

// openAbove opens the parent directory through this one, if it was closed. The parent is needed
// next, and opening it by its own path may take one call for each level.
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
		return // the worker that needs the parent gets the error
	}
	if is, err := t.disk.StatFD(fd); err != nil || idOf(is) != above.sides[at].is {
		t.closeDir(fd)
		return
	}
	t.handles.Rest(t.keep(&above.sides[at], fd))
}
