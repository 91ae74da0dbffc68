package filecopy

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"strings"

	"github.com/holdfast-go/holdfast/internal/folding"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// A copyRoot is a pair of All.
type copyRoot struct {
	job   treeJob
	above map[fileID]bool // the directories above its destination
	size  int64           // a file's size
	mark  *copyMark       // a directory's mark
}

// copyPairs checks the pairs before anything is written.
type copyPairs struct {
	t      *copyTree
	lender *copyNode // the last lender made
	chain  map[fileID]bool
	taken  map[takenName]string      // the source of each destination
	need   map[uint64]*roomNeed      // by device
	given  map[fileID]*folding.Names // of the destinations' directories
}

// A takenName identifies a pair's destination.
type takenName struct {
	in   fileID
	path string // the directory's path, where the system reports no file ID
	name sys.Name
}

// look adds the valid pairs to the roots, and reports the others. It returns an error if the single
// files among them need more space than is free.
func (p *copyPairs) look(pairs iter.Seq2[string, string]) error {
	for dst, src := range pairs {
		if p.t.stopped() {
			break
		}
		root, err := p.root(dst, src)
		if err != nil {
			p.t.report.add(fileCopy, Result{Source: src, Destination: dst, Err: copyErrorOf(src, dst, err)})
			continue
		}
		p.t.roots = append(p.t.roots, root)
	}
	for _, need := range p.need {
		to, err := p.t.use(need.at, atDestination)
		if err != nil {
			continue
		}
		free, err := p.t.disk.Free(to.Fd)
		p.t.handles.Rest(to)
		if err == nil && need.bytes > free {
			files := "1 file"
			if need.files != 1 {
				files = fmt.Sprintf("%d files", need.files)
			}
			asked, left := tooLarge(need.bytes, free)
			return fmt.Errorf("copy: no room in %s for %s with %s, as %s are free; make room, or name another destination",
				need.at.path(atDestination), files, asked, left)
		}
	}
	return nil
}

// lastDir splits a path into a directory and a name in it. A path that ends in no name of its own
// is all directory.
func lastDir(path string) (dir, name string) {
	trimmed := strings.TrimRight(path, separators())
	if trimmed == "" {
		return path, "."
	}
	dir, name = vfs.SplitPath(trimmed)
	if name == "" || name == "." || name == ".." {
		return path, "."
	}
	return dir, name
}

// separators returns the bytes that end a directory's path.
func separators() string {
	if os.PathSeparator == '/' {
		return "/"
	}
	return "/" + string(os.PathSeparator)
}

// root checks one pair.
func (p *copyPairs) root(dst, src string) (*copyRoot, error) {
	name, err := sys.NewName(src)
	if err != nil {
		return nil, copyFailure(retry.OpOpen, err)
	}
	var is sys.Stat // the target of the source's links
	err = p.t.insist(retry.OpStat, func() (err error) {
		is, err = p.t.disk.StatPath(name)
		return err
	})
	if err != nil {
		return nil, copyFailure(retry.OpOpen, err)
	}
	from, err := p.resolve(src)
	if err != nil {
		return nil, err
	}
	if kind := is.Mode & vfs.KindMask; kind != vfs.KindRegular && kind != kindDir && p.t.o.Special != KeepSpecial {
		return nil, copyFailure(opRefuse, errors.New(kindName(kind)+" holds nothing that could be copied; name a file or a directory"))
	}
	to, err := p.resolve(dst)
	if err != nil {
		return nil, err
	}
	fromDir, fromName := lastDir(from)
	toDir, toName := lastDir(to)
	lender, err := p.lend(fromDir, toDir)
	if err != nil {
		return nil, err
	}
	var names [2]sys.Name
	for i, name := range [2]string{fromName, toName} {
		if names[i], err = sys.NewName(name); err != nil {
			return nil, copyFailure(retry.OpOpen, err)
		}
	}
	if err := p.fits(lender, is, to, names[atDestination]); err != nil {
		return nil, err
	}
	at := takenName{in: lender.sides[atDestination].is, name: names[atDestination]}
	if at.in == (fileID{}) {
		at.path = lender.sides[atDestination].path
	}
	if other, ok := p.taken[at]; ok {
		return nil, copyFailure(opRefuse, fmt.Errorf("%s is copied there already; give each source its own destination", other))
	}
	p.taken[at] = src
	return p.newRoot(lender, is, names[atSource], names[atDestination]), nil
}

func (p *copyPairs) resolve(path string) (to string, err error) {
	if _, err := sys.NewName(path); err != nil {
		return "", copyFailure(retry.OpOpen, err)
	}
	err = p.t.insist(retry.OpResolve, func() (err error) {
		to, err = p.t.disk.Resolve(path)
		return err
	})
	return to, copyFailure(retry.OpResolve, err)
}

