package filecopy

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
	"github.com/holdfast-go/holdfast/internal/temporary"
)

// A copyMark names the temporary files of one pair's copies, so that the next call for the same
// destination recognizes the files that a killed call has left. It locks the destination's
// directory for the time of the call: no other call then writes a file of such a name. A call that
// does not get the lock uses random names.
type copyMark struct {
	t    *copyTree
	node *copyNode // its destination is the locked directory
	once sync.Once
	id   fileID // the locked directory; zero: none
	fd   int    // holds the lock

	mu  sync.Mutex
	has map[sys.Name]bool // names in use by this call
}

// mostMarks is the most pairs of a call with a copyMark: each keeps a descriptor.
const mostMarks = 4

// giveMark gives a node's directory a mark, unless mostMarks have one.
func (t *copyTree) giveMark(n *copyNode) *copyMark {
	if len(t.marks) >= mostMarks {
		return nil
	}
	m := &copyMark{t: t, node: n}
	t.marks = append(t.marks, m)
	return m
}

// lock locks the directory. It is called for the first temporary file.
func (m *copyMark) lock() {
	h, err := m.t.use(m.node, atDestination)
	if err != nil {
		return
	}
	defer m.t.handles.Rest(h)
	fd, err := temporary.OpenToLock(m.t.disk, h.Fd)
	if err != nil {
		return
	}
	if err := sys.Uninterrupted(func() error { return m.t.disk.Lock(fd) }); err != nil {
		m.t.disk.Close(fd) // nothing was written to it
		return
	}
	m.id, m.fd = m.node.sides[atDestination].is, fd
}

// reserve returns the name of a temporary file for a path below the directory, and reserves it
// until giveBack. It returns "" if there is no such name, or if a file of this call has it, because
// a directory that changes while it is read may return a name twice. Two paths never get the same
// name, even if their directories are mounted in several places.
func (m *copyMark) reserve(path string) sys.Name {
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
	digest := new(big.Int).SetBytes(sum.Sum(nil)[:16]).Text(36)
	name := sys.Name(temporary.Prefix + "copy-" + digest + "\x00")
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.has[name] {
		return ""
	}
	if m.has == nil {
		m.has = map[sys.Name]bool{}
	}
	m.has[name] = true
	return name
}

func (m *copyMark) giveBack(name sys.Name) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.has, name)
}

// openTemporary makes a file under an unused name. It prefers a reserved name, and first removes a
// file that a killed call has left under it.
func (j *copyJob) openTemporary() (err error) {
	if name := j.to.mark.reserve(j.to.path); name != "" {
		err = j.create(name)
		if errors.Is(err, fs.ErrExist) && temporary.RemoveStale(j.disk, j.made.dir, name, j.mayOwn) == nil {
			err = j.create(name)
		}
		if err != nil {
			j.to.mark.giveBack(name)
		}
		if !errors.Is(err, fs.ErrExist) && !errors.Is(err, syscall.ENAMETOOLONG) {
			j.made.temporary, j.made.mark = name, j.to.mark
			return j.opened(err)
		}
	}
	for range 100 {
		j.made.temporary = beside(j.made.name, temporary.Name())
		if err = j.create(j.made.temporary); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return j.opened(err)
}
