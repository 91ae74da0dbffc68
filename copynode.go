package holdfast

import (
	"errors"
	"io/fs"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// A fileID tells files of this machine apart.
type fileID struct{ device, inode uint64 }

func idOf(is sys.Stat) fileID { return fileID{is.Device, is.Inode} }

// is reports whether two files are known to be one. Some systems don't tell.
func (id fileID) is(other fileID) bool { return id == other && id != fileID{} }

// A copyNode is a folder that is being copied. What it knows of the two folders is
// there when its names are read. They may be closed meanwhile, and opened again.
type copyNode struct {
	above *copyNode   // nil for one that is opened by its path
	names [2]sys.Name // in the one above
	sides [2]copySide
	root  *copyRoot // nil for one that lends its names to several
	own   *copyMark // of one that does

	// lender: only single files are copied from the one folder to the other.
	lender bool
	filled bool     // both folders were opened
	made   bool     // the destination was made by this call
	is     sys.Stat // the source
	has    uint32   // permissions that the destination has until its names are there

	accessed, modified time.Time
	began              time.Time

	// left is what there is left to do: to read the names, each folder in it, and
	// each file that another worker has or that waits to be renamed.
	left atomic.Int32
	cut  atomic.Bool // not all of it was begun

	// Of the names in the destination; guarded by copyBatch.mu.
	listed bool  // they are to be synced
	lost   error // of a sync: what it covered may be gone
}

// An end is one of the two folders of a copyNode.
type end int

const (
	atSource end = iota
	atDestination
)

type copySide struct {
	open *handle // nil or gone: closed; guarded by handles.mu
	// entered: crossings knows that it is being copied
	entered bool
	is      fileID // what it was when it was opened first
	path    string // "" where it would be long
}

// longestKept is the length above which a folder's path is put together when it is
// told, so that deep trees don't take memory by the square of their depth.
const longestKept = 1024

// newCopyNode returns a folder of a folder, with its own names left to be read.
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

func joinPath(folder, name string) string {
	if strings.HasSuffix(folder, "/") {
		return folder + name
	}
	return folder + "/" + name
}

// path returns the folder's path.
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

// pathOf returns the path of a name in the folder.
func (n *copyNode) pathOf(at end, name sys.Name) string { return joinPath(n.path(at), name.String()) }

var errFolderReplaced = errors.New("the folder was moved away meanwhile, and another is in its place")

// use returns one of a node's folders open and in use until handles.rest. Where it was
// closed meanwhile it is opened again by its name in the one above.
func (t *copyTree) use(n *copyNode, at end) (*handle, error) {
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
		err = errFolderReplaced
	}
	if err != nil {
		t.closeFolder(fd)
		return nil, err
	}
	return t.keep(side, fd), nil
}

// openAgain opens a folder. Its descriptor is reserved, but not known to be the one.
func (t *copyTree) openAgain(n *copyNode, at end) (fd int, err error) {
	if n.above == nil {
		name, err := sys.NewName(n.sides[at].path)
		if err != nil {
			return -1, err
		}
		return t.openPath(name, n.lender && (at == atSource || !t.batch.durable()))
	}
	above, err := t.use(n.above, at)
	if err != nil {
		return -1, err
	}
	defer t.handles.rest(above)
	return t.openIn(above, n.names[at])
}

// openPath opens a folder by its path. One that may not be read, and is to be neither
// listed nor synced, is opened for the names that are known in it.
func (t *copyTree) openPath(path sys.Name, onlyNames bool) (fd int, err error) {
	fd, err = t.reserved(func() (int, error) { return t.disk.OpenFolder(path) })
	if onlyNames && errors.Is(err, fs.ErrPermission) {
		return t.reserved(func() (int, error) { return t.disk.OpenForNames(path) })
	}
	return fd, err
}

// openIn opens a folder of an open folder.
func (t *copyTree) openIn(above *handle, name sys.Name) (fd int, err error) {
	return t.reserved(func() (int, error) { return t.disk.OpenFolderIn(above.fd, name) })
}

// reserved opens a descriptor that closeFolder closes, or who has kept it.
func (t *copyTree) reserved(open func() (int, error)) (fd int, err error) {
	t.handles.reserve()
	err = t.insist(opOpen, func() (err error) {
		fd, err = open()
		return err
	})
	if err != nil {
		t.handles.release()
		return -1, err
	}
	return fd, nil
}

func (t *copyTree) closeFolder(fd int) {
	t.disk.Close(fd) // nothing was written to it
	t.handles.release()
}

func (t *copyTree) openAlready(side *copySide) *handle {
	t.handles.mu.Lock()
	defer t.handles.mu.Unlock()
	h := side.open
	if h == nil || h.gone {
		return nil
	}
	t.handles.useLocked(h)
	return h
}

// keep lets others find a descriptor. If somebody was faster it returns that one.
func (t *copyTree) keep(side *copySide, fd int) *handle {
	h := &handle{fd: fd, users: 1}
	h.drop = func() { t.closeFolder(fd) }
	t.handles.mu.Lock()
	other := side.open
	if other == nil || other.gone {
		side.open = h
		t.handles.mu.Unlock()
		return h
	}
	t.handles.useLocked(other)
	t.handles.mu.Unlock()
	t.closeFolder(fd)
	return other
}

// leave closes one of a node's folders when nobody uses it any more.
func (t *copyTree) leave(n *copyNode, at end) {
	side := &n.sides[at]
	t.handles.mu.Lock()
	h := side.open
	side.open = nil
	if h == nil || h.gone {
		t.handles.mu.Unlock()
		return
	}
	h.gone = true
	idle := h.users == 0
	if idle {
		t.handles.idle.remove(h)
	}
	t.handles.mu.Unlock()
	if idle {
		h.drop()
	}
}

var folderAboveName = sys.Name("..\x00")

// openAbove opens the folder above by way of this one, if it was closed: it is wanted
// next, and by its own path that may take as many calls as it is deep.
func (t *copyTree) openAbove(n *copyNode, at end) {
	above := n.above
	if above == nil {
		return
	}
	if h := t.openAlready(&above.sides[at]); h != nil {
		t.handles.rest(h)
		return
	}
	below := t.openAlready(&n.sides[at])
	if below == nil {
		return
	}
	defer t.handles.rest(below)
	fd, err := t.openIn(below, folderAboveName)
	if err != nil {
		return // who wants it will be told
	}
	if is, err := t.disk.StatFD(fd); err != nil || idOf(is) != above.sides[at].is {
		t.closeFolder(fd)
		return
	}
	t.handles.rest(t.keep(&above.sides[at], fd))
}
