package holdfast

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io/fs"
	"math/big"
	"strings"
	"sync"
	"syscall"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// A copyMark names the temporary files of one pair's copies, so that the next call for
// the same destination knows what a killed one has left. It locks the destination's
// folder as long as the call goes on: who has the lock knows that nobody else is at work
// on a file of such a name. Who does not get it takes names that tell nothing.
type copyMark struct {
	t    *copyTree
	node *copyNode // whose destination is the folder
	once sync.Once
	id   fileID // what is locked; zero: nothing
	fd   int    // keeps the lock, if it is

	mu  sync.Mutex
	has map[sys.Name]bool // files of this call
}

// mostMarks is how many pairs of a call have such names: each keeps a descriptor.
const mostMarks = 4

// mark returns what names the temporary files of a node's copies, or nil.
func (n *copyNode) mark() *copyMark {
	if n.root != nil {
		return n.root.mark
	}
	return n.own
}

// giveMark gives a node's folder a mark, unless too many have one.
func (t *copyTree) giveMark(n *copyNode) *copyMark {
	if len(t.marks) >= mostMarks {
		return nil
	}
	m := &copyMark{t: t, node: n}
	t.marks = append(t.marks, m)
	return m
}

// lock is made when the first temporary is.
func (m *copyMark) lock() {
	h, err := m.t.use(m.node, atDestination)
	if err != nil {
		return
	}
	defer m.t.handles.rest(h)
	fd, err := m.t.disk.OpenFolderIn(h.fd, sys.Name(".\x00"))
	if err != nil {
		return
	}
	if err := uninterrupted(func() error { return m.t.disk.Lock(fd) }); err != nil {
		m.t.disk.Close(fd) // nothing was written to it
		return
	}
	m.id, m.fd = m.node.sides[atDestination].is, fd
}

func (m *copyMark) end() {
	if m.id != (fileID{}) {
		m.t.disk.Close(m.fd) // nothing was written to it
	}
}

// temporary returns the name of a temporary file for a path below the folder; "": it has
// none that would be known again. Two paths have never the same, by whatever names their
// folders are mounted.
func (m *copyMark) temporary(path string) sys.Name {
	if m == nil {
		return ""
	}
	m.once.Do(m.lock)
	if m.id == (fileID{}) {
		return ""
	}
	sum := sha256.New()
	var id [16]byte
	binary.LittleEndian.PutUint64(id[:8], m.id.device)
	binary.LittleEndian.PutUint64(id[8:], m.id.inode)
	sum.Write(id[:])
	sum.Write([]byte(strings.TrimPrefix(path, m.node.path(atDestination))))
	name := new(big.Int).SetBytes(sum.Sum(nil)[:16]).Text(36)
	return sys.Name(temporaryPrefix + "copy-" + name + "\x00")
}

// take reserves a name until giveBack. It reports false if a file of this call has it: a
// folder that is written to while it is read may tell a name twice.
func (m *copyMark) take(name sys.Name) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.has[name] {
		return false
	}
	if m.has == nil {
		m.has = map[sys.Name]bool{}
	}
	m.has[name] = true
	return true
}

func (m *copyMark) giveBack(name sys.Name) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.has, name)
}

// openMarked makes a temporary file under a name that is known again, and removes the
// one that a killed call has left. It reports false if there is no such name to be had.
func (j *copyJob) openMarked() (ok bool, err error) {
	name := j.to.mark.temporary(j.to.path)
	if name == "" || !j.to.mark.take(name) {
		return false, nil
	}
	err = j.create(name)
	if errors.Is(err, fs.ErrExist) && j.isLeftover(name) {
		if uninterrupted(func() error { return j.disk.Remove(j.made.folder, name) }) == nil {
			err = j.create(name)
		}
	}
	if err != nil {
		j.to.mark.giveBack(name)
	}
	if errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENAMETOOLONG) {
		return false, nil
	}
	j.made.temporary, j.made.mark = name, j.to.mark
	return true, j.opened(err)
}

// isLeftover reports whether a file may be what a call of this user has left.
func (j *copyJob) isLeftover(name sys.Name) bool {
	is, err := j.statAs(name)
	return err == nil && is.Mode&kindMask == kindRegular && is.Links == 1 && j.mayOwn(is.UID)
}
