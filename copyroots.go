package holdfast

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"strings"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// A copyRoot is a pair that was given.
type copyRoot struct {
	job   treeJob
	above map[fileID]bool // the folders that its destination is in
	size  int64           // of a file
	mark  *copyMark       // of a folder
}

// copyPairs looks at the pairs, before anything is written.
type copyPairs struct {
	t      *copyTree
	lender *copyNode // the last one
	chain  map[fileID]bool
	taken  map[takenName]string // by which source
	need   map[uint64]*roomNeed // by the device
}

// A takenName is where a pair's destination is.
type takenName struct {
	in   fileID
	path string // of the folder, where the system does not tell which it is
	name sys.Name
}

// look takes the pairs that can be copied to the roots, and tells the others.
func (p *copyPairs) look(pairs iter.Seq2[string, string]) {
	for dst, src := range pairs {
		if p.t.stopped() {
			return
		}
		root, err := p.root(dst, src)
		if err != nil {
			p.t.report.told(fileCopy, CopyResult{Source: src, Destination: dst, Err: copyErrorOf(src, dst, err)})
			continue
		}
		p.t.roots = append(p.t.roots, root)
	}
}

// lastFolder takes a path apart into a folder and a name in it. Where the path ends in
// no name of its own it is all folder.
func lastFolder(path string) (folder, name string) {
	trimmed := strings.TrimRight(path, separators)
	if trimmed == "" {
		return path, "."
	}
	folder, name = splitPath(trimmed)
	if name == "" || name == "." || name == ".." {
		return path, "."
	}
	return folder, name
}

// separators is what ends a folder's path.
var separators = func() string {
	if os.PathSeparator == '/' {
		return "/"
	}
	return "/" + string(os.PathSeparator)
}()

// root looks at one pair.
func (p *copyPairs) root(dst, src string) (*copyRoot, error) {
	from, is, err := p.followed(src)
	if err != nil {
		return nil, err
	}
	if kind := is.Mode & kindMask; kind != kindRegular && kind != kindFolder {
		return nil, copyFailure(opRefuse, errors.New(kindName(kind)+" holds nothing that could be copied; name a file or a folder"))
	}
	to, err := p.resolve(dst)
	if err != nil {
		return nil, err
	}
	fromFolder, fromName := lastFolder(from)
	toFolder, toName := lastFolder(to)
	lender, err := p.lend(fromFolder, toFolder)
	if err != nil {
		return nil, err
	}
	var names [2]sys.Name
	for i, name := range [2]string{fromName, toName} {
		if names[i], err = sys.NewName(name); err != nil {
			return nil, copyFailure(opOpen, err)
		}
	}
	if err := p.fits(lender, is, to, names[atDestination]); err != nil {
		return nil, err
	}
	if err := p.take(lender, names[atDestination], src); err != nil {
		return nil, err
	}
	return p.newRoot(lender, is, names[atSource], names[atDestination]), nil
}

// followed returns the path of what a source is when its links are followed.
func (p *copyPairs) followed(src string) (path string, is sys.Stat, err error) {
	name, err := sys.NewName(src)
	if err != nil {
		return "", is, copyFailure(opOpen, err)
	}
	err = p.t.insist(opStat, func() (err error) {
		is, err = p.t.disk.StatPath(name)
		return err
	})
	if err != nil {
		return "", is, copyFailure(opOpen, err)
	}
	path, err = p.resolve(src)
	return path, is, err
}

func (p *copyPairs) resolve(path string) (to string, err error) {
	if _, err := sys.NewName(path); err != nil {
		return "", copyFailure(opOpen, err)
	}
	err = p.t.insist(opResolve, func() (err error) {
		to, err = p.t.disk.Resolve(path)
		return err
	})
	return to, copyFailure(opResolve, err)
}

// lend returns a node for two folders, whose single names are copied. Pairs that follow
// each other in the same folders share one.
func (p *copyPairs) lend(from, to string) (*copyNode, error) {
	if n := p.lender; n != nil && n.sides[atSource].path == from && n.sides[atDestination].path == to {
		return n, nil
	}
	n := &copyNode{lender: true}
	n.sides[atSource].path, n.sides[atDestination].path = from, to
	for at := range n.sides {
		if err := p.identify(n, end(at)); err != nil {
			return nil, copyFailure(opOpen, fmt.Errorf("its folder %s: %w", n.sides[at].path, err))
		}
	}
	chain, err := p.above(n)
	if err != nil {
		return nil, err
	}
	p.lender, p.chain = n, chain
	return n, nil
}

func (p *copyPairs) identify(n *copyNode, at end) error {
	fd, err := p.t.openAgain(n, at)
	if err != nil {
		return err
	}
	is, err := p.t.disk.StatFD(fd)
	if err != nil {
		p.t.closeFolder(fd)
		return err
	}
	n.sides[at].is = idOf(is)
	p.t.handles.rest(p.t.keep(&n.sides[at], fd))
	return nil
}