// lend returns a node for two directories from which single names are copied. Consecutive pairs in
// the same directories share one.
func (p *copyPairs) lend(from, to string) (*copyNode, error) {
	if n := p.lender; n != nil && n.sides[atSource].path == from && n.sides[atDestination].path == to {
		return n, nil
	}
	n := &copyNode{lender: true}
	n.sides[atSource].path, n.sides[atDestination].path = from, to
	for at := range n.sides {
		fd, err := p.t.openAgain(n, end(at))
		var is sys.Stat
		if err == nil {
			if is, err = p.t.disk.StatFD(fd); err != nil {
				p.t.closeDir(fd)
			}
		}
		if err != nil {
			return nil, copyFailure(retry.OpOpen, &dirError{n.sides[at].path, err})
		}
		if n.sides[at].is = idOf(is); end(at) == atDestination {
			p.t.batch.opened(n, idOf(is))
			n.given = p.givenIn(idOf(is), fd)
		}
		p.t.handles.Rest(p.t.keep(&n.sides[at], fd))
	}
	chain, err := p.above(n)
	if err != nil {
		return nil, err
	}
	p.lender, p.chain = n, chain
	return n, nil
}

// givenIn returns the names given in an open directory, which several lenders may have.
func (p *copyPairs) givenIn(id fileID, fd int) *folding.Names {
	given, known := p.given[id]
	if !known {
		if vfs.FoldsNames(p.t.disk, fd) {
			given = new(folding.Names)
		}
		p.given[id] = given
	}
	return given
}

// above returns the directories above a destination, up to the root.
func (p *copyPairs) above(n *copyNode) (map[fileID]bool, error) {
	chain := map[fileID]bool{n.sides[atDestination].is: true}
	h, err := p.t.use(n, atDestination)
	if err != nil {
		return nil, copyFailure(retry.OpOpen, err)
	}
	defer p.t.handles.Rest(h)
	for fd, last := h.Fd, n.sides[atDestination].is; ; {
		up, err := p.t.reserved(func() (int, error) { return p.t.disk.OpenDirIn(fd, dirAboveName) })
		if fd != h.Fd {
			p.t.closeDir(fd)
		}
		if err != nil {
			return chain, nil // directories that can't be read are checked on the way down
		}
		is, err := p.t.disk.StatFD(up)
		if err != nil || idOf(is) == last || last == (fileID{}) {
			p.t.closeDir(up)
			return chain, nil
		}
		fd, last = up, idOf(is)
		chain[last] = true
	}
}

// fits refuses a destination that exists as another kind of file, or that is the source or in it.
func (p *copyPairs) fits(lender *copyNode, is sys.Stat, to string, name sys.Name) error {
	isDir := is.Mode&vfs.KindMask == kindDir
	if isDir && p.chain[idOf(is)] && idOf(is) != (fileID{}) {
		if name.String() == "." && lender.sides[atDestination].is.is(idOf(is)) {
			return copyFailure(opRefuse, errSameDir)
		}
		return copyFailure(opRefuse, errIntoItself)
	}
	path, err := sys.NewName(to)
	if err != nil {
		return copyFailure(retry.OpOpen, err)
	}
	there, err := p.t.disk.StatPath(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return copyFailure(retry.OpStat, err)
	case isDir && there.Mode&vfs.KindMask != kindDir:
		return copyFailure(opRefuse, fmt.Errorf("%s is where the directory must be; remove it, or name another destination", kindName(there.Mode)))
	case !isDir && there.Mode&vfs.KindMask == kindDir:
		return copyFailure(opRefuse, errDirThere)
	case isDir && idOf(there).is(idOf(is)):
		return copyFailure(opRefuse, errSameDir)
	case idOf(there).is(idOf(is)):
		return copyFailure(opRefuse, errors.New("source and destination are one file; name another destination"))
	}
	if isDir {
		p.t.overlap.addEntry(idOf(there))
	}
	return nil
}

func (p *copyPairs) newRoot(lender *copyNode, is sys.Stat, from, to sys.Name) *copyRoot {
	root := &copyRoot{above: p.chain}
	if is.Mode&vfs.KindMask != kindDir {
		lender.left.Add(1)
		if lender.own == nil {
			lender.own = p.t.giveMark(lender)
		}
		root.size = is.Size
		root.job = treeJob{node: lender, names: []sys.DirEntry{{Name: from, Inode: is.Inode, Kind: is.Mode & vfs.KindMask}}, as: to}
		// The destination's file system must have space for the file, unless it can share the
		// source's bytes.
		on := lender.sides[atDestination].is.device
		if on == is.Device && (p.t.o.Method == Auto || p.t.o.Method == Reflink) {
			return root
		}
		if p.need[on] == nil {
			p.need[on] = &roomNeed{at: lender}
		}
		p.need[on].files++
		p.need[on].bytes += dataBytes(is.Size, is.Blocks)
		return root
	}
	n := newCopyNode(lender, from)
	n.names, n.root = [2]sys.Name{from, to}, root
	for at := range n.sides {
		n.sides[at].path = lender.sides[at].path
		if name := n.names[at].String(); name != "." {
			n.sides[at].path = joinPath(n.sides[at].path, name)
		}
	}
	root.job = treeJob{node: n}
	root.mark = p.t.giveMark(n)
	return root
}

// A roomNeed is the space that the single files of a call need on a file system.
type roomNeed struct {
	files int
	bytes int64
	at    *copyNode
}