// above returns which folders a destination is in, up to the root.
func (p *copyPairs) above(n *copyNode) (map[fileID]bool, error) {
	chain := map[fileID]bool{n.sides[atDestination].is: true}
	h, err := p.t.use(n, atDestination)
	if err != nil {
		return nil, copyFailure(opOpen, err)
	}
	defer p.t.handles.rest(h)
	for fd, last := h.fd, n.sides[atDestination].is; ; {
		up, err := p.t.reserved(func() (int, error) { return p.t.disk.OpenFolderIn(fd, folderAboveName) })
		if fd != h.fd {
			p.t.closeFolder(fd)
		}
		if err != nil {
			return chain, nil // what can't be seen is left to be found on the way down
		}
		is, err := p.t.disk.StatFD(up)
		if err != nil || idOf(is) == last || last == (fileID{}) {
			p.t.closeFolder(up)
			return chain, nil
		}
		fd, last = up, idOf(is)
		chain[last] = true
	}
}

// fits reports whether what is there can be the destination.
func (p *copyPairs) fits(lender *copyNode, is sys.Stat, to string, name sys.Name) error {
	isFolder := is.Mode&kindMask == kindFolder
	if isFolder && p.chain[idOf(is)] && idOf(is) != (fileID{}) {
		if name.String() == "." && lender.sides[atDestination].is.is(idOf(is)) {
			return copyFailure(opRefuse, errSameFolder)
		}
		return copyFailure(opRefuse, errIntoItself)
	}
	path, err := sys.NewName(to)
	if err != nil {
		return copyFailure(opOpen, err)
	}
	there, err := p.t.disk.StatPath(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return copyFailure(opStat, err)
	case isFolder && there.Mode&kindMask != kindFolder:
		return copyFailure(opRefuse, fmt.Errorf("%s is where the folder must be; remove it, or name another destination", kindName(there.Mode)))
	case !isFolder && there.Mode&kindMask == kindFolder:
		return copyFailure(opRefuse, errFolderThere)
	case isFolder && idOf(there).is(idOf(is)):
		return copyFailure(opRefuse, errSameFolder)
	case idOf(there).is(idOf(is)):
		return copyFailure(opRefuse, errors.New("source and destination are one file; name another destination"))
	}
	if isFolder {
		p.t.crossings.wayIn(idOf(there))
	}
	return nil
}

// take refuses a destination that another source has.
func (p *copyPairs) take(lender *copyNode, name sys.Name, src string) error {
	at := takenName{in: lender.sides[atDestination].is, name: name}
	if at.in == (fileID{}) {
		at.path = lender.sides[atDestination].path
	}
	if other, ok := p.taken[at]; ok {
		return copyFailure(opRefuse, fmt.Errorf("%s is copied there already; give each source its own destination", other))
	}
	p.taken[at] = src
	return nil
}

func (p *copyPairs) newRoot(lender *copyNode, is sys.Stat, from, to sys.Name) *copyRoot {
	root := &copyRoot{above: p.chain}
	if is.Mode&kindMask != kindFolder {
		lender.left.Add(1)
		if lender.own == nil {
			lender.own = p.t.giveMark(lender)
		}
		root.size = is.Size
		root.job = treeJob{node: lender, names: []sys.FolderEntry{{Name: from, Inode: is.Inode, Kind: kindRegular}}, as: to}
		p.needs(lender, is)
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

// needs adds a file to what its destination's file system must have room for. Where
// that can share the source's bytes it may need none.
func (p *copyPairs) needs(lender *copyNode, is sys.Stat) {
	to := lender.sides[atDestination].is.device
	mayShare := p.t.o.Method == MethodAuto || p.t.o.Method == MethodReflink
	if to == is.Device && mayShare {
		return
	}
	if p.need[to] == nil {
		p.need[to] = &roomNeed{at: lender}
	}
	p.need[to].files++
	p.need[to].bytes += dataBytes(is.Size, is.Blocks)
}

// A roomNeed is what the single files of a call take of a file system.
type roomNeed struct {
	files int
	bytes int64
	at    *copyNode
}

func (n *roomNeed) what() string {
	if n.files == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", n.files)
}

// room returns an error where the single files have no room.
func (p *copyPairs) room() error {
	for _, need := range p.need {
		free, err := p.free(need.at)
		if err == nil && need.bytes > free {
			asked, left := tooLarge(need.bytes, free)
			return fmt.Errorf("copy: no room in %s for %s with %s, as %s are free; make room, or name another destination",
				need.at.path(atDestination), need.what(), asked, left)
		}
	}
	return nil
}

func (p *copyPairs) free(n *copyNode) (int64, error) {
	h, err := p.t.use(n, atDestination)
	if err != nil {
		return 0, err
	}
	defer p.t.handles.rest(h)
	return p.t.disk.Free(h.fd)
}
